// SPDX-License-Identifier: Apache-2.0
// Restoring a file with many holes costs as much as it has runs. The recipe's index counts the runs
// that the searches for data and holes look at; no time counts.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>

#include "base/coding.h"
#include "support/temp_repository.h"
#include "transfer/file_restorer.h"
#include "transfer/file_sink.h"
#include "varve/backup.h"
#include "varve/browse.h"
#include "version/sealed_version.h"

namespace varve {
namespace {

using test::must;

constexpr std::uint64_t kBlock = 4096;
// A search begins at a marked run, of which every 64th is one, and a hole needs three searches.
constexpr std::uint64_t kVisitsPerRun = 3 * 66;

/// Counts the calls of a restore.
class CountingSink final : public transfer::FileSink {
 public:
  [[nodiscard]] Result<void> put(transfer::ByteRange, SharedBytes) override {
    ++pieces;
    return {};
  }
  [[nodiscard]] Result<void> skip(transfer::ByteRange) override {
    ++holes;
    return {};
  }
  std::uint64_t pieces = 0;
  std::uint64_t holes = 0;
};

struct Cost {
  std::uint64_t visited = 0;
  std::uint64_t calls = 0;
};

class HolesGate : public testing::Test {
 protected:
  void SetUp() override {
    must(Repository::create(place_.path(), test::small_chunks(Codec::kNone)));
    repository_ = test::reopen(place_.path());
  }

  /// Stores a file with this number of blocks of data, each behind a hole, and seals the version.
  VersionInfo store(const std::string& name, std::uint64_t blocks) {
    const VersionInfo opened =
        must(open_in_series(*repository_, "s", [&](const SeriesInfo& series) {
          return repository_->open_version(series.id, name, test::folder());
        }));
    const auto writer = must(repository_->writer(opened.series));
    const OpenEntry made = must(writer->create(kRootIno, "holes", test::regular_file()));
    {
      const auto open = must(writer->open(made.ino, true));
      const std::string byte(1, 'x');
      for (std::uint64_t i = 0; i < blocks; ++i) {
        must(open->write((2 * i + 1) * kBlock, base::as_bytes(byte)));
      }
      must(open->flush());
    }
    return must(repository_->seal(opened.series, opened.number, "")).info;
  }

  Cost restore(const VersionInfo& version, std::uint64_t blocks) {
    const auto reader = must(repository_->reader(version.series, version.number));
    const auto file = must(reader->open(must(reader->lookup(0, "holes")).rank));
    auto* const sealed = dynamic_cast<version::SealedFile*>(file.get());
    EXPECT_NE(sealed, nullptr);
    if (sealed == nullptr) return {};
    CountingSink sink;
    transfer::FileRestorer restorer(true, [](std::uint64_t) { return true; });
    const auto lost = must(restorer.copy(*file, sink));
    EXPECT_EQ(lost.bytes, 0U);
    EXPECT_EQ(sink.pieces, blocks);
    EXPECT_EQ(sink.holes, blocks);
    return {sealed->runs_visited(), sink.pieces + sink.holes};
  }

  const test::TempDirectory place_;
  std::unique_ptr<Repository> repository_;
};

TEST_F(HolesGate, ARestoreLooksAtEachRunABoundedNumberOfTimes) {
  const std::uint64_t few = 50'000;
  const Cost half = restore(store("half", few), few);
  const Cost whole = restore(store("whole", 2 * few), 2 * few);
  EXPECT_GT(half.visited, 2 * few);
  EXPECT_LE(half.visited, 2 * few * kVisitsPerRun);
  // Twice the runs cost twice as much.
  EXPECT_LE(whole.visited, half.visited * 21 / 10);
  EXPECT_EQ(whole.calls, 2 * half.calls);
}

}  // namespace
}  // namespace varve
