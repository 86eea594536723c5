// SPDX-License-Identifier: Apache-2.0
// The objects and the report of a replicator.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "bucket/bucket.h"
#include "crypto/key_ring.h"
#include "io/file_system.h"
#include "meta/lmdb.h"
#include "remote/changes.h"
#include "remote/head_retention.h"
#include "remote/kept_snapshot.h"
#include "remote/local_notes.h"
#include "remote/uploads.h"
#include "varve/result.h"

namespace varve::remote {

/// The objects of a repository for the replicator.
/// Lifetime: all objects outlive the replicator.
struct ReplicatorParts {
  std::string root{};               ///< The repository's folder.
  io::FileSystem* files = nullptr;  ///< Shows the stored bytes, of encrypted files too.
  const meta::Env* catalog = nullptr;
  bucket::Bucket* bucket = nullptr;
  const base::Clock* clock = nullptr;
  std::string repository_id{};
  std::function<Result<std::string>()> superblock{};         ///< Returns the text of `varve.repo`.
  std::shared_ptr<const crypto::KeyRing> keys{};             ///< Null in a plain repository.
  std::uint64_t extent_bytes_max = std::uint64_t{64} << 20;  ///< Limit of one data object.
  /// Size of changes up to which the size alone causes no new base.
  std::uint64_t delta_bytes_min = std::uint64_t{4} << 20;
  std::string volume_class{};  ///< Storage class of volumes; empty for the store's default.
  UploadLimits uploads{};
  HeadRetention heads{};
  std::int64_t orphan_seconds = std::int64_t{30} * 24 * 60 * 60;  ///< Between lists of all objects.
  LocalNotes* notes = nullptr;
  /// Holds the snapshot of the newest head's catalog. If null, every call compares the whole
  /// catalog.
  KeptSnapshot* kept = nullptr;
  /// In a takeover, the number of the newest listed head or copy; otherwise 0. The head may be
  /// lost. The number of the next head is greater.
  std::uint64_t heads_passed = 0;
  /// True to note each catalog object as garbage before its upload: if the takeover is interrupted,
  /// the object shows no lost head to the next attempt.
  bool notes_catalog_objects = false;
  /// Returns the length of the objects' locks in seconds; 0 without locks. May be empty.
  std::function<std::int64_t()> lock_seconds{};
  /// Receives the map of objects of the newest head at the opening and after each head. `changed`:
  /// the files with changed extents; null for all files.
  std::function<void(const ObjectMap&, const std::set<std::string>* changed)> on_objects{};
};

/// The work of one call of replicate().
struct ReplicateReport {
  std::uint64_t head = 0;         ///< The newest head.
  bool committed = false;         ///< A head was created.
  std::uint64_t objects = 0;      ///< Uploaded objects, without the head.
  std::uint64_t bytes = 0;        ///< Bytes of the uploaded objects.
  std::uint64_t copies = 0;       ///< Objects copied inside the store without the dead end.
  bool is_full = false;           ///< The whole catalog was compared, and all files were examined.
  std::uint64_t records = 0;      ///< Records of the catalog compared or read.
  std::uint64_t files_read = 0;   ///< Files read, except segments and volumes.
  std::uint64_t local_bytes = 0;  ///< Bytes read from the folder, except from the catalog.
  /// Files uploaded although damaged. The folder keeps the files.
  std::vector<std::string> damages{};
};

}  // namespace varve::remote
