// SPDX-License-Identifier: Apache-2.0
// Forges records of a repository, with right checksums, as the owner of its folder could:
//
//   forge REPO name NUMBER NAME     the name of a version of series 1 (NAME may hold anything)
//   forge REPO time SECONDS         the times of version 2, in seconds since 1970
//   forge REPO series NAME          the name of series 1
//   forge REPO dag LEVELS           version 2 is a tree of shared directories with wrong counts
//   forge REPO deep LEVELS          the same, with right counts
//   forge REPO recipe               version 2 has a recipe that is small only while compressed
//   forge REPO huge                 version 2 has a file of 8 GiB, one chunk 32 Mi times
//   forge REPO manifest             the manifest of version 2 has such a set of chunks
//   forge REPO page                 the root of version 2 is such a directory page
#include <sys/stat.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>

#include "base/coding.h"
#include "catalog/object_store.h"
#include "catalog/series_catalog.h"
#include "format/dir_node.h"
#include "format/manifest.h"
#include "meta/lmdb.h"
#include "meta/schema.h"

namespace varve {
namespace {

constexpr SeriesId kSeries{1};
constexpr VersionNumber kVersion{2};

template <typename T>
T must(Result<T> result) {
  if (result) return std::move(*result);
  std::fprintf(stderr, "forge: %s\n", result.error().message().c_str());
  std::exit(1);
}
void must(const Result<void>& result) {
  if (result) return;
  std::fprintf(stderr, "forge: %s\n", result.error().message().c_str());
  std::exit(1);
}

format::NodeId node(std::uint32_t ordinal) { return format::NodeId::make(kVersion, ordinal); }

void put_page(meta::WriteTxn& txn, format::NodeId id, const std::string& raw) {
  must(txn.put(meta::catalog::kNodes, meta::object_key(kSeries, id.value),
               catalog::encode_object(raw)));
}

catalog::VersionRecord version_two(meta::WriteTxn& txn) {
  auto record = must(catalog::find_version(txn, kSeries, kVersion));
  if (!record) std::exit(1);
  return *record;
}

void rename_version(meta::WriteTxn& txn, VersionNumber number, const std::string& name) {
  auto record = must(catalog::find_version(txn, kSeries, number));
  if (!record) std::exit(1);
  record->name = name;
  must(catalog::put_version(txn, *record));
}

void set_times(meta::WriteTxn& txn, std::int64_t seconds) {
  auto record = version_two(txn);
  record.opened_at = record.sealed_at = {seconds, 0};
  must(catalog::put_version(txn, record));
}

void rename_series(meta::WriteTxn& txn, const std::string& name) {
  auto record = must(catalog::find_series(txn, kSeries));
  if (!record) std::exit(1);
  record->name = name;
  must(catalog::put_series(txn, *record));
}

// Makes each level of one page with two directories, which both are the page of the level below.
void share_directories(meta::WriteTxn& txn, unsigned levels, bool right_counts) {
  constexpr std::uint32_t kFirst = 1000;
  format::DirEntry file;
  file.name = "f";
  file.mode = S_IFREG | 0644;
  file.recipe.emplace();
  put_page(txn, node(kFirst), format::encode_dir_page(format::LeafPage{{file}}));
  std::uint64_t entries = 1;
  for (unsigned level = 1; level <= levels; ++level) {
    format::LeafPage page;
    for (const char* name : {"a", "b"}) {
      format::DirEntry directory;
      directory.name = name;
      directory.mode = S_IFDIR | 0755;
      directory.child = node(kFirst + level - 1);
      directory.subtree_entries = right_counts ? entries : 1;
      page.entries.push_back(directory);
    }
    entries = 2 * (1 + entries);
    put_page(txn, node(kFirst + level), format::encode_dir_page(page));
  }
  auto record = version_two(txn);
  record.root.child = node(kFirst + levels);
  record.root.subtree_entries = right_counts ? entries : 4;
  record.root.subdirectories = 2;
  record.entries = right_counts ? entries : std::uint64_t{1} << 62;
  must(catalog::put_version(txn, record));
}

// Writes a version with one file called "large", whose recipe is `raw`.
void put_recipe(meta::WriteTxn& txn, const std::string& raw, std::uint64_t size,
                std::uint64_t data) {
  must(txn.put(meta::catalog::kRecipes, meta::object_key(kSeries, node(2000).value),
               catalog::encode_object(raw)));
  format::DirEntry file;
  file.name = "large";
  file.mode = S_IFREG | 0644;
  file.size = size;
  file.data_bytes = data;
  file.recipe_id = node(2000);
  put_page(txn, node(2001), format::encode_dir_page(format::LeafPage{{file}}));
  auto record = version_two(txn);
  record.root.child = node(2001);
  record.root.subtree_entries = record.entries = 1;
  must(catalog::put_version(txn, record));
}

// Writes a recipe of one-byte holes, which a writer would join: two bytes each before compression.
void forge_recipe(meta::WriteTxn& txn) {
  constexpr std::uint64_t kRuns = std::uint64_t{60} << 20;
  std::string raw(1, '\3');
  base::ByteWriter(raw).varint(kRuns);
  for (std::uint64_t i = 0; i < kRuns; ++i) raw.append("\0\1", 2);
  put_recipe(txn, raw, kRuns, 0);
}

// Writes a recipe that a writer of a file of zeros could have made: one chunk, again and again.
void forge_huge(meta::WriteTxn& txn) {
  constexpr std::uint64_t kRuns = std::uint64_t{32} << 20;
  std::string raw(1, '\3');
  base::ByteWriter writer(raw);
  writer.varint(kRuns);
  for (std::uint64_t i = 0; i < kRuns; ++i) {
    writer.varint(1);
    writer.svarint(i == 0 ? static_cast<std::int64_t>(node(0).value) : -1);
    writer.varint(256);
  }
  put_recipe(txn, raw, kRuns * 256, kRuns * 256);
}

// Writes one page with thousands of directories, which a writer would end at 64 KiB.
void forge_page(meta::WriteTxn& txn) {
  format::LeafPage page;
  for (int i = 0; i < 60'000; ++i) {
    format::DirEntry entry;
    char digits[16];
    std::snprintf(digits, sizeof digits, "%08d", i);
    entry.name = std::string(240, 'n') + digits;
    entry.mode = S_IFREG | 0644;
    entry.xattrs = {{"user.x", std::string(200, 'v')}};
    entry.recipe.emplace();
    page.entries.push_back(entry);
  }
  put_page(txn, node(2001), format::encode_dir_page(page));
  auto record = version_two(txn);
  record.root.child = node(2001);
  record.root.subtree_entries = record.entries = page.entries.size();
  must(catalog::put_version(txn, record));
}

void forge_manifest(const meta::Env& env, const std::string& repository) {
  const auto txn = must(meta::ReadTxn::begin(env));
  format::ManifestHeader identity;
  identity.series = kSeries;
  identity.number = kVersion;
  std::string body;
  const auto codec = format::make_plain_frame_codec({});
  format::ManifestEncoder encoder(identity, *codec, format::kManifestCompression,
                                  [&](std::string_view bytes) -> Result<void> {
                                    body += bytes;
                                    return {};
                                  });
  const auto key = base::be32(static_cast<std::uint32_t>(kVersion));
  const auto add = [&](meta::TableIndex table, format::ManifestRecord what) {
    const auto value = must(txn.get(table, meta::version_key(kSeries, kVersion)));
    if (value) must(encoder.add(what, key, *value));
  };
  const auto series = must(txn.get(meta::catalog::kSeries, meta::series_key(kSeries)));
  must(encoder.add(format::ManifestRecord::kSeries, "", *series));
  add(meta::catalog::kVersions, format::ManifestRecord::kVersion);
  // Only every second chunk, because a writer would join adjacent runs.
  constexpr std::uint64_t kRuns = std::uint64_t{24} << 20;
  std::string chunks;
  base::ByteWriter(chunks).varint(kRuns);
  chunks.append(2 * kRuns, '\1');
  must(encoder.add(format::ManifestRecord::kVersionChunks, key, chunks));
  const auto header = must(encoder.finish());
  std::ofstream(repository + "/series/00000001/manifests/00000002.man", std::ios::binary)
      << format::encode_manifest_header(header) << body;
}

int forge(const std::string& repository, std::string_view what, const std::string& first,
          const std::string& second) {
  meta::EnvOptions options;
  options.tables = meta::catalog::kTables;
  options.map_bytes = std::size_t{8} << 30;
  const auto env = must(meta::Env::open(repository + "/catalog", options));
  if (what == "manifest") {
    forge_manifest(env, repository);
    return 0;
  }
  auto txn = must(meta::WriteTxn::begin(env));
  if (what == "name") {
    rename_version(txn, static_cast<VersionNumber>(std::stoul(first)), second);
  } else if (what == "time") {
    set_times(txn, std::stoll(first));
  } else if (what == "series") {
    rename_series(txn, first);
  } else if (what == "dag" || what == "deep") {
    share_directories(txn, static_cast<unsigned>(std::stoul(first)), what == "deep");
  } else if (what == "recipe") {
    forge_recipe(txn);
  } else if (what == "huge") {
    forge_huge(txn);
  } else if (what == "page") {
    forge_page(txn);
  } else {
    return 2;
  }
  must(txn.commit());
  return 0;
}

}  // namespace
}  // namespace varve

int main(int count, char** arguments) {
  if (count < 3) return 2;
  const std::string first = count > 3 ? arguments[3] : "";
  return varve::forge(arguments[1], arguments[2], first, count > 4 ? arguments[4] : "");
}
