// SPDX-License-Identifier: Apache-2.0
// The catalog's records: round trips, bounds, and the search for the run that holds a chunk.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/time_coding.h"
#include "catalog/layout_records.h"
#include "catalog/location_table.h"
#include "catalog/series_catalog.h"
#include "catalog/series_settings.h"
#include "catalog_fixture.h"
#include "meta/schema.h"
#include "support/temp_repository.h"
#include "varve/version_name.h"

namespace varve::catalog {
namespace {

using varve::test::code_of;
using varve::test::must;

constexpr SeriesId kRecordSeries{2};
constexpr StoreId kStore{2};

class RecordsTest : public CatalogTest {
 protected:
  // Checks that reading refuses every shorter value and every longer one.
  template <typename Read>
  void expect_damage_found(meta::TableIndex table, const std::string& key, Read&& read) {
    std::string value;
    {
      const auto txn = must(meta::ReadTxn::begin(catalog_));
      value = *must(txn.get(table, key));
    }
    for (std::size_t n = 0; n <= value.size() + 1; ++n) {
      if (n == value.size()) continue;
      auto bad = value + "\xff";
      bad.resize(n);
      commit([&](meta::WriteTxn& txn) { return txn.put(table, key, bad); });
      const auto txn = must(meta::ReadTxn::begin(catalog_));
      EXPECT_EQ(code_of(read(txn)), ErrorCode::kCorrupt) << n << " of " << value.size() << " bytes";
    }
  }
};

// Appends bytes to the record of a series without settings.
Result<SeriesRecord> series_with(std::string_view settings) {
  std::string bytes("\1s", 2);
  base::ByteWriter w(bytes);
  base::put_time(w, {5, 0});
  w.varint(3);
  bytes += settings;
  return decode_series(kRecordSeries, bytes);
}

TEST_F(RecordsTest, SettingsOfASeriesRoundTrip) {
  for (const auto placement : {Placement::kLineage, Placement::kLineagePool, Placement::kPool}) {
    if (!check_placement(placement)) continue;
    for (const auto rewrite : {Rewrite::kNone, Rewrite::kHar, Rewrite::kCap, Rewrite::kCbr,
                               Rewrite::kHarCap, Rewrite::kHarCbr}) {
      const SeriesRecord record{kRecordSeries, "a series", {}, 2, placement, rewrite, {}};
      commit([&](meta::WriteTxn& txn) { return put_series(txn, record); });
      const auto back = must(find_series(must(meta::ReadTxn::begin(catalog_)), kRecordSeries));
      ASSERT_TRUE(back);
      EXPECT_EQ(settings_of(*back), settings_of(record));
      EXPECT_EQ(info_of(*back).rewrite, rewrite);
    }
  }
}

TEST_F(RecordsTest, DefaultSettingsTakeNoBytes) {
  EXPECT_EQ(settings_of(must(series_with(""))), SeriesSettings());
  std::string bytes;
  base::ByteWriter w(bytes);
  put_series_settings(w, {});
  EXPECT_EQ(bytes, "");
  put_series_settings(w, {Placement::kPool, Rewrite::kNone});
  EXPECT_EQ(bytes, "\2");
  put_series_settings(w, {Placement::kLineage, Rewrite::kHarCbr});
  EXPECT_EQ(bytes, std::string("\2\0\5", 3));
}

TEST_F(RecordsTest, UnknownSettingsAreUnsupportedAndOthersDamage) {
  using namespace std::string_view_literals;
  EXPECT_EQ(settings_of(must(series_with("\0\1"sv))),
            (SeriesSettings{Placement::kLineage, Rewrite::kHar}));
  for (const auto unknown :
       {"\3"sv, "\3\1\1"sv, "\xff\1"sv, "\xff\xff\xff\7"sv, "\0\6"sv, "\0\6\1"sv, "\0\x80\2"sv}) {
    EXPECT_EQ(code_of(series_with(unknown)), ErrorCode::kUnsupported) << unknown.size();
  }
  // Values that no writer makes: defaults that are written, bytes behind the end, half a number.
  for (const auto damaged : {"\0"sv, "\0\0"sv, "\0\1\1"sv, "\0\1\0"sv, "\x80"sv, "\0\x80"sv}) {
    EXPECT_EQ(code_of(series_with(damaged)), ErrorCode::kCorrupt) << damaged.size();
  }
}

TEST_F(RecordsTest, SettingsOfNewSeriesAreStoredUnlessTheyAreTheInitialOnes) {
  const SeriesSettings initial;
  const auto stored = [&] {
    const auto txn = must(meta::ReadTxn::begin(catalog_));
    const auto value = must(txn.get(meta::catalog::kSettings, kNewSeriesSetting));
    return value ? std::optional(std::string(*value)) : std::nullopt;
  };
  const auto found = [&] {
    return find_new_series_settings(must(meta::ReadTxn::begin(catalog_)), initial);
  };
  const auto put = [&](std::string_view value) {
    commit([&](meta::WriteTxn& txn) {
      return txn.put(meta::catalog::kSettings, kNewSeriesSetting, value);
    });
  };
  EXPECT_EQ(must(found()), initial);
  const SeriesSettings har{Placement::kLineage, Rewrite::kHar};
  commit([&](meta::WriteTxn& txn) { return put_new_series_settings(txn, har, initial); });
  EXPECT_EQ(must(found()), har);
  EXPECT_EQ(stored(), std::string("\0\1", 2));
  commit([&](meta::WriteTxn& txn) { return put_new_series_settings(txn, initial, initial); });
  EXPECT_EQ(stored(), std::nullopt);
  // The choice of lineage differs from an initial placement in the pool.
  const SeriesSettings pool{Placement::kPool, Rewrite::kNone};
  commit([&](meta::WriteTxn& txn) { return put_new_series_settings(txn, initial, pool); });
  EXPECT_EQ(stored(), std::string("\0\0", 2));
  EXPECT_EQ(must(found()), initial);
  using namespace std::string_view_literals;
  for (const auto damaged : {""sv, "\0"sv, "\0\1\1"sv, "\0\x80"sv}) {
    put(damaged);
    EXPECT_EQ(code_of(found()), ErrorCode::kCorrupt) << damaged.size();
  }
  for (const auto unknown : {"\3\0"sv, "\0\6"sv}) {
    put(unknown);
    EXPECT_EQ(code_of(found()), ErrorCode::kUnsupported);
  }
}

TEST_F(RecordsTest, SeriesRoundTripsAndDamageIsFound) {
  const SeriesRecord record{kRecordSeries, "a series", {-7, 999999999}, 0xffffffff, {}, {}, {}};
  commit([&](meta::WriteTxn& txn) { return put_series(txn, record); });
  {
    const auto txn = must(meta::ReadTxn::begin(catalog_));
    const auto all = must(list_series(txn));
    ASSERT_EQ(all.size(), 1U);
    EXPECT_EQ(all[0].id, record.id);
    EXPECT_EQ(all[0].name, record.name);
    EXPECT_EQ(all[0].created_at, record.created_at);
    EXPECT_EQ(all[0].next_number, record.next_number);
    EXPECT_FALSE(must(find_series(txn, SeriesId{3})));
  }
  expect_damage_found(meta::catalog::kSeries, meta::series_key(kRecordSeries),
                      [](const meta::Txn& txn) { return find_series(txn, kRecordSeries); });
  commit([&](meta::WriteTxn& txn) { return erase_series(txn, kRecordSeries); });
  EXPECT_TRUE(must(list_series(must(meta::ReadTxn::begin(catalog_)))).empty());
}

TEST_F(RecordsTest, VersionRoundTripsAndDamageIsFound) {
  VersionRecord record;
  record.series = kRecordSeries;
  record.number = VersionNumber{300};
  record.name = std::string(255, 'n');
  record.state = VersionState::kSealed;
  record.opened_at = {1, 2};
  record.sealed_at = {3, 4};
  record.entries = 5;
  record.logical_bytes = 6ULL << 50;
  record.unique_bytes = 7;
  record.stored_bytes = 8;
  record.root.mode = S_IFDIR | 0750;
  record.root.child = format::NodeId::make(VersionNumber{300}, 9);
  record.root.subtree_entries = 5;
  commit([&](meta::WriteTxn& txn) { return put_version(txn, record); });
  auto older = record;
  older.number = VersionNumber{2};
  older.name = "older";
  older.state = VersionState::kOpen;
  commit([&](meta::WriteTxn& txn) { return put_version(txn, older); });
  {
    const auto txn = must(meta::ReadTxn::begin(catalog_));
    const auto all = must(list_versions(txn, kRecordSeries));
    ASSERT_EQ(all.size(), 2U);
    EXPECT_EQ(all[0].number, older.number);
    EXPECT_EQ(all[0].state, VersionState::kOpen);
    EXPECT_EQ(all[1].number, record.number);
    EXPECT_EQ(all[1].name, record.name);
    EXPECT_EQ(all[1].sealed_at, record.sealed_at);
    EXPECT_EQ(all[1].logical_bytes, record.logical_bytes);
    EXPECT_EQ(all[1].root, record.root);
    EXPECT_TRUE(must(list_versions(txn, SeriesId{1})).empty());
    EXPECT_TRUE(must(list_versions(txn, SeriesId{3})).empty());
    EXPECT_EQ(code_of(version_chunks(txn, kRecordSeries, record.number)), ErrorCode::kCorrupt);
  }
  expect_damage_found(
      meta::catalog::kVersions, meta::version_key(kRecordSeries, record.number),
      [&](const meta::Txn& txn) { return find_version(txn, kRecordSeries, record.number); });
}

TEST_F(RecordsTest, KindsOfOpenVersionsRoundTrip) {
  VersionRecord record;
  record.series = kRecordSeries;
  record.number = VersionNumber{300};
  record.name = "n";
  record.root.mode = S_IFDIR | 0750;
  for (const auto& [base, unfinished] :
       {std::pair(VersionNumber{}, false), {VersionNumber{299}, false}, {VersionNumber{}, true}}) {
    record.base = base;
    record.unfinished = unfinished;
    commit([&](meta::WriteTxn& txn) { return put_version(txn, record); });
    const auto txn = must(meta::ReadTxn::begin(catalog_));
    const auto got = *must(find_version(txn, kRecordSeries, record.number));
    EXPECT_EQ(got.state, VersionState::kOpen);
    EXPECT_EQ(got.base, base);
    EXPECT_EQ(got.unfinished, unfinished);
    EXPECT_EQ(got.root, record.root);
  }
  record.unfinished = false;
  record.base = record.number;
  commit([&](meta::WriteTxn& txn) { return put_version(txn, record); });
  const auto txn = must(meta::ReadTxn::begin(catalog_));
  EXPECT_EQ(code_of(find_version(txn, kRecordSeries, record.number)), ErrorCode::kCorrupt);
}

TEST_F(RecordsTest, LinksRoundTripAndDamageIsFound) {
  const auto links = LinkTable::from({{900, 7}, {5, 1ULL << 61}, {6, 7}, {4000000000, 7}, {8, 3}});
  EXPECT_EQ(links.first_of(900), 6U);
  EXPECT_EQ(links.first_of(4000000000), 6U);
  EXPECT_EQ(links.first_of(5), 5U);
  EXPECT_EQ(links.first_of(7), 7U) << "a file with one name";
  EXPECT_EQ(links.group_of(6), 7U);
  EXPECT_EQ(links.group_of(900), 0U) << "not a first name";
  EXPECT_EQ(links.names_in(6, 895).size(), 3U);
  EXPECT_EQ(links.groups(), (std::vector<std::uint64_t>{3, 7, 1ULL << 61}));
  const VersionNumber number{4};
  const auto read = [&](const meta::Txn& txn) { return version_links(txn, kRecordSeries, number); };
  EXPECT_FALSE(must(read(must(meta::ReadTxn::begin(catalog_)))));
  for (const auto& table : {LinkTable(), links}) {
    commit(
        [&](meta::WriteTxn& txn) { return put_version_links(txn, kRecordSeries, number, table); });
    EXPECT_EQ(*must(read(must(meta::ReadTxn::begin(catalog_)))), table);
    expect_damage_found(meta::catalog::kVersionLinks, meta::version_key(kRecordSeries, number),
                        read);
  }
  commit([&](meta::WriteTxn& txn) { return erase_version(txn, kRecordSeries, number); });
  EXPECT_FALSE(must(read(must(meta::ReadTxn::begin(catalog_)))));
}

TEST_F(RecordsTest, ErasedVersionTakesItsChunkListAlong) {
  VersionRecord record;
  record.series = kRecordSeries;
  record.number = VersionNumber{1};
  record.name = "v";
  record.root.mode = S_IFDIR | 0755;
  const auto chunks = base::IdRuns::from({{ChunkId::make(VersionNumber{1}, 4), 5}});
  commit([&](meta::WriteTxn& txn) -> Result<void> {
    VARVE_TRY(put_version(txn, record));
    return put_version_chunks(txn, kRecordSeries, record.number, chunks);
  });
  EXPECT_EQ(
      must(version_chunks(must(meta::ReadTxn::begin(catalog_)), kRecordSeries, record.number)),
      chunks);
  commit([&](meta::WriteTxn& txn) { return erase_version(txn, kRecordSeries, record.number); });
  const auto txn = must(meta::ReadTxn::begin(catalog_));
  EXPECT_FALSE(must(find_version(txn, kRecordSeries, record.number)));
  EXPECT_EQ(code_of(version_chunks(txn, kRecordSeries, record.number)), ErrorCode::kCorrupt);
}

TEST_F(RecordsTest, LocationIsFoundByAnyOfItsChunks) {
  const auto at = [](std::uint32_t birth, std::uint32_t ordinal) {
    return ChunkId::make(VersionNumber{birth}, ordinal);
  };
  const LocationRecord records[] = {{at(1, 0), 10, 1000, ContainerNumber{0}, 0},
                                    {at(1, 10), 5, 500, ContainerNumber{1}, 3},
                                    {at(2, 7), 1, 99, ContainerNumber{0xffffffff}, 100}};
  commit([&](meta::WriteTxn& txn) -> Result<void> {
    for (const auto& record : records) VARVE_TRY(put_location(txn, kStore, record));
    // Locations of the neighbouring series, which the search must not return.
    VARVE_TRY(put_location(txn, StoreId{1}, {at(9, 0), 1000, 1, ContainerNumber{1}, 1}));
    return put_location(txn, StoreId{3}, {at(0, 0), 1000, 1, ContainerNumber{1}, 1});
  });
  const auto txn = must(meta::ReadTxn::begin(catalog_));
  const auto first_of = [&](ChunkId id) -> std::optional<ChunkId> {
    const auto found = must(find_location(txn, kStore, id));
    return found ? std::optional(found->first) : std::nullopt;
  };
  EXPECT_EQ(first_of(at(1, 0)), at(1, 0));
  EXPECT_EQ(first_of(at(1, 9)), at(1, 0));
  EXPECT_EQ(first_of(at(1, 10)), at(1, 10));
  EXPECT_EQ(first_of(at(1, 14)), at(1, 10));
  EXPECT_EQ(first_of(at(1, 15)), std::nullopt);
  EXPECT_EQ(first_of(at(2, 6)), std::nullopt);
  EXPECT_EQ(first_of(at(2, 7)), at(2, 7));
  EXPECT_EQ(first_of(at(2, 8)), std::nullopt);
  EXPECT_EQ(first_of(at(0, 0)), std::nullopt);
  const auto whole = must(find_location(txn, kStore, at(2, 7)));
  EXPECT_EQ(whole->raw_bytes, 99U);
  EXPECT_EQ(whole->container, ContainerNumber{0xffffffffU});
  EXPECT_EQ(whole->index, 100U);
  EXPECT_EQ(must(find_last_location_before(txn, kStore, at(2, 0)))->first, at(1, 10));
  EXPECT_EQ(must(find_last_location_before(txn, kStore, at(2, 7)))->first, at(1, 10));
  EXPECT_FALSE(must(find_last_location_before(txn, kStore, at(1, 0))));
  EXPECT_FALSE(must(find_last_location_before(txn, kStore, ChunkId{0})));
  std::vector<ChunkId> seen;
  must(for_each_location(txn, kStore, at(1, 1), [&](const LocationRecord& r) -> Result<bool> {
    seen.push_back(r.first);
    return true;
  }));
  EXPECT_EQ(seen, (std::vector<ChunkId>{at(1, 10), at(2, 7)}));
}

TEST_F(RecordsTest, VersionsGetNoNumberOfThePool) {
  SeriesRecord owner{kRecordSeries, "s", {}, 0x7fffffff, {}, {}, {}};
  {
    const auto txn = must(meta::ReadTxn::begin(catalog_));
    EXPECT_EQ(must(take_version_number(txn, owner)), VersionNumber{0x7fffffff});
    EXPECT_EQ(code_of(take_version_number(txn, owner)), ErrorCode::kTooLarge);
  }
  owner.next_number = 1;
  VersionRecord record;
  record.series = kRecordSeries;
  record.number = VersionNumber{0xffffffff};
  record.name = "last";
  record.root.mode = S_IFDIR | 0755;
  commit([&](meta::WriteTxn& txn) { return put_version(txn, record); });
  const auto txn = must(meta::ReadTxn::begin(catalog_));
  EXPECT_EQ(code_of(take_version_number(txn, owner)), ErrorCode::kTooLarge);
}

// A number that begins again would replace the record of an older container.
TEST_F(RecordsTest, NumbersOfContainersEndWithTheLastOne) {
  commit([&](meta::WriteTxn& txn) -> Result<void> {
    format::ContainerRecord record;
    record.header_bytes = 4096;
    record.data_bytes = 100;
    record.chunks = 1;
    record.number = ContainerNumber{0xffffffff};
    VARVE_TRY(put_container(txn, kStore, record));
    SegmentRecord file;
    file.segment = SegmentNumber{0x7fffffff};
    return put_segment(txn, kStore, file);
  });
  const auto txn = must(meta::ReadTxn::begin(catalog_));
  const auto least = least_counters(txn, kStore);
  EXPECT_EQ(least.next_container, ContainerNumber{0xffffffff});
  EXPECT_EQ(least.next_segment, SegmentNumber{0x7fffffff});
}

TEST_F(RecordsTest, ImpossibleLocationIsCorrupt) {
  const ChunkId id = ChunkId::make(VersionNumber{1}, 0xfffffff0);
  const LocationRecord good{id, 16, 5, ContainerNumber{6}, 7};
  ASSERT_TRUE(LocationRecord::decode(id, good.encode()));
  auto bad = good;
  bad.count = 17;  // Would extend into the next birth.
  EXPECT_EQ(code_of(LocationRecord::decode(id, bad.encode())), ErrorCode::kCorrupt);
  bad = good;
  bad.count = 0;
  EXPECT_EQ(code_of(LocationRecord::decode(id, bad.encode())), ErrorCode::kCorrupt);
  bad = good;
  bad.index = 0xffffffff;
  EXPECT_EQ(code_of(LocationRecord::decode(id, bad.encode())), ErrorCode::kCorrupt);
  bad = good;
  bad.raw_bytes = ~0ULL;
  EXPECT_EQ(code_of(LocationRecord::decode(id, bad.encode())), ErrorCode::kCorrupt);
  EXPECT_EQ(code_of(LocationRecord::decode(id, good.encode() + "x")), ErrorCode::kCorrupt);
  const auto last = ChunkId::make(VersionNumber{0xffffffff}, 0);
  EXPECT_EQ(code_of(LocationRecord::decode(last, good.encode())), ErrorCode::kCorrupt);
}

TEST_F(RecordsTest, ContainersAreFoundAndVisitedInOrder) {
  format::ContainerRecord record;
  record.header_bytes = 4096;
  record.data_bytes = 100;
  record.chunks = 1;
  for (const std::uint32_t number : {300U, 2U, 0U}) {
    record.number = ContainerNumber{number};
    record.offset = number * 4096ULL;
    commit([&](meta::WriteTxn& txn) { return put_container(txn, kStore, record); });
  }
  const auto txn = must(meta::ReadTxn::begin(catalog_));
  EXPECT_EQ(must(find_container(txn, kStore, ContainerNumber{300}))->offset, 300 * 4096U);
  EXPECT_FALSE(must(find_container(txn, kStore, ContainerNumber{1})));
  std::vector<ContainerNumber> seen;
  must(for_each_container(txn, kStore, [&](const format::ContainerRecord& r) -> Result<bool> {
    seen.push_back(r.number);
    return seen.size() < 2;
  }));
  EXPECT_EQ(seen, (std::vector<ContainerNumber>{ContainerNumber{0}, ContainerNumber{2}}));
}

TEST_F(RecordsTest, NamesThatAreNotAllowedAreReplaced) {
  const std::string forged[] = {"",
                                ".",
                                "..",
                                "a/b",
                                "../../x",
                                std::string("a\0b", 3),
                                "latest",
                                "half.partial",
                                std::string(256, 'x'),
                                "taken"};
  std::uint32_t number = 1;
  const auto put = [&](const std::string& name) {
    VersionRecord record;
    record.series = kRecordSeries;
    record.number = static_cast<VersionNumber>(number++);
    record.name = name;
    record.state = VersionState::kSealed;
    record.root.mode = 040755;
    commit([&](meta::WriteTxn& txn) { return put_version(txn, record); });
  };
  put("taken");
  put("invalid-name-4");
  for (const auto& name : forged) put(name);
  const auto txn = must(meta::ReadTxn::begin(catalog_));
  const auto all = must(list_versions(txn, kRecordSeries));
  ASSERT_EQ(all.size(), 12U);
  std::set<std::string> names;
  for (const auto& record : all) {
    EXPECT_TRUE(check_version_name(record.name, record.state)) << record.name;
    EXPECT_TRUE(names.insert(record.name).second) << record.name;
    const bool allowed = static_cast<std::uint32_t>(record.number) <= 2;
    EXPECT_EQ(record.name_fault.empty(), allowed) << record.name;
  }
  EXPECT_EQ(all[0].name, "taken");
  EXPECT_EQ(all[1].name, "invalid-name-4");
  EXPECT_EQ(all[2].name, "invalid-name-3");
  EXPECT_EQ(all[3].name, "invalid-name-4_");
  EXPECT_EQ(must(find_version(txn, kRecordSeries, VersionNumber{5}))->name, "invalid-name-5");
}

TEST_F(RecordsTest, NamesOfSeriesThatAreNotAllowedAreReplaced) {
  const std::string names[] = {"a", "a", "../a", "latest"};
  for (std::uint32_t id = 1; id <= 4; ++id) {
    SeriesRecord record;
    record.id = static_cast<SeriesId>(id);
    record.name = names[id - 1];
    commit([&](meta::WriteTxn& txn) { return put_series(txn, record); });
  }
  const auto all = must(list_series(must(meta::ReadTxn::begin(catalog_))));
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[0].name, "a");
  EXPECT_EQ(all[1].name, "invalid-name-2");
  EXPECT_EQ(all[2].name, "invalid-name-3");
  EXPECT_EQ(all[3].name, "latest");
}

}  // namespace
}  // namespace varve::catalog
