// SPDX-License-Identifier: Apache-2.0
#include "replica/replica_files.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/coding.h"
#include "catalog/layout_records.h"
#include "catalog/series_catalog.h"
#include "store/folder_store.h"
#include "store/repository_names.h"
#include "store/repository_paths.h"
#include "store/segment_files.h"

namespace varve::replica {

namespace {

constexpr std::size_t kSampleBytes = 4096;
constexpr std::uint64_t kReadWholeBytes = 1U << 20;

Result<void> add_data_files(const meta::Txn& catalog, StoreId store, const std::string& folder,
                            std::vector<ReplicaFile>& found) {
  VARVE_TRY_ASSIGN(const auto segments, catalog::list_segments(catalog, store));
  for (const auto& segment : segments) {
    const auto path = folder + "/" + store::segment_path(segment.segment);
    if (segment.bytes != 0) found.push_back({path, segment.bytes, 0});
  }
  return {};
}

// Files that are replaced get another checksum in their first or last bytes, or another salt, or
// another length. Short files are read as a whole.
Result<std::optional<ReplicaFile>> look_at(io::FileSystem& files, const std::string& root,
                                           const std::string& path) {
  auto file = files.open(root + "/" + path, io::OpenMode::kRead);
  if (!file && file.error().code() == ErrorCode::kNotFound) return std::optional<ReplicaFile>();
  if (!file) return std::move(file).error();
  VARVE_TRY_ASSIGN(const auto bytes, (*file)->size());
  std::string sample;
  base::ByteWriter(sample).u64(bytes);
  const auto add = [&](std::uint64_t offset, std::uint64_t length) -> Result<void> {
    const auto at = sample.size();
    sample.resize(at + length);
    VARVE_TRY_ASSIGN(
        const auto got,
        (*file)->read_at(offset, std::as_writable_bytes(std::span(sample).subspan(at))));
    sample.resize(at + got);
    return {};
  };
  if (bytes <= kReadWholeBytes) {
    VARVE_TRY(add(0, bytes));
  } else {
    VARVE_TRY(add(0, kSampleBytes));
    VARVE_TRY(add(bytes - kSampleBytes, kSampleBytes));
  }
  const auto mark = XXH3_64bits(sample.data(), sample.size());
  return std::optional(ReplicaFile{path, bytes, std::max<std::uint64_t>(mark, 1)});
}

// Adds the files of a folder whose names have the ending and are Varve's.
Result<void> add_folder(io::FileSystem& files, const std::string& root, const std::string& folder,
                        store::FolderKind kind, std::string_view ending,
                        std::vector<ReplicaFile>& found) {
  const auto names = files.list(root + "/" + folder);
  if (!names && names.error().code() == ErrorCode::kNotFound) return {};
  if (!names) return names.error();
  for (const auto& name : *names) {
    if (!name.ends_with(ending) || !store::known_name(kind, name)) continue;
    VARVE_TRY_ASSIGN(auto one, look_at(files, root, folder + "/" + name));
    if (one) found.push_back(std::move(*one));
  }
  return {};
}

}  // namespace

std::string series_folder(SeriesId id) {
  return fmt::format("series/{:08x}", static_cast<std::uint32_t>(id));
}

Result<std::vector<ReplicaFile>> data_files(const meta::Txn& catalog) {
  std::vector<ReplicaFile> found;
  VARVE_TRY_ASSIGN(const auto all, catalog::list_series(catalog));
  for (const auto& series : all) {
    VARVE_TRY(
        add_data_files(catalog, catalog::store_of(series.id), series_folder(series.id), found));
  }
  VARVE_TRY(add_data_files(catalog, kPoolStore, "pool", found));
  return found;
}

Result<std::vector<ReplicaFile>> other_files(io::FileSystem& files, const std::string& root,
                                             const meta::Txn& catalog) {
  using store::FolderKind;
  std::vector<ReplicaFile> found;
  VARVE_TRY_ASSIGN(const auto all, catalog::list_series(catalog));
  for (const auto& series : all) {
    const auto folder = series_folder(series.id);
    for (const auto name : {std::string_view("labels"), store::kBesideName}) {
      VARVE_TRY_ASSIGN(auto one, look_at(files, root, folder + "/" + std::string(name)));
      if (one) found.push_back(std::move(*one));
    }
    VARVE_TRY(
        add_folder(files, root, folder + "/manifests", FolderKind::kManifests, ".man", found));
    VARVE_TRY(add_folder(files, root, folder + "/parity", FolderKind::kParity, ".par", found));
  }
  VARVE_TRY(add_folder(files, root, "pool", FolderKind::kPool, ".als", found));
  VARVE_TRY(add_folder(files, root, "pool/parity", FolderKind::kParity, ".par", found));
  return found;
}

}  // namespace varve::replica
