// SPDX-License-Identifier: Apache-2.0
// Checks and repairs a pool with aliases.
#include <chrono>
#include <thread>

#include "catalog/alias_table.h"
#include "catalog/location_table.h"
#include "io/posix_file_system.h"
#include "pool_fixture.h"
#include "store/alias_files.h"
#include "support/file_content.h"
#include "varve/arrange.h"

namespace varve::test {
namespace {

class PoolAliasesTest : public PoolTest {
 protected:
  PoolAliasesTest() {
    // Two open versions do not see each other's chunks, so both store them. A sealed one is seen,
    // so the pipeline of "b" has to look its chunks up before.
    const auto bytes = noise(400000, 70);
    const auto a = must(repository_->open_version(series("a"), "twin", folder())).number;
    const auto b = must(repository_->open_version(series("b"), "twin", folder())).number;
    write_file(*must(repository_->writer(series("a"))), kRootIno, "twin", bytes);
    write_file(*must(repository_->writer(series("b"))), kRootIno, "twin", bytes);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    must(repository_->seal(series("a"), a, ""));
    must(repository_->seal(series("b"), b, ""));
    contents_["a/twin/twin"] = contents_["b/twin/twin"] = bytes;
    before_ = bytes_of_pool();
    ArrangeOptions options;
    options.post_pass = {true, 1, 1};
    EXPECT_TRUE(must(repository_->arrange(series("a"), options)).finished);
  }
  std::uint64_t bytes_of_pool() {
    std::uint64_t sum = 0;
    for (const auto& file : pool_files()) sum += fs::file_size(file);
    return sum;
  }
  std::vector<std::string> alias_files() {
    std::vector<std::string> files;
    for (const auto& at : fs::directory_iterator(path_ + "/pool")) {
      if (at.path().extension() == ".als") files.push_back(at.path());
    }
    return files;
  }
  std::vector<catalog::AliasRecord> aliases() {
    std::vector<catalog::AliasRecord> all;
    repository_.reset();
    const auto env = open_catalog(path_ + "/catalog");
    must(catalog::for_each_alias(must(meta::ReadTxn::begin(env)),
                                 [&](const catalog::AliasRecord& one) -> Result<bool> {
                                   all.push_back(one);
                                   return true;
                                 }));
    return all;
  }
  // Returns all that a check says.
  std::string damages() {
    open_for_writing();
    std::string all;
    for (const auto& damage : check().damages) all += damage.what + "\n";
    return all;
  }
  bool says(const std::string& text) {
    const auto all = damages();
    EXPECT_NE(all.find(text), std::string::npos) << all;
    return !all.empty();
  }
  std::uint64_t before_ = 0;
};

TEST_F(PoolAliasesTest, DuplicatesAreStoredOnce) {
  EXPECT_LT(bytes_of_pool(), before_ - 300000);
  EXPECT_EQ(alias_files().size(), 1U);
  EXPECT_FALSE(aliases().empty());
  expect_whole();
  const auto stats = must(repository_->stats());
  EXPECT_EQ(stats.pool_alias_bytes, 400000U);
  remove("a", "twin");
  expect_whole();
  EXPECT_GE(remove("b", "twin").freed_bytes, 400000U);
  expect_whole();
}

TEST_F(PoolAliasesTest, SuperblockAndLabelsNeedTheFeature) {
  repository_.reset();
  const auto text = [](const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return varve::test::rest_of(file);
  };
  const std::string line = "features_required = pool pool-aliases marks\n";
  EXPECT_NE(text(path_ + "/varve.repo").find(line), std::string::npos);
  for (const char* id : {"00000001", "00000002", "00000003"}) {
    EXPECT_NE(text(path_ + "/series/" + id + "/labels").find(line), std::string::npos);
  }
}

TEST_F(PoolAliasesTest, LostCatalogComesBackWithTheAliases) {
  const auto found = aliases();
  const auto recorded = records();
  lose_catalog();
  const auto report = repair();
  EXPECT_TRUE(report.problems.empty());
  EXPECT_EQ(aliases().size(), found.size());
  EXPECT_EQ(records(), recorded);
  expect_whole();
  remove("a", "twin");
  expect_whole();
}

TEST_F(PoolAliasesTest, DamagedFileIsFoundAndWrittenAgain) {
  const auto file = alias_files().front();
  for (const auto at : {5U, 45U, 60U, 80U}) {
    repository_.reset();
    flip(alias_files().front(), at);
    EXPECT_TRUE(says("file of aliases")) << at;
    EXPECT_EQ(unreadable(), std::set<std::string>());
    repair();
    expect_whole();
  }
  repository_.reset();
  fs::resize_file(alias_files().front(), fs::file_size(alias_files().front()) - 9);
  EXPECT_TRUE(says("file of aliases"));
  repair();
  expect_whole();
}

TEST_F(PoolAliasesTest, ParityRestoresWhatAliasesLeadTo) {
  auto settings = must(repository_->arrange_settings());
  settings.parity_percent = 25;
  must(repository_->set_arrange_settings(settings));
  ASSERT_TRUE(must(repository_->arrange(series("a"), {})).finished);
  for (const bool is_lost : {false, true}) {
    for (const auto& file : pool_files()) {
      repository_.reset();
      flip(file, fs::file_size(file) / 2);
      if (is_lost) lose_catalog();
      const auto report = repair();
      EXPECT_EQ(report.containers_restored, 1U) << file;
      EXPECT_EQ(report.chunks_quarantined, 0U);
    }
    expect_whole();
  }
}

TEST_F(PoolAliasesTest, MissingFileIsFoundAndWrittenAgain) {
  repository_.reset();
  for (const auto& file : alias_files()) fs::remove(file);
  EXPECT_TRUE(says("aliases are in no file"));
  repair();
  expect_whole();
  lose_catalog();
  repair();
  expect_whole();
}

TEST_F(PoolAliasesTest, WithoutCatalogAndFileOnlyTheFilesOfAliasesAreLost) {
  repository_.reset();
  for (const auto& file : alias_files()) fs::remove(file);
  lose_catalog();
  repair();
  open_for_writing();
  const auto bad = unreadable();
  EXPECT_EQ(bad, std::set<std::string>{"b/twin/twin"}) << "the younger one has no bytes";
  EXPECT_EQ(affected(check()), bad);
}

// Reading fails then, since no reader may get other bytes.
TEST_F(PoolAliasesTest, AliasOfAnotherContentIsFoundAndDropped) {
  auto wrong = aliases().front();
  // The file agrees with the catalog, but its tags do not agree with the contents.
  const auto files = io::make_posix_file_system();
  const store::FolderPath folder{files.get(), path_ + "/pool"};
  std::vector<format::TaggedAliases> runs;
  must(store::read_alias_file(folder, 1, [&](const auto&, const auto& run) -> Result<void> {
    runs.push_back(run);
    return {};
  }));
  ASSERT_EQ(runs.front().run, wrong.run);
  runs.front().run.target = runs.front().run.target.plus(1);
  --runs.front().run.count;
  runs.front().tags.pop_back();
  const auto writer = must(store::AliasFileWriter::begin(folder, 1));
  for (const auto& run : runs) must(writer->add(run));
  must(writer->finish({}));
  wrong.run = runs.front().run;
  change_catalog([&](meta::WriteTxn& txn) { must(catalog::put_alias(txn, wrong)); });
  EXPECT_TRUE(says("lead to chunks with another content"));
  EXPECT_EQ(affected(check()), std::set<std::string>{"b/twin/twin"});
  repair();
  open_for_writing();
  EXPECT_EQ(unreadable(), std::set<std::string>{"b/twin/twin"});
}

TEST_F(PoolAliasesTest, ContradictionsOfTheCatalogAreFoundAndRepaired) {
  const auto one = aliases().front();
  change_catalog([&](meta::WriteTxn& txn) {
    // Leads to an alias.
    must(catalog::put_alias(txn, {{one.run.first.plus(one.run.count), 1, one.run.first}, 100}));
  });
  EXPECT_TRUE(says("leads to another alias"));
  repair();
  expect_whole();
  change_catalog([&](meta::WriteTxn& txn) { must(catalog::erase_alias(txn, one.run.first)); });
  EXPECT_TRUE(says("not stored anywhere"));
  RepairOptions options;
  options.rebuild_catalog = true;
  repair(options);
  expect_whole();
}

TEST_F(PoolAliasesTest, DamagedTargetNamesTheFilesOfItsAliases) {
  const auto target = aliases().front().run.target;
  repository_.reset();
  std::uint32_t segment = 0;
  {
    const auto env = open_catalog(path_ + "/catalog");
    const auto txn = must(meta::ReadTxn::begin(env));
    const auto at = must(catalog::find_location(txn, kPoolStore, target));
    segment = static_cast<std::uint32_t>(
        must(catalog::find_container(txn, kPoolStore, at->container))->segment);
  }
  char name[32];
  std::snprintf(name, sizeof name, "/pool/active/%08x.seg", segment);
  flip(path_ + name, fs::file_size(path_ + name) / 2);
  open_for_writing();
  const std::set<std::string> twins{"a/twin/twin", "b/twin/twin"};
  EXPECT_EQ(unreadable(), twins);
  EXPECT_EQ(affected(check()), twins);
  repair();
  open_for_writing();
  EXPECT_EQ(unreadable(), twins);
  // Lost content is stored again when it comes back, whichever id an index finds.
  const auto bytes = contents_["a/twin/twin"];
  add_version("b", "again", {{"twin", bytes}});
  EXPECT_EQ(unreadable(), twins);
}

TEST_F(PoolAliasesTest, OpenVersionMayReferToAliases) {
  const auto number = must(repository_->find_version(series("b"), "twin")).number;
  const auto next = must(repository_->clone_version(series("b"), number, "next")).number;
  must(must(repository_->writer(series("b")))->sync());
  open_for_writing();
  const auto from = must(repository_->reader(series("b"), number));
  must(must(repository_->writer(series("b")))->clone(*from, find(*from, "twin"), kRootIno, "copy"));
  must(must(repository_->writer(series("b")))->sync());
  remove("a", "twin");
  open_for_writing();
  must(repository_->seal(series("b"), next, ""));
  contents_["b/next/twin"] = contents_["b/next/copy"] = contents_["b/twin/twin"];
  remove("b", "twin");
  expect_whole();
}

}  // namespace
}  // namespace varve::test
