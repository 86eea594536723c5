// SPDX-License-Identifier: Apache-2.0
// Sealed labels, and the check of sealed files without the key.
#include "maintain/sealed_check.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "format/data_codecs.h"
#include "maintain/manifest_file.h"
#include "store/sealed_places.h"
#include "support/sealed_memory.h"
#include "support/temp_repository.h"

namespace varve::maintain {
namespace {

using format::ManifestRecord;
using test::must;

constexpr SeriesId kSeries{10};
constexpr const char* kFolder = "/repo/series/0000000a";
constexpr const char* kLabelsPath = "/repo/series/0000000a/labels";

Result<SealedFilesReport> check(io::FileSystem& disk, const SealedCheckOptions& options = {}) {
  return check_sealed_files(disk, list_sealed_files(disk, "/repo"), options);
}

class SealedCheck : public testing::Test {
 protected:
  SealedCheck() {
    auto disk = io::make_memory_file_system();
    disk_ = disk.get();
    files_ = store::seal_files(std::move(disk), test::random_keys(), "/repo");
    for (const char* folder : {"/repo", "/repo/series", kFolder, "/repo/series/0000000a/manifests",
                               "/repo/pool", "/repo/staging", "/repo/staging/0000000a-00000001"}) {
      must(files_->make_directory(folder));
    }
  }

  std::string labels_image(const std::string& name) {
    format::ManifestHeader wanted;
    wanted.kind = format::ManifestKind::kLabels;
    wanted.grows = true;
    wanted.series = kSeries;
    wanted.stamp = 1;
    std::string body;
    format::ManifestEncoder encoder(wanted, codecs_.frames(), format::Compression{},
                                    [&](std::string_view bytes) -> Result<void> {
                                      body += bytes;
                                      return {};
                                    });
    must(encoder.add(ManifestRecord::kSeries, "", "the series"));
    must(encoder.add(ManifestRecord::kVersion, std::string("\0\0\0\1", 4), name));
    return format::encode_manifest_header(must(encoder.finish())) + body;
  }
  /// Appends a version, and returns the length of the labels.
  std::uint64_t append(std::uint64_t at, char number, const std::string& name) {
    LabelsUpdate update;
    update.series = kSeries;
    update.stamp = static_cast<std::uint64_t>(number);
    update.at = at;
    update.records.push_back({ManifestRecord::kVersion, std::string("\0\0\0", 3) + number, name});
    return must(append_labels(*files_, codecs_.frames(), kFolder, update));
  }
  Result<Labels> read() { return read_labels(*files_, codecs_.frames(), kFolder, kSeries); }
  /// Returns the names of the versions in the labels.
  std::vector<std::string> names(const Labels& labels) {
    std::vector<std::string> all;
    for (const auto& record : labels.records) all.push_back(record.value);
    return all;
  }

  std::string raw(const std::string& path) { return must(disk_->read_file(path, 1U << 20)); }
  void set_raw(const std::string& path, const std::string& bytes) {
    const auto file = must(disk_->open(path, io::OpenMode::kReadWrite));
    must(file->truncate(0));
    must(file->write_at(0, base::as_bytes(bytes)));
  }

  const format::DataCodecs codecs_{test::small_chunks(Codec::kNone)};
  io::FileSystem* disk_ = nullptr;
  std::unique_ptr<io::FileSystem> files_;
};

using Names = std::vector<std::string>;

TEST_F(SealedCheck, TornUpdatesLeaveTheLabelsBefore) {
  const auto image = labels_image("first");
  must(write_labels(*files_, kFolder, image));
  auto end = append(image.size(), 2, "second " + test::noise(600, 1));
  const auto before = raw(kLabelsPath);
  const auto expected = names(must(read()));
  ASSERT_EQ(expected.size(), 2U);
  end = append(end, 3, "third " + test::noise(900, 2));
  const auto after = raw(kLabelsPath);
  ASSERT_TRUE(after.starts_with(before)) << "a promised byte was written again";
  EXPECT_EQ(names(must(read())).size(), 3U);
  EXPECT_EQ(must(read()).end, end);
  EXPECT_FALSE(must(read()).torn);
  for (std::size_t kept = before.size(); kept < after.size(); kept += 7) {
    // The crash leaves a part of the update: its begin, or its end, or with zeros.
    std::vector<std::string> images{after.substr(0, kept)};
    images.push_back(images[0] + std::string(after.size() - kept, '\0'));
    images.push_back(before + std::string(kept - before.size(), '\0') + after.substr(kept));
    for (const auto& torn : images) {
      if (torn == after) continue;
      const bool ordered = &torn != &images.back();
      set_raw(kLabelsPath, torn);
      const auto labels = must(read());
      EXPECT_EQ(names(labels), expected) << kept;
      EXPECT_EQ(labels.torn, torn.size() > before.size()) << kept;
      const auto report = must(check(*disk_));
      if (ordered) {
        EXPECT_TRUE(report.damages.empty()) << kept;
      }
    }
  }
}

TEST_F(SealedCheck, DamageBeforeAWholeUpdateIsDamage) {
  const auto image = labels_image("first");
  must(write_labels(*files_, kFolder, image));
  const auto first = raw(kLabelsPath).size();
  append(append(image.size(), 2, "second"), 3, "third");
  const auto sound = raw(kLabelsPath);
  for (const std::size_t at : {std::size_t{70}, first + 300}) {
    auto damaged = sound;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    set_raw(kLabelsPath, damaged);
    if (at == first + 300 && must(check(*disk_)).damages.empty()) {
      continue;  // Between two blocks.
    }
    EXPECT_EQ(test::code_of(read()), ErrorCode::kCorrupt) << at;
  }
}

TEST_F(SealedCheck, DamagedFilesAreFoundWithoutTheKey) {
  const Names all{"/repo/scrub",
                  "/repo/series/0000000a/manifests/00000001.man",
                  "/repo/series/0000000a/index-00000001.run",
                  "/repo/series/0000000a/sources-00000001.dat",
                  "/repo/series/0000000a/beside",
                  "/repo/pool/aliases-00000001.als",
                  "/repo/pool/index-zero-00000001.bins",
                  kLabelsPath};
  for (const auto& path : all) {
    must(must(files_->open(path, io::OpenMode::kReadWrite))
             ->write_at(0, base::as_bytes(test::noise(10000, 1))));
  }
  // Nothing is expected of these.
  set_raw("/repo/pool/sort-00000001.tmp", "???");
  set_raw("/repo/staging/0000000a-00000001/tails", "???");
  set_raw("/repo/series/0000000a/notes.txt", "???");
  set_raw("/repo/varve.repo", "???");
  auto report = must(check(*disk_));
  EXPECT_EQ(report.files, all.size());
  EXPECT_TRUE(report.damages.empty() && report.incomplete.empty());
  for (const auto& path : all) {
    const auto sound = raw(path);
    auto damaged = sound;
    damaged[500] = static_cast<char>(damaged[500] ^ 4);
    set_raw(path, damaged);
    report = must(check(*disk_));
    ASSERT_EQ(report.damages.size(), 1U) << path;
    EXPECT_EQ(report.damages[0].path, path);
    EXPECT_EQ(report.damages[0].what, "block 0 is damaged");
    // The end of a file that grows may be left by a crash.
    const bool grows = path == kLabelsPath || path.ends_with(".bins");
    set_raw(path, sound.substr(0, sound.size() - 10));
    report = must(check(*disk_));
    EXPECT_EQ(report.damages.size(), grows ? 0U : 1U) << path;
    EXPECT_EQ(report.incomplete, grows ? Names{path} : Names{});
    set_raw(path, "");
    EXPECT_EQ(must(check(*disk_)).damages.size(), 1U) << path;
    set_raw(path, sound);
  }
}

}  // namespace
}  // namespace varve::maintain
