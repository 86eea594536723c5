// SPDX-License-Identifier: Apache-2.0
// Compares a catalog with the files of another history of the repository, before a repair changes
// anything.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/ids.h"
#include "format/data_codecs.h"
#include "io/file_system.h"
#include "meta/lmdb.h"
#include "store/segment_store.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::maintain {

/// Labels, a manifest or a data file of another state of the repository than the catalog.
struct MixedFile {
  SeriesId series{};
  VersionNumber number{};  ///< Lowest number under which the file and the catalog differ.
  std::string path;
  std::string versions;  ///< Names of the differing versions of the file, with their series.
  std::string fault;
  bool is_data = false;  ///< A data file keeps its name.
};

/// The labels and manifests that differ from a catalog.
struct HistoryComparison {
  std::vector<MixedFile> other;  ///< Files of another history.
  /// Files that may be of a later state of the catalog's history. If `other` is not empty, the
  /// files belong to the other history, too.
  std::vector<MixedFile> later;
};

/// Returns the error of a repair that stops because of files of two histories.
[[nodiscard]] Error mixed_histories(const std::string& where, const std::string& fault);

/// Finds the labels and manifests of another history than the catalog, or of a later state, as far
/// as the stamps, the seals and the births of versions tell.
/// Errors: kUnsupported for files of a newer format; the errors of the catalog.
[[nodiscard]] Result<HistoryComparison> compare_with_files(io::FileSystem& files,
                                                           const format::FrameCodec& codec,
                                                           const std::string& repository_path,
                                                           const meta::Env& catalog);

/// The differences of a store's files from the catalog.
struct StoreDifference {
  std::vector<SegmentNumber> unknown;  ///< Files without a record.
  std::set<SegmentNumber> missing;     ///< Names in the catalog without a file.
};
/// Compares the names of a store's segments and volumes with the records of the catalog.
/// Errors: the errors of the catalog and of the disk.
[[nodiscard]] Result<StoreDifference> compare_store(const meta::Txn& txn,
                                                    store::SegmentStore& store, StoreId id);

/// Returns the store of a series or of the pool.
using StoreOf = std::function<store::SegmentStore&(SeriesId owner)>;
/// Returns whether the catalog fits at least half of the data from the first differing version of
/// each series on. The data consists of the containers listed by the catalog, and of the files not
/// listed by the catalog; both count with their bytes on the disk. The catalog must fit the data
/// files of `mixed` alone, too: the next repair of a kept catalog finds no other mixed files, and
/// must return the same. Errors: the errors of the catalog and of the disk.
[[nodiscard]] Result<bool> fits_most_data(const format::DataCodecs& codecs,
                                          const meta::Env& catalog,
                                          const std::vector<MixedFile>& mixed,
                                          const StoreOf& store_of);

/// A version listed by a catalog.
struct ListedVersion {
  std::string name;      ///< With the name of the series.
  std::string own_name;  ///< Without the name of the series.
  SeriesId series{};
  VersionNumber number{};
  bool sealed = false;
  Timestamp sealed_at{};
  Timestamp locked_until{};  ///< End of the lock; zero if not locked.
};
[[nodiscard]] Result<std::vector<ListedVersion>> list_versions_of(const meta::Env& catalog);
/// Returns the entries of `versions` that the catalog lacks or has with another seal. Open
/// versions in the result may be sealed in the catalog.
[[nodiscard]] Result<std::vector<ListedVersion>> missing_in(
    const meta::Env& catalog, const std::vector<ListedVersion>& versions);

}  // namespace varve::maintain
