// SPDX-License-Identifier: Apache-2.0
// Files of programs beside the versions of a series.
#include "varve/beside.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "base/coding.h"
#include "support/temp_repository.h"
#include "varve/repair.h"
#include "varve/retention.h"

namespace varve::test {
namespace {

class Beside : public testing::Test {
 protected:
  Beside() : path_(directory_.path() + "/r") {
    must(Repository::create(path_, small_chunks(Codec::kNone)));
    repository_ = reopen(path_);
    series_ = must(repository_->create_series("s")).id;
  }
  std::shared_ptr<BesideFiles> files() { return must(repository_->beside(series_)); }
  void open_again(OpenOptions options = quiet_options()) {
    repository_.reset();
    repository_ = reopen(path_, options);
  }
  Ino make(std::string_view name, std::string_view text, Ino parent = kRootIno) {
    const Ino ino = must(files()->create(parent, name, regular_file())).ino;
    const auto file = must(files()->open(ino, true));
    must(file->write(0, base::as_bytes(text)));
    must(file->flush());
    return ino;
  }
  std::string text_of(std::string_view name, Ino parent = kRootIno) {
    const auto entry = must(files()->lookup(parent, name));
    const auto file = must(files()->open(entry.ino, false));
    return read_all(*file, entry.attributes.size);
  }
  std::string on_disk() const { return path_ + "/series/00000001/beside"; }

  const TempDirectory directory_;
  const std::string path_;
  std::unique_ptr<Repository> repository_;
  SeriesId series_{};
};

TEST_F(Beside, EntriesSurviveReopeningAndARebuiltCatalog) {
  const Ino folder_ino = must(files()->create(kRootIno, "dirvish", folder())).ino;
  make("default.hist", "one", folder_ino);
  const Ino marker = make("backup.marker", "");
  AttributeChange change;
  change.mode = 0600;
  change.uid = 3;
  change.mtime = Timestamp{9, 8};
  must(files()->set_attributes(marker, change));
  NewFile link;
  link.mode = S_IFLNK | 0777;
  link.symlink_target = "v1";
  must(files()->create(kRootIno, "latest", link));
  for (const bool rebuild : {false, true}) {
    repository_.reset();
    if (rebuild) {
      std::filesystem::remove_all(path_ + "/catalog");
      must(must(Repair::plan(path_, {}, false, {}))->execute({}));
    }
    repository_ = reopen(path_);
    EXPECT_EQ(text_of("default.hist", must(files()->lookup(kRootIno, "dirvish")).ino), "one");
    const auto entry = must(files()->lookup(kRootIno, "backup.marker"));
    EXPECT_EQ(entry.ino, marker);
    EXPECT_EQ(entry.attributes.mode, S_IFREG | 0600U);
    EXPECT_EQ(entry.attributes.uid, 3U);
    EXPECT_EQ(entry.attributes.mtime, (Timestamp{9, 8}));
    EXPECT_EQ(must(files()->read_link(must(files()->lookup(kRootIno, "latest")).ino)), "v1");
    EXPECT_EQ(must(files()->list(kRootIno)).size(), 3U);
  }
}

TEST_F(Beside, LimitsRefuseAndLeaveTheFilesAsTheyWere) {
  const Ino big = make("big", "start");
  const auto file = must(files()->open(big, true));
  const std::string bytes(kBesideFileBytesMax, 'x');
  EXPECT_EQ(code_of(file->write(1, base::as_bytes(bytes))), ErrorCode::kTooLarge);
  EXPECT_EQ(code_of(file->write(1ULL << 62, base::as_bytes("x"))), ErrorCode::kTooLarge);
  AttributeChange huge;
  huge.size = 1ULL << 62;
  EXPECT_EQ(code_of(files()->set_attributes(big, huge)), ErrorCode::kTooLarge);
  EXPECT_EQ(text_of("big"), "start");
  for (const char* name : {"a", "b", "c"}) make(name, bytes);
  must(file->write(0, base::as_bytes(bytes)));
  const Ino one_more = make("d", "");
  const auto more = must(files()->open(one_more, true));
  EXPECT_EQ(code_of(more->write(0, base::as_bytes("x"))), ErrorCode::kNoSpace);
  for (std::size_t i = 5; i < kBesideNamesMax; ++i) make(std::to_string(i), "");
  EXPECT_EQ(code_of(files()->create(kRootIno, "over", regular_file())), ErrorCode::kNoSpace);
  must(more->flush());
  open_again();
  EXPECT_EQ(must(files()->list(kRootIno)).size(), kBesideNamesMax);
  EXPECT_EQ(text_of("c"), bytes);
}

TEST_F(Beside, OnlyFilesLinksAndOneLevelOfFolders) {
  const Ino folder_ino = must(files()->create(kRootIno, "f", folder())).ino;
  EXPECT_EQ(code_of(files()->create(folder_ino, "g", folder())), ErrorCode::kNotPermitted);
  NewFile pipe;
  pipe.mode = S_IFIFO | 0644;
  EXPECT_EQ(code_of(files()->create(kRootIno, "p", pipe)), ErrorCode::kNotPermitted);
  EXPECT_EQ(code_of(files()->create(kRootIno, "..", regular_file())), ErrorCode::kInvalid);
  EXPECT_EQ(code_of(files()->create(kRootIno, std::string(256, 'n'), regular_file())),
            ErrorCode::kNameTooLong);
  make("in", "x", folder_ino);
  EXPECT_EQ(code_of(files()->remove_directory(kRootIno, "f")), ErrorCode::kNotEmpty);
  EXPECT_EQ(code_of(files()->unlink(kRootIno, "f")), ErrorCode::kIsDirectory);
  const Ino set_id = must(files()->create(kRootIno, "s", regular_file(06755))).ino;
  EXPECT_EQ(must(files()->get(set_id)).attributes.mode, S_IFREG | 0755U);
}

TEST_F(Beside, RenameReplacesAsRenameat2Does) {
  const Ino folder_ino = must(files()->create(kRootIno, "f", folder())).ino;
  make("new", "new");
  make("old", "old");
  const auto rename = [&](const char* from, Ino to_directory, const char* to, RenameMode mode) {
    return files()->rename(kRootIno, from, to_directory, to, mode);
  };
  EXPECT_EQ(code_of(rename("new", kRootIno, "old", RenameMode::kNoReplace)), ErrorCode::kExists);
  EXPECT_EQ(code_of(rename("new", kRootIno, "f", RenameMode::kReplace)), ErrorCode::kIsDirectory);
  EXPECT_EQ(code_of(rename("f", kRootIno, "old", RenameMode::kReplace)), ErrorCode::kNotDirectory);
  EXPECT_EQ(code_of(rename("none", kRootIno, "old", RenameMode::kReplace)), ErrorCode::kNotFound);
  must(rename("new", kRootIno, "old", RenameMode::kReplace));
  must(rename("old", folder_ino, "moved", RenameMode::kReplace));
  open_again();
  EXPECT_EQ(text_of("moved", folder_ino), "new");
  EXPECT_EQ(must(files()->list(kRootIno)).size(), 1U);
}

TEST_F(Beside, RemovedFileStaysReadableWhileItIsOpen) {
  const Ino ino = make("f", "text");
  auto file = must(files()->open(ino, true));
  must(files()->unlink(kRootIno, "f"));
  must(file->write(4, base::as_bytes("more")));
  EXPECT_EQ(read_all(*file, 8), "textmore");
  EXPECT_EQ(must(files()->get(ino)).attributes.nlink, 0U);
  EXPECT_NE(make("f", "other"), ino);
  file.reset();
  EXPECT_EQ(code_of(files()->get(ino)), ErrorCode::kStale);
}

TEST_F(Beside, VersionsAndFilesNeverShareAName) {
  make("taken", "");
  EXPECT_EQ(code_of(repository_->open_version(series_, "taken", folder())), ErrorCode::kExists);
  EXPECT_EQ(code_of(repository_->open_version(series_, "taken.partial", folder())),
            ErrorCode::kExists);
  const auto number = must(repository_->open_version(series_, "v.partial", folder())).number;
  EXPECT_EQ(code_of(repository_->seal(series_, number, "taken")), ErrorCode::kExists);
  must(repository_->seal(series_, number, ""));
  EXPECT_EQ(code_of(repository_->rename_version(series_, number, "taken")), ErrorCode::kExists);
  must(repository_->delete_versions(series_, {number}));
  EXPECT_EQ(code_of(repository_->remove_series("s")), ErrorCode::kNotEmpty);
  must(files()->unlink(kRootIno, "taken"));
  must(repository_->remove_series("s"));
  EXPECT_FALSE(std::filesystem::exists(path_ + "/series/00000001"));
}

TEST_F(Beside, DamagedFileIsKeptAndRefusesChanges) {
  make("f", "text");
  repository_.reset();
  std::ofstream(on_disk(), std::ios::binary | std::ios::app) << "x";
  const auto before = std::filesystem::file_size(on_disk());
  repository_ = reopen(path_);
  EXPECT_EQ(code_of(files()->lookup(kRootIno, "f")), ErrorCode::kNotFound);
  EXPECT_EQ(code_of(files()->list(kRootIno)), ErrorCode::kCorrupt);
  EXPECT_EQ(code_of(files()->create(kRootIno, "g", regular_file())), ErrorCode::kCorrupt);
  EXPECT_EQ(code_of(repository_->remove_series("s")), ErrorCode::kCorrupt);
  must(repository_->open_version(series_, "v", folder()));
  EXPECT_EQ(std::filesystem::file_size(on_disk()), before);
}

TEST_F(Beside, ReadOnlyRepositoryRefusesChanges) {
  const Ino ino = make("f", "text");
  auto options = quiet_options();
  options.read_only = true;
  open_again(options);
  EXPECT_EQ(text_of("f"), "text");
  EXPECT_EQ(code_of(files()->unlink(kRootIno, "f")), ErrorCode::kReadOnly);
  EXPECT_EQ(code_of(files()->open(ino, true)), ErrorCode::kReadOnly);
}

}  // namespace
}  // namespace varve::test
