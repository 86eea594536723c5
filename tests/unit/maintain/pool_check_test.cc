// SPDX-License-Identifier: Apache-2.0
// Checks that damage of the pool is found, with the files of all series that it affects.
#include <stop_token>

#include "catalog/location_table.h"
#include "catalog/pool_records.h"
#include "pool_fixture.h"

namespace varve::test {
namespace {

using PoolCheckTest = PoolTest;

TEST_F(PoolCheckTest, WholeRepositoryHasNoDamage) {
  for (const bool read_data : {true, false}) {
    const auto report = check(read_data);
    EXPECT_TRUE(report.damages.empty());
    EXPECT_EQ(report.versions, 4U);
    EXPECT_EQ(report.containers, pool_files().size() + 1);
    EXPECT_GT(report.chunks, 100U);
  }
}

TEST_F(PoolCheckTest, DamageNamesTheFilesOfAllSeriesThatCannotBeRead) {
  ASSERT_GE(pool_files().size(), 3U);
  std::size_t in_several = 0;
  for (const auto& file : pool_files()) {
    const auto size = fs::file_size(file);
    for (const std::uint64_t offset : {std::uint64_t{9}, size / 2, size * 3 / 4}) {
      flip(file, offset);
      open_read_only();
      const auto bad = unreadable();
      const auto report = check();
      EXPECT_EQ(affected(report), bad) << file << " at " << offset;
      ASSERT_EQ(report.damages.size(), 1U);
      EXPECT_TRUE(report.damages[0].where.starts_with(file));
      if (bad.contains("b/v1/same") && bad.contains("c/v1/same")) ++in_several;
      flip(file, offset);
    }
    fs::rename(file, file + ".gone");
    open_read_only();
    EXPECT_EQ(affected(check()), unreadable()) << file;
    EXPECT_FALSE(check(false).damages.empty());
    fs::rename(file + ".gone", file);
  }
  EXPECT_GT(in_several, 0U);
  open_read_only();
  EXPECT_TRUE(check().damages.empty());
}

TEST_F(PoolCheckTest, WrongUsersAndBirthsAreDamageThatARepairCorrects) {
  const auto right = records();
  const auto use = [](meta::WriteTxn& txn) {
    return must(catalog::find_pool_use(txn, SeriesId{1}, VersionNumber{1}));
  };
  const std::vector<std::function<void(meta::WriteTxn&)>> changes = {
      [&](meta::WriteTxn& txn) {
        must(catalog::put_pool_users(txn, use(txn).front().container, 1));
      },
      [&](meta::WriteTxn& txn) {
        must(catalog::put_pool_users(txn, use(txn).front().container, 0));
      },
      [&](meta::WriteTxn& txn) {
        must(catalog::put_pool_users(txn, ContainerNumber{kPoolBit + 77}, 1));
      },
      [&](meta::WriteTxn& txn) {
        must(catalog::put_pool_use(txn, SeriesId{1}, VersionNumber{1}, {}));
      },
      [&](meta::WriteTxn& txn) {
        auto uses = use(txn);
        ++uses.back().bytes;
        must(catalog::put_pool_use(txn, SeriesId{1}, VersionNumber{1}, uses));
      },
      [&](meta::WriteTxn& txn) {
        must(catalog::put_pool_use(txn, SeriesId{1}, VersionNumber{9}, use(txn)));
      },
      [&](meta::WriteTxn& txn) {
        must(txn.put(meta::catalog::kPoolUsers, meta::pool_users_key(use(txn).front().container),
                     "damaged"));
      },
      [&](meta::WriteTxn& txn) {
        must(catalog::put_rewrite_counts(txn, SeriesId{1}, VersionNumber{9}, {1, 1}));
      },
      [&](meta::WriteTxn& txn) {
        must(txn.put(meta::catalog::kRewriteCounts,
                     meta::version_key(SeriesId{1}, VersionNumber{1}), "damaged"));
      },
      [&](meta::WriteTxn& txn) {
        must(txn.erase(meta::catalog::kSettings, catalog::kPoolBirthSetting));
      },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    change_catalog(changes[i]);
    open_read_only();
    const auto report = check();
    ASSERT_FALSE(report.damages.empty()) << i;
    for (const auto& damage : report.damages) EXPECT_EQ(damage.where, path_ + "/catalog") << i;
    repair();
    ASSERT_FALSE(steps_.empty()) << i;
    EXPECT_EQ(steps_[0].kind, RepairStep::Kind::kCatalog) << i;
    EXPECT_TRUE(records() == right) << i;
    open_read_only();
    EXPECT_TRUE(check().damages.empty()) << i;
  }
}

TEST_F(PoolCheckTest, ChunkThatIsNotLocatedIsMissing) {
  change_catalog([](meta::WriteTxn& txn) {
    std::vector<ChunkId> all;
    must(catalog::for_each_location(txn, kPoolStore, ChunkId{},
                                    [&](const catalog::LocationRecord& at) -> Result<bool> {
                                      all.push_back(at.first);
                                      return true;
                                    }));
    ASSERT_FALSE(all.empty());
    must(catalog::erase_location(txn, kPoolStore, all.front()));
  });
  open_read_only();
  const auto bad = unreadable();
  EXPECT_FALSE(bad.empty());
  EXPECT_EQ(affected(check()), bad);
}

TEST_F(PoolCheckTest, WriterThatStoresAndDeletesMeanwhileDoesNotDisturb) {
  const auto reader = [&] {
    OpenOptions options;
    options.read_only = true;
    return reopen(path_, options);
  }();
  int step = 0;
  CheckOptions how;
  how.bytes_per_second = 1U << 30;  // Checks one container at a time.
  const auto report = must(reader->check(how, [&](const CheckProgress&) {
    if (++step == 1) {
      remove("a", "v1");
      add_version("b", "v2", {{"new", noise(150000, 9)}, {"same", noise(200000, 1)}});
    } else if (step == 2) {
      remove("b", "v1");
      add_version("a", "v3", {{"newer", noise(150000, 10)}});
    }
  }));
  EXPECT_GE(step, 3);
  for (const auto& damage : report.damages) ADD_FAILURE() << damage.where << ": " << damage.what;
  // The versions that came meanwhile are checked with their data, or by the next check.
  expect_whole();
}

TEST_F(PoolCheckTest, ScrubGoesOnInsideThePool) {
  std::uint64_t containers = 0;
  std::uint64_t runs = 0;
  for (bool finished = false; !finished; ++runs) {
    ASSERT_LT(runs, 20U);
    std::stop_source source;
    ScrubOptions options;
    options.stop = source.get_token();
    options.bytes_per_second = 1U << 30;
    std::uint64_t read = 0;
    CheckProgress before;
    const auto part = must(repository_->scrub(options, [&](const CheckProgress& now) {
      // Containers before the place where the last run stopped cost only their headers.
      if (now.bytes_done - before.bytes_done > 20000 && ++read == 1) source.request_stop();
      before = now;
    }));
    containers += read != 0 ? 1 : 0;
    finished = part.check.finished;
    EXPECT_TRUE(part.check.damages.empty());
    EXPECT_EQ(part.resumed, runs != 0);
  }
  EXPECT_EQ(containers, pool_files().size() + 1);
}

TEST_F(PoolCheckTest, StoppedCheckNamesTheFilesOfTheDamageThatItFound) {
  const auto file = pool_files().front();
  flip(file, fs::file_size(file) / 2);
  open_read_only();
  const auto bad = unreadable();
  std::stop_source source;
  CheckOptions how;
  how.stop = source.get_token();
  how.bytes_per_second = 1U << 30;
  const auto report =
      must(repository_->check(how, [&](const CheckProgress&) { source.request_stop(); }));
  EXPECT_FALSE(report.finished);
  EXPECT_EQ(report.damages.size(), 1U);
  EXPECT_EQ(affected(report), bad);
}

TEST_F(PoolCheckTest, ProgressEndsAtTheTotal) {
  CheckProgress last;
  must(repository_->check({}, [&](const CheckProgress& now) {
    EXPECT_GE(now.bytes_done, last.bytes_done);
    last = now;
  }));
  EXPECT_GT(last.bytes_total, stored_bytes() / 2);
  EXPECT_EQ(last.bytes_done, last.bytes_total);
}

TEST_F(PoolCheckTest, UnknownFilesAndTrailingBytesAreNotes) {
  const auto file = pool_files().front();
  std::ofstream(path_ + "/pool/notes.txt") << "mine";
  std::ofstream(file, std::ios::app | std::ios::binary) << "more";
  open_read_only();
  const auto report = check();
  EXPECT_TRUE(report.damages.empty());
  std::set<std::string> where;
  for (const auto& note : report.notes) where.insert(note.where);
  EXPECT_EQ(where, (std::set<std::string>{path_ + "/pool/notes.txt", file}));
}

}  // namespace
}  // namespace varve::test
