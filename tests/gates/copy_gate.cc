// SPDX-License-Identifier: Apache-2.0
// A copy costs what has changed: the number of unchanged files has no effect on the records that
// are read at either end, nor on the bytes that are sent or written.
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <memory>
#include <string>

#include "support/records_read.h"
#include "support/temp_repository.h"
#include "varve/copy.h"

namespace varve {
namespace {

using test::must;

constexpr int kFilesPerDirectory = 50;
constexpr int kDirectoriesPerParent = 20;
constexpr int kChanged = 10;

std::uint64_t bytes_passed_to_write() {
  std::ifstream io("/proc/self/io");
  std::string field;
  std::uint64_t value = 0;
  while (io >> field >> value) {
    if (field == "wchar:") return value;
  }
  ADD_FAILURE() << "/proc/self/io has no wchar";
  return 0;
}

struct CopyCosts {
  std::uint64_t source_records = 0;
  std::uint64_t target_records = 0;
  std::uint64_t written = 0;
  CopyReport report;
};

class CopyGate : public testing::Test {
 protected:
  /// Creates a source with an open version, and a target.
  void begin(const std::string& name) {
    source_path_ = directory_.path() + "/source-" + name;
    target_path_ = directory_.path() + "/target-" + name;
    must(Repository::create(source_path_, test::small_chunks(Codec::kNone)));
    must(Repository::create(target_path_, test::small_chunks(Codec::kNone)));
    source_ = test::reopen(source_path_);
    series_ = must(source_->create_series("s")).id;
    newest_ = must(source_->open_version(series_, "v1", test::folder())).number;
  }

  /// Stores `files` files in a new source, and copies them to a new target.
  void store_and_copy(int files) {
    begin("files" + std::to_string(files));
    {
      const auto writer = must(source_->writer(series_));
      Ino parent = kRootIno;
      Ino folder = kRootIno;
      for (int i = 0; i < files; ++i) {
        if (i % (kFilesPerDirectory * kDirectoriesPerParent) == 0) {
          parent = must(writer->create(kRootIno, "d" + std::to_string(i), test::folder())).ino;
        }
        if (i % kFilesPerDirectory == 0) {
          folder = must(writer->create(parent, "e" + std::to_string(i), test::folder())).ino;
        }
        test::write_file(*writer, folder, "f" + std::to_string(i), "content");
      }
    }
    must(source_->seal(series_, newest_, ""));
    copy();
  }

  CopyReport copy() {
    const auto target = test::reopen(target_path_);
    const auto to = copy_target(*target);
    auto report = must(copy_versions(*source_, to.get(), {}, {}));
    for (const auto& problem : report.problems) ADD_FAILURE() << problem;
    must(target->close());
    return report;
  }

  /// Changes ten files in ten directories, and copies the new version with cold caches.
  CopyCosts copy_changes() {
    const auto version = must(source_->clone_version(series_, newest_, "v2")).number;
    {
      const auto writer = must(source_->writer(series_));
      for (int i = 0; i < kChanged; ++i) {
        const int first = i * kFilesPerDirectory;
        const Ino parent = must(writer->lookup(kRootIno, "d0")).ino;
        const Ino folder = must(writer->lookup(parent, "e" + std::to_string(first))).ino;
        const auto file = must(writer->lookup(folder, "f" + std::to_string(first + 7)));
        const auto handle = must(writer->open(file.ino, true));
        must(handle->write(0, base::as_bytes(test::noise(3000, static_cast<unsigned>(i)))));
      }
    }
    must(source_->seal(series_, version, ""));
    must(source_->close());
    source_.reset();
    source_ = test::reopen(source_path_);
    const auto target = test::reopen(target_path_);
    const auto to = copy_target(*target);
    CopyCosts costs;
    const auto written = bytes_passed_to_write();
    costs.source_records = test::records_read(*source_, [&] {
      costs.target_records = test::records_read(
          *target, [&] { costs.report = must(copy_versions(*source_, to.get(), {}, {})); });
    });
    costs.written = bytes_passed_to_write() - written;
    must(target->close());
    return costs;
  }

  /// Copies a file with this number of holes. Returns the records that the source reads.
  std::uint64_t copy_holes(std::uint64_t holes) {
    begin("holes" + std::to_string(holes));
    {
      const auto writer = must(source_->writer(series_));
      const auto made = must(writer->create(kRootIno, "f", test::regular_file()));
      const auto file = must(writer->open(made.ino, true));
      for (std::uint64_t i = 0; i < holes; ++i) {
        must(file->write((2 * i + 1) * 4096, base::as_bytes(std::to_string(i))));
      }
    }
    must(source_->seal(series_, newest_, ""));
    return test::records_read(*source_, [&] { EXPECT_EQ(copy().copied, 1U); });
  }

  const test::TempDirectory directory_;
  std::string source_path_;
  std::string target_path_;
  std::unique_ptr<Repository> source_;
  SeriesId series_{};
  VersionNumber newest_{};
};

TEST_F(CopyGate, CostsDoNotDependOnUnchangedFiles) {
  store_and_copy(2000);
  const auto few = copy_changes();
  source_.reset();
  store_and_copy(20000);
  const auto many = copy_changes();
  EXPECT_EQ(few.report.copied, 1U);
  EXPECT_EQ(many.report.copied, 1U);
  // A file is made again and gets its data and attributes; a directory gets its attributes.
  EXPECT_LE(many.report.changes, 3U * kChanged + kChanged + 2);
  EXPECT_EQ(many.report.changes, few.report.changes);
  EXPECT_EQ(many.report.sent_bytes, 3000U * kChanged);
  EXPECT_LT(many.source_records, few.source_records * 5 / 4 + 20);
  EXPECT_LT(many.target_records, few.target_records * 5 / 4 + 20);
  EXPECT_LT(many.source_records, 400U);
  EXPECT_LT(many.target_records, 1000U);
  EXPECT_LT(many.written, few.written * 5 / 4);
}

// A copy lists a file's chunks range by range, and must not read its recipe again for each.
TEST_F(CopyGate, AFileWithManyHolesHasItsRecipeReadOnce) {
  const auto few = copy_holes(1000);
  const auto many = copy_holes(2000);
  // Four records for each hole and the data behind it. The recipe would be two more for each.
  EXPECT_LT(many, few + 5 * 1000U);
}

}  // namespace
}  // namespace varve
