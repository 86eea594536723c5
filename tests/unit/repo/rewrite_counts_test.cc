// SPDX-License-Identifier: Apache-2.0
// The counts of rewriting that a seal records, compared with the growth of the repository.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "catalog/pool_records.h"
#include "meta/schema.h"
#include "support/temp_repository.h"
#include "varve/repair.h"
#include "varve/retention.h"

namespace varve::test {
namespace {

using VersionFiles = std::map<std::string, std::string>;

std::uint64_t bytes_of(const VersionFiles& files) {
  std::uint64_t sum = 0;
  for (const auto& file : files) sum += file.second.size();
  return sum;
}

class RewriteCountsTest : public testing::Test {
 protected:
  RewriteCountsTest() : path_(directory_.path() + "/r") {
    must(Repository::create(path_, small_chunks(Codec::kNone)));
    repository_ = reopen(path_);
  }

  SeriesId make(const std::string& name, Placement placement, Rewrite rewrite = Rewrite::kNone) {
    SeriesOptions options;
    options.placement = placement;
    options.rewrite = rewrite;
    return must(repository_->create_series(name, options)).id;
  }
  VersionNumber open(SeriesId series, const std::string& name) {
    return must(repository_->open_version(series, name, folder())).number;
  }
  void write(SeriesId series, const VersionFiles& files) {
    const auto version = must(repository_->writer(series));
    for (const auto& [name, bytes] : files) write_file(*version, kRootIno, name, bytes);
  }
  VersionNumber store(SeriesId series, const VersionFiles& files) {
    const auto number = open(series, "v" + std::to_string(++versions_));
    write(series, files);
    must(repository_->seal(series, number, ""));
    return number;
  }
  RewriteCounts counts(SeriesId series, VersionNumber number) {
    return must(repository_->pool_usage(series, number)).counts.value();
  }
  std::uint64_t metric(const std::string& name) {
    for (const auto& sample : repository_->metrics()) {
      if (sample.name == "varve_pool_" + name + "_total") return sample.value;
    }
    ADD_FAILURE() << "no metric " << name;
    return 0;
  }
  /// Returns the number of chunks that the files are cut into: those that an empty repository has
  /// after it stored them.
  std::uint64_t chunks_of(const VersionFiles& files) {
    const std::string path = directory_.path() + "/c";
    std::filesystem::remove_all(path);
    must(Repository::create(path, small_chunks(Codec::kNone)));
    const auto other = reopen(path);
    const auto series = must(other->create_series("s")).id;
    const auto number = must(other->open_version(series, "v", folder())).number;
    for (const auto& [name, bytes] : files) {
      write_file(*must(other->writer(series)), kRootIno, name, bytes);
    }
    must(other->seal(series, number, ""));
    return must(other->stats()).chunks;
  }

  TempDirectory directory_;
  std::string path_;
  std::unique_ptr<Repository> repository_;
  int versions_ = 0;
};

// No content occurs twice in a version, so the pool grows by the new and the rewritten chunks, and
// all others are references.
TEST_F(RewriteCountsTest, EqualTheGrowthOfThePool) {
  constexpr int kSmall = 20;
  VersionFiles small;
  for (int i = 0; i < kSmall; ++i) {
    small["s" + std::to_string(i)] = noise(4'000, static_cast<std::uint64_t>(i));
  }
  VersionFiles first = small;
  first["big"] = noise(5'000'000, 100);
  VersionFiles second = first;
  second["more"] = noise(300'000, 101);
  const auto chunks_in_small = chunks_of(small);
  const auto chunks_in_first = chunks_of(first);
  const auto chunks_in_second = chunks_of(second);
  int series_made = 0;
  for (const auto rewrite : {Rewrite::kNone, Rewrite::kHar, Rewrite::kCap, Rewrite::kCbr,
                             Rewrite::kHarCap, Rewrite::kHarCbr}) {
    // One pool for each policy, because chunks that one series rewrote would be found by the next.
    repository_.reset();
    path_ = directory_.path() + "/r" + std::to_string(++series_made);
    must(Repository::create(path_, small_chunks(Codec::kNone)));
    repository_ = reopen(path_);
    const auto a = make("a", Placement::kPool, rewrite);
    // Later versions use a fifth of these containers.
    for (const auto& [name, bytes] : small) {
      store(a, {{name, bytes},
                {"filler", noise(20'000, static_cast<std::uint64_t>(200 + versions_))}});
    }
    const auto compare = [&](const VersionFiles& files, std::uint64_t all_chunks,
                             std::uint64_t new_bytes, std::uint64_t new_chunks) {
      const auto before = must(repository_->stats());
      const auto number = store(a, files);
      const auto after = must(repository_->stats());
      const auto found = counts(a, number);
      RewriteCounts expected;
      expected.rewritten_bytes = after.unique_bytes - before.unique_bytes - new_bytes;
      expected.rewritten_chunks = after.chunks - before.chunks - new_chunks;
      expected.kept_bytes = bytes_of(files) - new_bytes - expected.rewritten_bytes;
      expected.kept_chunks = all_chunks - new_chunks - expected.rewritten_chunks;
      expected.sparse_containers = found.sparse_containers;
      EXPECT_EQ(found, expected) << rewrite_name(rewrite);
      return found;
    };
    const auto one = compare(first, chunks_in_first, 5'000'000, chunks_in_first - chunks_in_small);
    const auto two = compare(second, chunks_in_second, 300'000, chunks_in_second - chunks_in_first);
    EXPECT_EQ(one.sparse_containers, 0U) << "the version before used its container as a whole";
    const bool har =
        rewrite == Rewrite::kHar || rewrite == Rewrite::kHarCap || rewrite == Rewrite::kHarCbr;
    EXPECT_EQ(two.rewritten_bytes == 0 && one.rewritten_bytes == 0, rewrite == Rewrite::kNone);
    if (rewrite == Rewrite::kHar) {
      EXPECT_EQ(one.rewritten_bytes, 0U);
      EXPECT_EQ(two.rewritten_bytes, bytes_of(small));
      EXPECT_EQ(two.rewritten_chunks, chunks_in_small);
      EXPECT_EQ(two.sparse_containers, std::uint64_t{kSmall});
    } else if (!har) {
      EXPECT_EQ(two.sparse_containers, 0U);
    }
    EXPECT_EQ(metric("rewritten_bytes"), one.rewritten_bytes + two.rewritten_bytes);
    EXPECT_EQ(metric("rewritten_chunks"), one.rewritten_chunks + two.rewritten_chunks);
    EXPECT_EQ(metric("kept_bytes"), one.kept_bytes + two.kept_bytes);
    EXPECT_EQ(metric("kept_chunks"), one.kept_chunks + two.kept_chunks);
    EXPECT_EQ(metric("promoted_chunks"), 0U);
  }
}

TEST_F(RewriteCountsTest, PromotedChunksAreCountedOnceAndThenKept) {
  const auto a = make("a", Placement::kLineagePool);
  const auto b = make("b", Placement::kLineagePool);
  const auto c = make("c", Placement::kLineagePool);
  const auto d = make("d", Placement::kPool);
  const VersionFiles shared{{"f", noise(200'000, 1)}};
  const auto chunks = chunks_of(shared);
  const auto in_a = store(a, shared);
  EXPECT_EQ(must(repository_->pool_usage(a, in_a)).counts, std::nullopt);
  const auto in_b = store(b, shared);
  EXPECT_EQ(counts(b, in_b), (RewriteCounts{0, 0, 0, 0, chunks, 200'000, 0}));
  const auto in_c = store(c, shared);
  EXPECT_EQ(counts(c, in_c), (RewriteCounts{chunks, 200'000, 0, 0, 0, 0, 0}));
  // The next version of a refers to the copy in the pool.
  EXPECT_EQ(counts(a, store(a, shared)), (RewriteCounts{chunks, 200'000, 0, 0, 0, 0, 0}));
  // The placement pool promotes nothing: it stores all its chunks in the pool.
  EXPECT_EQ(counts(d, store(d, {{"g", noise(50'000, 2)}})), RewriteCounts());
  EXPECT_EQ(metric("promoted_chunks"), chunks);
  EXPECT_EQ(metric("promoted_bytes"), 200'000U);
  EXPECT_EQ(metric("kept_chunks"), 2 * chunks);
  EXPECT_EQ(metric("kept_bytes"), 400'000U);
}

// A clone refers to the pool without writing anything.
TEST_F(RewriteCountsTest, UnchangedFilesOfACloneCountNowhere) {
  const auto a = make("a", Placement::kPool);
  const auto first = store(a, {{"f", noise(100'000, 1)}});
  const auto clone = must(repository_->clone_version(a, first, "w")).number;
  write(a, {{"g", noise(30'000, 2)}});
  must(repository_->seal(a, clone, ""));
  EXPECT_EQ(counts(a, clone), RewriteCounts());
  const auto usage = must(repository_->pool_usage(a, clone));
  EXPECT_EQ(usage.containers, 2U);
  EXPECT_EQ(usage.referenced_bytes, 130'000U);
}

TEST_F(RewriteCountsTest, AddUpOverTheProcessesThatWroteTheVersion) {
  const auto a = make("a", Placement::kPool, Rewrite::kHar);
  const VersionFiles one{{"f", noise(100'000, 1)}};
  const VersionFiles two{{"g", noise(70'000, 2)}};
  const VersionFiles three{{"h", noise(50'000, 3)}};
  store(a, one);
  store(a, two);
  store(a, three);
  const auto number = open(a, "last");
  write(a, one);
  must(must(repository_->writer(a))->sync());
  copy_crashed(path_, path_ + "-crashed");
  repository_.reset();
  repository_ = reopen(path_ + "-crashed");
  write(a, two);
  must(repository_->close());
  repository_.reset();
  repository_ = reopen(path_ + "-crashed");
  write(a, three);
  must(repository_->seal(a, number, ""));
  const RewriteCounts expected{chunks_of(one) + chunks_of(two) + chunks_of(three), 220'000};
  EXPECT_EQ(counts(a, number), expected);
  EXPECT_EQ(metric("kept_bytes"), 50'000U) << "the metrics are those of one process";
}

TEST_F(RewriteCountsTest, HistogramShowsTheUseOfEachContainer) {
  const auto a = make("a", Placement::kPool);
  VersionFiles last;
  for (int i = 0; i < 10; ++i) {
    const std::string name = "f" + std::to_string(i);
    // The last version uses 5 %, 15 %, … 95 % of these containers.
    const auto used = static_cast<std::size_t>(i) * 10'000 + 5'000;
    const auto bytes = noise(used, static_cast<std::uint64_t>(i));
    store(a, {{name, bytes}, {"rest", noise(100'000 - used, static_cast<std::uint64_t>(50 + i))}});
    last[name] = bytes;
  }
  const auto usage = must(repository_->pool_usage(a, store(a, last)));
  EXPECT_EQ(usage.containers, 10U);
  // A part of a run of chunks is estimated by the run's average chunk.
  EXPECT_NEAR(static_cast<double>(usage.referenced_bytes), 500'000, 25'000);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < usage.utilisation.size(); ++i) sum += usage.utilisation[i];
  EXPECT_EQ(sum, 10U);
  EXPECT_GE(usage.utilisation.front(), 1U);
  EXPECT_GE(usage.utilisation.back(), 1U);
  EXPECT_EQ(must(repository_->pool_usage(a, store(a, {{"n", noise(60'000, 99)}}))).utilisation,
            (UtilisationHistogram{0, 0, 0, 0, 0, 0, 0, 0, 0, 1}));
}

TEST_F(RewriteCountsTest, GoWithTheVersionAndAreMissingInARebuiltCatalog) {
  const auto a = make("a", Placement::kPool);
  const VersionFiles files{{"f", noise(100'000, 1)}};
  const auto first = store(a, files);
  const auto second = store(a, files);
  const auto before = must(repository_->pool_usage(a, second));
  EXPECT_EQ(before.counts->kept_bytes, 100'000U);
  must(repository_->delete_versions(a, {first}));
  EXPECT_EQ(code_of(repository_->pool_usage(a, first)), ErrorCode::kNotFound);
  const auto opened = open(a, "open");
  EXPECT_EQ(code_of(repository_->pool_usage(a, opened)), ErrorCode::kNotFound);
  must(repository_->abandon_version(a, opened, true));
  must(repository_->close());
  repository_.reset();
  {
    meta::EnvOptions options;
    options.tables = meta::catalog::kTables;
    const auto catalog = must(meta::Env::open(path_ + "/catalog", options));
    const auto txn = must(meta::ReadTxn::begin(catalog));
    EXPECT_FALSE(must(catalog::find_rewrite_counts(txn, a, first)));
    EXPECT_TRUE(must(catalog::find_rewrite_counts(txn, a, second)));
  }
  std::filesystem::remove_all(path_ + "/catalog");
  must(must(Repair::plan(path_, {}, false, {}))->execute({}));
  repository_ = reopen(path_);
  const auto rebuilt = must(repository_->pool_usage(a, second));
  EXPECT_EQ(rebuilt.counts, std::nullopt);
  EXPECT_EQ(rebuilt.containers, before.containers);
  EXPECT_EQ(rebuilt.utilisation, before.utilisation);
}

}  // namespace
}  // namespace varve::test
