// SPDX-License-Identifier: Apache-2.0
// Varve refuses repositories of newer formats, does not take them for damaged, and changes nothing.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/checksum.h"
#include "format/container.h"
#include "meta/schema.h"
#include "support/file_content.h"
#include "support/temp_repository.h"
#include "varve/backup.h"
#include "varve/check.h"
#include "varve/repair.h"

namespace varve::test {
namespace {

namespace fs = std::filesystem;

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return varve::test::rest_of(in);
}
void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

class NewerFormat : public testing::Test {
 protected:
  NewerFormat() : path_(directory_.path() + "/r"), series_path_(path_ + "/series/00000001/") {
    must(Repository::create(path_, small_chunks(Codec::kZstd)));
    repository_ = reopen(path_);
    series_ = must(repository_->create_series("s")).id;
    const auto number = must(repository_->open_version(series_, "one", folder())).number;
    write_file(*must(repository_->writer(series_)), kRootIno, "file", content_);
    must(repository_->seal(series_, number, ""));
    repository_.reset();
  }

  // Raises the format in a header whose checksum of all before it stands at `checksum`.
  static void raise(const std::string& path, std::size_t checksum) {
    auto bytes = bytes_of(path);
    ASSERT_GT(bytes.size(), checksum + sizeof(std::uint64_t));
    bytes[4] = 3;
    const auto sum = base::checksum64(base::as_bytes(bytes).first(checksum));
    for (std::size_t i = 0; i < sizeof sum; ++i) {
      bytes[checksum + i] = static_cast<char>(sum >> (8 * i));
    }
    write_bytes(path, bytes);
  }
  static void raise_manifest(const std::string& path) { raise(path, 56); }
  static void raise_container(const std::string& path) { raise(path, 120); }

  // Neither with the catalog nor without it; nothing is changed by trying.
  void expect_repair_refuses(const std::string& file) {
    const auto before = bytes_of(file);
    RepairOptions options;
    for (const bool rebuild : {false, true}) {
      options.rebuild_catalog = rebuild;
      const auto planned = Repair::plan(path_, options, false, {});
      if (planned) {
        EXPECT_EQ(code_of((*planned)->execute({})), ErrorCode::kUnsupported) << rebuild;
      } else {
        EXPECT_EQ(planned.error().code(), ErrorCode::kUnsupported) << planned.error().message();
      }
      EXPECT_TRUE(bytes_of(file) == before) << "it was written";
    }
  }
  std::string only_file(const std::string& folder) {
    std::string found;
    for (const auto& entry : fs::directory_iterator(series_path_ + folder)) {
      found = entry.path().string();
    }
    return found;
  }
  std::string read_one() {
    return read_sealed(*must(repository_->reader(series_, VersionNumber{1})), "file");
  }

  TempDirectory directory_;
  std::string path_;
  std::string series_path_;
  std::string content_ = noise(50000, 1);
  std::unique_ptr<Repository> repository_;
  SeriesId series_{};
};

TEST_F(NewerFormat, SuperblockIsNotReplacedByAnOlderCopy) {
  // The lost superblock was a newer one, and one of two series has no copy of it yet.
  const auto other = path_ + "/series/00000002";
  fs::create_directory(other);
  auto labels = bytes_of(series_path_ + "labels");
  fs::remove(path_ + "/varve.repo");
  write_bytes(other + "/labels", labels);
  raise_manifest(other + "/labels");
  expect_repair_refuses(other + "/labels");
  EXPECT_FALSE(fs::exists(path_ + "/varve.repo"));
}

TEST_F(NewerFormat, LabelsKeepTheRepositoryFromBeingWritten) {
  raise_manifest(series_path_ + "labels");
  expect_repair_refuses(series_path_ + "labels");
  EXPECT_EQ(code_of(Repository::open(path_, quiet_options())), ErrorCode::kUnsupported);
  auto reading = quiet_options();
  reading.read_only = true;
  repository_ = reopen(path_, reading);
  EXPECT_TRUE(read_one() == content_);
}

TEST_F(NewerFormat, ManifestIsNotWrittenAnew) {
  const auto manifest = only_file("manifests");
  raise_manifest(manifest);
  expect_repair_refuses(manifest);
}

TEST_F(NewerFormat, ContainerIsNotQuarantined) {
  const auto segment = only_file("active");
  raise_container(segment);
  expect_repair_refuses(segment);
  repository_ = reopen(path_);
  const auto reader = must(repository_->reader(series_, VersionNumber{1}));
  const auto file = must(reader->open(find(*reader, "file")));
  std::string out(10, '\0');
  EXPECT_EQ(code_of(file->read(0, std::as_writable_bytes(std::span(out)))),
            ErrorCode::kUnsupported);
  CheckOptions options;
  const auto report = must(repository_->check(options, {}));
  ASSERT_FALSE(report.damages.empty());
  EXPECT_NE(report.damages[0].what.find("newer Varve"), std::string::npos);
}

TEST_F(NewerFormat, SeriesWithUnknownSettingsIsRefusedAndNotRepaired) {
  std::string original;
  const auto set_record = [&](std::string_view addition) {
    meta::EnvOptions options;
    options.tables = meta::catalog::kTables;
    options.map_bytes = std::size_t{1} << 30;
    const auto env = must(meta::Env::open(path_ + "/catalog", options));
    auto txn = must(meta::WriteTxn::begin(env));
    const auto key = meta::series_key(series_);
    const auto value = must(txn.get(meta::catalog::kSeries, key));
    EXPECT_TRUE(value);
    if (original.empty()) original = *value;
    must(txn.put(meta::catalog::kSeries, key, original + std::string(addition)));
    must(txn.commit());
  };
  const auto expect_refused = [&](const char* reason) {
    for (const bool read_only : {false, true}) {
      auto options = quiet_options();
      options.read_only = read_only;
      const auto opened = Repository::open(path_, options);
      ASSERT_FALSE(opened);
      EXPECT_EQ(opened.error().code(), ErrorCode::kUnsupported);
      EXPECT_NE(opened.error().message().find(reason), std::string::npos)
          << opened.error().message();
    }
    EXPECT_EQ(code_of(Repair::plan(path_, {}, false, {})), ErrorCode::kUnsupported);
  };
  set_record("\x09");
  expect_refused("placement number 9");
  set_record(std::string_view("\x00\x09", 2));
  expect_refused("rewriting policy number 9");
  set_record(std::string_view("\x00", 1));
  EXPECT_EQ(code_of(Repository::open(path_, quiet_options())), ErrorCode::kCorrupt)
      << "a placement that is not stored";
}

TEST_F(NewerFormat, UnknownPlacementsAreNotMade) {
  auto parameters = small_chunks(Codec::kZstd);
  parameters.placement = static_cast<Placement>(9);
  EXPECT_EQ(code_of(Repository::create(directory_.path() + "/pool", parameters)),
            ErrorCode::kUnsupported);
  EXPECT_FALSE(fs::exists(directory_.path() + "/pool"));
  repository_ = reopen(path_);
  EXPECT_EQ(code_of(repository_->create_series("t", {static_cast<Placement>(9)})),
            ErrorCode::kUnsupported);
  const auto made = must(repository_->create_series("t", {Placement::kLineage}));
  EXPECT_EQ(made.placement, Placement::kLineage);
  EXPECT_EQ(must(repository_->find_series("t")).placement, Placement::kLineage);
}

TEST_F(NewerFormat, OpenVersionIsLeftToTheVarveThatWroteIt) {
  repository_ = reopen(path_);
  const auto number = must(repository_->open_version(series_, "two", folder())).number;
  {
    const auto version = must(repository_->writer(series_));
    write_file(*version, kRootIno, "file", "text");
    must(version->sync());
  }
  must(repository_->close());
  repository_.reset();
  const auto set_format = [&](std::uint64_t format) {
    meta::EnvOptions options;
    options.tables = meta::overlay::kTables;
    options.map_bytes = std::size_t{1} << 30;
    const auto env = must(meta::Env::open(path_ + "/staging/00000001-00000002/overlay", options));
    auto txn = must(meta::WriteTxn::begin(env));
    must(txn.put(meta::overlay::kState, "format", base::be64(format)));
    must(txn.commit());
  };
  set_format(2);
  repository_ = reopen(path_);
  EXPECT_EQ(code_of(repository_->writer(series_)), ErrorCode::kUnsupported);
  EXPECT_EQ(code_of(repository_->seal(series_, number, "")), ErrorCode::kUnsupported);
  EXPECT_TRUE(read_one() == content_);
  repository_.reset();
  set_format(1);
  repository_ = reopen(path_);
  const auto version = must(repository_->writer(series_));
  EXPECT_EQ(read_open(*version, must(version->lookup(kRootIno, "file")).ino), "text");
}

}  // namespace
}  // namespace varve::test
