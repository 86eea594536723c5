// SPDX-License-Identifier: Apache-2.0
// Records of an encrypted catalog that its storage erases, or replaces by older ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "catalog/series_catalog.h"
#include "meta/lmdb.h"
#include "meta/schema.h"
#include "support/closed_catalog.h"
#include "support/file_content.h"
#include "support/temp_repository.h"
#include "support/test_encryption.h"
#include "varve/check.h"

namespace varve::test {
namespace {

namespace files = std::filesystem;
namespace table = meta::catalog;

class AlteredRecords : public testing::Test {
 protected:
  AlteredRecords() {
    must(Repository::create(path_, small_chunks(Codec::kNone), encrypted()));
    const auto repository = open();
    for (const auto placement : {Placement::kLineage, Placement::kPool}) {
      SeriesOptions options;
      options.placement = placement;
      must(repository->create_series(placement_name(placement), options));
    }
    add_version(*repository, "one");
  }

  std::unique_ptr<Repository> open(bool read_only = false) {
    auto options = with_key(quiet_options());
    options.read_only = read_only;
    return reopen(path_, options);
  }
  void add_version(Repository& repository, const std::string& name) {
    for (const auto& series : must(repository.series())) {
      const auto number = must(repository.open_version(series.id, name, folder())).number;
      write_file(*must(repository.writer(series.id)), kRootIno, "file", content(name, series.id));
      must(repository.seal(series.id, number, ""));
    }
    names_.push_back(name);
  }
  static std::string content(const std::string& name, SeriesId series) {
    return noise(50'000, name.size() * 10 + static_cast<std::uint32_t>(series));
  }
  void expect_all_versions(Repository& repository) {
    for (const auto& series : must(repository.series())) {
      for (const auto& name : names_) {
        const auto number = must(repository.find_version(series.id, name)).number;
        const auto reader = must(repository.reader(series.id, number));
        EXPECT_TRUE(read_sealed(*reader, "file") == content(name, series.id)) << name;
      }
    }
  }

  // Without the keys, as the storage sees the records.
  static meta::EnvOptions raw_options(std::span<const char* const> tables) {
    meta::EnvOptions options;
    options.tables = tables;
    options.must_exist = true;
    options.without_keys = true;
    return options;
  }
  std::string stored(meta::TableIndex of, const std::string& key) const {
    const auto env = must(meta::Env::open(path_ + "/catalog", raw_options(table::kTables)));
    return std::string(*must(must(meta::ReadTxn::begin(env)).get(of, key)));
  }
  void store(meta::TableIndex of, const std::string& key, const std::string& value) const {
    const auto env = must(meta::Env::open(path_ + "/catalog", raw_options(table::kTables)));
    auto txn = must(meta::WriteTxn::begin(env));
    must(value.empty() ? txn.erase(of, key) : txn.put(of, key, value));
    must(txn.commit());
  }
  std::vector<Damage> damages() { return must(open(true)->check({}, {})).damages; }

  TempDirectory directory_;
  const std::string path_ = directory_.path() + "/repo";
  std::vector<std::string> names_;
};

TEST_F(AlteredRecords, OlderCountersGiveNoNumberTwice) {
  struct Record {
    meta::TableIndex of;
    std::string key;
    std::string older;
  };
  std::vector<Record> records;
  for (const std::uint32_t store : {0, 1})
    records.push_back({table::kCounters, base::be32(store), ""});
  for (const std::uint32_t series : {1, 2})
    records.push_back({table::kSeries, base::be32(series), ""});
  records.push_back({table::kSettings, "pool_birth", ""});
  for (auto& record : records) record.older = stored(record.of, record.key);
  std::string name = "two";
  for (const auto& record : records) {
    {
      const auto repository = open();
      add_version(*repository, name += "+");
    }
    store(record.of, record.key, record.older);
    EXPECT_FALSE(damages().empty()) << name;
    {
      const auto repository = open();
      add_version(*repository, name += "+");
      expect_all_versions(*repository);
    }
    EXPECT_TRUE(damages().empty()) << name;
  }
  expect_all_versions(*open(true));
}

TEST_F(AlteredRecords, ErasedRecordsAreDamage) {
  const auto version = meta::version_key(SeriesId{1}, VersionNumber{1});
  for (const auto& [of, key] :
       {std::pair<meta::TableIndex, std::string>{table::kSeries, base::be32(1)},
        {table::kVersions, version},
        {table::kVersionChunks, version}}) {
    const auto before = stored(of, key);
    EXPECT_TRUE(damages().empty());
    store(of, key, "");
    EXPECT_FALSE(damages().empty()) << of;
    store(of, key, before);
  }
}

// No number follows the series' number, so a walk from series to series could begin again.
TEST_F(AlteredRecords, AVersionOfTheLastSeriesNumberIsDamage) {
  {
    const auto catalog = open_catalog(path_ + "/catalog", keys_of(path_));
    auto txn = must(meta::WriteTxn::begin(catalog));
    auto record = *must(catalog::find_version(txn, SeriesId{1}, VersionNumber{1}));
    record.series = SeriesId{UINT32_MAX};
    must(catalog::put_version(txn, record));
    must(txn.commit());
  }
  const auto found = damages();
  EXPECT_TRUE(std::ranges::any_of(found, [](const Damage& damage) {
    return damage.what == "series 4294967295 has versions, but no record";
  }));
}

TEST_F(AlteredRecords, EachValueThatDoesNotOpenIsDamage) {
  for (const auto of : {table::kSeries, table::kNames, table::kVersionLinks, table::kSettings}) {
    const auto env = must(meta::Env::open(path_ + "/catalog", raw_options(table::kTables)));
    std::string key;
    std::string before;
    {
      const auto txn = must(meta::ReadTxn::begin(env));
      must(meta::for_each_prefix(txn, of, "", [&](std::string_view k, std::string_view value) {
        key = k;
        before = value;
        return Result<bool>(false);
      }));
    }
    ASSERT_FALSE(key.empty()) << of;
    auto changed = before;
    changed.back() = static_cast<char>(changed.back() ^ 1);
    const auto put = [&](const std::string& value) {
      auto txn = must(meta::WriteTxn::begin(env));
      must(txn.put(of, key, value));
      must(txn.commit());
    };
    put(changed);
    const auto repository = Repository::open(path_, [&] {
      auto options = with_key(quiet_options());
      options.read_only = true;
      return options;
    }());
    if (repository) {
      const auto report = (*repository)->check({}, {});
      EXPECT_TRUE(!report || !report->damages.empty()) << of;
    } else {
      EXPECT_EQ(repository.error().code(), ErrorCode::kCorrupt) << of;
    }
    put(before);
  }
}

TEST_F(AlteredRecords, LabelsThatDifferAreNoted) {
  const auto labels = path_ + "/series/00000001/labels";
  files::copy_file(labels, directory_.path() + "/older");
  {
    const auto repository = open();
    add_version(*repository, "two");
  }
  EXPECT_TRUE(must(open(true)->check({}, {})).notes.empty());
  files::copy_file(directory_.path() + "/older", labels, files::copy_options::overwrite_existing);
  const auto report = must(open(true)->check({}, {}));
  EXPECT_TRUE(report.damages.empty());
  ASSERT_EQ(report.notes.size(), 1U);
  EXPECT_EQ(report.notes[0].where, labels);
}

class AlteredStaging : public AlteredRecords {
 protected:
  AlteredStaging() {
    const auto repository = open();
    const auto number =
        must(repository->open_version(SeriesId{1}, "next.partial", folder())).number;
    const auto version = must(repository->writer(SeriesId{1}));
    write_file(*version, kRootIno, "cut", noise(60'000, 4));
    const auto file =
        must(version->open(must(version->create(kRootIno, "staged", regular_file())).ino, true));
    must(file->write(40'000, base::as_bytes(std::string("late"))));
    must(file->write(0, base::as_bytes(noise(20'000, 3))));
    must(file->sync());
    must(version->sync());
    copy_crashed(path_, directory_.path() + "/crashed");
    staging_ = "/staging/00000001-" + base_name(number);
  }
  static std::string base_name(VersionNumber number) {
    std::string text = "00000000" + std::to_string(static_cast<std::uint32_t>(number));
    return text.substr(text.size() - 8);
  }
  std::vector<Damage> damages_of(const std::string& path) {
    auto options = with_key(quiet_options());
    options.read_only = true;
    return must(reopen(path, options)->check({}, {})).damages;
  }

  std::string staging_;
};

TEST_F(AlteredStaging, TheCheckReadsStagedBytesRecordsAndChunks) {
  const auto crashed = directory_.path() + "/crashed";
  const auto changed = directory_.path() + "/changed";
  EXPECT_TRUE(damages_of(crashed).empty());
  const auto fresh = [&] { copy_crashed(crashed, changed); };

  fresh();
  const auto staged = files::directory_iterator(changed + staging_ + "/files")->path();
  std::string bytes;
  {
    std::ifstream in(staged, std::ios::binary);
    bytes = varve::test::rest_of(in);
  }
  bytes[bytes.size() - 5] = static_cast<char>(bytes[bytes.size() - 5] ^ 1);
  std::ofstream(staged, std::ios::binary | std::ios::trunc) << bytes;
  EXPECT_EQ(damages_of(changed).size(), 1U);
  files::remove(staged);
  EXPECT_EQ(damages_of(changed).size(), 1U);

  fresh();
  {
    const auto env =
        must(meta::Env::open(changed + staging_ + "/overlay", raw_options(meta::overlay::kTables)));
    auto txn = must(meta::WriteTxn::begin(env));
    const auto key = meta::ino_key(kRootIno);
    std::string value(*must(txn.get(meta::overlay::kInodes, key)));
    value[20] = static_cast<char>(value[20] ^ 1);
    must(txn.put(meta::overlay::kInodes, key, value));
    must(txn.commit());
  }
  EXPECT_EQ(damages_of(changed).size(), 1U);

  fresh();
  {
    const auto env = must(meta::Env::open(changed + "/catalog", raw_options(table::kTables)));
    auto txn = must(meta::WriteTxn::begin(env));
    std::vector<std::string> keys;
    must(meta::for_each_prefix(txn, table::kLocations, meta::store_key(StoreId{1}),
                               [&](std::string_view key, std::string_view) {
                                 keys.emplace_back(key);
                                 return Result<bool>(true);
                               }));
    must(txn.erase(table::kLocations, keys.back()));
    must(txn.commit());
  }
  EXPECT_FALSE(damages_of(changed).empty());
}

}  // namespace
}  // namespace varve::test
