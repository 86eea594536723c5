// SPDX-License-Identifier: Apache-2.0
// Tests that damage which a check found is used: no new data refers to it.
#include "maintain/known_damage.h"

#include <set>
#include <string>

#include "maintain/check_record.h"
#include "pool_fixture.h"
#include "repair_fixture.h"
#include "support/file_content.h"

namespace varve::test {
namespace {

OpenOptions reading() {
  OpenOptions options;
  options.read_only = true;
  return options;
}

CheckOptions whole() {
  CheckOptions options;
  options.verify_chunks = true;
  return options;
}

class KnownDamage : public RepairTest {
 protected:
  // Damages d/a of v4.
  void damage() {
    repository_.reset();
    const auto segment = in_series("active/00000003.seg");
    flip(segment, fs::file_size(segment) / 2);
  }
  void open(const OpenOptions& options = {}) {
    repository_.reset();
    repository_ = reopen(path_, options);
  }
  [[nodiscard]] std::string checked() const {
    std::ifstream file(path_ + "/checked");
    return varve::test::rest_of(file);
  }
  /// Returns whether a version that stores the content of v4 again is whole.
  bool stores_again(const std::string& name) {
    const auto number = must(repository_->open_version(series_, name, folder())).number;
    fill(*must(repository_->writer(series_)), name, 4);
    must(repository_->seal(series_, number, ""));
    return is_whole(name);
  }
  bool is_whole(const std::string& name) {
    const auto info = must(repository_->find_version(series_, name));
    const auto reader = must(repository_->reader(series_, info.number));
    try {
      return read_sealed(*reader, "d/a") == contents_["v4"]["d/a"];
    } catch (const std::runtime_error&) {
      return false;
    }
  }
  LostFiles lost(const std::string& name) {
    const auto info = must(repository_->find_version(series_, name));
    return must(repository_->lost_files(series_, info.number));
  }
};

TEST_P(KnownDamage, ACheckOfTheWriterQuarantinesIt) {
  damage();
  open();
  EXPECT_EQ(must(repository_->lost_chunks_stamp(series_)), 0U);
  const auto report = must(repository_->check(whole(), {}));
  EXPECT_GT(report.lost_chunks, 0U);
  EXPECT_TRUE(report.quarantined);
  EXPECT_FALSE(report.quarantine_is_due);
  EXPECT_NE(must(repository_->lost_chunks_stamp(series_)), 0U);
  EXPECT_EQ(checked().find("lost"), std::string::npos);
  EXPECT_EQ(must(repository_->versions_with_losses(series_)),
            std::vector<VersionNumber>{VersionNumber{4}});
  EXPECT_EQ(lost("v4").files, 1U);
  EXPECT_EQ(lost("v4").names, std::vector<std::string>{"d/a"});
  EXPECT_EQ(lost("v3").files, 0U);
  EXPECT_TRUE(stores_again("v5"));
  EXPECT_EQ(lost("v5").files, 0U);
  EXPECT_FALSE(is_whole("v4"));
  const auto repaired = repair();
  EXPECT_GT(repaired.chunks_rehomed, 0U);
  EXPECT_EQ(repaired.chunks_quarantined, 0U);
  open();
  EXPECT_TRUE(is_whole("v4"));
  EXPECT_TRUE(must(repository_->versions_with_losses(series_)).empty());
  EXPECT_EQ(must(repository_->lost_chunks_stamp(series_)), 0U);
  expect_clean();
}

TEST_P(KnownDamage, TheNextWriterTakesWhatAReaderFound) {
  damage();
  open(reading());
  const auto report = must(repository_->check(whole(), {}));
  EXPECT_GT(report.lost_chunks, 0U);
  EXPECT_FALSE(report.quarantined);
  EXPECT_TRUE(report.quarantine_is_due);
  EXPECT_NE(checked().find("\nlost = 1 "), std::string::npos);
  EXPECT_EQ(lost("v4").files, 1U);  // A reader knows it from the record.
  EXPECT_EQ(code_of(repository_->settle_quarantine()), ErrorCode::kReadOnly);
  open();
  EXPECT_EQ(checked().find("lost"), std::string::npos);
  EXPECT_EQ(lost("v4").files, 1U);
  EXPECT_EQ(must(repository_->settle_quarantine()), 0U);
  EXPECT_TRUE(stores_again("v5"));
  // A later check names nothing that is in quarantine.
  open(reading());
  const auto later = must(repository_->check(whole(), {}));
  EXPECT_TRUE(later.quarantined);
  EXPECT_FALSE(later.quarantine_is_due);
  EXPECT_EQ(checked().find("lost"), std::string::npos);
}

TEST_P(KnownDamage, AScrubIsACheck) {
  damage();
  open(reading());
  EXPECT_TRUE(must(repository_->scrub({}, {})).check.quarantine_is_due);
  open();
  EXPECT_TRUE(stores_again("v5"));
}

TEST_P(KnownDamage, AnOpenVersionStoresTheContentAgain) {
  damage();
  open();
  const auto number = must(repository_->open_version(series_, "v5", folder())).number;
  const auto version = must(repository_->writer(series_));
  write_file(*version, kRootIno, "begun", noise(50000, 3));  // Its index is in memory.
  must(repository_->check(whole(), {}));
  const auto sub = must(version->create(kRootIno, "d", folder())).ino;
  write_file(*version, sub, "a", contents_["v4"]["d/a"]);
  must(repository_->seal(series_, number, ""));
  EXPECT_TRUE(is_whole("v5"));
}

TEST_P(KnownDamage, ADaemonTakesWhatAReaderFound) {
  damage();
  open(reading());
  must(repository_->check(whole(), {}));
  const auto record = checked();
  open();
  must(repository_->close());
  // As if the check had ended while this repository was open.
  std::ofstream(path_ + "/checked", std::ios::binary) << record;
  EXPECT_EQ(must(repository_->settle_quarantine()), 0U);
  EXPECT_EQ(checked().find("lost"), std::string::npos);
}

TEST_P(KnownDamage, AnOldRecordHidesNothingThatIsSound) {
  damage();
  open(reading());
  must(repository_->check(whole(), {}));
  repository_.reset();
  const auto segment = in_series("active/00000003.seg");
  flip(segment, fs::file_size(segment) / 2);
  open();
  EXPECT_EQ(must(repository_->lost_chunks_stamp(series_)), 0U);
  EXPECT_EQ(checked().find("lost"), std::string::npos);
  expect_clean();
}

TEST_P(KnownDamage, ACheckReleasesWhatIsSoundAgain) {
  for (const bool by_reader : {false, true}) {
    damage();
    open();
    must(repository_->check(whole(), {}));
    EXPECT_NE(must(repository_->lost_chunks_stamp(series_)), 0U);
    repository_.reset();
    flip(in_series("active/00000003.seg"), fs::file_size(in_series("active/00000003.seg")) / 2);
    open(by_reader ? reading() : OpenOptions());
    CheckOptions quick;
    quick.read_data = false;
    EXPECT_FALSE(must(repository_->check(quick, {})).quarantine_is_due);
    EXPECT_NE(must(repository_->lost_chunks_stamp(series_)), 0U);
    EXPECT_EQ(must(repository_->check({}, {})).quarantine_is_due, by_reader);
    open();
    EXPECT_EQ(must(repository_->settle_quarantine()) != 0, by_reader);
    EXPECT_EQ(must(repository_->lost_chunks_stamp(series_)), 0U);
  }
}

TEST_P(KnownDamage, AForgedRecordHidesNothing) {
  repository_.reset();
  maintain::RecordOfChecks forged;
  forged.checks = {{CheckDepth::kChunks, 7, 1}};
  const auto none = base::IdRuns::from({{ChunkId::make(VersionNumber{99}, 5), 1000},
                                        {ChunkId::make(VersionNumber{1}, 0), UINT32_MAX}});
  const auto shared = base::IdRuns::from({{ChunkId::make(VersionNumber{1U << 31}, 0), 7}});
  forged.lost = {
      {StoreId{0}, none.unite(shared)}, {StoreId{1}, none.unite(shared)}, {StoreId{77}, none}};
  std::ofstream(path_ + "/checked", std::ios::binary) << maintain::encode_check_record(forged);
  open();
  EXPECT_EQ(must(repository_->lost_chunks_stamp(series_)), 0U);
  EXPECT_EQ(checked().find("lost"), std::string::npos);
  expect_clean();
}

TEST_P(KnownDamage, AFileThatIsGoneIsDamage) {
  repository_.reset();
  fs::remove(in_series("active/00000003.seg"));
  open(reading());
  EXPECT_TRUE(must(repository_->check({}, {})).quarantine_is_due);
  open();
  EXPECT_TRUE(stores_again("v5"));
}

TEST_P(KnownDamage, ARepairTellsOfItWithoutAStep) {
  damage();
  open();
  must(repository_->check(whole(), {}));
  repository_.reset();
  const auto planned = must(Repair::plan(path_, {}, false, {}));
  EXPECT_TRUE(planned->steps().empty());
  EXPECT_GT(planned->lost_chunks(), 0U);
}

// A lost catalog is built with the quarantine.
TEST_P(KnownDamage, TheLabelsHaveTheQuarantine) {
  damage();
  open();
  must(repository_->check(whole(), {}));
  const auto stamp = must(repository_->lost_chunks_stamp(series_));
  must(repository_->close());
  lose_catalog();
  RepairOptions options;
  options.read_data = false;
  repair(options);
  open();
  EXPECT_EQ(must(repository_->lost_chunks_stamp(series_)), stamp);
}

INSTANTIATE_TEST_SUITE_P(Codecs, KnownDamage, testing::Values(Codec::kZstd));

class KnownPoolDamage : public PoolTest {};

TEST_F(KnownPoolDamage, ContentThatComesInAgainIsStoredAgain) {
  for (const bool by_reader : {false, true}) {
    for (const auto& file : pool_files()) {
      repository_.reset();
      flip(file, fs::file_size(file) / 2);
    }
    if (by_reader) {
      open_read_only();
    } else {
      open_for_writing();
    }
    EXPECT_EQ(check().quarantine_is_due, by_reader);
    if (by_reader) open_for_writing();
    const auto bad = unreadable();
    ASSERT_FALSE(bad.empty());
    Files again;
    for (const auto& path : bad) again["f" + std::to_string(again.size())] = contents_[path];
    add_version("b", by_reader ? "w2" : "w1", again);
    EXPECT_EQ(unreadable(), bad);
    EXPECT_EQ(repair().chunks_quarantined, 0U);
    expect_whole();
    EXPECT_EQ(must(repository_->lost_chunks_stamp(series("a"))), 0U);
  }
}

// The pool's index is in memory.
TEST_F(KnownPoolDamage, AnOpenVersionStoresTheContentAgain) {
  for (const auto& file : pool_files()) flip(file, fs::file_size(file) / 2);
  open_for_writing();
  const auto bad = unreadable();
  const auto number = must(repository_->open_version(series("b"), "w1", folder())).number;
  const auto version = must(repository_->writer(series("b")));
  write_file(*version, kRootIno, "begun", noise(150000, 4));
  must(version->sync());
  check();
  int i = 0;
  for (const auto& path : bad) {
    const auto name = "f" + std::to_string(i++);
    write_file(*version, kRootIno, name, contents_[path]);
    contents_["b/w1/" + name] = contents_[path];
  }
  must(repository_->seal(series("b"), number, ""));
  for (const auto& path : unreadable()) EXPECT_FALSE(path.starts_with("b/w1/f")) << path;
  EXPECT_FALSE(must(repository_->versions_with_losses(series("a"))).empty());
}

}  // namespace
}  // namespace varve::test
