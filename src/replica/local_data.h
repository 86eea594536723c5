// SPDX-License-Identifier: Apache-2.0
// The segments and volumes of the writer's folder: on its disk, or only in the object store.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "io/file_system.h"
#include "replica/changes.h"
#include "replica/distant_data.h"
#include "replica/local_notes.h"
#include "varve/result.h"

namespace varve::replica {

class LocalData;
struct LocalFile;

/// A segment or volume that is open for reading. It reads from the disk as long as the file is
/// there, and from the store after the file was evicted. Thread-safe.
class DataFile {
 public:
  DataFile(LocalData& owner, std::string path, std::shared_ptr<io::File> local);
  DataFile(const DataFile&) = delete;
  DataFile& operator=(const DataFile&) = delete;
  ~DataFile();

  /// Fills `out`. Returns fewer bytes only where the file ends. Errors: those of the disk and of
  /// the store; kNotFound if the file was removed.
  [[nodiscard]] Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out);
  [[nodiscard]] Result<std::uint64_t> size();
  void will_read(std::uint64_t offset, std::uint64_t bytes);
  /// As store::OpenSegment::drop().
  [[nodiscard]] bool drop(std::uint64_t offset, std::uint64_t bytes);
  [[nodiscard]] bool is_cached(std::uint64_t offset, std::uint64_t bytes);

  [[nodiscard]] const std::string& path() const { return path_; }
  /// Returns the file on the disk; null if it is only in the store.
  [[nodiscard]] std::shared_ptr<io::File> local();

 private:
  friend class LocalData;
  void evict();

  LocalData& owner_;
  const std::string path_;
  std::atomic<std::uint64_t> used_ = 0;
  std::mutex mutex_;  // Innermost. Guards local_.
  std::shared_ptr<io::File> local_;
};

/// The outcome of an eviction.
struct Eviction {
  std::uint64_t files = 0;        ///< Files that were removed from the disk.
  std::uint64_t bytes = 0;        ///< Their bytes.
  std::uint64_t local_bytes = 0;  ///< Bytes of the segments and volumes that are left there.
};

/// Shows the segments and volumes of a repository whose writer works in this folder. A file that is
/// not on the disk, and that the newest head has, is read from the store. All paths are relative
/// to the repository's folder. Thread-safe.
class LocalData {
 public:
  /// Returns the map of objects of the newest head.
  using LoadMap = std::function<Result<ObjectMap>()>;

  /// `notes` are null in a process that only reads.
  /// Lifetime: the arguments outlive the object.
  LocalData(io::FileSystem& files, DistantData& data, LocalNotes* notes, std::string root,
            LoadMap load)
      : files_(files), data_(data), notes_(notes), root_(std::move(root)), load_(std::move(load)) {}

  /// Loads the map of objects. Call it before any other function. Until set_objects(), it is loaded
  /// again whenever a file is missing.
  [[nodiscard]] Result<void> load();
  /// Uses the map of a newer head, which differs from the one before in the files `changed`; null
  /// for all. From now on, the caller tells all heads.
  void set_objects(const ObjectMap& objects, const std::set<std::string>* changed = nullptr);

  // These work as those of io::FileSystem. Removing or cutting a file that is only in the store
  // needs no request: this object remembers it until a head without the file, or with a shorter
  // one, exists.
  [[nodiscard]] Result<std::unique_ptr<io::File>> open(const std::string& path, io::OpenMode mode);
  [[nodiscard]] Result<std::shared_ptr<DataFile>> open_to_read(const std::string& path,
                                                               io::OpenMode mode);
  [[nodiscard]] Result<void> remove(const std::string& path);
  [[nodiscard]] Result<void> rename(const std::string& from, const std::string& to);
  [[nodiscard]] Result<std::vector<std::string>> list(const std::string& folder);
  [[nodiscard]] Result<bool> exists(const std::string& path);
  /// Returns the length of a file.
  [[nodiscard]] Result<std::uint64_t> bytes(const std::string& path);
  /// Returns the bytes of the files of a folder, those in the store included.
  [[nodiscard]] Result<std::uint64_t> folder_bytes(const std::string& folder);

  /// Makes room for a new file of this name, which a crash or a rebuilt catalog may give again.
  [[nodiscard]] Result<void> begin(const std::string& path);
  /// Has a function called whenever a file is begun. Call it before any file is begun.
  void on_begin(std::function<void()> begun) { begun_ = std::move(begun); }
  /// Returns whether a file below the folder is only in the store.
  [[nodiscard]] Result<bool> any_evicted(const std::string& folder);
  /// Returns whether a file is only in the store.
  [[nodiscard]] Result<bool> is_evicted(const std::string& path);
  /// Returns where the store has a file that is not on the disk; null for another file.
  [[nodiscard]] Extents distant(const std::string& path);

  /// Removes files from the disk that the newest head has in full, until at most `bytes_max` bytes
  /// are left and at least `bytes_least` were removed: volumes before segments, and of each kind
  /// the ones used longest ago. Never removes a file that is being written, or that a note keeps.
  [[nodiscard]] Result<Eviction> evict(std::uint64_t bytes_max, std::uint64_t bytes_least = 0);

  /// Returns the bytes of data files on the disk that the newest head lacks, and uncut_bytes().
  [[nodiscard]] Result<std::uint64_t> staged_bytes();

  /// Returns threads that read from the disk.
  [[nodiscard]] base::ThreadPool& readers();
  [[nodiscard]] DistantData& data() { return data_; }

 private:
  friend class DataFile;
  class WrittenFile;
  class ReadFile;
  /// The last state of a file that is only in the store, and its object then.
  struct Cut {
    std::string object;
    std::optional<std::uint64_t> bytes;  // Nullopt if it was removed.
  };
  struct Candidate;

  void use_objects(const ObjectMap& objects, const std::set<std::string>* changed);
  [[nodiscard]] std::string full(const std::string& path) const { return root_ + "/" + path; }
  /// Return the extents and the length that the store has for a file; null if none. mutex_ is held.
  [[nodiscard]] Extents covered(const std::string& path) const;
  [[nodiscard]] std::uint64_t covered_bytes(const std::string& path) const;
  [[nodiscard]] Result<Extents> covered_after_loading(const std::string& path);
  [[nodiscard]] Result<std::vector<Candidate>> candidates();
  [[nodiscard]] Result<bool> evict_one(const LocalFile& one);
  [[nodiscard]] std::uint64_t use() { return ++uses_; }
  void closed(const std::string& path, std::uint64_t used);
  void written(const std::string& path);
  [[nodiscard]] Result<void> note_change(const std::string& path);

  io::FileSystem& files_;
  DistantData& data_;
  LocalNotes* const notes_;
  const std::string root_;
  const LoadMap load_;
  std::atomic<std::uint64_t> uses_ = 0;
  std::function<void()> begun_;
  std::atomic<bool> is_told_ = false;  // set_objects() was called.

  std::mutex mutex_;  // Guards the members below. Taken before that of a DataFile.
  std::map<std::string, Extents> covered_;
  std::map<std::string, Cut> cuts_;
  std::map<std::string, int> writers_;                  // Open files that can be written.
  std::multimap<std::string, DataFile*> readers_open_;  // Open files with a local one.
  std::map<std::string, std::uint64_t> used_;
  std::unique_ptr<base::ThreadPool> pool_;
};

/// Returns whether a path in the repository names a segment or volume, or a file beside them.
[[nodiscard]] bool is_data_path(const std::string& path);
/// Returns whether a path names a folder of segments or volumes.
[[nodiscard]] bool names_folder(const std::string& path);
/// Returns the path below the folder `root` if it is in a folder of segments or volumes, or such a
/// folder.
[[nodiscard]] std::optional<std::string> data_path(const std::string& root,
                                                   const std::string& path);

}  // namespace varve::replica
