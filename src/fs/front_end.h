// SPDX-License-Identifier: Apache-2.0
// The mounted file system: what the kernel asks, answered from a Repository.
#pragma once

#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/thread_pool.h"
#include "fs/buffer_pool.h"
#include "fs/file_stat.h"
#include "fs/handles.h"
#include "fs/recent_files.h"
#include "fs/slot_table.h"
#include "varve/repository.h"

namespace varve::fs {

/// What a node id means.
struct Node {
  enum class Kind { kRoot, kSeries, kLatest, kOpen, kSealed, kRemoved };
  Kind kind = Kind::kRoot;
  Slot* slot = nullptr;                   ///< Null for the root.
  std::shared_ptr<VersionWriter> writer;  ///< Of kOpen,
  Ino ino = 0;                            ///< with the inode in it.
  std::shared_ptr<VersionReader> reader;  ///< Of kSealed,
  Rank rank = 0;                          ///< with the entry in it.

  [[nodiscard]] bool is_version_root() const {
    return (kind == Kind::kOpen && ino == kRootIno) || (kind == Kind::kSealed && rank == 0);
  }
};

/// One method for each request of the kernel. Every method replies exactly once, at once or
/// later from a pool. Any number of threads may call them at once. What is sure to wait for
/// the disk goes to a pool, but for the reads of a reader who is alone: the loop that hands the
/// requests over is held up by nothing else than a request that has to wait for once (LoopCrew).
class FrontEnd {
 public:
  /// `show` says how files are shown. `repository` must live longer.
  FrontEnd(Repository& repository, const ShowOptions& show);
  ~FrontEnd();
  FrontEnd(const FrontEnd&) = delete;
  FrontEnd& operator=(const FrontEnd&) = delete;

  /// What the mount shows as its root: a series, one version of it, or with "" for both the
  /// whole repository. kNotFound says which of them is missing. Before attach().
  [[nodiscard]] Result<void> set_root(const std::string& series, const std::string& version);
  /// Returns which part of the repository is the mount's root: SERIES, SERIES/VERSION, or "" for
  /// all.
  [[nodiscard]] std::string root_path();
  /// The table for fuse_session_new(), whose user data must be a FrontEnd*.
  static const fuse_lowlevel_ops& operations();
  /// Must be called before the loop starts. `mount_point` is where it is mounted.
  void attach(fuse_session* session, std::string mount_point);
  /// Runs what is queued, then lets go of all that the repository gave out. After the loop.
  void shut_down();

  /// How a command wants a version sealed.
  struct SealWish {
    std::string new_name;  ///< As for Repository::seal().
    SealMode mode = SealMode::kEnd;
    bool wait = false;               ///< Until no file is open for writing.
    std::uint64_t wait_seconds = 0;  ///< With `wait`: at most so long; 0 for no limit.
    bool force = false;              ///< Cuts writers off; with `wait`, after the wait.
  };
  /// Seals and tells the kernel. Where it waits, it gives up on `cancelled`.
  void drop_deleted(SeriesId series, const std::vector<VersionInfo>& before);
  [[nodiscard]] Result<SealOutcome> seal(SeriesId series, VersionNumber number,
                                         const SealWish& wish,
                                         const std::function<bool()>& cancelled);
  /// Opens a version, after sealing the present one as Repository::open_version() does, and
  /// tells the kernel. May be called by other threads, as the next one.
  [[nodiscard]] Result<VersionInfo> open_version(const SeriesInfo& series, std::string_view name,
                                                 const NewFile& root);
  [[nodiscard]] Result<VersionInfo> clone_version(const SeriesInfo& series, VersionNumber source,
                                                  std::string_view name);

  /// Drops an open version with all that is in it, and tells the kernel. kBusy while files are open
  /// for writing.
  [[nodiscard]] Result<void> discard_version(SeriesId series, VersionNumber number);
  /// Deletes sealed versions as Repository::delete_versions() does, and tells the kernel.
  [[nodiscard]] Result<DeletionForecast> delete_versions(SeriesId series,
                                                         const std::vector<VersionNumber>& numbers,
                                                         const DeletionOptions& options = {});

  // Session.
  void init(fuse_conn_info* connection);
  void statfs(fuse_req_t req);

  /// The kernel let go of a node.
  void forget(fuse_ino_t ino);

  // Names: front_end_names.cc.
  void lookup(fuse_req_t req, fuse_ino_t parent, const char* name);
  void mknod(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode, dev_t rdev);
  void mkdir(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode);
  void symlink(fuse_req_t req, const char* target, fuse_ino_t parent, const char* name);
  void link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char* name);
  void unlink(fuse_req_t req, fuse_ino_t parent, const char* name);
  void rmdir(fuse_req_t req, fuse_ino_t parent, const char* name);
  void rename(fuse_req_t req, fuse_ino_t parent, const char* name, fuse_ino_t new_parent,
              const char* new_name, unsigned flags);
  void create(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode,
              const fuse_file_info& info);

  // Attributes: front_end_attributes.cc.
  void getattr(fuse_req_t req, fuse_ino_t ino);
  void setattr(fuse_req_t req, fuse_ino_t ino, const struct stat& values, int to_set);
  void readlink(fuse_req_t req, fuse_ino_t ino);
  void getxattr(fuse_req_t req, fuse_ino_t ino, const char* name, std::size_t size);
  void listxattr(fuse_req_t req, fuse_ino_t ino, std::size_t size);
  void setxattr(fuse_req_t req, fuse_ino_t ino, const char* name, std::string_view value,
                int flags);
  void removexattr(fuse_req_t req, fuse_ino_t ino, const char* name);

  // Open files: front_end_files.cc.
  void open(fuse_req_t req, fuse_ino_t ino, const fuse_file_info& info);
  void read(fuse_req_t req, fuse_ino_t ino, std::size_t size, off_t offset,
            const fuse_file_info& info);
  void write(fuse_req_t req, fuse_ino_t ino, std::string_view data, off_t offset,
             const fuse_file_info& info);
  void flush(fuse_req_t req, const fuse_file_info& info);
  void release(fuse_req_t req, const fuse_file_info& info);
  void fsync(fuse_req_t req, const fuse_file_info& info);
  void lseek(fuse_req_t req, fuse_ino_t ino, off_t offset, int whence, const fuse_file_info& info);
  void fallocate(fuse_req_t req, int mode, off_t offset, off_t bytes, const fuse_file_info& info);
  void copy_file_range(fuse_req_t req, off_t source_offset, const fuse_file_info& source,
                       off_t offset, const fuse_file_info& info, std::size_t bytes);

  // Directories: front_end_directories.cc.
  void opendir(fuse_req_t req, fuse_ino_t ino, const fuse_file_info& info);
  void readdir(fuse_req_t req, std::size_t size, off_t offset, const fuse_file_info& info,
               bool plus);
  void releasedir(fuse_req_t req, const fuse_file_info& info);
  void fsyncdir(fuse_req_t req, fuse_ino_t ino);

 private:
  [[nodiscard]] Result<Node> resolve(fuse_ino_t ino);
  /// A file of an open version; else why it may not be changed (kReadOnly in a sealed
  /// version, kNotPermitted for the root or a series).
  [[nodiscard]] Result<Node> resolve_open(fuse_ino_t ino);

  [[nodiscard]] Result<std::shared_ptr<FileHandle>> file_of(fuse_req_t req, fuse_ino_t ino,
                                                            const fuse_file_info& info);
  [[nodiscard]] Result<struct stat> stat_of(const Node& node);
  [[nodiscard]] struct stat stat_of(const Slot& slot, const OpenEntry& entry) const;
  [[nodiscard]] struct stat stat_of(const Slot& slot, const SealedEntry& entry) const;
  [[nodiscard]] struct stat stat_of_series(const SeriesInfo& series) const;
  [[nodiscard]] fuse_entry_param entry_of(const Slot& slot, const OpenEntry& entry) const;
  [[nodiscard]] fuse_entry_param entry_of(const Slot& slot, const SealedEntry& entry) const;
  /// How long the kernel may believe attributes of this node.
  [[nodiscard]] double attribute_timeout_s(const Node& node) const;

  // Series and versions: front_end_versions.cc.
  [[nodiscard]] Result<Slot*> version_slot(const SeriesInfo& series, const VersionInfo& info);
  [[nodiscard]] Result<fuse_entry_param> look_up_series(std::string_view name);
  [[nodiscard]] Result<fuse_entry_param> look_up_version(const SeriesInfo& series,
                                                         std::string_view name);
  [[nodiscard]] Result<fuse_entry_param> version_entry(const SeriesInfo& series,
                                                       const VersionInfo& info);
  [[nodiscard]] Result<fuse_entry_param> make_series(std::string_view name);
  [[nodiscard]] Result<fuse_entry_param> make_version(const SeriesInfo& series,
                                                      std::string_view name, const NewFile& root);
  /// Seals what Repository::open_version() would seal; returns its name, or "".
  [[nodiscard]] Result<std::string> end_present_version(const SeriesInfo& series,
                                                        std::string_view new_name);
  [[nodiscard]] double latest_timeout_s() const;
  /// Makes the kernel ask again for the attributes of a series' `latest`.
  void forget_latest(SeriesId series);
  [[nodiscard]] Result<DeletionForecast> delete_after_last_close(
      SeriesId series, const std::vector<VersionNumber>& numbers, const DeletionOptions& options);
  /// Drops what the kernel caches of the open files of deleted versions. For commands only.
  void forget_contents(SeriesId series, const std::vector<VersionNumber>& numbers);
  void forget_names(SeriesId series, const std::vector<std::string>& names);
  [[nodiscard]] Result<void> remove_version(const SeriesInfo& series, std::string_view name);
  [[nodiscard]] Result<void> remove_series(std::string_view name);
  [[nodiscard]] std::optional<struct stat> last_look(const Slot* slot) const;
  void set_removed(fuse_req_t req, Slot& slot, const AttributeChange& change);

  // File handles: front_end_handles.cc.
  /// The node that a file handle names, or its parent directory. kStale if there is none.
  [[nodiscard]] Result<fuse_entry_param> look_up_handle(fuse_ino_t ino, bool parent);
  [[nodiscard]] Result<void> meet_again(fuse_ino_t ino);
  [[nodiscard]] Result<fuse_entry_param> parent_entry(const Node& node);
  [[nodiscard]] Result<void> rename_version(const SeriesInfo& series, std::string_view name,
                                            std::string_view new_name);
  [[nodiscard]] Result<SealOutcome> seal_now(SeriesId series, VersionNumber number,
                                             std::string_view new_name,
                                             SealMode mode = SealMode::kEnd,
                                             SealWriters writers = SealWriters::kRefuse);
  /// As seal_now(), but files that were just closed do not count as being written.
  [[nodiscard]] Result<SealOutcome> seal_after_last_close(SeriesId series, VersionNumber number,
                                                          std::string_view new_name);
  [[nodiscard]] Result<void> rename_inside(const Node& from, std::string_view name, const Node& to,
                                           std::string_view new_name, unsigned flags);
  [[nodiscard]] Result<void> allow_rename(const Node& from, const Node& to) const;

  /// Adds one entry to a reply, with the offset behind it; false when it is full.
  using AddEntry = std::function<bool(const std::string&, const fuse_entry_param&, std::uint64_t)>;
  [[nodiscard]] Result<std::uint64_t> parent_st_ino(const Node& node);
  [[nodiscard]] Result<void> take_snapshot(const Node& node, DirHandle& handle);
  [[nodiscard]] Result<void> list_open(const Node& node, DirHandle& handle, std::uint64_t after,
                                       const AddEntry& add);
  [[nodiscard]] Result<void> list_sealed(const Node& node, DirHandle& handle, std::uint64_t after,
                                         const AddEntry& add);
  [[nodiscard]] Result<void> list_upper(const Node& node, DirHandle& handle, std::uint64_t offset,
                                        const AddEntry& add);

  [[nodiscard]] Result<NewFile> new_file(fuse_req_t req, const Node& directory, mode_t mode) const;
  void make_file(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode, dev_t rdev,
                 const char* target);
  [[nodiscard]] Result<Xattrs> xattrs_of(const Node& node);
  [[nodiscard]] Result<void> set_access_acl(fuse_req_t req, const Node& node, fuse_ino_t ino,
                                            std::string_view value);
  [[nodiscard]] Result<void> keep_acl_in_step(const Node& node, std::uint32_t mode);
  /// Notes that some file got bits or an attribute that a later write has to take away.
  void note_privileges() { privileges_given_.fetch_add(1); }
  [[nodiscard]] Result<void> drop_privileges(fuse_req_t req, fuse_ino_t ino, FileHandle& handle);
  void link_sealed(fuse_req_t req, const Node& target, const Node& directory, const char* name);
  void read_into(fuse_req_t req, FileHandle& handle, std::size_t size, std::uint64_t offset);
  [[nodiscard]] bool is_asked_again() const;

  void reply_entry(fuse_req_t req, const Result<fuse_entry_param>& entry, const char* operation);
  void reply_result(fuse_req_t req, const Result<void>& result, const char* operation);
  /// Runs `work` in `pool`. It must reply to `req`.
  void later(fuse_req_t req, std::function<void()> work) { later(req, *pool_, std::move(work)); }
  void later(fuse_req_t req, base::ThreadPool& pool, std::function<void()> work);
  void tune_read_ahead() const;

  Repository& repository_;
  const ShowOptions show_;
  const Timestamp mounted_at_;
  fuse_session* session_ = nullptr;
  std::string mount_point_;
  SlotTable slots_;
  fuse_ino_t root_node_ = kRootNodeId;  ///< What the kernel's FUSE_ROOT_ID stands for.
  HandleTable<FileHandle> files_;
  /// So many reads of sealed files go to the pool, if they must go to the disk, since several
  /// were wanted at once lately; without such, the loop serves them itself.
  std::atomic<int> reads_to_hand_over_ = 0;
  /// In a read-only mount the kernel opens no files, which saves two requests a file.
  std::atomic<bool> opens_nothing_ = false;
  RecentFiles recent_files_;
  HandleTable<DirHandle> directories_;
  BufferPool buffers_;

  // Guards the count of closed writers that seal() waits for; taken with no other lock held.
  std::mutex writers_mutex_;
  std::uint64_t writers_closed_ = 0;
  std::condition_variable writers_left_;

  // Keeps two seals in one series, or a seal and the opening of the next version, from
  // crossing. Taken before any lock of a slot. Other series go on meanwhile.
  [[nodiscard]] std::mutex& versions_mutex(SeriesId series);
  std::mutex versions_mutexes_mutex_;  // Taken last.
  std::map<SeriesId, std::mutex> versions_mutexes_;

  // Counts note_privileges(), so that a write looks at its file's mode once and not each time.
  std::atomic<std::uint64_t> privileges_given_{1};

  // Last: their threads use all of the above. What sealed versions are asked has threads of its
  // own, so that it never waits behind those who wait for a writer.
  std::unique_ptr<base::ThreadPool> pool_;
  std::unique_ptr<base::ThreadPool> sealed_pool_;
};

}  // namespace varve::fs
