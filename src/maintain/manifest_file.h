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
#include "format/frame_codec.h"
#include "format/manifest.h"
#include "io/file_system.h"
#include "meta/lmdb.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::maintain {

inline constexpr const char* kManifestFolder = "manifests";
inline constexpr const char* kLabelsName = "labels";
inline constexpr std::size_t kLabelsBytesMax = std::size_t{1} << 28;
/// Key in `settings` of the catalog's random id. A rebuilt catalog has another id.
inline constexpr const char* kCatalogIdSetting = "catalog_id";
/// Key in `settings` of the ids of the catalogs replaced by rebuilds, the newest id last.
inline constexpr const char* kReplacedCatalogsSetting = "replaced_catalogs";
inline constexpr std::size_t kCatalogIdBytes = 16;
/// Returns the ids in the setting's value. Ignores a rest that is too short for an id.
[[nodiscard]] std::vector<std::string> ids_of_catalogs(std::string_view value);
/// Returns the ids of the catalogs replaced by a catalog.
[[nodiscard]] Result<std::vector<std::string>> replaced_catalogs(const meta::Txn& txn);

/// Returns the series of a folder below series/; nullopt for any other name.
[[nodiscard]] std::optional<SeriesId> series_of_folder(std::string_view name);
/// Returns the series with a folder, in ascending order.
[[nodiscard]] Result<std::vector<SeriesId>> series_folders(io::FileSystem& files,
                                                           const std::string& repository_path);

[[nodiscard]] std::string manifest_path(const std::string& series_directory, VersionNumber number);

struct ManifestFile {
  VersionNumber number{};
  std::uint64_t bytes = 0;
};
/// Returns the version number in the name of a manifest's file; nullopt for another name.
[[nodiscard]] std::optional<std::uint32_t> number_of_manifest(std::string_view name);
/// Returns the manifests in ascending number; none if the folder is missing. Ignores files with
/// unknown names.
[[nodiscard]] Result<std::vector<ManifestFile>> list_manifests(io::FileSystem& files,
                                                               const std::string& series_directory);

/// Writes one manifest to a temporary file beside the final path. If destroyed before commit(),
/// leaves no file that a reader accepts as a manifest. Not thread-safe. Memory: one block.
class ManifestWriter {
 public:
  /// Starts a manifest. Lifetime: `files` and `codec` must outlive the writer.
  [[nodiscard]] static Result<std::unique_ptr<ManifestWriter>> begin(
      io::FileSystem& files, const format::FrameCodec& codec, const std::string& series_directory,
      SeriesId series, VersionNumber number);
  ~ManifestWriter();

  /// Adds the objects first stored by the version: the objects with an ordinal below `count`. With
  /// `tolerant`, leaves out damaged objects instead of failing.
  [[nodiscard]] Result<void> add_objects(const meta::Txn& txn, std::uint64_t count, bool tolerant);
  /// Syncs the data added so far, so that commit() is fast.
  [[nodiscard]] Result<void> sync();
  /// Adds the records of the version and the series. `txn` may be the transaction that writes the
  /// records. When the call returns, the file is synced and in the final place, and the folder is
  /// synced.
  [[nodiscard]] Result<void> commit(const meta::Txn& txn);

 private:
  ManifestWriter(io::FileSystem& files, const format::FrameCodec& codec,
                 const std::string& series_directory, SeriesId series, VersionNumber number);
  [[nodiscard]] Result<void> add_table(const meta::Txn& txn, meta::TableIndex table,
                                       format::ManifestRecord what, std::uint64_t count,
                                       bool tolerant);
  [[nodiscard]] Result<void> add_records(const meta::Txn& txn);
  [[nodiscard]] Result<void> add_births(const meta::Txn& txn);
  [[nodiscard]] Result<void> append(std::string_view bytes);

  io::FileSystem& files_;
  const std::string series_directory_;
  const SeriesId series_;
  const VersionNumber number_;
  std::unique_ptr<io::File> file_;
  std::uint64_t end_ = format::kManifestHeaderBytes;
  format::ManifestEncoder encoder_;
};

using ManifestVisit = std::function<Result<void>(format::ManifestRecord what, std::string_view key,
                                                 std::string_view value)>;

/// Differences of labels from the catalog.
struct LabelsView {
  std::set<VersionNumber> without{};      ///< Versions to leave out.
  const std::string* clock = nullptr;     ///< Replaces the clock's record; "" omits the record.
  const std::string* sequence = nullptr;  ///< The same for the sequence number.
  /// The same for the record of the series' sequence numbers.
  const std::string* series_sequences = nullptr;
  /// Replaces the chunks of the open versions in the map.
  const std::map<VersionNumber, base::IdRuns>* open_chunks = nullptr;
  /// The deleted versions with a manifest. If null, the labels note no deletions.
  const std::set<VersionNumber>* removed = nullptr;
};
/// Key of the record `removed` for a version. The record of version 0 says that labels have such a
/// record for each deleted version with a manifest.
[[nodiscard]] std::string removed_key(VersionNumber number);
/// Returns the versions with a manifest in the series' folder that the catalog lacks.
[[nodiscard]] Result<std::set<VersionNumber>> removed_versions(const meta::Txn& txn,
                                                               io::FileSystem& files,
                                                               const std::string& series_directory,
                                                               SeriesId series);
/// Returns whether labels have the setting `key`. Labels omit settings that Varve can find out
/// again: the speed of the disk, and whether containers of the pool may be merged.
[[nodiscard]] bool is_labelled_setting(std::string_view key);
/// Calls `visit` for each record of a series' labels, in the labels' order, as `txn` sees the
/// catalog. The records of one version follow each other.
[[nodiscard]] Result<void> for_each_label(const meta::Txn& txn, SeriesId series,
                                          const std::string& superblock, const LabelsView& view,
                                          const ManifestVisit& visit);
/// Returns the labels file of a series as `txn` sees the catalog. The same catalog gives the same
/// bytes, except for the stamp in the header.
[[nodiscard]] Result<std::string> encode_labels(const meta::Txn& txn,
                                                const format::FrameCodec& codec, SeriesId series,
                                                const std::string& superblock,
                                                const LabelsView& view = {});
[[nodiscard]] Result<void> write_labels(io::FileSystem& files, const std::string& series_directory,
                                        const std::string& labels);
/// The result of reading a manifest or labels file.
struct ManifestRead {
  format::ManifestHeader header;
  /// Damaged blocks, and records that break the limits of their kind. The content is missing.
  std::uint32_t damaged_blocks = 0;
  std::uint64_t end = 0;  ///< Offset behind the last block.
};
/// Limits on the value sizes of some records. A larger value is damage.
struct ManifestBounds {
  std::size_t chunk_set_bytes = std::size_t{1} << 30;
  std::size_t link_bytes = std::size_t{1} << 30;
  bool small_records_only = false;  ///< Do not visit other records of more than a block.
};
/// Calls `visit` for every readable record. Skips and counts damaged blocks, and records that break
/// their limits. Memory: the largest record, at most 1 GiB.
/// Errors: kCorrupt if the header is damaged; kNotFound without a file.
[[nodiscard]] Result<ManifestRead> read_manifest(io::FileSystem& files,
                                                 const format::FrameCodec& codec,
                                                 const std::string& path,
                                                 const ManifestVisit& visit,
                                                 const ManifestBounds& bounds = {});

/// Reads one part of an open file, from its header at `start` on: a manifest, labels or an update.
/// Errors: as read_manifest(); kCorrupt if the file ends inside the part.
[[nodiscard]] Result<ManifestRead> read_manifest_part(io::File& file,
                                                      const format::FrameCodec& codec,
                                                      const std::string& path, std::uint64_t start,
                                                      const ManifestVisit& visit,
                                                      const ManifestBounds& bounds);

/// Returns whether two records are of one seal. Compares fields that never change after the seal;
/// the name may change.
[[nodiscard]] bool is_same_seal(const catalog::VersionRecord& a, const catalog::VersionRecord& b);
/// Returns whether two records of one number may be states of one version: the times of opening are
/// equal, and the seals are equal if both versions are sealed.
[[nodiscard]] bool may_be_same_version(const catalog::VersionRecord& a,
                                       const catalog::VersionRecord& b);

/// How a manifest compares with the catalog.
struct ManifestState {
  std::string fault;         ///< Defect of the manifest; "" if sound.
  std::string version_name;  ///< Name of the version, as far as readable.
  /// True if the manifest has another seal or other births than the catalog: the version belongs to
  /// another history of the repository. Damaged blocks do not hide the difference.
  bool of_other_history = false;
  bool is_unknown = false;  ///< True if the catalog lacks the version's number.
};
/// Compares a version's manifest with the catalog.
/// Errors: as read_manifest(); the errors of the catalog.
[[nodiscard]] Result<ManifestState> state_of_manifest(io::FileSystem& files,
                                                      const format::FrameCodec& codec,
                                                      const std::string& path,
                                                      const meta::Env& catalog, SeriesId series,
                                                      VersionNumber number);

/// A labels file with updates.
struct Labels {
  format::ManifestHeader header;  ///< With the stamp of the last update.
  std::uint64_t base_bytes = 0;   ///< Length of the file without updates.
  std::uint64_t end = 0;          ///< Offset behind the last update.
  /// True if an interrupted append left meaningless bytes behind `end`.
  bool torn = false;
  bool notes_removed = false;       ///< True if the labels note deletions.
  std::set<VersionNumber> removed;  ///< Versions noted as deleted.
  std::string catalog_id;
  std::string series;  ///< The series record, as encoded in the catalog.
  std::string superblock;
  struct Record {
    format::ManifestRecord what;
    std::string key;
    std::string value;
  };
  /// The remaining records: the records of versions by number, then the settings by name.
  std::vector<Record> records;

  /// Returns the value of a setting among the records; empty if there is none.
  [[nodiscard]] std::string setting(std::string_view name) const;
  /// Returns the sequence number (docs/FORMAT.md §14.6); 0 if there is none.
  [[nodiscard]] std::uint64_t sequence() const;
};
/// Returns true for labels of another catalog, or of a later state of this catalog. Labels of a
/// catalog replaced by this catalog are older.
[[nodiscard]] Result<bool> are_later_labels(const meta::Txn& txn, const Labels& labels);
/// Returns the records of versions in labels, by number. Leaves out records that cannot be decoded.
[[nodiscard]] std::vector<catalog::VersionRecord> labelled_versions(SeriesId series,
                                                                    const Labels& labels);
/// Reads a labels file. Leaves out an update cut short by a crash.
/// Errors: kNotFound without a file; kCorrupt if another part is damaged, or if the file belongs to
/// another series.
[[nodiscard]] Result<Labels> read_labels(io::FileSystem& files, const format::FrameCodec& codec,
                                         const std::string& series_directory, SeriesId series);

/// Returns whether labels have the records seen by `txn` in the catalog, and no lower sequence
/// number than the records need. Other differences in the clock's record and the sequence numbers
/// are allowed: a seal in another series changes both, and the labels receive the new values at the
/// labels' next change. `superblock` is the present text.
[[nodiscard]] Result<bool> labels_agree(const meta::Txn& txn, SeriesId series,
                                        const std::string& superblock, const Labels& labels);
/// Compares as labels_agree(), but skips the superblock and the records of open versions, which
/// checkpoints change.
[[nodiscard]] Result<bool> sealed_labels_agree(const meta::Txn& txn, SeriesId series,
                                               const Labels& labels);

/// Returns whether an update with the versions `changed` makes the labels complete. Compares as
/// sealed_labels_agree(), but skips the records of `changed` and of the series, because each update
/// has these records. For an open version, compares only the presence.
[[nodiscard]] Result<bool> labels_agree_but(const meta::Txn& txn, SeriesId series,
                                            const std::string& superblock, const Labels& labels,
                                            const std::vector<VersionNumber>& changed);

/// A change of labels.
struct LabelsUpdate {
  SeriesId series{};
  std::uint64_t stamp = 0;  ///< Number of the mirrored catalog transaction.
  std::uint64_t at = 0;     ///< Length of the labels file, which must be whole.
  std::vector<Labels::Record> records;
};
/// Appends an update to a labels file and syncs it. Returns the file's new length.
/// Errors: kCorrupt if the file is missing or has another length. After an error, the file may have
/// a torn end: the caller writes new labels.
[[nodiscard]] Result<std::uint64_t> append_labels(io::FileSystem& files,
                                                  const format::FrameCodec& codec,
                                                  const std::string& series_directory,
                                                  const LabelsUpdate& update);

/// Passes on kUnsupported and ignores other errors. A file of a newer Varve is not damaged and must
/// not be repaired or rewritten.
template <typename T>
[[nodiscard]] Result<void> refuse_unsupported(const Result<T>& read) {
  if (!read && read.error().code() == ErrorCode::kUnsupported) return read.error();
  return {};
}

}  // namespace varve::maintain
