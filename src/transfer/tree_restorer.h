// SPDX-License-Identifier: Apache-2.0
// Restores a sealed tree as files below a directory.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/thread_pool.h"
#include "base/unique_fd.h"
#include "transfer/directory_stack.h"
#include "transfer/entry_lister.h"
#include "transfer/file_restorer.h"
#include "transfer/file_task.h"
#include "transfer/folded_names.h"
#include "transfer/path_selection.h"
#include "transfer/protected_folders.h"
#include "transfer/restore_log.h"
#include "transfer/scatter_pass.h"
#include "transfer/tree_remover.h"
#include "transfer/writer_pool.h"
#include "varve/browse.h"
#include "varve/restore.h"

namespace varve::transfer {

/// Restores a version. Trusts neither the repository nor the target: checks names, creates every
/// entry by name in an open directory, and follows no symlink.
///
/// One thread walks the tree and reads the files, and the pool's threads write the files. The walk
/// reads strictly in tree order, so the read sessions stream. With ScatterPass, the walk reads
/// batches in the order of the disk instead.
class TreeRestorer {
 public:
  using OnProgress = std::function<bool(const TransferProgress&)>;
  TreeRestorer(VersionReader& version, const RestoreOptions& options, const OnProgress& progress);

  [[nodiscard]] Result<TransferReport> run(const std::string& directory);

 private:
  // A directory's place below the target. All deferred links of a directory share one object.
  struct Place {
    std::shared_ptr<const Place> parent;
    std::string name;
  };
  using PlacePtr = std::shared_ptr<const Place>;

  // A directory whose entries are being restored.
  struct Frame {
    Frame(const SealedEntry& its_entry, PlacePtr its_place)
        : entry(its_entry), place(std::move(its_place)), lister(its_entry.rank) {}

    SealedEntry entry;
    std::size_t path_bytes = 0;  // Length of path_ without the directory's name.
    PlacePtr place;
    EntryLister lister;
    std::shared_ptr<DirectoryEnd> end = std::make_shared<DirectoryEnd>();
    std::weak_ptr<const base::UniqueFd> held;  // For the files under way; see hold_directory().
    FoldedNames folded;
    bool fresh = false;          // Created by the restore: no foreign entries.
    bool absent = false;         // Does not exist, because of a dry run.
    bool keep_metadata = false;  // Existed already and is only on the way to a selected path.
    bool inherits = false;       // Created with the ACLs of the directory above.
    bool is_elsewhere = false;   // On another file system or mount than the target: loses nothing.
  };

  // The first name of a hard-linked file. The restore links all later names to the first name.
  struct FirstName {
    PlacePtr directory;
    std::string name;
    std::uint64_t names_left = 0;
    std::shared_ptr<FileTask> task;  // nullptr if the file exists already.
  };

  // A name of a hard-linked file whose first name is in a scattered batch not yet run.
  struct LateLink {
    SealedEntry directory;
    PlacePtr place;
    std::shared_ptr<DirectoryEnd> end;
    SharedFd directory_fd;
    bool fresh = false;
    bool keep_metadata = false;
    bool is_elsewhere = false;
    std::string name;
    std::string path;
    SealedEntry entry;
  };

  using Present = std::optional<struct stat>;
  static constexpr const char* kOutsideAdvice = "restore to a directory outside it";

  // The walk: tree_restorer.cc.
  [[nodiscard]] Result<void> open_target(const std::string& directory, Frame& root);
  [[nodiscard]] Result<void> open_log(const SealedEntry& top);
  void announce_reads(const Frame& root);
  [[nodiscard]] Result<void> walk();
  [[nodiscard]] Result<void> finish_run(const SealedEntry& top);
  [[nodiscard]] Result<void> restore_entry(const std::string& name, const SealedEntry& entry);
  [[nodiscard]] Result<void> enter_directory(const std::string& name, const SealedEntry& entry);
  [[nodiscard]] Result<void> prepare_existing(const Frame& frame);
  [[nodiscard]] Result<void> leave_directory();
  void finish_directory(const FileRef& file, const SealedEntry& entry, const std::string& path,
                        bool fresh);
  [[nodiscard]] Result<void> run_scatter();
  [[nodiscard]] Result<void> make_late_link(const LateLink& link);
  [[nodiscard]] bool logs_buffers() const { return options_.recovery_log == RecoveryLog::kBuffer; }
  // Returns whether a point of the log is due before `next_bytes` more are restored.
  [[nodiscard]] bool is_point_due(std::uint64_t next_bytes) const;
  [[nodiscard]] Result<void> add_point(const RestorePoint& point);
  [[nodiscard]] bool is_log_due();
  [[nodiscard]] bool advance(std::uint64_t bytes);
  void tell(RestoreChange change, const std::string& path) const;

  // Removals and kept entries: tree_restorer_removals.cc.
  [[nodiscard]] Result<void> check_target(const std::string& directory, const Frame& root);
  [[nodiscard]] Result<void> check_existing(Frame& frame, int directory_fd);
  [[nodiscard]] Result<void> remove_others(const Frame& frame);
  [[nodiscard]] TreeRemover remover();
  void keep(const std::string& path, const std::string& message);
  // Returns the target's entry of a name.
  // Errors: kExists for a mounted file, because a mount cannot be replaced, and for the entry of
  // another name of the version, different only in upper and lower case.
  [[nodiscard]] Result<Present> find_present(const std::string& name);
  [[nodiscard]] Result<void> check_case(const std::string& name);
  // Removes a directory with the name of an entry of another type. In a dry run, only checks
  // whether the removal is possible.
  [[nodiscard]] Result<void> clear_way(const std::string& name, const Present& present);

  // Single entries: tree_restorer_entries.cc.
  [[nodiscard]] Result<void> make_entry(const std::string& name, const SealedEntry& entry);
  [[nodiscard]] Result<void> make_file(const std::string& name, const SealedEntry& entry,
                                       const Present& present);
  [[nodiscard]] Result<void> write_file(FileReader& source, const std::string& name,
                                        const SealedEntry& entry, bool replaces);
  // Returns the directory's descriptor for a file. Bounds the number of held directories.
  [[nodiscard]] SharedFd hold_directory();
  [[nodiscard]] Result<std::uint64_t> resume_offset(FileReader& source, const SealedEntry& entry,
                                                    const std::string& temporary);
  [[nodiscard]] Result<void> make_symlink(const std::string& name, const SealedEntry& entry,
                                          const Present& present);
  [[nodiscard]] Result<void> make_special(const std::string& name, const SealedEntry& entry,
                                          const Present& present);
  // Creates an entry of any type except a regular file. Uses a temporary name to replace another
  // entry.
  [[nodiscard]] Result<void> place(const std::string& name, const SealedEntry& entry,
                                   const Present& present,
                                   const std::function<int(const char*)>& make);
  // Defers the link if the first name is in a batch not yet run. Returns whether the link was
  // deferred.
  [[nodiscard]] bool defer_link(const std::string& name, const SealedEntry& entry);
  [[nodiscard]] Result<bool> link_to_first(const std::string& name, const SealedEntry& entry);
  [[nodiscard]] Result<bool> is_content_same(FileReader& source, const std::string& name,
                                             const SealedEntry& entry, const struct stat& status);
  // Keeps an existing entry and sets differing metadata. Returns false if the entry cannot be kept.
  [[nodiscard]] bool keep_same(const std::string& name, const SealedEntry& entry,
                               const struct stat& status);
  // Notes in the log that a new directory becomes a repository, so the restore can continue.
  [[nodiscard]] Result<void> note_repository(const std::string& name);
  [[nodiscard]] Result<void> link_from(int directory_fd, const std::string& first,
                                       const std::string& name, Rank rank, bool replaces);
  [[nodiscard]] Result<base::UniqueFd> open_place(const PlacePtr& place);
  [[nodiscard]] bool may_share_inode(const SealedEntry& entry, const struct stat& status);

  VersionReader& version_;
  const RestoreOptions& options_;
  const OnProgress& progress_;
  PathSelection selection_;
  const ProtectedFolders folders_;
  FileRestorer data_;
  std::optional<ScatterPass> scatter_;  // Set if the restore reads files in the order of the disk.
  std::vector<LateLink> late_links_;
  RestoreShared shared_;
  TransferProgress done_;
  TransferReport report_;
  base::UniqueFd root_;
  dev_t root_device_ = 0;
  std::optional<RestoreLog> log_;
  const std::size_t held_max_;           // Bound of RestoreShared::held_directories.
  const std::uint64_t segment_bytes_;    // Bytes between two points of the log.
  std::uint64_t since_point_ = 0;        // Bytes read since the last point.
  bool only_large_since_point_ = false;  // True if since then only `large_` has changed.
  std::uint64_t changes_ = 0;            // Changes since the start.
  std::shared_ptr<FileTask> large_;      // The file now being read, if resumable.
  Rank large_rank_ = 0;
  std::uint64_t large_offset_ = 0;       // Offset in `large_` up to the log's last point.
  std::shared_ptr<FileTask> last_task_;  // Task of the present entry, if the entry has more names.
  DirectoryStack directories_;
  std::vector<Frame> frames_;
  std::string path_;  // Path of the present entry, for messages.
  std::unordered_map<std::uint64_t, FirstName> first_names_;
  // For each kept inode of the target with several names: the link group of its file in the
  // version.
  std::unordered_map<ino_t, std::uint64_t> kept_inodes_;
  // Declared after all members used by tasks, because the destructor waits for the tasks.
  WriterPool pool_;
  std::atomic<bool> syncing_ = false;
  base::ThreadPool syncer_;
};

}  // namespace varve::transfer
