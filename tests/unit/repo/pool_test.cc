// SPDX-License-Identifier: Apache-2.0
// Series that share a pool: reading what is not written yet, and threads that store and delete the
// same content.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "store/segment_files.h"
#include "support/file_content.h"
#include "support/pool_oracle.h"
#include "support/temp_repository.h"
#include "varve/arrange.h"
#include "varve/repair.h"
#include "varve/retention.h"

namespace varve::test {
namespace {

class PoolTest : public testing::Test {
 protected:
  PoolTest() : path_(directory_.path() + "/r") {
    must(Repository::create(path_, small_chunks(Codec::kNone)));
    repository_ = reopen(path_);
  }
  SeriesId make(const std::string& name, Placement placement) {
    SeriesOptions options;
    options.placement = placement;
    return must(repository_->create_series(name, options)).id;
  }
  std::shared_ptr<VersionWriter> open(SeriesId series, const std::string& name) {
    must(repository_->open_version(series, name, folder()));
    return must(repository_->writer(series));
  }
  VersionNumber store(SeriesId series, const std::string& name, const std::string& bytes) {
    auto version = open(series, name);
    write_file(*version, kRootIno, "f", bytes);
    const auto number = version->info().number;
    version.reset();
    must(repository_->seal(series, number, ""));
    return number;
  }
  void restart() {
    must(repository_->close());
    repository_.reset();
    repository_ = reopen(path_);
  }

  TempDirectory directory_;
  std::string path_;
  std::unique_ptr<Repository> repository_;
};

// The chunks of the pool have higher ids than those of the series, which are still in memory.
TEST_F(PoolTest, NewOwnChunksAreReadableBesideThoseOfThePool) {
  const auto shared = noise(60'000, 1);
  store(make("a", Placement::kPool), "v", shared);
  const auto b = make("b", Placement::kLineagePool);
  const auto version = open(b, "v");
  const auto bytes = noise(50'000, 2) + shared;
  EXPECT_EQ(read_open(*version, write_file(*version, kRootIno, "f", bytes)), bytes);
}

// The chunks of the other series have a younger birth than those that are still in memory.
TEST_F(PoolTest, NewChunksInThePoolAreReadableBesideYoungerOnes) {
  const auto a = make("a", Placement::kPool);
  const auto b = make("b", Placement::kPool);
  const auto version = open(a, "v");
  write_file(*version, kRootIno, "first", noise(20'000, 1));
  must(version->sync());
  const auto shared = noise(60'000, 2);
  store(b, "v", shared);
  const auto bytes = noise(50'000, 3) + shared;
  EXPECT_EQ(read_open(*version, write_file(*version, kRootIno, "f", bytes)), bytes);
}

// A version that stays open may have held containers that it does not refer to any more.
TEST_F(PoolTest, ContainersThatAnOpenVersionHeldAreFreedAfterAClose) {
  const auto shared = noise(60'000, 1);
  const auto a = make("a", Placement::kPool);
  const auto b = make("b", Placement::kPool);
  const auto in_a = store(a, "v", shared);
  {
    const auto version = open(b, "v");
    write_file(*version, kRootIno, "f", shared);
    must(version->sync());
    must(version->unlink(kRootIno, "f"));
    write_file(*version, kRootIno, "g", noise(60'000, 2));
    must(version->sync());
  }
  must(repository_->delete_versions(a, {in_a}, {}));
  EXPECT_GT(bytes_below(path_ + "/pool/active"), 120'000U) << "the open version may refer to it";
  for (int i = 0; i < 2; ++i) {
    must(repository_->close());
    repository_.reset();
    EXPECT_EQ(PoolOracle(path_).wrong(), std::vector<std::string>());
    repository_ = reopen(path_);
  }
  EXPECT_LT(bytes_below(path_ + "/pool/active"), 100'000U);
  const auto number = must(repository_->writer(b))->info().number;
  must(repository_->seal(b, number, ""));
  EXPECT_EQ(read_sealed(*must(repository_->reader(b, number)), "g"), noise(60'000, 2));
  must(repository_->close());
  repository_.reset();
  EXPECT_EQ(PoolOracle(path_).unused(), std::vector<std::string>());
}

// Nothing in the pool is freed while the overlay of an open version is damaged. The next writer has
// to look for what was not freed.
TEST_F(PoolTest, DamagedOverlayLeavesNoNote) {
  namespace fs = std::filesystem;
  const auto a = make("a", Placement::kPool);
  const auto first = store(a, "v1", noise(60'000, 1));
  const auto b = make("b", Placement::kPool);
  write_file(*open(b, "v"), kRootIno, "f", noise(60'000, 2));
  must(repository_->close());
  repository_.reset();
  const auto sound = directory_.path() + "/staging";
  fs::copy(path_ + "/staging", sound, fs::copy_options::recursive);
  for (const auto& at : fs::recursive_directory_iterator(path_ + "/staging")) {
    if (at.path().filename() == "data.mdb") fs::resize_file(at.path(), 100);
  }
  repository_ = reopen(path_);
  store(a, "v2", noise(60'000, 3));
  must(repository_->delete_versions(a, {first}, {}));
  must(repository_->close());
  repository_.reset();
  std::ifstream note(path_ + "/settled", std::ios::binary);
  const std::string bytes = varve::test::rest_of(note);
  EXPECT_EQ(bytes.find_first_not_of('\0'), std::string::npos);
  EXPECT_GT(bytes_below(path_ + "/pool/active"), 180'000U);
  // With a sound overlay, no version holds the first version's chunks.
  fs::remove_all(path_ + "/staging");
  fs::rename(sound, path_ + "/staging");
  repository_ = reopen(path_);
  must(repository_->close());
  repository_.reset();
  EXPECT_EQ(PoolOracle(path_).unused(), std::vector<std::string>());
  EXPECT_LT(bytes_below(path_ + "/pool/active"), 180'000U);
}

// An older catalog does not know what was stored later. Nothing of that may be removed.
TEST_F(PoolTest, OlderCatalogIsRefusedBeforeThePoolIsCleaned) {
  namespace fs = std::filesystem;
  const auto a = make("a", Placement::kPool);
  store(a, "v1", noise(60'000, 1));
  must(repository_->close());
  repository_.reset();
  const auto copy = directory_.path() + "/old-catalog";
  fs::copy(path_ + "/catalog", copy, fs::copy_options::recursive);
  repository_ = reopen(path_);
  store(a, "v2", noise(60'000, 2));
  must(repository_->close());
  repository_.reset();
  const auto bytes = bytes_below(path_ + "/pool/active");
  fs::remove_all(path_ + "/catalog");
  fs::copy(copy, path_ + "/catalog", fs::copy_options::recursive);
  EXPECT_EQ(code_of(Repository::open(path_, quiet_options())), ErrorCode::kCorrupt);
  EXPECT_EQ(bytes_below(path_ + "/pool/active"), bytes);
}

// Another series must not refer to chunks that a crash may lose, or that go with an open version.
TEST_F(PoolTest, ChunksAreFoundByOtherSeriesOnceTheyAreSynced) {
  const auto bytes = noise(200'000, 4);
  const auto pool_bytes = [&] { return bytes_below(path_ + "/pool/active"); };
  const auto a = make("a", Placement::kPool);
  const auto b = make("b", Placement::kPool);
  const auto c = make("c", Placement::kPool);
  auto version = open(a, "v");
  write_file(*version, kRootIno, "f", bytes);
  const auto one = store(b, "v", bytes);
  EXPECT_GE(pool_bytes(), bytes.size()) << "the chunks are only in memory";
  copy_crashed(path_, path_ + "-crashed");
  {
    const auto crashed = reopen(path_ + "-crashed");
    EXPECT_EQ(read_sealed(*must(crashed->reader(b, one)), "f"), bytes);
  }
  const auto other = noise(200'000, 5);
  write_file(*version, kRootIno, "g", other);
  must(version->sync());
  const auto before = pool_bytes();
  const auto two = store(c, "v", bytes + other);
  EXPECT_LT(pool_bytes(), before + 40'000) << "synced chunks were not found";
  const auto number = version->info().number;
  version.reset();
  must(repository_->abandon_version(a, number, true));
  EXPECT_EQ(read_sealed(*must(repository_->reader(b, one)), "f"), bytes);
  EXPECT_EQ(read_sealed(*must(repository_->reader(c, two)), "f"), bytes + other);
  must(repository_->delete_versions(b, {one}, {}));
  EXPECT_EQ(read_sealed(*must(repository_->reader(c, two)), "f"), bytes + other);
  must(repository_->delete_versions(c, {two}, {}));
  EXPECT_EQ(pool_bytes(), 0U);
}

// Each version keeps a little of the first one's containers.
TEST_F(PoolTest, ArrangingFreesContainersOfWhichLittleIsUsed) {
  const auto pool_bytes = [&] { return bytes_below(path_ + "/pool/active"); };
  const auto a = make("a", Placement::kPool);
  const auto b = make("b", Placement::kLineagePool);
  std::string all;
  std::vector<std::string> parts;
  for (std::uint64_t i = 0; i < 40; ++i) {
    parts.push_back(noise(50'000, 100 + i));
    all += parts.back();
  }
  const auto first = store(a, "v1", all);
  const auto second = store(a, "v2", parts[3] + parts[20]);
  const auto other = store(b, "v1", parts[20] + parts[37]);
  const auto reader = must(repository_->reader(b, other));
  const auto full = pool_bytes();
  must(repository_->delete_versions(a, {first}, {}));
  EXPECT_EQ(pool_bytes(), full) << "the container has users";
  const auto report = must(repository_->arrange(b, {}));
  EXPECT_TRUE(report.finished);
  EXPECT_GT(report.done.bytes_written, 100'000U);
  EXPECT_LT(pool_bytes(), full / 5);
  EXPECT_EQ(read_sealed(*reader, "f"), parts[20] + parts[37]) << "it was open meanwhile";
  EXPECT_EQ(read_sealed(*must(repository_->reader(a, second)), "f"), parts[3] + parts[20]);
  // New data refers to what was merged.
  const auto merged = pool_bytes();
  const auto third = store(a, "v3", parts[3] + parts[37]);
  EXPECT_LT(pool_bytes(), merged + 40'000) << "merged chunks were not found";
  must(repository_->close());
  repository_.reset();
  {
    const PoolOracle oracle(path_);
    EXPECT_TRUE(oracle.wrong().empty());
    EXPECT_TRUE(oracle.unused().empty());
  }
  repository_ = reopen(path_);
  EXPECT_EQ(read_sealed(*must(repository_->reader(a, third)), "f"), parts[3] + parts[37]);
  must(repository_->delete_versions(a, {second, third}, {}));
  must(repository_->delete_versions(b, {other}, {}));
  EXPECT_EQ(pool_bytes(), 0U);
}

// Arranging removes containers. A catalog from before must not be used then, also if a crash ended
// the arranging, and if another process opened the repository after the crash.
TEST_F(PoolTest, OlderCatalogIsRefusedAfterArrangingWasKilled) {
  namespace fs = std::filesystem;
  const auto a = make("a", Placement::kPool);
  const auto b = make("b", Placement::kPool);
  const auto keep = noise(50'000, 8);
  const auto first = store(a, "v1", noise(2'000'000, 9) + keep);
  store(b, "v1", keep);
  must(repository_->delete_versions(a, {first}, {}));
  must(repository_->close());
  repository_.reset();
  const auto older = directory_.path() + "/older";
  fs::copy(path_, older, fs::copy_options::recursive);
  repository_ = reopen(path_);
  const auto killed = directory_.path() + "/killed";
  ArrangeOptions options;
  options.progress = [&](const ArrangeProgress&) {
    if (!fs::exists(killed)) copy_crashed(path_, killed);
  };
  must(repository_->arrange(b, options));
  must(repository_->close());
  repository_.reset();
  ASSERT_TRUE(fs::exists(killed)) << "nothing was arranged";
  const auto refuses_older = [&](const std::string& path) {
    fs::remove_all(path + "/catalog");
    fs::copy(older + "/catalog", path + "/catalog");
    const auto opened = Repository::open(path, {});
    return !opened && opened.error().code() == ErrorCode::kCorrupt;
  };
  EXPECT_TRUE(refuses_older(killed));
  // The crash came before the labels were stamped.
  for (const auto* const series : {"00000001", "00000002"}) {
    const auto labels = std::string("/series/") + series + "/labels";
    fs::copy(older + labels, path_ + labels, fs::copy_options::overwrite_existing);
  }
  fs::remove(path_ + "/settled");
  must(reopen(path_)->close());
  EXPECT_TRUE(refuses_older(path_));
}

// Each index finds what the one before found: the next process builds it from the containers.
TEST_F(PoolTest, ChosenIndexIsBuiltFromTheContainers) {
  namespace fs = std::filesystem;
  const auto a = make("a", Placement::kPool);
  const auto names = [this](const std::string& beginning) {
    std::size_t found = 0;
    for (const auto& at : fs::directory_iterator(path_ + "/pool")) {
      found += at.path().filename().string().starts_with(beginning) ? 1 : 0;
    }
    return found;
  };
  const auto bytes = noise(3'000'000, 21);
  store(a, "v", bytes);
  const auto stored = bytes_below(path_ + "/pool/active");
  int number = 0;
  for (const auto& choice : {PoolIndexChoice{PoolIndexKind::kZeroChunk, 0},
                             PoolIndexChoice{PoolIndexKind::kZeroChunk, 6},
                             PoolIndexChoice{PoolIndexKind::kStream, 0}, PoolIndexChoice()}) {
    must(repository_->set_pool_index(choice));
    EXPECT_EQ(must(repository_->pool_index()), choice);
    restart();
    EXPECT_EQ(must(repository_->pool_index()), choice);
    const auto b = make("b" + std::to_string(++number), Placement::kPool);
    store(b, "v", bytes);
    EXPECT_LT(bytes_below(path_ + "/pool/active"), stored + stored / 50);
    restart();
    const bool has_runs = choice.kind != PoolIndexKind::kZeroChunk;
    EXPECT_EQ(names("index-zero-"), has_runs ? 0U : 2U);
    EXPECT_EQ(names("index.snap"), has_runs ? 1U : 0U);
  }
  const PoolIndexChoice unknown{static_cast<PoolIndexKind>(9), 0};
  EXPECT_EQ(code_of(repository_->set_pool_index(unknown)), ErrorCode::kUnsupported);
}

TEST_F(PoolTest, ChosenIndexSurvivesTheLossOfTheCatalog) {
  store(make("a", Placement::kPool), "v", noise(100'000, 22));
  for (const auto& choice : {PoolIndexChoice{PoolIndexKind::kZeroChunk, 7},
                             PoolIndexChoice{PoolIndexKind::kStream, 0}}) {
    must(repository_->set_pool_index(choice));
    must(repository_->close());
    repository_.reset();
    std::filesystem::remove_all(path_ + "/catalog");
    must(must(Repair::plan(path_, {}, false, {}))->execute({}));
    repository_ = reopen(path_);
    EXPECT_EQ(must(repository_->pool_index()), choice);
  }
}

TEST_F(PoolTest, StreamIndexTellsTheStreamsOfTheSeries) {
  must(repository_->set_pool_index({PoolIndexKind::kStream, 0}));
  restart();
  EXPECT_TRUE(must(repository_->pool_streams()).empty());
  const auto a = make("a", Placement::kPool);
  const auto bytes = noise(3'000'000, 23);
  store(a, "1", bytes);
  store(a, "2", bytes);
  const auto streams = must(repository_->pool_streams());
  ASSERT_EQ(streams.size(), 2U);
  EXPECT_EQ(streams[0].name, "");
  EXPECT_EQ(streams[1].name, "a");
  EXPECT_FALSE(streams[1].is_open);
  EXPECT_GT(streams[1].entries, 100U);
  EXPECT_GT(streams[1].hits, 100U);
  EXPECT_EQ(streams[1].run_threshold, 16U);
}

// The store may be older than the catalog, so `varve repair` may need the unknown file.
TEST_F(PoolTest, UnknownFilesAreNotOverwrittenWhileOthersAreMissing) {
  namespace fs = std::filesystem;
  const auto a = make("a", Placement::kPool);
  store(a, "v1", noise(100'000, 10));
  must(repository_->close());
  repository_.reset();
  std::set<std::string> files;
  for (const auto& at : fs::directory_iterator(path_ + "/pool/active")) files.insert(at.path());
  const auto last = *files.rbegin();
  const auto number = std::stoul(fs::path(last).stem(), nullptr, 16);
  std::set<std::string> unknown;
  for (unsigned i = 1; i <= 3; ++i) {
    const auto path = path_ + "/pool/" +
                      store::segment_path(SegmentNumber{static_cast<std::uint32_t>(number + i)});
    fs::copy(last, path);
    unknown.insert(path);
  }
  const auto bytes = fs::file_size(last);
  fs::remove(*files.begin());
  fs::remove(path_ + "/settled");
  repository_ = reopen(path_);
  store(a, "v2", noise(3'000'000, 11));
  for (const auto& path : unknown) EXPECT_EQ(fs::file_size(path), bytes) << path;
}

TEST_F(PoolTest, PromotedChunksLeaveTheSeriesThatHadThemFirst) {
  const auto a = make("a", Placement::kLineagePool);
  const auto b = make("b", Placement::kLineagePool);
  const auto bytes = noise(300'000, 6);
  const auto more = noise(20'000, 7);
  const auto own_bytes = [&] { return bytes_below(path_ + "/series/00000001"); };
  const auto first = store(a, "v1", bytes);
  EXPECT_GT(own_bytes(), bytes.size());
  store(b, "v1", bytes);
  const auto in_pool = bytes_below(path_ + "/pool/active");
  EXPECT_GE(in_pool, bytes.size()) << "promoted";
  const auto second = store(a, "v2", bytes + more);
  EXPECT_LT(bytes_below(path_ + "/pool/active"), in_pool + 10'000);
  must(repository_->delete_versions(a, {first}, {}));
  must(repository_->arrange(a, {}));
  EXPECT_LT(own_bytes(), bytes.size() / 3) << "the series has a second copy";
  EXPECT_EQ(read_sealed(*must(repository_->reader(a, second)), "f"), bytes + more);
}

// A version that finds the content of a version that is being deleted either stores it again or
// keeps it.
TEST_F(PoolTest, SameContentIsStoredAndDeletedByThreads) {
  constexpr int kSeries = 3;
  constexpr int kRounds = 12;
  const auto bytes = noise(300'000, 7);
  std::vector<SeriesId> series;
  for (int i = 0; i < kSeries; ++i) {
    series.push_back(
        make("s" + std::to_string(i), i == 0 ? Placement::kLineagePool : Placement::kPool));
  }
  std::atomic<int> wrong{0};
  std::vector<std::jthread> threads;
  for (int i = 0; i < kSeries; ++i) {
    threads.emplace_back([&, i] {
      try {
        for (int round = 0; round < kRounds; ++round) {
          const auto content = bytes + noise(20'000, static_cast<std::uint64_t>(round));
          const auto id = series[static_cast<std::size_t>(i)];
          const auto number = store(id, "v" + std::to_string(round), content);
          if (read_sealed(*must(repository_->reader(id, number)), "f") != content) ++wrong;
          if (round % 4 != 3) must(repository_->delete_versions(id, {number}, {}));
        }
      } catch (const std::exception& failure) {
        ++wrong;
        std::printf("series %d: %s\n", i, failure.what());
      }
    });
  }
  threads.clear();
  EXPECT_EQ(wrong, 0);
  for (const auto id : series) {
    for (const auto& version : must(repository_->versions(id))) {
      const auto reader = must(repository_->reader(id, version.number));
      EXPECT_EQ(read_sealed(*reader, "f").substr(0, bytes.size()), bytes);
    }
  }
  must(repository_->close());
  repository_.reset();
  const PoolOracle oracle(path_);
  EXPECT_EQ(oracle.wrong(), std::vector<std::string>());
  EXPECT_EQ(oracle.unused(), std::vector<std::string>());
}

}  // namespace
}  // namespace varve::test
