// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/aligned_buffer.h"
#include "format/container_keys.h"
#include "io/file_system.h"
#include "remote/changes.h"
#include "remote/etag_notes.h"
#include "remote/head.h"
#include "remote/replica_files.h"
#include "remote/replica_state.h"
#include "remote/replicator_parts.h"
#include "remote/upload_check.h"
#include "varve/result.h"

namespace varve::remote {

struct ReplicationRound;

/// Uploads the data and the catalog objects of a round. Not thread-safe: the replicator's lock
/// guards all calls.
class ObjectUploader {
 public:
  /// `objects` is the map of the newest head, `head`. Lifetime: the arguments outlive the uploader.
  ObjectUploader(const ReplicatorParts& parts, ReplicaState& state, const Head& head,
                 const ObjectMap& objects)
      : parts_(parts),
        state_(state),
        head_(head),
        objects_(objects),
        container_keys_(parts.keys ? std::make_unique<const format::ContainerKeys>(parts.keys)
                                   : nullptr) {}

  /// Begins the uploads of the round's files. Errors: kStale if a newer snapshot does not need a
  /// file; errors of the bucket, the disk and the folder's state.
  [[nodiscard]] Result<void> upload_files(ReplicationRound& round);
  /// Uploads the changes, completes the round and the head, and waits for all uploads of the round.
  [[nodiscard]] Result<void> upload_catalog(ReplicationRound& round, Head& head);
  /// The objects whose upload this process has begun, and no known head names.
  [[nodiscard]] const std::set<std::string>& doubtful() const { return doubtful_; }
  void forget_doubtful() { doubtful_.clear(); }
  /// Returns and forgets the ETags of new objects that ReplicaState::add_uploaded() does not note.
  [[nodiscard]] Etags take_etags() { return std::exchange(etags_, {}); }

 private:
  using Round = ReplicationRound;
  [[nodiscard]] Result<void> keep_equal_front(const ReplicaFile& file,
                                              std::vector<Extent>& extents);
  [[nodiscard]] Result<void> cut_objects(Round& round, const std::string& path);
  [[nodiscard]] Result<bool> upload_file(Round& round, const ReplicaFile& file);
  /// Uploads what a file of labels has behind the parts that stay. docs/decisions/170.
  [[nodiscard]] Result<void> upload_labels(Round& round, const ReplicaFile& file, SeriesId series);
  /// Begins the upload of an object with a part of a file, behind the lead.
  [[nodiscard]] Result<Extent> put_extent(Round& round, const ReplicaFile& which,
                                          std::uint64_t offset,
                                          std::shared_ptr<base::AlignedBuffer> buffer,
                                          const std::string& lead);
  [[nodiscard]] Result<Extent> upload_extent(Round& round, io::File& file, const ReplicaFile& which,
                                             std::uint64_t offset, std::uint64_t bytes);
  /// Verifies the checksums of the containers in `bytes`, which begin at `offset` of a file. Notes
  /// damage, and returns the damage.
  [[nodiscard]] Result<std::optional<std::string>> check_extent(const FileContainers& containers,
                                                                io::File& file,
                                                                const std::string& path,
                                                                std::uint64_t offset,
                                                                std::span<std::byte> bytes);
  [[nodiscard]] Result<void> merge_objects(Round& round, Head& head);
  /// Returns the name of a new object. `content`: text that differs between contents.
  [[nodiscard]] Result<std::string> new_name(const char* folder, std::string_view content) const;

  const ReplicatorParts& parts_;
  ReplicaState& state_;
  const Head& head_;
  const ObjectMap& objects_;
  const std::unique_ptr<const format::ContainerKeys> container_keys_;  // Null if plain.
  bool copies_ranges_ = true;       // False once the store has refused to copy.
  std::set<std::string> doubtful_;  // See doubtful().
  Etags etags_;                     // See take_etags().
};

}  // namespace varve::remote
