// SPDX-License-Identifier: Apache-2.0
// The mounted file system: answers the kernel's requests from a Repository.
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

/// The object that a node id names.
struct Node {
  enum class Kind { kRoot, kSeries, kLatest, kOpen, kSealed, kRemoved };
  Kind kind = Kind::kRoot;
  Slot* slot = nullptr;                   ///< Null for the root.
  std::shared_ptr<VersionWriter> writer;  ///< Version of kOpen.
  Ino ino = 0;                            ///< Inode in `writer`.
  std::shared_ptr<VersionReader> reader;  ///< Version of kSealed.
  Rank rank = 0;                          ///< Entry in `reader`.

  [[nodiscard]] bool is_version_root() const {
    return (kind == Kind::kOpen && ino == kRootIno) || (kind == Kind::kSealed && rank == 0);
  }
};

/// Handles each request of the kernel with one method. Every method replies exactly once, at once
/// or later from a pool. Thread-safe. Work that always waits for the disk runs in a pool, except
/// the reads of a single reader. Only a request that waits unexpectedly can therefore delay the
/// loop, which LoopPool handles.
class FrontEnd {
 public:
  /// `show` selects how files appear. Lifetime: `repository` must outlive the FrontEnd.
  FrontEnd(Repository& repository, const ShowOptions& show);
  ~FrontEnd();
  FrontEnd(const FrontEnd&) = delete;
  FrontEnd& operator=(const FrontEnd&) = delete;

  /// Sets the root of the mount: a series, one version of it, or, with "" for both, the whole
  /// repository. Call it before attach().
  /// Errors: kNotFound, with the missing name.
  [[nodiscard]] Result<void> set_root(const std::string& series, const std::string& version);
  /// Returns the repository path of the mount's root: SERIES, SERIES/VERSION, or "" for all.
  [[nodiscard]] std::string root_path();
  /// Returns the table for fuse_session_new(), whose user data must be a FrontEnd*.
  static const fuse_lowlevel_ops& operations();
  /// Connects the FrontEnd to a session mounted at `mount_point`. Must be called before the loop
  /// starts.
  void attach(fuse_session* session, std::string mount_point);
  /// Runs the queued work, then releases all objects of the repository. Call it after the loop.
  void shut_down();

  /// A command's request to seal a version.
  struct SealWish {
    std::string new_name;  ///< See Repository::seal().
    SealMode mode = SealMode::kEnd;
    bool wait = false;               ///< Wait until no file is open for writing.
    std::uint64_t wait_seconds = 0;  ///< With `wait`: time limit; 0 = no limit.
    bool force = false;              ///< Cut writers off; with `wait`, after the wait.
  };
  /// Drops the slots of versions in `before` that the repository no longer has.
  void drop_deleted(SeriesId series, const std::vector<VersionInfo>& before);
  /// Seals a version and notifies the kernel. Stops waiting once `cancelled` returns true.
  [[nodiscard]] Result<SealOutcome> seal(SeriesId series, VersionNumber number,
                                         const SealWish& wish,
                                         const std::function<bool()>& cancelled);
  /// Opens a version, after sealing the present one as Repository::open_version() does. Notifies
  /// the kernel. Thread-safe, as is clone_version().
  [[nodiscard]] Result<VersionInfo> open_version(const SeriesInfo& series, std::string_view name,
                                                 const NewFile& root);
  [[nodiscard]] Result<VersionInfo> clone_version(const SeriesInfo& series, VersionNumber source,
                                                  std::string_view name);

  /// Drops an open version with all its files. Notifies the kernel.
  /// Errors: kBusy while files are open for writing.
  [[nodiscard]] Result<void> discard_version(SeriesId series, VersionNumber number);
  /// Deletes sealed versions as Repository::delete_versions() does. Notifies the kernel.
  [[nodiscard]] Result<DeletionForecast> delete_versions(SeriesId series,
                                                         const std::vector<VersionNumber>& numbers,
                                                         const DeletionOptions& options = {});

  // Session.
  void init(fuse_conn_info* connection);
  void statfs(fuse_req_t req);

  /// Handles the kernel's release of a node.
  void forget(fuse_ino_t ino) noexcept;

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
  /// Returns a file of an open version, or the reason why it cannot be changed: kReadOnly in a
  /// sealed version, kNotPermitted for the root or a series.
  [[nodiscard]] Result<Node> resolve_open(fuse_ino_t ino);

  [[nodiscard]] Result<std::shared_ptr<FileHandle>> file_of(fuse_req_t req, fuse_ino_t ino,
                                                            const fuse_file_info& info);
  [[nodiscard]] Result<struct stat> stat_of(const Node& node);
  [[nodiscard]] struct stat stat_of(const Slot& slot, const OpenEntry& entry) const;
  [[nodiscard]] struct stat stat_of(const Slot& slot, const SealedEntry& entry) const;
  [[nodiscard]] struct stat stat_of_series(const SeriesInfo& series) const;
  [[nodiscard]] fuse_entry_param entry_of(const Slot& slot, const OpenEntry& entry) const;
  [[nodiscard]] fuse_entry_param entry_of(const Slot& slot, const SealedEntry& entry) const;
  /// Returns how long the kernel may cache the attributes of this node.
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
  /// Seals the version that Repository::open_version() would seal. Returns its name, or "".
  [[nodiscard]] Result<std::string> end_present_version(const SeriesInfo& series,
                                                        std::string_view new_name,
                                                        VersionNumber source);
  [[nodiscard]] double latest_timeout_s() const;
  /// Makes the kernel read the attributes of a series' `latest` again.
  void forget_latest(SeriesId series);
  [[nodiscard]] Result<DeletionForecast> delete_after_last_close(
      SeriesId series, const std::vector<VersionNumber>& numbers, const DeletionOptions& options);
  /// Drops the kernel's cache of open files in deleted versions. Only for commands.
  void forget_contents(SeriesId series, const std::vector<VersionNumber>& numbers);
  void forget_names(SeriesId series, const std::vector<std::string>& names);
  [[nodiscard]] Result<void> remove_version(const SeriesInfo& series, std::string_view name);
  [[nodiscard]] Result<void> remove_series(std::string_view name);
  [[nodiscard]] std::optional<struct stat> last_look(const Slot* slot) const;
  void set_removed(fuse_req_t req, Slot& slot, const AttributeChange& change);

  // File handles: front_end_handles.cc.
  /// Returns the node that a file handle names, or its parent directory.
  /// Errors: kStale if there is none.
  [[nodiscard]] Result<fuse_entry_param> look_up_handle(fuse_ino_t ino, bool parent);
  [[nodiscard]] Result<void> meet_again(fuse_ino_t ino);
  [[nodiscard]] Result<fuse_entry_param> parent_entry(const Node& node);
  [[nodiscard]] Result<void> rename_version(const SeriesInfo& series, std::string_view name,
                                            std::string_view new_name);
  [[nodiscard]] Result<SealOutcome> seal_now(SeriesId series, VersionNumber number,
                                             std::string_view new_name,
                                             SealMode mode = SealMode::kEnd,
                                             SealWriters writers = SealWriters::kRefuse);
  /// As seal_now(), but waits briefly for the kernel to report files that were just closed.
  [[nodiscard]] Result<SealOutcome> seal_after_last_close(SeriesId series, VersionNumber number,
                                                          std::string_view new_name);
  [[nodiscard]] Result<void> rename_inside(const Node& from, std::string_view name, const Node& to,
                                           std::string_view new_name, unsigned flags);
  [[nodiscard]] Result<void> allow_rename(const Node& from, const Node& to) const;

  /// Adds one entry and the offset after it to a reply. Returns false if the reply is full.
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
  /// Records that a file got privilege bits or a capability, which a later write must remove.
  void note_privileges() { privileges_given_.fetch_add(1); }
  [[nodiscard]] Result<void> drop_privileges(fuse_req_t req, fuse_ino_t ino, FileHandle& handle);
  void link_sealed(fuse_req_t req, const Node& target, const Node& directory, const char* name);
  void read_into(fuse_req_t req, FileHandle& handle, std::size_t size, std::uint64_t offset);
  [[nodiscard]] bool is_asked_again() const;

  void reply_entry(fuse_req_t req, const Result<fuse_entry_param>& entry, const char* operation);
  void reply_result(fuse_req_t req, const Result<void>& result, const char* operation);
  /// Runs `work` in the pool. It must reply to `req`.
  void later(fuse_req_t req, std::function<void()> work) { later(req, *pool_, std::move(work)); }
  void later(fuse_req_t req, base::ThreadPool& pool, std::function<void()> work);
  void tune_read_ahead() const;

  Repository& repository_;
  const ShowOptions show_;
  const Timestamp mounted_at_;
  fuse_session* session_ = nullptr;
  std::string mount_point_;
  SlotTable slots_;
  fuse_ino_t root_node_ = kRootNodeId;  ///< The node that the kernel's FUSE_ROOT_ID means.
  HandleTable<FileHandle> files_;
  /// Number of further reads of sealed files to run in the pool if they need the disk. Set after
  /// several reads were pending at once. At 0, the loop serves them itself.
  std::atomic<int> reads_to_hand_over_ = 0;
  /// True in a read-only mount: the kernel then sends no open and release, which saves two requests
  /// per file.
  std::atomic<bool> opens_nothing_ = false;
  RecentFiles recent_files_;
  HandleTable<DirHandle> directories_;
  BufferPool buffers_;

  // Guards the count of closed writers, for which seal() waits. Taken with no other lock held.
  std::mutex writers_mutex_;
  std::uint64_t writers_closed_ = 0;
  std::condition_variable writers_left_;

  // Prevents two seals in one series, or a seal and the opening of the next version, from running
  // at once. Taken before any lock of a slot. Each series has its own mutex.
  [[nodiscard]] std::mutex& versions_mutex(SeriesId series);
  std::mutex versions_mutexes_mutex_;  // Taken last.
  std::map<SeriesId, std::mutex> versions_mutexes_;

  // Counts note_privileges(), so that a handle checks its file's mode only after a change.
  std::atomic<std::uint64_t> privileges_given_{1};

  // Last, because their threads use all members above. Requests to sealed versions have their own
  // threads, so that they never wait behind requests that wait for a writer.
  std::unique_ptr<base::ThreadPool> pool_;
  std::unique_ptr<base::ThreadPool> sealed_pool_;
};

}  // namespace varve::fs
