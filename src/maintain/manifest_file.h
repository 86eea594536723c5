// SPDX-License-Identifier: Apache-2.0
// Manifests and labels on disk (docs/FORMAT.md §9): written from the catalog, and read back.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/id_runs.h"
#include "catalog/series_catalog.h"
#include "format/manifest.h"
#include "io/file_system.h"
#include "meta/lmdb.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::maintain {

inline constexpr const char* kManifestFolder = "manifests";
inline constexpr const char* kLabelsName = "labels";
/// Name, in `settings`, of the random bytes that tell a catalog from one made anew.
inline constexpr const char* kCatalogIdSetting = "catalog_id";

/// The series that a folder below series/ belongs to; nullopt for another name.
[[nodiscard]] std::optional<SeriesId> series_of_folder(std::string_view name);

[[nodiscard]] std::string manifest_path(const std::string& series_directory, VersionNumber number);

struct ManifestFile {
  VersionNumber number{};
  std::uint64_t bytes = 0;
};
/// In ascending number; none if there is no folder. What else is in the folder is left out.
[[nodiscard]] Result<std::vector<ManifestFile>> list_manifests(io::FileSystem& files,
                                                               const std::string& series_directory);

/// Writes one manifest, beside its place first. Dropped before commit(), it leaves nothing that
/// a reader takes for a manifest. Not thread-safe; memory: a block.
class ManifestWriter {
 public:
  /// `files` must outlive the writer.
  [[nodiscard]] static Result<std::unique_ptr<ManifestWriter>> begin(
      io::FileSystem& files, const std::string& series_directory, SeriesId series,
      VersionNumber number);
  ~ManifestWriter();

  /// The objects that the version was the first to store: those with an ordinal below `count`.
  /// `tolerant`: leave out what is damaged, instead of failing.
  [[nodiscard]] Result<void> add_objects(const meta::Txn& txn, std::uint64_t count, bool tolerant);
  /// What was added so far is on disk when it returns, so that commit() is quick.
  [[nodiscard]] Result<void> sync();
  /// Adds the records of the version and its series; `txn` may be the one that puts them. The
  /// file is synced, in its place, and the folder synced when it returns.
  [[nodiscard]] Result<void> commit(const meta::Txn& txn);

 private:
  ManifestWriter(io::FileSystem& files, const std::string& series_directory, SeriesId series,
                 VersionNumber number);
  [[nodiscard]] Result<void> add_table(const meta::Txn& txn, meta::TableIndex table,
                                       format::ManifestRecord what, std::uint64_t count,
                                       bool tolerant);
  [[nodiscard]] Result<void> add_records(const meta::Txn& txn);
  [[nodiscard]] Result<void> append(std::string_view bytes);

  io::FileSystem& files_;
  const std::string series_directory_;
  const SeriesId series_;
  const VersionNumber number_;
  std::unique_ptr<io::File> file_;
  std::uint64_t end_ = format::kManifestHeaderBytes;
  format::ManifestEncoder encoder_;
};

/// Returns a series' labels as they are in the catalog that `txn` sees, without some versions; the
/// whole file. The same catalog gives the same bytes, but for the stamp in the header. `clock`, if
/// given, replaces the catalog's record of the clock; empty for none. `open_chunks`, if given,
/// replaces the chunks of the open versions that it has.
[[nodiscard]] Result<std::string> encode_labels(
    const meta::Txn& txn, SeriesId series, const std::string& superblock,
    const std::set<VersionNumber>& without, const std::string* clock = nullptr,
    const std::map<VersionNumber, base::IdRuns>* open_chunks = nullptr);
[[nodiscard]] Result<void> write_labels(io::FileSystem& files, const std::string& series_directory,
                                        const std::string& labels);
/// Whether two images of labels say the same, whatever their stamps.
[[nodiscard]] bool same_labels(std::string_view a, std::string_view b);

/// What a manifest or labels file gives.
struct ManifestRead {
  format::ManifestHeader header;
  std::uint32_t damaged_blocks = 0;  ///< And records without bounds: what they held is missing.
};
using ManifestVisit = std::function<Result<void>(format::ManifestRecord what, std::string_view key,
                                                 std::string_view value)>;
/// The most bytes that some records' values may have. A larger value is damage.
struct ManifestBounds {
  std::size_t chunk_set_bytes = std::size_t{1} << 30;
  std::size_t link_bytes = std::size_t{1} << 30;
  bool small_records_only = false;  ///< Do not visit other records of more than a block.
};
/// Calls `visit` for every record that can be read. Damaged blocks, and records that break their
/// bounds, are left out and counted; kCorrupt if the header is damaged, kNotFound without a file.
/// Memory: the largest record, of at most 1 GiB.
[[nodiscard]] Result<ManifestRead> read_manifest(io::FileSystem& files, const std::string& path,
                                                 const ManifestVisit& visit,
                                                 const ManifestBounds& bounds = {});

/// What is wrong with the manifest of a version; "" if nothing is. Errors: as read_manifest().
[[nodiscard]] Result<std::string> fault_of_manifest(io::FileSystem& files, const std::string& path,
                                                    SeriesId series, VersionNumber number);

/// A labels file, whole or not at all.
struct Labels {
  std::string image;  ///< The file's bytes.
  format::ManifestHeader header;
  std::string catalog_id;
  std::string series;  ///< The catalog's value.
  std::string superblock;
  struct Record {
    format::ManifestRecord what;
    std::string key;
    std::string value;
  };
  std::vector<Record> records;  ///< The others.

  /// Returns the value of a setting among the records; empty if there is none.
  [[nodiscard]] std::string setting(std::string_view name) const;
};
/// kNotFound without a file; kCorrupt if anything in it is damaged, or it is another series'.
[[nodiscard]] Result<Labels> read_labels(io::FileSystem& files, const std::string& series_directory,
                                         SeriesId series);

/// What a newer Varve wrote is not damaged, and must not be mended or written anew: passes that
/// error on, and no other.
template <typename T>
[[nodiscard]] Result<void> refuse_unsupported(const Result<T>& read) {
  if (!read && read.error().code() == ErrorCode::kUnsupported) return read.error();
  return {};
}

/// Whether labels of a series say that they mirror a later state of this catalog, or another
/// catalog. Labels that cannot be read say nothing; kUnsupported for those of a newer format.
[[nodiscard]] Result<bool> is_older_catalog(io::FileSystem& files,
                                            const std::string& repository_path,
                                            const meta::Txn& txn);

/// Where an open version's overlay is, or would be.
[[nodiscard]] std::string overlay_directory(const std::string& repository_path,
                                            const catalog::VersionRecord& record);

/// Whether an open version stored chunks, and the overlay that knows its files is gone.
[[nodiscard]] Result<bool> is_staging_lost(io::FileSystem& files,
                                           const std::string& repository_path, const meta::Txn& txn,
                                           const catalog::VersionRecord& record);

}  // namespace varve::maintain
