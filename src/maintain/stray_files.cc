// SPDX-License-Identifier: Apache-2.0
#include "maintain/stray_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "catalog/layout_records.h"
#include "catalog/series_catalog.h"
#include "maintain/owners.h"
#include "maintain/settled_files.h"
#include "store/repository_names.h"
#include "store/repository_paths.h"

namespace varve::maintain {

namespace {

constexpr std::size_t kUnknownNamed = 1000;

// Returns true if the catalog's record of the file is unchanged.
Result<bool> is_unchanged(const meta::Env& catalog, SeriesId owner, const parity::DataFile& file) {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog));
  VARVE_TRY_ASSIGN(const auto now,
                   catalog::find_segment(txn, catalog::store_of(owner), file.segment));
  return now && now->bytes == file.bytes;
}

Result<void> note_long_segments(const meta::Env& catalog, store::SegmentStore& store,
                                SeriesId owner, const StrayNote& note) {
  std::vector<parity::DataFile> settled;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog));
    VARVE_TRY_ASSIGN(settled, settled_files(txn, owner));
  }
  for (const auto& file : settled) {
    const auto length = store.size(file.segment);
    // A short file is damage, which layout_checker.h finds.
    if (!length || *length <= file.bytes) continue;
    VARVE_TRY_ASSIGN(const bool unchanged, is_unchanged(catalog, owner, file));
    if (!unchanged) continue;
    note(store.describe(file.segment),
         fmt::format("{} bytes follow the last container; they are never read",
                     *length - file.bytes));
  }
  return {};
}

// Notes bytes after the catalog's last page, unless a commit has extended the file by whole pages
// of zeros.
Result<void> note_long_catalog(const meta::Env& catalog, io::FileSystem& files,
                               const std::string& path, const StrayNote& note) {
  const auto used = meta::used_bytes(catalog);
  VARVE_TRY_ASSIGN(const auto file, files.open(path, io::OpenMode::kRead));
  VARVE_TRY_ASSIGN(const auto size, file->size());
  if (size <= used.bytes) return {};
  bool strange = size % used.page_bytes != 0;
  const auto data = file->seek_data(used.bytes);
  constexpr std::size_t kLookedAt = std::size_t{1} << 20;
  if (!strange && data) {
    std::vector<std::byte> bytes(std::min<std::uint64_t>(size - *data, kLookedAt));
    VARVE_TRY_ASSIGN(const auto got, file->read_at(*data, bytes));
    bytes.resize(got);
    strange = std::ranges::any_of(bytes, [](std::byte b) { return b != std::byte{0}; });
  }
  // A writer may have committed in the meantime.
  if (!strange || meta::used_bytes(catalog).bytes != used.bytes) return {};
  note(path, fmt::format("{} bytes follow the last page; they are never read", size - used.bytes));
  return {};
}

}  // namespace

void note_unknown_files(io::FileSystem& files, const std::string& repository_path,
                        const StrayNote& note) {
  std::size_t unknown = 0;
  std::vector<std::pair<std::string, store::FolderKind>> waiting{
      {repository_path, store::FolderKind::kRepository}};
  while (!waiting.empty()) {
    const auto [folder, kind] = std::move(waiting.back());
    waiting.pop_back();
    auto names = files.list(folder);
    if (!names && names.error().code() == ErrorCode::kNotDirectory && ++unknown <= kUnknownNamed) {
      note(folder, "unknown: a file with the name of a folder; Varve does not touch it");
    }
    if (!names) continue;  // Other checks report missing or unreadable folders.
    std::ranges::sort(*names, std::greater<>());
    for (const auto& name : *names) {
      const auto known = store::known_name(kind, name);
      const auto path = std::string(folder).append("/").append(name);
      if (known && known->folder) {
        waiting.emplace_back(path, *known->folder);
      } else if (!known && ++unknown <= kUnknownNamed) {
        note(path, "unknown: Varve did not create it and does not touch it");
      }
    }
  }
  if (unknown > kUnknownNamed) {
    note(repository_path,
         fmt::format("{} more files and folders are unknown", unknown - kUnknownNamed));
  }
}

void note_trailing_bytes(const meta::Env& catalog, io::FileSystem& files,
                         const store::StoreOpener& open_store, const std::string& repository_path,
                         const StrayNote& note) {
  // Earlier checks have reported unreadable files, so errors are ignored here.
  static_cast<void>(note_long_catalog(catalog, files, repository_path + "/catalog/data.mdb", note));
  const auto txn = meta::ReadTxn::begin(catalog);
  if (!txn) return;
  const auto owners = owners_in(*txn);
  if (!owners) return;
  const store::RepositoryPaths paths(repository_path);
  for (const auto owner : *owners) {
    const auto store = store::open_store(open_store, files, owner_folder(paths, owner));
    static_cast<void>(note_long_segments(catalog, *store, owner, note));
  }
}

}  // namespace varve::maintain
