// SPDX-License-Identifier: Apache-2.0
// Tests the database wrapper: transactions, walks, and records damaged on disk.
#include "meta/lmdb.h"

#include <gtest/gtest.h>
#include <lmdb.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "support/file_content.h"
#include "support/temp_repository.h"
#include "support/test_keys.h"

namespace varve::meta {
namespace {

using varve::test::code_of;
using varve::test::must;

constexpr std::array<const char*, 2> kTwoTables = {"a", "b"};
// Constructed before the registry of environments, so destroyed after it.
std::optional<Env> kept_to_the_end;

// The parameter says whether the environment is encrypted.
class LmdbTest : public testing::TestWithParam<bool> {
 protected:
  static EnvOptions options(bool read_only) {
    EnvOptions made;
    made.tables = kTwoTables;
    made.read_only = read_only;
    if (GetParam()) made.keys.ring = varve::test::test_keys();
    return made;
  }
  Env open(bool read_only = false) {
    return must(Env::open(directory_.path(), options(read_only)));
  }
  static void put(const Env& env, TableIndex table, std::string_view key, std::string_view value) {
    auto txn = must(WriteTxn::begin(env));
    must(txn.put(table, key, value));
    must(txn.commit());
  }
  static std::optional<std::string> get(const Env& env, TableIndex table, std::string_view key) {
    const auto txn = must(ReadTxn::begin(env));
    const auto value = must(txn.get(table, key));
    return value ? std::optional(std::string(*value)) : std::nullopt;
  }
  // Returns a record of the first table with its checksum, as it is in the file.
  std::string stored_bytes(std::string key) {
    const auto env = open(true);
    const auto txn = must(ReadTxn::begin(env));
    MDB_val k{key.size(), key.data()};
    MDB_val v{};
    EXPECT_EQ(mdb_get(txn.raw(), env.table(0), &k, &v), 0);
    return {static_cast<const char*>(v.mv_data), v.mv_size};
  }

  varve::test::TempDirectory directory_;
};

// The sanitizers see a registry of environments that is destroyed before the last environment.
TEST_P(LmdbTest, EnvironmentMayLastUntilTheProgramEnds) {
  kept_to_the_end.emplace(open());
  put(*kept_to_the_end, 0, "key", "value");
}

// LMDB 0.9.25 and later destroy the locks of a file that a process has opened twice.
TEST_P(LmdbTest, ReaderOfTheSameProcessSharesTheWritersEnvironment) {
  const auto writer = open();
  put(writer, 0, "key", "before");
  {
    const auto reader = open(true);
    EXPECT_EQ(reader.raw(), writer.raw());
    const auto snapshot = must(ReadTxn::begin(reader));
    put(writer, 0, "key", "after");
    EXPECT_EQ(std::string(*must(snapshot.get(0, "key"))), "before");
  }
  put(writer, 0, "key", "last");
  EXPECT_EQ(get(writer, 0, "key"), "last");
}

TEST_P(LmdbTest, ReaderGoesOnWhenALaterWriterOfTheProcessCloses) {
  put(open(), 0, "key", "value");
  const auto reader = open(true);
  for (const char* value : {"one", "two"}) {
    put(open(), 0, "key", value);
    EXPECT_EQ(get(reader, 0, "key"), value);
  }
}

// As a read-only process finds a catalog that an earlier release made.
TEST_P(LmdbTest, OptionalTableThatIsMissingIsEmpty) {
  put(open(), 1, "key", "value");
  constexpr std::array<const char*, 3> kWantedTables = {"a", "b", "later"};
  auto reading = options(true);
  reading.tables = kWantedTables;
  reading.optional_tables = 1;
  const auto env = must(Env::open(directory_.path(), reading));
  const auto txn = must(ReadTxn::begin(env));
  EXPECT_FALSE(txn.has(2));
  EXPECT_EQ(get(env, 2, "key"), std::nullopt);
  EXPECT_EQ(must(txn.count(2)), 0U);
  auto cursor = must(Cursor::open(txn, 2));
  EXPECT_FALSE(must(cursor.seek("")).has_value());
  EXPECT_FALSE(must(cursor.seek_at_or_before("key")).has_value());
  EXPECT_FALSE(must(cursor.next()).has_value());
  EXPECT_EQ(get(env, 1, "key"), "value");
}

TEST_P(LmdbTest, CommittedIsThereAfterReopeningAndAbortedIsNot) {
  {
    const auto env = open();
    put(env, 0, "key", "value");
    put(env, 1, "key", "");
    auto txn = must(WriteTxn::begin(env));
    must(txn.put(0, "other", "value"));
    must(txn.erase(0, "key"));
    EXPECT_FALSE(must(txn.get(0, "key")));
  }
  for (const bool read_only : {false, true}) {
    const auto env = open(read_only);
    EXPECT_EQ(get(env, 0, "key"), "value");
    EXPECT_EQ(get(env, 1, "key"), "");
    EXPECT_EQ(get(env, 0, "other"), std::nullopt);
  }
}

TEST_P(LmdbTest, SnapshotSeesWhatWasCommittedBeforeIt) {
  const auto env = open();
  put(env, 0, "key", "old");
  const auto txn = must(ReadTxn::begin(env));
  put(env, 0, "key", "new");
  EXPECT_EQ(must(txn.get(0, "key")), "old");
  EXPECT_EQ(get(env, 0, "key"), "new");
}

TEST_P(LmdbTest, ValueMayBeAViewOfTheSameTransaction) {
  const auto env = open();
  put(env, 0, "from", std::string(3000, 'x'));
  auto txn = must(WriteTxn::begin(env));
  const auto view = must(txn.get(0, "from"));
  must(txn.put(0, "to", *view));
  must(txn.put(0, "from", "short"));
  must(txn.commit());
  EXPECT_EQ(get(env, 0, "to"), std::string(3000, 'x'));
  EXPECT_EQ(get(env, 0, "from"), "short");
}

TEST_P(LmdbTest, CursorFindsNeighbours) {
  const auto env = open();
  for (const char* key : {"b", "bb", "d"}) put(env, 0, key, key);
  put(env, 1, "c", "of the other table");
  const auto txn = must(ReadTxn::begin(env));
  auto cursor = must(Cursor::open(txn, 0));
  const auto key_of = [](const std::optional<KeyValue>& entry) {
    return entry ? std::string(entry->key) : "none";
  };
  EXPECT_EQ(key_of(must(cursor.seek(""))), "b");
  EXPECT_EQ(key_of(must(cursor.seek("b"))), "b");
  EXPECT_EQ(key_of(must(cursor.next())), "bb");
  EXPECT_EQ(key_of(must(cursor.seek("c"))), "d");
  EXPECT_EQ(key_of(must(cursor.next())), "none");
  EXPECT_EQ(key_of(must(cursor.seek("e"))), "none");
  EXPECT_EQ(key_of(must(cursor.seek_at_or_before("c"))), "bb");
  EXPECT_EQ(key_of(must(cursor.seek_at_or_before("bb"))), "bb");
  EXPECT_EQ(key_of(must(cursor.seek_at_or_before("z"))), "d");
  EXPECT_EQ(key_of(must(cursor.seek_at_or_before("a"))), "none");
}

TEST_P(LmdbTest, CursorGoesBehindAPrefix) {
  const auto env = open();
  for (const char* key : {"a", "b", "b\xff", "bb", "c\xff\xff", "d", "\xff\xff",
                          "\xff\xff"
                          "a"}) {
    put(env, 0, key, key);
  }
  const auto txn = must(ReadTxn::begin(env));
  auto cursor = must(Cursor::open(txn, 0));
  const auto behind = [&](std::string_view prefix) {
    const auto entry = must(cursor.seek_behind(prefix));
    return entry ? std::string(entry->key) : "none";
  };
  EXPECT_EQ(behind("a"), "b");
  EXPECT_EQ(behind("b"), "c\xff\xff");
  EXPECT_EQ(behind("b\xff"), "c\xff\xff");
  EXPECT_EQ(behind("c\xff"), "d");
  EXPECT_EQ(behind("d"), "\xff\xff");
  EXPECT_EQ(behind("\xff\xff"), "none");
  EXPECT_EQ(behind("\xff"), "none");
  EXPECT_EQ(behind(""), "none");
}

TEST_P(LmdbTest, PrefixWalkStaysInsideAndStopsWhenTold) {
  const auto env = open();
  for (const char* key : {"a", "pa", "pb", "pc", "q"}) put(env, 0, key, "v");
  const auto txn = must(ReadTxn::begin(env));
  std::string seen;
  must(for_each_prefix(txn, 0, "p", [&](std::string_view key, std::string_view) -> Result<bool> {
    seen += key;
    return true;
  }));
  EXPECT_EQ(seen, "papbpc");
  seen.clear();
  must(for_each_prefix(txn, 0, "p", [&](std::string_view key, std::string_view) -> Result<bool> {
    seen += key;
    return key != "pb";
  }));
  EXPECT_EQ(seen, "papb");
  EXPECT_EQ(code_of(for_each_prefix(txn, 0, "p",
                                    [](std::string_view, std::string_view) -> Result<bool> {
                                      return Error(ErrorCode::kInterrupted, "enough");
                                    })),
            ErrorCode::kInterrupted);
}

TEST_P(LmdbTest, FlippedByteOfAValueIsCorrupt) {
  const std::string value = varve::test::noise(600, 1);
  {
    const auto env = open();
    put(env, 0, "key", value);
    put(env, 0, "next", "whole");
  }
  const auto path = directory_.path() + "/data.mdb";
  std::ifstream in(path, std::ios::binary);
  const std::string image = varve::test::rest_of(in);
  const auto stored = stored_bytes("key");
  const auto at = image.find(stored);
  ASSERT_NE(at, std::string::npos);
  // Bytes of the value and of its checksum.
  for (const std::size_t offset : {std::size_t{0}, std::size_t{300}, stored.size() - 5,
                                   stored.size() - 4, stored.size() - 1}) {
    for (std::size_t copy = at; copy != std::string::npos; copy = image.find(stored, copy + 1)) {
      std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(static_cast<std::streamoff>(copy + offset));
      file.put(static_cast<char>(image[copy + offset] ^ 1));
    }
    {
      const auto env = open(true);
      const auto txn = must(ReadTxn::begin(env));
      EXPECT_EQ(code_of(txn.get(0, "key")), ErrorCode::kCorrupt) << offset;
      auto cursor = must(Cursor::open(txn, 0));
      EXPECT_EQ(code_of(cursor.seek("key")), ErrorCode::kCorrupt) << offset;
      EXPECT_EQ(must(txn.get(0, "next")), "whole");
    }
    std::ofstream(path, std::ios::binary | std::ios::trunc) << image;
  }
  EXPECT_EQ(get(open(true), 0, "key"), value);
}

TEST_P(LmdbTest, ACommitLeavesHardlyAHoleAtTheEnd) {
  const auto env = open();
  constexpr int kFewRecords = 60;
  for (int i = 0; i < kFewRecords; ++i) put(env, 0, std::to_string(i), "value");
  {
    auto txn = must(WriteTxn::begin(env));
    for (int i = 0; i < kFewRecords; ++i) must(txn.put(0, std::to_string(i), "other"));
    must(txn.commit());
  }
  constexpr std::uint64_t kHoleMax = 64U << 10;
  EXPECT_LE(std::filesystem::file_size(directory_.path() + "/data.mdb"),
            used_bytes(env).bytes + kHoleMax);
}

TEST_P(LmdbTest, TruncatedFileIsRefused) {
  {
    const auto env = open();
    for (int i = 0; i < 50; ++i) put(env, 0, std::to_string(i), varve::test::noise(3000, 1));
  }
  const auto path = directory_.path() + "/data.mdb";
  const auto size = std::filesystem::file_size(path);
  // The end of the file may be a hole without pages, but not its middle.
  for (const std::uintmax_t left : {size / 2, std::uintmax_t{8192}, std::uintmax_t{0}}) {
    std::filesystem::resize_file(path, left);
    for (const bool read_only : {true, false}) {
      auto made = options(read_only);
      made.must_exist = true;
      EXPECT_EQ(code_of(Env::open(directory_.path(), made)), ErrorCode::kCorrupt) << left;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(PlainAndEncrypted, LmdbTest, testing::Bool());

}  // namespace
}  // namespace varve::meta
