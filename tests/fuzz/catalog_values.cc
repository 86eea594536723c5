// SPDX-License-Identifier: Apache-2.0
#include "catalog_values.h"

#include <array>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <vector>

#include "base/coding.h"
#include "catalog/alias_table.h"
#include "catalog/birth_table.h"
#include "catalog/clock_record.h"
#include "catalog/deletion_record.h"
#include "catalog/disk_record.h"
#include "catalog/key_record.h"
#include "catalog/layout_records.h"
#include "catalog/location_table.h"
#include "catalog/object_store.h"
#include "catalog/pool_records.h"
#include "catalog/refused_record.h"
#include "catalog/sequence_record.h"
#include "catalog/series_catalog.h"
#include "catalog/series_sequences.h"
#include "catalog/series_settings.h"
#include "catalog/upkeep_record.h"
#include "format/rewrite_counts.h"
#include "meta/lmdb.h"
#include "meta/schema.h"
#include "support/format_samples.h"
#include "temporary_folder.h"

namespace varve::fuzz {
namespace {

constexpr SeriesId kSeries{1};
constexpr StoreId kStore{1};
constexpr VersionNumber kVersion{2};
constexpr std::uint64_t kFileBytes = std::uint64_t{1} << 30;  // Size of the file with the recipe.
// The settings; the target tries each input as each of them.
const std::string kSettingNames[] = {"arrange",
                                     "disk",
                                     "new_series",
                                     "quarantine" + base::be32(1),
                                     catalog::kPoolBirthSetting,
                                     std::string(catalog::kDeletedSetting) + base::be32(1),
                                     std::string(catalog::kRefusedSetting) + base::be32(1),
                                     std::string(catalog::kPostPassSetting),
                                     std::string(catalog::kClockSetting),
                                     std::string(catalog::kKeyCounterSetting),
                                     std::string(catalog::kPoolIndexSetting),
                                     std::string(catalog::kSequenceSetting),
                                     std::string(catalog::kSeriesSequencesSetting),
                                     "upkeep",
                                     "delta"};
constexpr ContainerNumber kContainer{kPoolBit + 3};  // Of the pool.
constexpr ChunkId kAlias = ChunkId::make(static_cast<VersionNumber>(kPoolBit + 9), 700);

// A catalog in a folder that the program removes when it ends.
class TemporaryCatalog {
 public:
  TemporaryCatalog() {
    meta::EnvOptions options;
    options.tables = meta::catalog::kTables;
    options.map_bytes = std::size_t{64} << 20;
    auto env = meta::Env::open(folder_.path(), options);
    if (!env) std::abort();
    env_ = std::make_unique<meta::Env>(std::move(*env));
  }
  [[nodiscard]] const meta::Env& env() const { return *env_; }

 private:
  TemporaryFolder folder_;
  std::unique_ptr<meta::Env> env_;
};

const meta::Env& environment() {
  static const TemporaryCatalog catalog;
  return catalog.env();
}

std::string key_in(meta::TableIndex table) {
  using namespace meta::catalog;
  switch (table) {
    case meta::catalog::kSeries:
      return meta::series_key(fuzz::kSeries);
    case kCounters:
      return meta::store_key(fuzz::kStore);
    case kNodes:
    case kRecipes:
      return meta::object_key(fuzz::kSeries, 7);
    case kLocations:
      return meta::location_key(fuzz::kStore, ChunkId::make(kVersion, 0));
    case kAliases:
      return meta::alias_key(kAlias);
    case kPoolUsers:
      return meta::pool_users_key(kContainer);
    case kBirths:
      return meta::birth_key(fuzz::kStore, kVersion);
    case kSettings:
      return kSettingNames[0];
    default:
      return meta::version_key(fuzz::kSeries, kVersion);
  }
}

// Reads a list of containers. One that is sound must be the same after it is written again.
void read_pool_use(const meta::WriteTxn& txn) {
  const auto uses = catalog::find_pool_use(txn, fuzz::kSeries, kVersion);
  static_cast<void>(catalog::for_each_pool_use(
      txn, [](SeriesId, VersionNumber, const std::vector<catalog::PoolUse>&) -> Result<bool> {
        return true;
      }));
  if (!uses) return;
  const auto again = catalog::decode_pool_use(catalog::encode_pool_use(*uses));
  if (!again || *again != *uses) std::abort();
}

// Reads the counts of rewriting, with the same demand.
void read_rewrite_counts(const meta::WriteTxn& txn) {
  const auto counts = catalog::find_rewrite_counts(txn, fuzz::kSeries, kVersion);
  static_cast<void>(catalog::for_each_rewrite_counts(
      txn, [](SeriesId, VersionNumber, const RewriteCounts&) -> Result<bool> { return true; }));
  if (!counts || !*counts) return;
  const auto again = format::decode_rewrite_counts(format::encode_rewrite_counts(**counts));
  if (!again || *again != **counts) std::abort();
}

// Reads settings that other settings depend on.
void read_counters_of_writers(const meta::WriteTxn& txn) {
  const Timestamp now{1'764'000'000, 0};
  static_cast<void>(catalog::find_clock_record(txn, now));
  static_cast<void>(catalog::accepted_time(txn, now));
  static_cast<void>(catalog::find_key_counter(txn));
  static_cast<void>(catalog::find_sequence(txn));
  static_cast<void>(catalog::find_series_sequences(txn));
  static_cast<void>(catalog::find_upkeep_settings(txn));
}

// Reads the births. One that is sound must be the same after it is written again.
void read_births(const meta::WriteTxn& txn) {
  const auto birth = catalog::find_birth(txn, fuzz::kStore, kVersion);
  static_cast<void>(catalog::for_each_birth(
      txn, fuzz::kStore, [](VersionNumber, const format::Birth&) -> Result<bool> { return true; }));
  const auto ids = base::IdRuns::from({{ChunkId::make(kVersion, 5), 9}});
  static_cast<void>(catalog::births_of(txn, fuzz::kStore, ids));
  static_cast<void>(catalog::births_named_by(txn, fuzz::kSeries, kVersion));
  if (!birth || !*birth) return;
  const auto again = format::Birth::decode((*birth)->encode());
  if (!again || *again != **birth) std::abort();
}

void read(const meta::WriteTxn& txn, meta::TableIndex table) {
  using namespace meta::catalog;
  const auto series = fuzz::kSeries;
  switch (table) {
    case meta::catalog::kSeries:
      static_cast<void>(catalog::list_series(txn));
      static_cast<void>(catalog::find_series(txn, series));
      break;
    case kVersions:
      static_cast<void>(catalog::list_versions(txn, series));
      static_cast<void>(catalog::find_version(txn, series, kVersion));
      break;
    case kVersionChunks:
      static_cast<void>(catalog::version_chunks(txn, series, kVersion));
      break;
    case kVersionLinks:
      static_cast<void>(catalog::version_links(txn, series, kVersion));
      break;
    case kSegments:
      static_cast<void>(catalog::list_segments(txn, fuzz::kStore));
      break;
    case kCounters:
      static_cast<void>(catalog::find_counters(txn, fuzz::kStore));
      break;
    case kRetention:
      static_cast<void>(catalog::find_retention(txn, series, kVersion));
      break;
    case kSettings:
      static_cast<void>(catalog::find_arrange_settings(txn));
      static_cast<void>(catalog::find_disk_record(txn));
      static_cast<void>(catalog::find_new_series_settings(txn, {}));
      static_cast<void>(catalog::find_quarantine(txn, fuzz::kStore));
      static_cast<void>(catalog::next_pool_birth(txn));
      static_cast<void>(catalog::find_pool_index(txn));
      static_cast<void>(catalog::find_post_pass(txn));
      static_cast<void>(catalog::find_deletion(txn, series));
      static_cast<void>(catalog::find_refused(txn, series));
      read_counters_of_writers(txn);
      break;
    case kBirths:
      read_births(txn);
      break;
    case kPoolUse:
      read_pool_use(txn);
      break;
    case kPoolUsers:
      static_cast<void>(catalog::find_pool_users(txn, kContainer));
      static_cast<void>(catalog::for_each_pool_users(
          txn, [](ContainerNumber, std::uint32_t) -> Result<bool> { return true; }));
      break;
    case kRewriteCounts:
      read_rewrite_counts(txn);
      break;
    case kAliases: {
      const auto ids = base::IdRuns::from({{kAlias, 100}});
      static_cast<void>(catalog::find_alias(txn, kAlias));
      static_cast<void>(catalog::stored_ids(txn, ids));
      static_cast<void>(catalog::located_ids(txn, ids));
      static_cast<void>(catalog::aliases_of(txn, ids));
      break;
    }
    default:
      break;
  }
}

// Reads an object through the environment, so the object must be committed.
void read_object(meta::TableIndex table) {
  catalog::ObjectReader objects(environment(), fuzz::kSeries);
  if (table == meta::catalog::kNodes) {
    static_cast<void>(objects.page(format::NodeId{7}));
  } else {
    static_cast<void>(objects.recipe(format::NodeId{7}, kFileBytes));
  }
}

}  // namespace

void catalog_values(std::span<const std::byte> input) {
  if (input.empty()) return;
  const auto table = static_cast<meta::TableIndex>(static_cast<unsigned>(input[0]) %
                                                   meta::catalog::kTables.size());
  const std::string_view value(reinterpret_cast<const char*>(input.data()) + 1, input.size() - 1);
  auto txn = meta::WriteTxn::begin(environment());
  if (!txn || !txn->put(table, key_in(table), value)) return;
  if (table == meta::catalog::kSettings) {
    for (const auto& name : kSettingNames) {
      if (!txn->put(table, name, value)) return;
    }
  }
  if (table == meta::catalog::kNodes || table == meta::catalog::kRecipes) {
    if (txn->commit()) read_object(table);
  } else {
    read(*txn, table);
  }
}

std::vector<std::string> catalog_value_seeds() {
  std::vector<std::string> seeds;
  for (std::size_t table = 0; table < meta::catalog::kTables.size(); ++table) {
    seeds.push_back(std::string(1, static_cast<char>(table)) + std::string(40, '\1'));
  }
  auto txn = meta::WriteTxn::begin(environment());
  if (!txn) return seeds;
  const auto take_from = [&](meta::TableIndex table, const std::string& key) {
    const auto value = txn->get(table, key);
    if (value && *value) seeds.push_back(std::string(1, static_cast<char>(table)).append(**value));
  };
  const auto take = [&](meta::TableIndex table) { take_from(table, key_in(table)); };
  catalog::SeriesRecord series;
  series.id = fuzz::kSeries;
  series.name = "laptop";
  catalog::VersionRecord version;
  version.series = fuzz::kSeries;
  version.number = kVersion;
  version.name = "monday";
  version.root.mode = 040755;
  version.root.child = format::NodeId{7};
  if (catalog::put_series(*txn, series)) take(meta::catalog::kSeries);
  if (catalog::put_version(*txn, version)) take(meta::catalog::kVersions);
  if (catalog::raise_counters(*txn, fuzz::kStore, {ContainerNumber{5}, SegmentNumber{6}}))
    take(meta::catalog::kCounters);
  if (catalog::put_retention(*txn, fuzz::kSeries, kVersion, {true, {9, 0}})) {
    take(meta::catalog::kRetention);
  }
  if (catalog::put_arrange_settings(*txn, {})) take(meta::catalog::kSettings);
  catalog::SegmentRecord segment;
  segment.segment = static_cast<SegmentNumber>(kVersion);
  segment.bytes = 8192;
  segment.containers = 1;
  if (catalog::put_segment(*txn, fuzz::kStore, segment)) take(meta::catalog::kSegments);
  if (catalog::put_disk_record(*txn, {100'000, 200'000'000, 1ULL << 40, 1'700'000'000})) {
    take_from(meta::catalog::kSettings, kSettingNames[1]);
  }
  const auto ids = base::IdRuns::from({{ChunkId::make(VersionNumber{1}, 5), 9}});
  if (catalog::put_quarantine(*txn, fuzz::kStore, ids)) {
    take_from(meta::catalog::kSettings, kSettingNames[3]);
  }
  if (catalog::put_version_chunks(*txn, fuzz::kSeries, kVersion, ids)) {
    take(meta::catalog::kVersionChunks);
  }
  if (catalog::put_pool_use(*txn, fuzz::kSeries, kVersion,
                            {{kContainer, 5000}, {ContainerNumber{kPoolBit + 900}, 1}})) {
    take(meta::catalog::kPoolUse);
  }
  if (catalog::put_pool_users(*txn, kContainer, 300)) take(meta::catalog::kPoolUsers);
  if (catalog::put_alias(*txn, {{kAlias, 17, ChunkId{kAlias.value - 50}}, 70000})) {
    take(meta::catalog::kAliases);
  }
  if (catalog::put_rewrite_counts(*txn, fuzz::kSeries, kVersion,
                                  {300, 1ULL << 40, 20, 150000, 16, 70000, 12})) {
    take(meta::catalog::kRewriteCounts);
  }
  if (catalog::raise_pool_birth(*txn, VersionNumber{kPoolBit + 9})) {
    take_from(meta::catalog::kSettings, kSettingNames[4]);
  }
  if (catalog::note_deletion(*txn, fuzz::kSeries,
                             {70000, {{kVersion, {9, 5}}, {VersionNumber{4}, {1 << 30, 0}}}})) {
    take_from(meta::catalog::kSettings, kSettingNames[5]);
  }
  if (catalog::put_upkeep_settings(*txn, {})) take_from(meta::catalog::kSettings, "upkeep");
  if (catalog::put_clock_record(*txn, {1'764'000'000, 1'765'000'000})) {
    take_from(meta::catalog::kSettings, std::string(catalog::kClockSetting));
  }
  if (catalog::put_series_sequences(*txn, {{fuzz::kSeries, 5}, {SeriesId{9}, 700}})) {
    take_from(meta::catalog::kSettings, std::string(catalog::kSeriesSequencesSetting));
  }
  if (catalog::put_pool_index(*txn, {PoolIndexKind::kZeroChunk, PoolIndexChoice::kHookBitsMax})) {
    take_from(meta::catalog::kSettings, std::string(catalog::kPoolIndexSetting));
  }
  if (catalog::put_birth(*txn, fuzz::kStore, kVersion,
                         {{std::byte{7}}, fuzz::kSeries, kVersion, 5})) {
    take(meta::catalog::kBirths);
  }
  const auto links = catalog::LinkTable::from({{3, 1}, {5, 1}, {9, 4}});
  if (catalog::put_version_links(*txn, fuzz::kSeries, kVersion, links)) {
    take(meta::catalog::kVersionLinks);
  }
  const auto object = [&](meta::TableIndex table, const std::string& raw) {
    seeds.push_back(std::string(1, static_cast<char>(table)) + catalog::encode_object(raw));
  };
  object(meta::catalog::kNodes, format::encode_dir_page(format::sample_leaf()));
  object(meta::catalog::kNodes, format::encode_dir_page(format::sample_inner()));
  object(meta::catalog::kRecipes,
         format::encode_recipe_object(*format::sample_leaf().entries[5].recipe));
  return seeds;
}

}  // namespace varve::fuzz
