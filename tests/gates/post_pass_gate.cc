// SPDX-License-Identifier: Apache-2.0
// Counts what the pass that removes duplicates from the pool reads, writes and frees.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "support/pool_oracle.h"
#include "support/prefer_memory.h"
#include "support/records_read.h"
#include "support/temp_repository.h"
#include "varve/arrange.h"

namespace varve {
namespace {

using test::must;

constexpr std::size_t kFileBytes = 100'000;
constexpr std::uint64_t kShared = 120;  // Files that both series store.
constexpr std::uint64_t kOwn = 40;      // Files of one series, among them.

class PostPassGate : public testing::Test {
 protected:
  PostPassGate() {
    auto parameters = test::small_chunks(Codec::kNone);
    parameters.placement = Placement::kPool;
    must(Repository::create(path_, parameters));
    repository_ = test::reopen(path_);
    // Open versions do not see each other's chunks, so both store the shared files.
    VersionNumber opened[2];
    for (int i = 0; i < 2; ++i) {
      series_[i] = must(repository_->create_series("host" + std::to_string(i))).id;
      opened[i] = must(repository_->open_version(series_[i], "v", test::folder())).number;
    }
    for (std::uint64_t file = 0; file < kShared; ++file) {
      for (std::uint64_t i = 0; i < 2; ++i) {
        write(i, "s" + std::to_string(file), file);
        if (file % (kShared / kOwn) == 0)
          write(i, "o" + std::to_string(file), 1000 * (i + 1) + file);
      }
    }
    for (int i = 0; i < 2; ++i) must(repository_->seal(series_[i], opened[i], ""));
  }

  void write(std::uint64_t of, const std::string& name, std::uint64_t seed,
             std::size_t bytes = kFileBytes) {
    test::write_file(*must(repository_->writer(series_[of])), kRootIno, name,
                     test::noise(bytes, seed));
  }
  std::uint64_t pool_bytes() const { return test::bytes_below(path_ + "/pool/active"); }
  ArrangeReport arrange() {
    ArrangeOptions options;
    options.post_pass.any_new = true;
    return must(repository_->arrange(series_[0], options));
  }
  std::uint64_t metric(const char* name) { return test::metric(*repository_, name); }

  const test::PreferMemory in_memory_;
  const test::TempDirectory directory_;
  const std::string path_ = directory_.path() + "/repo";
  std::unique_ptr<Repository> repository_;
  SeriesId series_[2];
};

TEST_F(PostPassGate, ReadsAndWritesFollowWhatItFrees) {
  const auto before = pool_bytes();
  const auto report = arrange();
  ASSERT_TRUE(report.finished);
  const auto freed = before - pool_bytes();
  RecordProperty("freed", static_cast<int>(freed));
  RecordProperty("read", static_cast<int>(report.done.bytes_read));
  RecordProperty("written", static_cast<int>(report.done.bytes_written));
  EXPECT_GE(freed, kShared * kFileBytes * 95 / 100);
  EXPECT_GE(metric("varve_post_pass_aliased_bytes_total"), kShared * kFileBytes * 95 / 100);
  // It reads each target once, and the rest of each container; and it writes the rest.
  EXPECT_LE(report.done.bytes_read, freed * 16 / 10);
  EXPECT_LE(report.done.bytes_written, kOwn * kFileBytes * 11 / 10);
  // The search reads the tables of the containers, and the file of aliases is one eighth of these.
  EXPECT_LE(metric("varve_post_pass_searched_bytes_total"), before * 5 / 100);
}

// A container of which little would go stays, unless the user wants every duplicate to go. Then as
// much is stored as by an index that misses none: each different file once.
TEST_F(PostPassGate, EveryDuplicateGoesIfWanted) {
  constexpr std::size_t kLarge = 1'000'000;
  constexpr std::size_t kSmall = 20'000;
  constexpr std::uint64_t kPairs = 4;
  VersionNumber opened[2];
  for (int i = 0; i < 2; ++i) {
    opened[i] = must(repository_->open_version(series_[i], "w", test::folder())).number;
  }
  for (std::uint64_t pair = 0; pair < kPairs; ++pair) {
    for (std::uint64_t i = 0; i < 2; ++i) {
      write(i, "l" + std::to_string(pair), 50'000 + 10 * i + pair, kLarge);
      write(i, "d" + std::to_string(pair), 60'000 + pair, kSmall);
    }
  }
  for (int i = 0; i < 2; ++i) must(repository_->seal(series_[i], opened[i], ""));
  const auto distinct = (kShared + 2 * kOwn) * kFileBytes + kPairs * (2 * kLarge + kSmall);
  ASSERT_TRUE(arrange().finished);
  EXPECT_GE(must(repository_->stats()).unique_bytes, distinct + 2 * kSmall);
  ArrangeOptions options;
  options.post_pass.everything = true;
  ASSERT_TRUE(must(repository_->arrange(series_[0], options)).finished);
  EXPECT_EQ(must(repository_->stats()).unique_bytes, distinct);
  const auto again = must(repository_->arrange(series_[1], options));
  EXPECT_EQ(again.done.bytes_read, 0U);
}

TEST_F(PostPassGate, NothingNewCostsNothing) {
  arrange();
  const auto again = arrange();
  EXPECT_EQ(again.done.bytes_read, 0U);
  EXPECT_EQ(again.done.bytes_written, 0U);
  EXPECT_EQ(must(repository_->stats()).pool_new_bytes, 0U);
}

}  // namespace
}  // namespace varve
