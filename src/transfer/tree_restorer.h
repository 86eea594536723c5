// SPDX-License-Identifier: Apache-2.0
// A sealed tree becomes files below a directory.
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
#include "transfer/path_selection.h"
#include "transfer/restore_log.h"
#include "transfer/scatter_pass.h"
#include "transfer/writer_pool.h"
#include "varve/maintenance.h"
#include "varve/version_reader.h"

namespace varve::transfer {

/// Restores one version. The repository is not trusted, nor is the target: names are checked,
/// everything is made by its name in an open directory, and no symlink is followed. One thread
/// walks the tree and reads files strictly in its order, so that the read sessions stream, or, if
/// so asked, in batches in the order of the disk; the pool makes them.
class TreeRestorer {
 public:
  using OnProgress = std::function<bool(const TransferProgress&)>;
  TreeRestorer(VersionReader& version, const RestoreOptions& options, const OnProgress& progress);

  [[nodiscard]] Result<TransferReport> run(const std::string& directory);

 private:
  // A directory's place below the target; links in it share one object.
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
    std::size_t path_bytes = 0;  // Length of path_ without this directory's name.
    PlacePtr place;
    EntryLister lister;
    std::shared_ptr<DirectoryEnd> end = std::make_shared<DirectoryEnd>();
    bool fresh = false;          // Made just now: nothing stands in it that is not ours.
    bool absent = false;         // Only thought of, in a dry run.
    bool keep_metadata = false;  // It lies on the way to what is wanted, and was there.
    bool inherits = false;       // It was made with the ACLs of the directory above.
  };

  // The first name of a hard-linked file; the others are linked to it.
  struct FirstName {
    PlacePtr directory;
    std::string name;
    std::uint64_t names_left = 0;
    std::shared_ptr<FileTask> task;  // Null where it stands already.
  };

  // A name of a hard-linked file whose first name is in a scattered batch that has not run.
  struct LateLink {
    SealedEntry directory;
    PlacePtr place;
    std::shared_ptr<DirectoryEnd> end;
    SharedFd directory_fd;
    bool fresh = false;
    bool keep_metadata = false;
    std::string name;
    std::string path;
    SealedEntry entry;
  };

  using Present = std::optional<struct stat>;

  // The walk: tree_restorer.cc.
  [[nodiscard]] Result<void> open_target(const std::string& directory, Frame& root);
  [[nodiscard]] Result<void> open_log(const SealedEntry& top);
  [[nodiscard]] Result<void> walk();
  [[nodiscard]] Result<void> finish_run(const SealedEntry& top);
  [[nodiscard]] Result<void> restore_entry(const std::string& name, const SealedEntry& entry);
  [[nodiscard]] Result<void> enter_directory(const std::string& name, const SealedEntry& entry);
  [[nodiscard]] Result<void> prepare_existing(const Frame& frame);
  [[nodiscard]] Result<void> remove_others(const Frame& frame);
  [[nodiscard]] Result<void> leave_directory();
  void finish_directory(const FileRef& file, const SealedEntry& entry, const std::string& path,
                        bool fresh);
  [[nodiscard]] Result<void> run_scatter();
  [[nodiscard]] Result<void> make_late_link(const LateLink& link);
  [[nodiscard]] Result<void> add_point(const RestorePoint& point);
  [[nodiscard]] bool is_log_due();
  [[nodiscard]] bool advance(std::uint64_t bytes);
  void tell(RestoreChange change, const std::string& path) const;

  // Single entries: tree_restorer_entries.cc.
  [[nodiscard]] Result<void> make_entry(const std::string& name, const SealedEntry& entry);
  [[nodiscard]] Result<void> make_file(const std::string& name, const SealedEntry& entry,
                                       const Present& present);
  [[nodiscard]] Result<void> write_file(FileReader& source, const std::string& name,
                                        const SealedEntry& entry, bool replaces);
  [[nodiscard]] Result<std::uint64_t> resume_offset(FileReader& source, const SealedEntry& entry,
                                                    const std::string& temporary);
  [[nodiscard]] Result<void> make_symlink(const std::string& name, const SealedEntry& entry,
                                          const Present& present);
  [[nodiscard]] Result<void> make_special(const std::string& name, const SealedEntry& entry,
                                          const Present& present);
  // Makes something that is no file, under a temporary name where it replaces something.
  [[nodiscard]] Result<void> place(const std::string& name, const SealedEntry& entry,
                                   const Present& present,
                                   const std::function<int(const char*)>& make);
  // True if the link is made after the batch of its first name.
  [[nodiscard]] bool defer_link(const std::string& name, const SealedEntry& entry);
  [[nodiscard]] Result<bool> link_to_first(const std::string& name, const SealedEntry& entry);
  [[nodiscard]] Result<bool> is_content_same(FileReader& source, const std::string& name,
                                             const SealedEntry& entry, const struct stat& status);
  // True if the entry could be kept: its metadata is set where it differs.
  [[nodiscard]] bool keep(const std::string& name, const SealedEntry& entry,
                          const struct stat& status);
  // Makes room for something that is no directory.
  [[nodiscard]] Result<void> clear_way(const std::string& name, const Present& present);
  [[nodiscard]] Result<void> link_from(int directory_fd, const std::string& first,
                                       const std::string& name, Rank rank, bool replaces);
  [[nodiscard]] Result<base::UniqueFd> open_place(const PlacePtr& place);
  [[nodiscard]] bool may_share_inode(const SealedEntry& entry, const struct stat& status);

  VersionReader& version_;
  const RestoreOptions& options_;
  const OnProgress& progress_;
  PathSelection selection_;
  FileRestorer data_;
  std::optional<ScatterPass> scatter_;  // If files are read in the order of the disk.
  std::vector<LateLink> late_links_;
  RestoreShared shared_;
  TransferProgress done_;
  TransferReport report_;
  base::UniqueFd root_;
  std::optional<RestoreLog> log_;
  std::uint64_t since_point_ = 0;    // Bytes read since the last point of the log.
  std::uint64_t changes_ = 0;        // Since the start.
  std::shared_ptr<FileTask> large_;  // The file that is being read, if it can be resumed.
  Rank large_rank_ = 0;
  std::uint64_t large_offset_ = 0;       // What of it was noted in the log.
  std::shared_ptr<FileTask> last_task_;  // Of the entry being restored, if it has more names.
  DirectoryStack directories_;
  std::vector<Frame> frames_;
  std::string path_;  // Of the entry being restored, for messages.
  std::unordered_map<std::uint64_t, FirstName> first_names_;
  // Which hard-linked file of the version an inode of the target, with several names, is kept as.
  std::unordered_map<ino_t, std::uint64_t> kept_inodes_;
  WriterPool pool_;  // Its destructor waits; declared last but one.
  std::atomic<bool> syncing_ = false;
  base::ThreadPool syncer_;
};

}  // namespace varve::transfer
