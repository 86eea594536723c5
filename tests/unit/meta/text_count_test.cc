// SPDX-License-Identifier: Apache-2.0
// Tests the number of texts under the key of an encrypted environment, and its limit.
#include "meta/text_count.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>

#include "io/posix_file_system.h"
#include "meta/compaction.h"
#include "meta/lmdb.h"
#include "meta/page_check.h"
#include "meta/stored_records.h"
#include "support/sealed_pairs.h"
#include "support/temp_repository.h"
#include "support/test_keys.h"

namespace varve::meta {
namespace {

using varve::test::code_of;
using varve::test::must;
using varve::test::noise;

constexpr std::array<const char*, 3> kCountedTables = {"one", "two", "names"};

class TextCountTest : public testing::Test {
 protected:
  TextCountTest() : files_(must(io::open_root(directory_.path(), {.trust_owner = true}))) {}

  EnvOptions options(std::uint64_t texts_max = crypto::kTextsMax,
                     crypto::Purpose purpose = crypto::Purpose::kCatalog) {
    EnvOptions made;
    made.tables = kCountedTables;
    made.map_bytes = std::size_t{256} << 20;
    made.writer_lock = directory_.path() + "/writer";
    made.keys.ring = test::test_keys();
    made.keys.purpose = purpose;
    made.texts_max = texts_max;
    return made;
  }
  Env open(std::uint64_t texts_max = crypto::kTextsMax) {
    return must(Env::open(*files_, directory_.path(), options(texts_max)));
  }
  static std::uint64_t stored(const Env& env) {
    return must(env.texts()->stored(must(ReadTxn::begin(env))));
  }
  static Result<void> put(const Env& env, int records, int first = 0) {
    auto txn = must(WriteTxn::begin(env));
    for (int i = 0; i < records; ++i) must(txn.put(0, std::to_string(first + i), "value"));
    return txn.commit();
  }
  static void set_raw(const Env& env, std::string_view key, std::optional<std::string> value) {
    auto writer = must(StoredWriter::begin(env));
    must(value ? writer.put(kSealTable, {key, *value}) : writer.erase(kSealTable, key));
    must(writer.commit());
  }
  static std::string raw(const Env& env, std::string_view key) {
    const auto txn = must(ReadTxn::begin(env));
    return std::string(must(find_stored(txn, kSealTable, key)).value_or(""));
  }

  test::TempDirectory directory_;
  std::unique_ptr<io::FileSystem> files_;
};

TEST_F(TextCountTest, NumberCoversAllTextsOverCommitsAbortsAndOpenings) {
  const test::SealedPairs pairs;
  std::mt19937_64 random(7);
  std::optional<Env> env;
  for (int step = 0; step < 300; ++step) {
    if (!env || random() % 10 == 0) {
      env.reset();
      env.emplace(open());
    }
    const bool commits = random() % 3 != 0;
    {
      auto txn = must(WriteTxn::begin(*env));
      const auto records = random() % (step % 50 == 0 ? 2000 : 20);
      for (std::uint64_t i = 0; i < records; ++i) must(txn.put(0, std::to_string(i), "value"));
      must(txn.put(1, "step", std::to_string(step)));
      if (commits) must(txn.commit());
    }
    if (!commits) continue;
    ASSERT_GE(stored(*env), pairs.counts().texts) << "seed 7, step " << step;
  }
  EXPECT_LT(stored(*env), 2 * pairs.counts().texts + 60 * 1024) << "the blocks are small";
}

TEST_F(TextCountTest, NumberSeldomChanges) {
  const auto env = open();
  std::set<std::uint64_t> numbers;
  for (int i = 0; i < 1000; ++i) {
    must(put(env, 100));
    numbers.insert(stored(env));
  }
  EXPECT_LE(numbers.size(), 12U);
}

// A short command reserves little, so that many of them do not use up the key.
TEST_F(TextCountTest, OpeningReservesNothingBeforeTheFirstText) {
  must(put(open(), 1));
  const auto before = stored(open());
  for (int i = 0; i < 10; ++i) {
    const auto env = open();
    auto txn = must(WriteTxn::begin(env));
    must(txn.erase(0, "missing"));
    must(txn.commit());
  }
  EXPECT_EQ(stored(open()), before);
  must(put(open(), 1));
  EXPECT_LE(stored(open()), before + 300);
}

// The commit fails when the number is already in the transaction.
TEST_F(TextCountTest, CommitThatFailedIsCounted) {
  const auto env = open();
  must(put(env, 10));
  const test::SealedPairs pairs;
  const auto before = stored(env);
  struct rlimit old {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  std::signal(SIGXFSZ, SIG_IGN);
  for (int round = 0; round < 3; ++round) {
    auto small = old;
    small.rlim_cur = std::filesystem::file_size(directory_.path() + "/data.mdb");
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    const auto failed = put(env, 5000);
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old), 0);
    ASSERT_FALSE(failed);
  }
  EXPECT_EQ(stored(env), before);
  must(put(env, 1));
  EXPECT_GE(stored(env), before - 256 + pairs.counts().texts);
  EXPECT_GE(pairs.counts().texts, 15000U);
}

TEST_F(TextCountTest, CommitsEndAtTheLimit) {
  const test::SealedPairs pairs;
  const auto env = open(1000);
  Result<void> last;
  int commits = 0;
  for (; commits < 200 && last; ++commits) last = put(env, 10);
  ASSERT_FALSE(last);
  EXPECT_EQ(last.error().code(), ErrorCode::kTooLarge);
  EXPECT_NE(last.error().message().find("gives the catalog another key"), std::string::npos);
  EXPECT_GE(commits, 90);
  EXPECT_LE(stored(env), 1000U);
  EXPECT_LE(pairs.counts().texts, 1000U + 11U) << "the refused transaction has texts, too";
  // A transaction without texts commits, also after another opening.
  const auto again = open(1000);
  EXPECT_FALSE(put(again, 1));
  auto txn = must(WriteTxn::begin(again));
  must(txn.erase(0, "3"));
  must(txn.commit());
  EXPECT_EQ(must(must(ReadTxn::begin(again)).get(0, "4")), "value");
}

TEST_F(TextCountTest, SealOfAVersionUsesTheSpareTexts) {
  const auto env =
      must(Env::open(*files_, directory_.path(), options(500, crypto::Purpose::kOverlay)));
  auto refused = put(env, 600);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message().find("seal the open version"), std::string::npos);
  env.texts()->permit_spare_texts(true);
  must(put(env, 600));
  EXPECT_GT(stored(env), 500U);
}

TEST_F(TextCountTest, EnvironmentWithoutANumberBeginsWithAnEstimate) {
  {
    const auto env = open();
    must(put(env, 1000));
    set_raw(env, kTextsKey, std::nullopt);
  }
  const auto env = open();
  const auto estimate = stored(env);
  EXPECT_GE(estimate, 16 * 1000U);
  must(put(env, 1));
  EXPECT_GT(stored(env), estimate);
}

TEST_F(TextCountTest, DamagedNumberIsHalfOfTheLimit) {
  const auto env = open();
  must(put(env, 10));
  const auto sound = raw(env, kTextsKey);
  for (const auto at : {std::size_t{3}, sound.size() - 1}) {
    auto damaged = sound;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    set_raw(env, kTextsKey, damaged);
    EXPECT_EQ(stored(env), crypto::kTextsMax / 2);
    EXPECT_TRUE(must(env.texts()->is_half_used(must(ReadTxn::begin(env)))));
  }
  must(put(env, 10));
  EXPECT_GT(stored(env), crypto::kTextsMax / 2);
  EXPECT_LT(stored(env), crypto::kTextsMax / 2 + 1000);
}

// As a head of an object store brings another catalog to a mount that reads it.
TEST_F(TextCountTest, ReaderOfAnotherSaltSaysSo) {
  const auto env = open();
  must(put(env, 1));
  std::string salt;
  {
    const test::TempDirectory other;
    auto made = options();
    made.writer_lock = other.path() + "/writer";
    salt = raw(must(Env::open(other.path(), made)), kSaltKey);
  }
  set_raw(env, kSaltKey, salt);
  const auto begun = ReadTxn::begin(env);
  ASSERT_FALSE(begun);
  EXPECT_EQ(begun.error().code(), ErrorCode::kStale);
}

class KeyRenewal : public TextCountTest {
 protected:
  static constexpr int kRecords = 4000;
  static constexpr TableIndex kNames = 2;

  static std::string key(int i) { return "key " + std::to_string(i); }
  static std::string value(int i) {
    return noise(static_cast<std::size_t>(i % 500 == 0 ? 9000 : i % 90),
                 static_cast<std::uint64_t>(i));
  }
  static Result<void> fill(WriteTxn& txn) {
    for (const auto* const name : {"a", "b"}) {
      VARVE_TRY(txn.put(kNames, txn.env().key_of_name("1", name), name));
    }
    return {};
  }
  static const DerivedTable& names() {
    static const DerivedTable kDerived{kNames, fill};
    return kDerived;
  }
  void make() {
    const auto env = open();
    auto txn = must(WriteTxn::begin(env));
    for (int i = 0; i < kRecords; ++i) must(txn.put(0, key(i), value(i)));
    must(txn.put(1, "last", "value"));
    must(fill(txn));
    must(txn.commit());
  }
};

TEST_F(KeyRenewal, CopyHasAnotherKeyAndTheSameRecords) {
  const test::SealedPairs pairs;
  {
    const auto env = open();
    auto txn = must(WriteTxn::begin(env));
    for (int i = 0; i < kRecords; ++i) must(txn.put(0, key(i), value(i)));
    must(fill(txn));
    must(txn.commit());
    for (int i = 0; i < 100; ++i) must(put(env, 100));
  }
  std::string salt;
  std::uint64_t commit = 0;
  std::uint64_t texts = 0;
  {
    const auto env = open();
    salt = raw(env, kSaltKey);
    texts = stored(env);
    commit = must(ReadTxn::begin(env)).id();
    must(renew_key(env, *files_, kCountedTables, names()));
  }
  EXPECT_EQ(pairs.counts().repeated, 0U);
  EXPECT_FALSE(std::filesystem::exists(directory_.path() + "/data.mdb.tmp"));
  const auto env = open();
  EXPECT_NE(raw(env, kSaltKey), salt);
  EXPECT_LT(stored(env), texts);
  EXPECT_LE(stored(env), 2 * (kRecords + 110U));
  EXPECT_GE(stored(env), kRecords + 100U);
  {
    const auto txn = must(ReadTxn::begin(env));
    EXPECT_GT(txn.id(), commit) << "no head of an object store has these records";
    EXPECT_EQ(must(txn.count(0)), kRecords + 100U);
    for (int i = 0; i < kRecords; ++i) ASSERT_EQ(must(txn.get(0, key(i))), value(i)) << i;
    EXPECT_EQ(must(txn.count(kNames)), 2U);
    EXPECT_EQ(must(txn.get(kNames, env.key_of_name("1", "b"))), "b");
  }
  for (int i = 0; i < 5; ++i) must(put(env, 3000, i));
  must(check_pages(env, kCountedTables));
}

TEST_F(KeyRenewal, CopyIsAsShortAsACompactedOne) {
  make();
  std::uint64_t compacted = 0;
  {
    const auto env = open();
    compacted = must(compact(env, *files_, kCountedTables)).bytes_after;
  }
  const auto env = open();
  const auto renewed = must(renew_key(env, *files_, kCountedTables, names())).bytes_after;
  EXPECT_LE(renewed, compacted + compacted / 8);
}

TEST_F(KeyRenewal, DamagedRecordLeavesTheOriginal) {
  make();
  const auto env = open();
  {
    auto writer = must(StoredWriter::begin(env));
    must(writer.put("one", {key(5), "not a sealed value"}));
    must(writer.commit());
  }
  const auto salt = raw(env, kSaltKey);
  EXPECT_EQ(code_of(renew_key(env, *files_, kCountedTables, names())), ErrorCode::kCorrupt);
  EXPECT_FALSE(std::filesystem::exists(directory_.path() + "/data.mdb.tmp"));
  EXPECT_EQ(raw(open(), kSaltKey), salt);
}

}  // namespace
}  // namespace varve::meta
