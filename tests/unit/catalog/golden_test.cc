// SPDX-License-Identifier: Apache-2.0
// Compares one value of each table with the bytes that format 1 first wrote. Old programs would
// report a change as damage. If the format must change, raise its number (docs/FORMAT.md) and add
// another image. VARVE_WRITE_GOLDEN=1 writes a missing image.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <string>

#include "catalog/alias_table.h"
#include "catalog/birth_table.h"
#include "catalog/chunk_references.h"
#include "catalog/disk_record.h"
#include "catalog/layout_records.h"
#include "catalog/location_table.h"
#include "catalog/object_store.h"
#include "catalog/pool_records.h"
#include "catalog/series_catalog.h"
#include "io/posix_file_system.h"
#include "meta/schema.h"
#include "store/segment_files.h"
#include "support/temp_repository.h"

namespace varve::format {
std::string golden_directory();
}

namespace varve::catalog {
namespace {

using test::must;

constexpr SeriesId kOne{3};
constexpr VersionNumber kNumber{7};

std::string hexadecimal(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return out;
}

VersionRecord sample_version() {
  VersionRecord version;
  version.series = kOne;
  version.number = kNumber;
  version.name = "monday";
  version.state = VersionState::kSealed;
  version.opened_at = {1700000000, 5};
  version.sealed_at = {1700000100, 0};
  version.entries = 300;
  version.logical_bytes = 1ULL << 40;
  version.unique_bytes = 5000;
  version.stored_bytes = 2500;
  version.root.mode = S_IFDIR | 0755;
  version.root.child = format::NodeId{(7ULL << 32) + 2};
  version.root.subtree_entries = 300;
  return version;
}

void put_samples(meta::WriteTxn& txn) {
  SeriesRecord series;
  series.id = kOne;
  series.name = "laptop";
  series.created_at = {1600000000, 999999999};
  series.next_number = 9;
  must(put_series(txn, series));
  auto version = sample_version();
  must(put_version(txn, version));
  version.number = VersionNumber{8};
  version.name = "tuesday";
  version.state = VersionState::kOpen;
  version.base = kNumber;
  must(put_version(txn, version));
  format::ContainerRecord container;
  container.number = ContainerNumber{70};
  container.segment = as_volume(SegmentNumber{5});
  container.offset = 12345;
  container.header_bytes = 777;
  container.data_bytes = 100000;
  container.chunks = 13;
  container.raw_bytes = 120000;
  container.live_bytes = 60000;
  container.compact = true;
  container.birth = kNumber;
  must(put_container(txn, store_of(kOne), container));
  container.number = ContainerNumber{71};
  container.segment = SegmentNumber{6};
  container.offset = 3 * 4096;
  container.header_bytes = 4096;
  container.compact = false;
  must(put_container(txn, store_of(kOne), container));
  container.number = ContainerNumber{72};
  container.checksum = 0xfedcba9876543210;
  must(put_container(txn, store_of(kOne), container));
  must(put_location(txn, store_of(kOne),
                    {ChunkId::make(kNumber, 40), 13, 120000, ContainerNumber{70}, 2}));
  SegmentRecord segment;
  segment.segment = SegmentNumber{6};
  segment.role = SegmentRole::kMerged;
  segment.version = kNumber;
  segment.bytes = 1 << 20;
  segment.raw_bytes = 120000;
  segment.live_bytes = 60000;
  segment.containers = 1;
  segment.first_container = ContainerNumber{71};
  must(put_segment(txn, store_of(kOne), segment));
  must(raise_counters(txn, store_of(kOne), {ContainerNumber{72}, SegmentNumber{7}}));
  must(put_retention(txn, kOne, kNumber, {true, {1800000000, 0}}));
  ArrangeSettings arranging;  // All values are explicit, because defaults change.
  arranging.policy = ArrangePolicyKind::kTiered;
  arranging.batch = 10;
  arranging.dead_permille = 90;
  arranging.fan = 10;
  arranging.window = 2;
  arranging.parity_percent = 0;
  must(put_arrange_settings(txn, arranging));
  must(put_disk_record(txn, {100'000, 200'000'000, 1ULL << 40, 1'700'000'000}));
  const auto ids = base::IdRuns::from(
      {{ChunkId::make(VersionNumber{1}, 5), 9}, {ChunkId::make(kNumber, 0), 70000}});
  must(put_quarantine(txn, store_of(kOne), ids));
  must(put_version_chunks(txn, kOne, kNumber, ids));
  must(put_version_links(txn, kOne, kNumber, LinkTable::from({{3, 1}, {5, 1}, {9, 4}})));
  ReferenceCounts references;
  references.add({ChunkId::make(kNumber, 4090), 10}, 3);
  must(VersionReferences::of_all(std::move(references)).put(txn, kOne, kNumber));
  must(put_pool_use(
      txn, kOne, kNumber,
      {{ContainerNumber{kPoolBit + 3}, 4000000}, {ContainerNumber{kPoolBit + 300}, 9}}));
  must(put_pool_users(txn, ContainerNumber{kPoolBit + 3}, 2));
  must(raise_pool_birth(txn, VersionNumber{kPoolBit + 40}));
  const auto pooled = [](std::uint32_t birth, std::uint32_t ordinal) {
    return ChunkId::make(VersionNumber{kPoolBit + birth}, ordinal);
  };
  must(put_alias(txn, {{pooled(9, 300), 1000, pooled(4, 70000)}, 8'000'000}));
  must(put_post_pass(txn,
                     {VersionNumber{kPoolBit + 9}, ContainerNumber{kPoolBit + 30}, 1ULL << 33}));
  format::Birth birth;
  for (std::size_t i = 0; i < birth.mark.size(); ++i) birth.mark[i] = std::byte(0xa0 + i);
  birth.series = kOne;
  birth.version = kNumber;
  must(put_birth(txn, store_of(kOne), kNumber, birth));
  birth.digest = 0x0123456789abcdef;
  must(put_birth(txn, kPoolStore, VersionNumber{kPoolBit + 9}, birth));
  must(put_rewrite_counts(txn, kOne, kNumber, {300, 1ULL << 40, 20, 150000, 16, 70000, 12}));
}

TEST(Golden, EveryTablesValuesAreWrittenAlike) {
  const test::TempDirectory directory;
  meta::EnvOptions options;
  options.tables = meta::catalog::kTables;
  options.map_bytes = std::size_t{16} << 20;
  const auto env = must(meta::Env::open(directory.path(), options));
  {
    auto txn = must(meta::WriteTxn::begin(env));
    put_samples(txn);
    must(txn.commit());
  }
  std::string found;
  const auto txn = must(meta::ReadTxn::begin(env));
  for (std::size_t table = 0; table < meta::catalog::kTables.size(); ++table) {
    bool any = false;
    must(meta::for_each_prefix(txn, static_cast<meta::TableIndex>(table), "",
                               [&](std::string_view key, std::string_view value) -> Result<bool> {
                                 any = true;
                                 found += fmt::format("{} {} {}\n", meta::catalog::kTables[table],
                                                      hexadecimal(key), hexadecimal(value));
                                 return true;
                               }));
    // Objects have golden images of their own in `format`. This image shows the record around them.
    const auto index = static_cast<meta::TableIndex>(table);
    if (index == meta::catalog::kNodes || index == meta::catalog::kRecipes) {
      found += fmt::format("{} - {}\n", meta::catalog::kTables[table],
                           hexadecimal(encode_object("raw bytes of an object")));
      any = true;
    }
    EXPECT_TRUE(any) << "no sample of " << meta::catalog::kTables[table];
  }
  const auto files = io::make_posix_file_system();
  const auto path = format::golden_directory() + "/catalog-1.txt";
  if (std::getenv("VARVE_WRITE_GOLDEN") != nullptr && !must(files->exists(path))) {
    must(files->write_file_atomically(format::golden_directory(), "catalog-1.txt",
                                      base::as_bytes(found)));
  }
  EXPECT_EQ(found, must(files->read_file(path, 1U << 20)));
}

}  // namespace
}  // namespace varve::catalog
