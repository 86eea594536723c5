// SPDX-License-Identifier: Apache-2.0
// The open files and directories of the kernel, by number (fuse_file_info::fh).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fs/slot_table.h"
#include "varve/backup.h"
#include "varve/browse.h"

namespace varve::fs {

/// An open regular file. If its version is sealed while the file is open only for reading, a reader
/// of the sealed version replaces the open file. Thread-safe.
class FileHandle {
 public:
  FileHandle(Slot& slot, std::shared_ptr<OpenFile> file, bool writable)
      : slot_(slot), writable_(writable), file_(std::move(file)) {}
  FileHandle(Slot& slot, std::shared_ptr<FileReader> reader, std::uint64_t node_id = 0)
      : slot_(slot), writable_(false), node_id_(node_id), reader_(std::move(reader)) {}

  [[nodiscard]] bool writable() const { return writable_; }
  [[nodiscard]] const Slot& slot() const { return slot_; }
  /// Returns the node id of a file of a sealed version; 0 for any other file.
  [[nodiscard]] std::uint64_t node_id() const { return node_id_; }

  /// Returns Privileges::count() when the file was last seen without privileges that a write
  /// removes; 0 at first.
  [[nodiscard]] std::uint64_t plain_at() const { return plain_at_; }
  void set_plain_at(std::uint64_t count) { plain_at_ = count; }
  /// The content's source: an open file or a reader.
  struct Content {
    std::shared_ptr<OpenFile> file;
    std::shared_ptr<FileReader> reader;
  };
  /// Returns the present source of the content.
  /// Errors: kStale if the file had lost its name when its version was sealed.
  [[nodiscard]] Result<Content> content();

 private:
  Slot& slot_;
  const bool writable_;
  const std::uint64_t node_id_ = 0;
  std::atomic<std::uint64_t> plain_at_{0};
  std::mutex mutex_;
  std::shared_ptr<OpenFile> file_;
  std::shared_ptr<FileReader> reader_;
};

/// An open directory, with its state between two readdir calls. Not thread-safe: hold `mutex` while
/// using it.
///
/// Offsets: 1 and 2 follow "." and ".."; offset 2 + n follows the n-th listed name. Reading can
/// continue from a name that was removed.
class DirHandle {
 public:
  explicit DirHandle(std::uint64_t node_id) : node_id_(node_id) {}
  [[nodiscard]] std::uint64_t node_id() const { return node_id_; }

  /// Drops the names after `offset`. Returns the name at it, "" at the start. An unknown offset
  /// means the end of the names listed so far.
  std::string rewind_to(std::uint64_t offset);
  /// Appends a name. Returns the offset after it.
  std::uint64_t remember(std::string_view name);
  /// Returns the offset after the next name to remember.
  [[nodiscard]] std::uint64_t next_offset() const { return ends_.size() + 3; }

  /// An entry of a series or of the root.
  struct Name {
    std::string name;
    std::uint64_t st_ino;
    std::uint32_t type;
  };
  std::vector<Name> snapshot;  ///< Entries when reading of a series or the root began.

  std::mutex mutex;

 private:
  const std::uint64_t node_id_;
  std::string names_;                // All names, concatenated.
  std::vector<std::uint64_t> ends_;  // End of each name in `names_`.
};

/// A table of handles by number. Thread-safe.
template <typename Handle>
class HandleTable {
 public:
  /// Adds a handle. Returns its number, which is never 0 and never reused.
  std::uint64_t add(std::shared_ptr<Handle> handle) {
    const std::lock_guard lock(mutex_);
    handles_.emplace(++last_, std::move(handle));
    return last_;
  }
  /// Returns a handle, or null if there is none.
  [[nodiscard]] std::shared_ptr<Handle> get(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    const auto place = handles_.find(number);
    return place == handles_.end() ? nullptr : place->second;
  }
  /// Removes and returns a handle. Returns null if there was none.
  std::shared_ptr<Handle> remove(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    auto node = handles_.extract(number);
    return node.empty() ? nullptr : std::move(node.mapped());
  }
  /// Returns all handles, in no order.
  [[nodiscard]] std::vector<std::shared_ptr<Handle>> all() {
    const std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<Handle>> handles;
    for (const auto& entry : handles_) handles.push_back(entry.second);
    return handles;
  }
  /// Removes all handles.
  void clear() {
    std::unordered_map<std::uint64_t, std::shared_ptr<Handle>> removed;  // Destroyed unlocked.
    const std::lock_guard lock(mutex_);
    removed.swap(handles_);
  }

 private:
  std::mutex mutex_;
  std::uint64_t last_ = 0;
  std::unordered_map<std::uint64_t, std::shared_ptr<Handle>> handles_;
};

}  // namespace varve::fs
