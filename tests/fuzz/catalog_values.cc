// SPDX-License-Identifier: Apache-2.0
#include "catalog_values.h"

#include <stdlib.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <string_view>

#include "catalog/layout_records.h"
#include "catalog/location_table.h"
#include "catalog/object_store.h"
#include "catalog/series_catalog.h"
#include "meta/lmdb.h"
#include "meta/schema.h"

namespace varve::fuzz {
namespace {

constexpr SeriesId kSeries{1};
constexpr VersionNumber kVersion{2};

// A catalog in a folder that goes with the program.
class TemporaryCatalog {
 public:
  TemporaryCatalog() {
    std::string path =
        std::filesystem::exists("/dev/shm") ? "/dev/shm/varve-XXXXXX" : "/tmp/varve-XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) std::abort();
    path_ = path;
    meta::EnvOptions options;
    options.tables = meta::catalog::kTables;
    options.map_bytes = std::size_t{64} << 20;
    auto env = meta::Env::open(path_, options);
    if (!env) std::abort();
    env_ = std::make_unique<meta::Env>(std::move(*env));
  }
  TemporaryCatalog(const TemporaryCatalog&) = delete;
  TemporaryCatalog& operator=(const TemporaryCatalog&) = delete;
  ~TemporaryCatalog() {
    env_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const meta::Env& env() const { return *env_; }

 private:
  std::string path_;
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
    case kCounters:
      return meta::series_key(fuzz::kSeries);
    case kNodes:
    case kRecipes:
      return meta::object_key(fuzz::kSeries, 7);
    case kLocations:
      return meta::location_key(fuzz::kSeries, ChunkId::make(kVersion, 0));
    case kSettings:
      return "arrange";
    default:
      return meta::version_key(fuzz::kSeries, kVersion);
  }
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
      static_cast<void>(catalog::list_segments(txn, series));
      break;
    case kCounters:
      static_cast<void>(catalog::find_counters(txn, series));
      break;
    case kRetention:
      static_cast<void>(catalog::find_retention(txn, series, kVersion));
      break;
    case kSettings:
      static_cast<void>(catalog::find_arrange_settings(txn));
      break;
    default:
      break;
  }
}

// Objects are read through the environment, so they have to be committed.
void read_object(meta::TableIndex table) {
  catalog::ObjectReader objects(environment(), fuzz::kSeries);
  if (table == meta::catalog::kNodes) {
    static_cast<void>(objects.page(format::NodeId{7}));
  } else {
    static_cast<void>(objects.recipe(format::NodeId{7}));
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
  const auto take = [&](meta::TableIndex table) {
    const auto value = txn->get(table, key_in(table));
    if (value && *value) seeds.push_back(std::string(1, static_cast<char>(table)).append(**value));
  };
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
  if (catalog::raise_counters(*txn, fuzz::kSeries, {5, 6})) take(meta::catalog::kCounters);
  if (catalog::put_retention(*txn, fuzz::kSeries, kVersion, {true, {9, 0}})) {
    take(meta::catalog::kRetention);
  }
  if (catalog::put_arrange_settings(*txn, {})) take(meta::catalog::kSettings);
  catalog::SegmentRecord segment;
  segment.segment = static_cast<std::uint32_t>(kVersion);
  segment.bytes = 8192;
  segment.containers = 1;
  if (catalog::put_segment(*txn, fuzz::kSeries, segment)) take(meta::catalog::kSegments);
  return seeds;
}

}  // namespace varve::fuzz
