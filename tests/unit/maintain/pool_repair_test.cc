// SPDX-License-Identifier: Apache-2.0
// Tests the repair of the pool's data, and of a lost catalog with the pool's records.
#include "catalog/pool_records.h"
#include "pool_fixture.h"

namespace varve::test {
namespace {

using PoolRepairTest = PoolTest;

TEST_F(PoolRepairTest, NothingIsDoneToASoundRepository) {
  repair();
  EXPECT_TRUE(steps_.empty());
  expect_whole();
}

TEST_F(PoolRepairTest, LostCatalogComesBackAsItWas) {
  add_version("a", "v3", {{"own", noise(150000, 2)}, {"new", noise(100000, 5)}});
  remove("a", "v1");
  const auto before = records();
  EXPECT_FALSE(before.empty());
  lose_catalog();
  const auto report = repair();
  EXPECT_TRUE(report.problems.empty());
  EXPECT_EQ(report.versions, 4U);
  EXPECT_TRUE(records() == before);
  expect_whole();
  // Deletions free what they say, up to the last byte of the pool.
  for (const auto& [of, name] : {std::pair{"c", "v1"}, {"b", "v1"}, {"a", "v2"}, {"a", "v3"}}) {
    const auto bytes = stored_bytes();
    const auto forecast = remove(of, name);
    EXPECT_EQ(bytes - stored_bytes(), forecast.freed_bytes) << of << name;
    EXPECT_EQ(unreadable(), std::set<std::string>());
  }
  EXPECT_TRUE(pool_files().empty());
  EXPECT_TRUE(check().damages.empty());
}

TEST_F(PoolRepairTest, NoIdIsGivenTwiceAfterVersionsAndTheCatalogAreLost) {
  std::set<std::uint32_t> given;
  const auto births = [&] {
    std::set<std::uint32_t> all;
    for (const auto& [key, value] : records()) {
      constexpr std::string_view kTable = "locations";
      if (!key.starts_with(kTable)) continue;
      all.insert(base::load_be32(std::string_view(key).substr(kTable.size() + 4)));
    }
    open_for_writing();
    return all;
  };
  given = births();
  EXPECT_GE(given.size(), 3U);
  remove("b", "v1");
  lose_catalog();
  repair();
  open_for_writing();
  add_version("b", "v2", {{"own", noise(150000, 6)}});
  add_version("b", "v3", {{"own", noise(150000, 7)}});
  std::set<std::uint32_t> fresh;
  std::ranges::set_difference(births(), given, std::inserter(fresh, fresh.end()));
  ASSERT_EQ(fresh.size(), 2U);
  EXPECT_GT(*fresh.begin(), *given.rbegin());
  expect_whole();
}

TEST_F(PoolRepairTest, LostLabelsAndDamagedManifestKeepEverythingAndGiveNewIds) {
  const auto highest = [&] {
    VersionNumber next{};
    change_catalog([&](meta::WriteTxn& txn) { next = must(catalog::next_pool_birth(txn)); });
    return static_cast<std::uint32_t>(next);
  };
  const auto before = highest();
  const auto files = pool_files();
  lose_catalog();
  fs::remove(path_ + "/series/00000002/labels");
  const auto manifest = path_ + "/series/00000001/manifests/00000002.man";
  flip(manifest, fs::file_size(manifest) / 2);
  EXPECT_FALSE(repair().problems.empty());
  EXPECT_GT(highest(), before);
  open_read_only();
  const auto reader = must(repository_->reader(series("b"), VersionNumber{1}));
  EXPECT_TRUE(read_sealed(*reader, "own") == contents_["b/v1/own"]);
  EXPECT_EQ(pool_files(), files);
}

TEST_F(PoolRepairTest, OpenVersionGoesOnAfterTheCatalogIsLost) {
  const auto number = must(repository_->open_version(series("a"), "v3", folder())).number;
  {
    const auto version = must(repository_->writer(series("a")));
    write_file(*version, kRootIno, "same", noise(200000, 1));
    write_file(*version, kRootIno, "new", noise(150000, 8));
    must(version->sync());
  }
  lose_catalog();
  EXPECT_TRUE(repair().problems.empty());
  expect_whole();
  must(repository_->seal(series("a"), number, ""));
  contents_["a/v3/same"] = noise(200000, 1);
  contents_["a/v3/new"] = noise(150000, 8);
  expect_whole();
}

// It stored chunks in the pool only.
TEST_F(PoolRepairTest, OpenVersionWithoutItsStagingIsNotTakenForAnEmptyOne) {
  open_for_writing();
  must(repository_->open_version(series("a"), "v3", folder()));
  {
    const auto version = must(repository_->writer(series("a")));
    write_file(*version, kRootIno, "new", noise(150000, 30));
    must(version->sync());
  }
  EXPECT_EQ(check().damages.size(), 0U);
  repository_.reset();
  fs::remove_all(path_ + "/staging");
  repository_ = reopen(path_);
  EXPECT_EQ(affected(check()), std::set<std::string>{"a/v3"});
  EXPECT_EQ(code_of(repository_->writer(series("a"))), ErrorCode::kCorrupt);
  EXPECT_EQ(repair().problems.size(), 1U);
  open_for_writing();
  add_version("a", "v4", {{"same", noise(200000, 1)}});
  expect_whole();
}

TEST_F(PoolRepairTest, DamagedChunksAreStoredAgainAndComeBack) {
  for (const auto& file : pool_files()) flip(file, fs::file_size(file) / 2);
  auto report = repair();
  EXPECT_GT(report.chunks_quarantined, 0U);
  EXPECT_EQ(report.chunks_rehomed, 0U);
  repair();
  EXPECT_TRUE(steps_.empty());  // A second plan does not list known damage again.
  open_for_writing();
  const auto bad = unreadable();
  EXPECT_TRUE(bad.contains("b/v1/own"));
  const auto old = contents_;
  // The same content arrives again. It must not count as stored.
  add_version("b", "v2",
              {{"1", noise(200000, 1)},
               {"2", noise(150000, 2)},
               {"3", noise(150000, 3)},
               {"4", noise(150000, 4)}});
  EXPECT_EQ(unreadable(), bad);
  report = repair();
  EXPECT_GT(report.chunks_rehomed, 0U);
  EXPECT_EQ(report.chunks_quarantined, 0U);
  expect_whole();
  repair();
  EXPECT_TRUE(steps_.empty());
  lose_catalog();
  EXPECT_TRUE(repair().problems.empty());
  expect_whole();
  for (const auto& [of, name] :
       {std::pair{"a", "v1"}, {"b", "v1"}, {"c", "v1"}, {"b", "v2"}, {"a", "v2"}}) {
    const auto bytes = stored_bytes();
    const auto forecast = remove(of, name);
    EXPECT_EQ(bytes - stored_bytes(), forecast.freed_bytes) << of << name;
    EXPECT_EQ(unreadable(), std::set<std::string>());
    EXPECT_TRUE(check().damages.empty()) << of << name;
  }
  EXPECT_TRUE(pool_files().empty());
}

TEST_F(PoolRepairTest, DamagedChunksComeFromACopy) {
  for (const auto& file : pool_files()) flip(file, fs::file_size(file) / 2);
  RepairOptions options;
  options.from = directory_.path() + "/copies";
  fs::create_directories(options.from);
  int i = 0;
  for (const auto& [name, bytes] : contents_) {
    std::ofstream(options.from + "/" + std::to_string(i++), std::ios::binary) << bytes;
  }
  const auto report = repair(options);
  EXPECT_GT(report.chunks_rehomed, 0U);
  EXPECT_EQ(report.chunks_quarantined, 0U);
  expect_whole();
}

TEST_F(PoolRepairTest, DamagedChunksComeFromASeriesAndGoToOne) {
  SeriesOptions lineage;
  lineage.placement = Placement::kLineage;
  must(repository_->create_series("d", lineage));
  add_version("d", "v1", {{"copy", noise(200000, 1)}});
  const auto shared = pool_files().front();  // The first version stored the shared file.
  const auto own = path_ + "/series/00000004/active/00000000.seg";
  ASSERT_TRUE(fs::exists(own));
  for (const auto& file : {shared, own}) {
    repository_.reset();
    flip(file, fs::file_size(file) * 3 / 4);
    open_read_only();
    const auto bad = unreadable();
    EXPECT_FALSE(bad.empty());
    const auto report = repair();
    EXPECT_GT(report.chunks_rehomed, 0U) << file;
    EXPECT_EQ(report.chunks_quarantined, 0U) << file;
    expect_whole();
  }
}

TEST_F(PoolRepairTest, LostFileCostsItsChunksOnly) {
  for (const bool catalog_too : {false, true}) {
    const auto file = pool_files().back();
    repository_.reset();
    fs::remove(file);
    if (catalog_too) lose_catalog();
    const auto report = repair();
    EXPECT_EQ(report.chunks_quarantined != 0, !catalog_too);
    open_for_writing();
    const auto bad = unreadable();
    EXPECT_FALSE(bad.empty());
    EXPECT_LT(bad.size(), contents_.size());
    EXPECT_EQ(affected(check()), bad);
    // Lost content that comes back is stored again.
    Files again;
    for (const auto& path : bad) again["f" + std::to_string(again.size())] = contents_[path];
    add_version("a", catalog_too ? "w2" : "w1", again);
    EXPECT_EQ(unreadable(), bad);
  }
}

TEST_F(PoolRepairTest, OneWrongByteOfAHeaderIsCorrected) {
  const auto file = pool_files().front();
  for (const std::uint64_t offset : {0U, 17U, 50U, 121U, 128U, 300U}) {
    repository_.reset();
    flip(file, offset);
    repair();
    ASSERT_EQ(steps_.size(), 1U) << offset;
    EXPECT_EQ(steps_[0].kind, RepairStep::Kind::kHeader);
  }
  expect_whole();
}

TEST_F(PoolRepairTest, FolderOfASeriesWithTheNumberOfThePoolIsIgnored) {
  const auto before = records();
  fs::copy(path_ + "/pool", path_ + "/series/00000000", fs::copy_options::recursive);
  fs::copy(path_ + "/series/00000001/manifests", path_ + "/series/00000000/manifests",
           fs::copy_options::recursive);
  lose_catalog();
  EXPECT_TRUE(repair().problems.empty());
  EXPECT_TRUE(records() == before);
  expect_whole();
}

}  // namespace
}  // namespace varve::test
