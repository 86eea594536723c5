// SPDX-License-Identifier: Apache-2.0
// An open version: the mutable tree that a mount or `varve store` writes.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "ingest/ingest_pipeline.h"
#include "io/file_system.h"
#include "layout/layout.h"
#include "restore/read_service.h"
#include "store/space_guard.h"
#include "varve/removed_files.h"
#include "varve/repository.h"
#include "varve/version_writer.h"
#include "version/clone_base.h"
#include "version/content_reader.h"
#include "version/open_tree.h"

namespace varve::version {

inline constexpr std::uint64_t kFileBytesMax = std::uint64_t{1} << 62;

struct OpenVersionParts {
  const base::Clock* clock = nullptr;
  io::FileSystem* files = nullptr;
  std::string staging_directory;  ///< REPO/staging/SERIES-NUMBER: holds overlay/ and files/.
  const ingest::Chunker* chunker = nullptr;
  std::shared_ptr<index::FingerprintIndex> index;
  layout::Layout* layout = nullptr;
  restore::ReadService* read_service = nullptr;
  base::ThreadPool* fingerprint_pool = nullptr;
  std::uint32_t checkpoint_interval_ms = 4000;
  std::shared_ptr<const CloneBase> base;  ///< Null unless the version starts as a clone.
  store::SpaceGuard* space = nullptr;     ///< Null: the version accepts every write.
};

/// A version that can be written. Thread-safe. Lock order: ingest_mutex_ or checkpoint_mutex_, then
/// references_mutex_, then mutex_, then the pipeline's.
///
/// A checkpoint makes everything durable that was done before it: chunks first, then the catalog's
/// locations, then the overlay (docs/ORDERING.md O1, O2).
class OpenVersion final : public VersionWriter,
                          public RemovedFiles,
                          public store::SpaceUser,
                          public std::enable_shared_from_this<OpenVersion> {
 public:
  /// Opens the overlay and continues from the last checkpoint. Without an overlay the version is
  /// its base, or empty with `root` as its root directory. It then has no files, no thread and no
  /// large memory until the first change.
  [[nodiscard]] static Result<std::shared_ptr<OpenVersion>> open(const OpenVersionParts& parts,
                                                                 const VersionInfo& info,
                                                                 const NewFile& root);
  ~OpenVersion() override;

  [[nodiscard]] VersionInfo info() const override;
  [[nodiscard]] Result<OpenEntry> get(Ino ino) override;
  [[nodiscard]] Result<OpenEntry> lookup(Ino directory, std::string_view name) override;
  [[nodiscard]] Result<Ino> parent(Ino directory) override;
  [[nodiscard]] Result<void> list(Ino directory, std::string_view after,
                                  const Visitor& visit) override;
  [[nodiscard]] Result<OpenEntry> create(Ino directory, std::string_view name,
                                         const NewFile& file) override;
  [[nodiscard]] Result<OpenEntry> link(Ino target, Ino directory, std::string_view name) override;
  [[nodiscard]] Result<OpenEntry> clone(VersionReader& source, Rank rank, Ino directory,
                                        std::string_view name) override;
  [[nodiscard]] Result<void> unlink(Ino directory, std::string_view name) override;
  [[nodiscard]] Result<void> remove_directory(Ino directory, std::string_view name) override;
  [[nodiscard]] Result<void> rename(Ino from_directory, std::string_view from_name,
                                    Ino to_directory, std::string_view to_name,
                                    RenameMode mode) override;
  [[nodiscard]] Result<OpenEntry> set_attributes(Ino ino, const AttributeChange& change) override;
  [[nodiscard]] Result<std::string> read_link(Ino ino) override;
  [[nodiscard]] Result<Xattrs> xattrs(Ino ino) override;
  [[nodiscard]] Result<void> set_xattr(Ino ino, std::string_view name, std::string_view value,
                                       XattrMode mode) override;
  [[nodiscard]] Result<void> remove_xattr(Ino ino, std::string_view name) override;
  [[nodiscard]] Result<std::unique_ptr<OpenFile>> open(Ino ino, bool for_writing) override;
  [[nodiscard]] Result<void> sync() override { return checkpoint(Extent::kAll); }
  [[nodiscard]] std::size_t writers() const override { return writers_; }
  void keep_removed() override;
  void forget(Ino ino) override;

  void rename_to(std::string name);

  [[nodiscard]] std::uint64_t unwritten_bytes() const override;
  [[nodiscard]] std::uint64_t sealing_bytes() const override { return sealing_bytes_; }
  /// The changes that a crash now would lose.
  struct Unsaved {
    std::size_t entries = 0;  ///< Files and directories with changes.
    std::uint64_t bytes = 0;  ///< Bytes of contents.
  };
  [[nodiscard]] Unsaved unsaved() const;

  // ---- For sealing. ----

  /// Refuses further changes (kReadOnly), then brings everything to rest in the overlay. On error
  /// the version accepts changes again. With kCutOff, files that are open for writing come to rest
  /// with the data written so far, and their handles fail from then on.
  /// Errors: kBusy for files that are open for writing, without kCutOff.
  [[nodiscard]] Result<void> freeze(SealWriters writers = SealWriters::kRefuse);
  /// Refuses further changes, but stores nothing: the version is about to be dropped. Errors: kBusy
  /// as freeze().
  [[nodiscard]] Result<void> freeze_to_drop();
  void thaw();
  /// Ends background work; the version must not be used afterwards.
  void stop();
  /// Returns the overlay. The version must be frozen.
  [[nodiscard]] const meta::Env& overlay() const { return *overlay_; }

  // ---- For deleting other versions. ----

  /// Returns all chunks that the version's files refer to, except those of a base. Calls `retire`
  /// first, while no thread is between looking a chunk up and referring to it. So no file ever
  /// refers to a chunk that `retire` takes from the index and that is not in the result.
  [[nodiscard]] Result<base::IdRuns> references(const std::function<void()>& retire);

  /// Returns the base; null unless the version started as a clone.
  [[nodiscard]] const CloneBase* base() const { return parts_.base.get(); }
  [[nodiscard]] Result<bool> is_empty();
  /// Returns the time of the last write to the version, its metadata included. The time is at most
  /// a checkpoint's interval too late, and is known across restarts.
  [[nodiscard]] Timestamp changed_at() const;
  [[nodiscard]] std::uint64_t entries() const;
  /// Returns the number of names that the version in a staging directory had at its last
  /// checkpoint; nullopt if it is unknown. Another process may be writing the version; this one
  /// must not have it open.
  [[nodiscard]] static std::optional<std::uint64_t> entries_in(io::FileSystem& files,
                                                               const std::string& directory);

 private:
  friend class OpenVersionFile;

  OpenVersion(const OpenVersionParts& parts, VersionInfo info);
  [[nodiscard]] Result<void> open_overlay();
  [[nodiscard]] Result<void> make_overlay();
  /// Makes the overlay and starts the background work, before the first change. The caller holds
  /// mutex_.
  [[nodiscard]] Result<void> wake_up();
  void start_background();
  [[nodiscard]] Result<void> recover(const NewFile& root);
  [[nodiscard]] Result<void> recover_tails();
  [[nodiscard]] Result<void> recover_staged();

  // Names. The caller holds mutex_. Defined in open_version.cc and open_version_names.cc.
  /// Checks that the version is not frozen, and wakes it up.
  [[nodiscard]] Result<void> check_writable();
  /// Sets space aside before anything is changed. Errors: kNoSpace if the disk might not take so
  /// much more.
  [[nodiscard]] Result<void> admit(std::uint64_t bytes);
  /// Checks as admit(), but sets nothing aside.
  [[nodiscard]] Result<void> has_room(std::uint64_t bytes) const;
  /// Sets space aside for records in the overlay, which the next checkpoint writes.
  [[nodiscard]] Result<void> admit_record(std::uint64_t bytes);
  [[nodiscard]] Result<OpenInode*> directory(Ino ino);
  [[nodiscard]] Result<OpenInode*> child(Ino directory, std::string_view name);
  [[nodiscard]] Result<void> check_ancestry(Ino moved, Ino into);
  void touch_directory(OpenInode& directory, std::int64_t children, int subdirectories);
  [[nodiscard]] Result<void> drop_name(OpenInode& directory, std::string_view name,
                                       OpenInode& inode);
  [[nodiscard]] Result<void> exchange(OpenInode& from, std::string_view from_name, OpenInode& a,
                                      OpenInode& to, std::string_view to_name, OpenInode& b);
  [[nodiscard]] OpenEntry entry_of(const OpenInode& inode) const;

  // Contents. The caller holds mutex_. Defined in open_version_contents.cc.
  /// Returns the inode once no thread cuts its content; waits for that.
  [[nodiscard]] Result<OpenInode*> content_inode(std::unique_lock<std::mutex>& lock, Ino ino);
  /// Loads `inode.recipe`: a file of the base may not have it in memory. Must be called before any
  /// use of the recipe.
  [[nodiscard]] Result<void> load_recipe(OpenInode& inode);
  [[nodiscard]] Result<void> write(OpenInode& inode, std::uint64_t offset,
                                   std::span<const std::byte> data);
  [[nodiscard]] Result<void> truncate(OpenInode& inode, std::uint64_t bytes);
  [[nodiscard]] Result<void> resize(OpenInode& inode, std::uint64_t bytes);
  [[nodiscard]] Result<void> start_stream(OpenInode& inode);
  void run_stream(OpenInode& inode, ingest::Content content);
  [[nodiscard]] Result<void> append_zeros(OpenInode& inode, std::uint64_t end);
  [[nodiscard]] Result<void> grow_stream(OpenInode& inode, std::uint64_t bytes);
  [[nodiscard]] Result<void> grow_to_data(OpenInode& inode, std::uint64_t offset);
  [[nodiscard]] Result<void> finish_stream(OpenInode& inode);
  /// Takes the recipe of a finished stream if it is complete.
  void absorb(OpenInode& inode);
  [[nodiscard]] Result<void> come_to_rest(OpenInode& inode);
  /// Brings a stream to rest. Returns the recipe, and the bytes after it.
  [[nodiscard]] Result<ingest::Content> settle(OpenInode& inode);
  void rest(OpenInode& inode, format::Recipe recipe);
  void drop_contents(OpenInode& inode);
  [[nodiscard]] Result<std::size_t> read_content(const ingest::Content& content,
                                                 std::uint64_t offset, std::span<std::byte> out);
  void count_staged(OpenInode& inode);

  // Staging. The caller holds mutex_. Defined in open_version_staging.cc.
  [[nodiscard]] Result<void> open_staging(OpenInode& inode);
  [[nodiscard]] Result<void> sync_staging(Ino ino, std::uint64_t generation);
  [[nodiscard]] static Result<void> check_staging(const OpenInode& inode);
  [[nodiscard]] Result<void> stage(OpenInode& inode);
  [[nodiscard]] Result<void> write_staged(OpenInode& inode, std::uint64_t offset,
                                          std::span<const std::byte> data);
  [[nodiscard]] Result<void> punch(OpenInode& inode, std::uint64_t begin, std::uint64_t end);
  [[nodiscard]] Result<std::shared_ptr<OpenRecipe>> recipe_at_rest(Ino ino);
  [[nodiscard]] bool wants_consolidating(const OpenInode& inode) const;
  [[nodiscard]] Result<std::uint64_t> clone_range(OpenInode& inode, std::uint64_t offset,
                                                  std::shared_ptr<OpenRecipe> source,
                                                  std::uint64_t source_offset, std::uint64_t bytes);
  void release(Ino ino, bool writer);
  /// Drops the inodes that forget() noted. The caller holds mutex_.
  void drop_forgotten();
  void drop_unused(OpenInode& inode);
  [[nodiscard]] std::string staging_path(Ino ino, std::uint64_t generation) const;
  [[nodiscard]] Result<std::size_t> read(Ino ino, std::uint64_t offset, std::span<std::byte> out);
  [[nodiscard]] Result<std::uint64_t> seek(Ino ino, std::uint64_t offset, bool data);

  // Staging. The caller does not hold mutex_.
  [[nodiscard]] Result<std::size_t> read_staged(const std::vector<StagedContent::Range>& ranges,
                                                io::File* file, std::span<std::byte> out);
  /// Cuts content outside of the lock. Returns a recipe of chunks that this version may refer to.
  [[nodiscard]] Result<format::Recipe> cut(const StagedContent& content, io::File* file);
  [[nodiscard]] Result<std::shared_ptr<const format::Recipe>> reachable(
      const std::shared_ptr<const format::Recipe>& recipe);
  [[nodiscard]] Result<std::shared_ptr<OpenRecipe>> clonable(
      const std::shared_ptr<const format::Recipe>& recipe);
  enum class Users : std::uint8_t { kNone, kAny };
  /// Cuts a staged file. With kNone, only if no handle writes it; with kAny, its writers wait.
  [[nodiscard]] Result<void> ingest_staged(Ino ino, Users users);
  [[nodiscard]] Result<void> ingest_all_staged();
  void consolidate(Ino ino);

  // Checkpoints and background work. Defined in open_version_checkpoint.cc.
  /// The extent of a checkpoint. kAll waits for the chunks of files that are being written
  /// meanwhile.
  enum class Extent : std::uint8_t { kAtRest, kAll };
  [[nodiscard]] Result<void> checkpoint(Extent extent);
  [[nodiscard]] Result<void> checkpoint_once(Extent extent);
  /// Cuts the tails that recovery left: with kNow all of them, else those that the disk can take.
  enum class Urgency : std::uint8_t { kNow, kIfAdmitted };
  [[nodiscard]] Result<void> finish_tails(Urgency urgency);
  void estimate_sealing();
  [[nodiscard]] Result<OpenTree::Changes::Record> encode(OpenInode& inode, Extent extent);
  /// Finishes the content of files that are open for writing. The caller holds mutex_.
  [[nodiscard]] Result<void> end_writing();
  void background();
  [[nodiscard]] Result<void> checkpoint_in_turn();
  [[nodiscard]] Result<void> relieve();

  const OpenVersionParts parts_;
  const std::string files_directory_;
  std::optional<meta::Env> overlay_;  // None until the first change; set with mutex_ held.
  ingest::TailSpill spill_;
  ingest::IngestPipeline pipeline_;
  ContentReader reader_;

  // A thread holds it shared from its look at a recipe, or at the index for whole runs of chunks,
  // until an inode has the result. references() holds it alone. Taken before mutex_.
  std::shared_mutex references_mutex_;
  std::mutex ingest_mutex_;  // One thread ingests staged files; sealing waits for it.
  std::mutex checkpoint_mutex_;
  mutable std::mutex mutex_;
  VersionInfo info_;
  OpenTree tree_;
  bool frozen_ = false;
  std::vector<Ino> finishing_;
  std::deque<Ino> staged_;                     // Files that wait to be ingested.
  std::vector<std::string> obsolete_staging_;  // Files to remove after the next checkpoint.
  std::vector<Ino> staged_unsynced_;
  std::uint64_t staging_generation_ = 0;
  std::atomic<std::size_t> writers_{0};
  std::vector<Ino> waiting_tails_;              // Files without a writer whose streams hold tails.
  std::atomic<std::uint64_t> staged_bytes_{0};  // Bytes in staging files, to be stored once more.
  std::atomic<std::uint64_t> record_bytes_{0};  // Bytes admitted for the next checkpoint.
  std::atomic<std::uint64_t> sealing_bytes_{0};
  const std::size_t index_entries_;  // Size of the index at the start.

  // Files without a name that the caller holds, and files that it holds no longer. held_mutex_ is
  // taken last: forget() waits for no other lock.
  std::mutex held_mutex_;
  bool keeps_removed_ = false;
  std::unordered_set<Ino> held_;
  std::vector<Ino> forgotten_;

  std::condition_variable consolidated_;
  // The last source of clone_range(): a large file comes in several calls.
  std::shared_ptr<const format::Recipe> clone_source_;
  std::shared_ptr<OpenRecipe> clone_recipe_;
  std::map<std::pair<VersionNumber, std::uint64_t>, Ino> cloned_groups_;  // Cloned since the start.

  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread background_;
};

}  // namespace varve::version
