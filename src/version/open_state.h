// SPDX-License-Identifier: Apache-2.0
// The state shared by the parts of one open version, and the locks that guard the state.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>

#include "base/clock.h"
#include "base/descriptor_budget.h"
#include "base/recurring_tasks.h"
#include "base/thread_pool.h"
#include "crypto/key_ring.h"
#include "format/fingerprinter.h"
#include "index/fingerprint_index.h"
#include "ingest/chunker.h"
#include "ingest/dedup_policy.h"
#include "ingest/ingest_pipeline.h"
#include "ingest/tail_spill.h"
#include "io/file_system.h"
#include "layout/layout.h"
#include "meta/env_cache.h"
#include "meta/lmdb.h"
#include "restore/read_service.h"
#include "store/space_guard.h"
#include "varve/result.h"
#include "version/clone_base.h"
#include "version/content_reader.h"
#include "version/open_tree.h"
#include "version/overlay.h"

namespace varve::version {

/// Largest size of a file of an open version, in bytes.
inline constexpr std::uint64_t kFileBytesMax = std::uint64_t{1} << 62;

/// The objects used by an open version.
/// Lifetime: the objects behind plain pointers must outlive the version.
struct OpenVersionParts {
  const base::Clock* clock = nullptr;
  io::FileSystem* files = nullptr;
  std::string staging_directory;  ///< REPO/staging/SERIES-NUMBER: holds overlay/ and files/.
  const ingest::Chunker* chunker = nullptr;
  const format::Fingerprinter* fingerprinter = nullptr;
  std::shared_ptr<const crypto::KeyRing> keys{};  ///< Null in a plain repository.
  std::shared_ptr<index::FingerprintIndex> index;
  std::shared_ptr<ingest::DedupPolicy> dedup_policy{};
  layout::Layout* layout = nullptr;
  restore::ReadService* read_service = nullptr;
  base::ThreadPool* fingerprint_pool = nullptr;
  base::RecurringTasks* checkpoint_tasks = nullptr;  ///< Makes the checkpoints of all versions.
  base::DescriptorBudget* descriptors = nullptr;     ///< Budget of all versions.
  std::shared_ptr<meta::EnvCache> overlays{};        ///< Shared by the overlays of all versions.
  const ingest::IngestMetrics* ingest_metrics = nullptr;
  std::uint32_t checkpoint_interval_ms = 4000;
  /// Bytes of new containers that make a checkpoint due before the interval has passed; 0: only the
  /// interval counts.
  std::uint64_t checkpoint_bytes = 0;
  std::function<void()> on_checkpoint{};  ///< Called after each checkpoint; may be empty.
  std::shared_ptr<const CloneBase> base;  ///< Null unless the version starts as a clone.
  store::SpaceGuard* space = nullptr;     ///< Null: the version accepts every write.
};

/// The state shared by the parts of an open version.
///
/// The parts build on each other in the following order; a part calls only earlier parts:
///
///     OpenState        this file: the objects, the locks, the overlay
///     ContentStreams   content written sequentially
///     StagingArea      the staging files of content written out of order
///     OpenContents     the three states of a file's content, and the changes between them
///     StagedIngest     from staged content to a recipe of stored chunks
///     CloneSources     recipes that a clone may refer to
///     Checkpointer     durability: checkpoints, freezing, the background task
///     OpenNames        the tree operations
///     OpenAttributes   attributes and extended attributes
///     OpenVersionFile  a handle on one file
///     OpenVersion      the façade; owns all parts except the handles
///
/// All locks of an open version, in the order of locking:
///
/// 1. StagedIngest::mutex_: one thread at a time cuts the queue of staged files.
///    `checkpoint_mutex`: one thread at a time makes a checkpoint or collects references.
///    No thread holds both mutexes.
/// 2. `references_mutex`: see the member.
/// 3. `mutex`: guards the names and inodes, and every member of the parts that is neither constant
///    nor atomic. Inodes are reached through the tree, so the same lock guards inodes and tree.
/// 4. The locks of the ingest pipeline and of the Overlay, and RemovedInodes::mutex_. No thread
///    takes another lock of the version while holding a lock of level 4.
///
/// No thread holds `mutex` while cutting staged content, syncing staging files or committing a
/// checkpoint. After releasing `mutex`, a thread must look up its inodes again.
struct OpenState {
  OpenState(const OpenVersionParts& version_parts, VersionInfo version_info);

  // ---- The caller holds `mutex`, or no other thread can use the version yet. ----

  /// Opens the overlay in the staging directory.
  /// Errors: kCorrupt if pages of the overlay are damaged.
  [[nodiscard]] Result<void> open_overlay();
  /// Creates and opens an empty overlay in the staging directory.
  [[nodiscard]] Result<void> make_overlay();
  /// Checks that the version accepts changes. Errors: kReadOnly while the version is frozen.
  [[nodiscard]] Result<void> check_not_frozen() const;
  /// Counts bytes written by a program. Returns whether the background task should check if a
  /// checkpoint is due.
  [[nodiscard]] bool count_written(std::uint64_t bytes);
  /// Sets space aside for records in the overlay, to be written by the next checkpoint.
  /// Errors: as admit().
  [[nodiscard]] Result<void> admit_record(std::uint64_t bytes);
  /// Wakes the background task: a staged file waits for cutting, or a checkpoint may be due by
  /// OpenVersionParts::checkpoint_bytes.
  void wake_background();

  // ---- Needs no lock. ----

  /// Sets space for `bytes` bytes aside, before a change.
  /// Errors: kNoSpace if the disk might not have room for `bytes` more bytes.
  [[nodiscard]] Result<void> admit(std::uint64_t bytes) const;
  /// Checks as admit(), but sets nothing aside.
  [[nodiscard]] Result<void> has_room(std::uint64_t bytes) const;

  const OpenVersionParts parts;
  std::optional<Overlay> overlay;  ///< None until the first change; set with `mutex` held.
  ingest::TailSpill spill;
  ingest::IngestPipeline pipeline;
  ContentReader reader;

  /// Held shared by a thread that creates a reference to stored chunks: from the lookup in a
  /// recipe, or in the index for whole runs of chunks, until an inode has the result. Held
  /// exclusively by collect_references().
  std::shared_mutex references_mutex;
  /// Held during a whole checkpoint, while records of inodes may be neither in memory nor in the
  /// overlay.
  std::mutex checkpoint_mutex;
  mutable std::mutex mutex;

  // ---- Guarded by `mutex`. ----

  VersionInfo info;
  OpenTree tree;
  std::optional<base::DescriptorBudget::Share> descriptor;  ///< From the first change on.
  bool frozen = false;              ///< True while a seal or a deletion keeps changes out.
  bool stopping = false;            ///< True once the background task must end.
  std::uint64_t written_bytes = 0;  ///< Bytes written by programs.
  /// The background task of checkpoints. Null before the first change, and at the end.
  std::shared_ptr<base::RecurringTasks::Task> background{};
  /// Wakes the threads waiting until a file's `consolidating` is false.
  std::condition_variable consolidated;

  // ---- Atomic: written with `mutex` held, read without a lock. ----

  std::atomic<std::size_t> writers{0};         ///< Number of handles open for writing.
  std::atomic<std::uint64_t> record_bytes{0};  ///< Bytes admitted for the next checkpoint.
};

/// Returns the number of names at the last checkpoint of the version in a staging directory;
/// nullopt if the number is unknown. Another process may be writing the version; the calling
/// process must not have the version open.
[[nodiscard]] std::optional<std::uint64_t> stored_entries(io::FileSystem& files,
                                                          const std::string& staging_directory,
                                                          const meta::EnvKeys& keys);

}  // namespace varve::version
