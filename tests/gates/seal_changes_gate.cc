// SPDX-License-Identifier: Apache-2.0
// A seal costs what has changed: the number of unchanged files has no effect on the records that it
// reads, nor on the bytes that it writes.
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <string>

#include "support/records_read.h"
#include "support/temp_repository.h"

namespace varve {
namespace {

using test::must;

constexpr int kFilesPerDirectory = 50;
constexpr int kDirectoriesPerParent = 20;
constexpr int kFilesPerContent = 10;  // One file in so many has data.
constexpr int kChanged = 10;

/// Returns the bytes that this process has passed to write(2) and its relatives.
std::uint64_t bytes_written() {
  std::ifstream io("/proc/self/io");
  std::string field;
  std::uint64_t value = 0;
  while (io >> field >> value) {
    if (field == "wchar:") return value;
  }
  ADD_FAILURE() << "/proc/self/io has no wchar";
  return 0;
}

std::string numbered(const char* prefix, int i) { return prefix + std::to_string(i); }

struct Costs {
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;
};

class SealChangesGate : public testing::TestWithParam<Placement> {
 protected:
  /// Stores a tree of `files` files in a repository of its own.
  void store(int files) {
    path_ = directory_.path() + "/" + std::to_string(files);
    must(Repository::create(path_, test::small_chunks(Codec::kNone)));
    repository_ = test::reopen(path_);
    SeriesOptions options;
    options.placement = GetParam();
    series_ = must(repository_->create_series("s", options)).id;
    newest_ = must(repository_->open_version(series_, "v1", test::folder())).number;
    {
      const auto writer = must(repository_->writer(series_));
      Ino parent = kRootIno;
      Ino directory = kRootIno;
      for (int i = 0; i < files; ++i) {
        if (i % (kFilesPerDirectory * kDirectoriesPerParent) == 0) {
          parent = must(writer->create(kRootIno, numbered("d", i), test::folder())).ino;
        }
        if (i % kFilesPerDirectory == 0) {
          directory = must(writer->create(parent, numbered("e", i), test::folder())).ino;
        }
        const bool has_data = i % kFilesPerContent == 0;
        const auto seed = static_cast<std::uint64_t>(i % 3000);  // Some files have the same data.
        test::write_file(*writer, directory, numbered("f", i),
                         has_data ? test::noise(20, seed) : std::string());
      }
    }
    must(repository_->seal(series_, newest_, ""));
  }

  /// Changes ten files in ten directories of a clone, and seals it with cold caches.
  Costs seal_changes(const std::string& name) {
    const auto version = must(repository_->clone_version(series_, newest_, name)).number;
    {
      const auto writer = must(repository_->writer(series_));
      for (int i = 0; i < kChanged; ++i) {
        const int first = i * kFilesPerDirectory;
        Ino at = must(writer->lookup(kRootIno, "d0")).ino;
        at = must(writer->lookup(at, numbered("e", first))).ino;
        at = must(writer->lookup(at, numbered("f", first))).ino;
        const auto file = must(writer->open(at, true));
        must(file->write(0, base::as_bytes(test::noise(20, static_cast<std::uint64_t>(9000 + i)))));
      }
    }
    repository_ = nullptr;
    repository_ = test::reopen(path_);
    must(repository_->writer(series_));
    // A process compares the labels with the catalog before its first change of them, if the
    // opening has not written them: not a cost of the seal.
    must(repository_->set_arrange_settings(must(repository_->arrange_settings())));
    Costs costs;
    const auto written = bytes_written();
    costs.records =
        test::records_read(*repository_, [&] { must(repository_->seal(series_, version, "")); });
    costs.bytes = bytes_written() - written;
    newest_ = version;
    return costs;
  }

  const test::TempDirectory directory_;
  std::string path_;
  std::unique_ptr<Repository> repository_;
  SeriesId series_{};
  VersionNumber newest_{};
};

TEST_P(SealChangesGate, UnchangedFilesCostNothing) {
  constexpr std::uint64_t kBytesMax = std::uint64_t{1} << 20;
  store(20'000);
  (void)seal_changes("v2");
  const auto few = seal_changes("v3");
  store(100'000);
  (void)seal_changes("v2");
  const auto many = seal_changes("v3");
  RecordProperty("records_of_20000", static_cast<int>(few.records));
  RecordProperty("records_of_100000", static_cast<int>(many.records));
  RecordProperty("bytes_of_20000", static_cast<int>(few.bytes));
  RecordProperty("bytes_of_100000", static_cast<int>(many.bytes));
  EXPECT_LE(many.records, few.records + few.records / 4);
  EXPECT_LE(many.bytes, few.bytes + few.bytes / 2);
  EXPECT_LE(few.bytes, kBytesMax);
}

INSTANTIATE_TEST_SUITE_P(Placements, SealChangesGate,
                         testing::Values(Placement::kLineage, Placement::kPool),
                         [](const auto& param) {
                           return param.param == Placement::kPool ? "Pool" : "Lineage";
                         });

}  // namespace
}  // namespace varve
