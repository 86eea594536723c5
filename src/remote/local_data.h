// SPDX-License-Identifier: Apache-2.0
// The segments and volumes of the writer's folder, on the disk or only in the object store.
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
#include "remote/changes.h"
#include "remote/distant_data.h"
#include "remote/local_notes.h"
#include "varve/result.h"

namespace varve::remote {

class LocalData;
struct LocalFile;

/// A segment or volume open for reading. Reads from the disk while the file is there, and from the
/// store after the file's eviction. Thread-safe.
class DataFile {
 public:
  DataFile(LocalData& owner, std::string path, std::shared_ptr<io::File> local);
  DataFile(const DataFile&) = delete;
  DataFile& operator=(const DataFile&) = delete;
  ~DataFile();

  /// Fills `out`. Returns fewer bytes only where the file ends. Errors: errors of the disk and the
  /// store; kNotFound if the file was removed.
  [[nodiscard]] Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out);
  [[nodiscard]] Result<std::uint64_t> size();
  void will_read(std::uint64_t offset, std::uint64_t bytes);
  /// See store::OpenSegment::drop().
  [[nodiscard]] bool drop(std::uint64_t offset, std::uint64_t bytes);
  [[nodiscard]] bool is_cached(std::uint64_t offset, std::uint64_t bytes);

  [[nodiscard]] const std::string& path() const { return path_; }
  /// Returns the file on the disk; null if the file is only in the store.
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
  std::uint64_t files = 0;        ///< Files removed from the disk.
  std::uint64_t bytes = 0;        ///< Bytes of the removed files.
  std::uint64_t local_bytes = 0;  ///< Bytes of the segments and volumes left on the disk.
};

/// Shows the segments and volumes of a repository whose writer works in this folder. A file missing
/// on the disk is read from the store if the newest head has the file. All paths are relative to
/// the repository's folder. Thread-safe.
class LocalData {
 public:
  /// Returns the map of objects of the newest head.
  using LoadMap = std::function<Result<ObjectMap>()>;

  /// `notes` is null in a process that only reads.
  /// Lifetime: the arguments outlive the object.
  LocalData(io::FileSystem& files, DistantData& data, LocalNotes* notes, std::string root,
            LoadMap load)
      : files_(files), data_(data), notes_(notes), root_(std::move(root)), load_(std::move(load)) {}

  /// Loads the map of objects. Call load() before any other function. Until set_objects(), every
  /// missing file makes the map load again.
  [[nodiscard]] Result<void> load();
  /// Uses the map of a newer head. `changed`: the files differing from the map before; null for all
  /// files. From now on, the caller passes the map of every head.
  void set_objects(const ObjectMap& objects, const std::set<std::string>* changed = nullptr);

  // The following functions work like the functions of io::FileSystem. `disk` is the file system of
  // the repository's folder. Removing or cutting a file in the store takes no request. Instead, the
  // object records the change until a head without the file, or with a shorter file, exists.
  [[nodiscard]] Result<std::unique_ptr<io::File>> open(io::FileSystem& disk,
                                                       const std::string& path, io::OpenMode mode);
  [[nodiscard]] Result<std::shared_ptr<DataFile>> open_to_read(io::FileSystem& disk,
                                                               const std::string& path,
                                                               io::OpenMode mode);
  [[nodiscard]] Result<void> remove(io::FileSystem& disk, const std::string& path);
  [[nodiscard]] Result<void> rename(io::FileSystem& disk, const std::string& from,
                                    const std::string& to);
  [[nodiscard]] Result<std::vector<std::string>> list(io::FileSystem& disk,
                                                      const std::string& folder);
  [[nodiscard]] Result<bool> exists(io::FileSystem& disk, const std::string& path);
  /// Returns the length of a file.
  [[nodiscard]] Result<std::uint64_t> bytes(io::FileSystem& disk, const std::string& path);

  /// Prepares the creation of a file. After a crash, or with a rebuilt catalog, the name may be in
  /// use.
  [[nodiscard]] Result<void> begin(const std::string& path);
  /// Sets a function to call whenever a file is begun. Call on_begin() before any begin().
  void on_begin(std::function<void()> begun) { begun_ = std::move(begun); }
  /// Returns whether any file below the folder is only in the store.
  [[nodiscard]] Result<bool> any_evicted(const std::string& folder);
  /// Returns whether a file is only in the store.
  [[nodiscard]] Result<bool> is_evicted(const std::string& path);
  /// Returns the extents in the store of a file missing on the disk; null for any other file.
  [[nodiscard]] Extents distant(const std::string& path);

  /// Removes files from the disk if the newest head has the whole file, until at most `bytes_max`
  /// bytes are left and at least `bytes_least` were removed. The order: volumes before segments,
  /// and the least recently used files first. Never removes a file being written, or a file kept by
  /// a note.
  [[nodiscard]] Result<Eviction> evict(std::uint64_t bytes_max, std::uint64_t bytes_least = 0);

  /// Returns the bytes of data files on the disk that the newest head lacks, plus uncut_bytes().
  [[nodiscard]] Result<std::uint64_t> staged_bytes();

  /// Returns threads for reading from the disk.
  [[nodiscard]] base::ThreadPool& readers();
  [[nodiscard]] DistantData& data() { return data_; }

 private:
  friend class DataFile;
  class WrittenFile;
  class ReadFile;
  /// The last state of a file only in the store, and the file's object at that time.
  struct Cut {
    std::string object;
    std::optional<std::uint64_t> bytes;  // Nullopt if the file was removed.
  };
  struct Candidate;

  void use_objects(const ObjectMap& objects, const std::set<std::string>* changed);
  [[nodiscard]] std::string full(const std::string& path) const { return root_ + "/" + path; }
  /// Return the extents and the length of a file in the store; null without extents. The caller
  /// holds mutex_.
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

  std::mutex mutex_;  // Locked before the mutex of a DataFile. Guards the members below.
  std::map<std::string, Extents> covered_;
  std::map<std::string, Cut> cuts_;
  std::map<std::string, int> writers_;                  // Files open for writing.
  std::multimap<std::string, DataFile*> readers_open_;  // Open files with a local file.
  std::map<std::string, std::uint64_t> used_;
  std::unique_ptr<base::ThreadPool> pool_;
};

/// Returns whether a path in the repository names a segment, a volume or a file beside both.
[[nodiscard]] bool is_data_path(const std::string& path);
}  // namespace varve::remote
