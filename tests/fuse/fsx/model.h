// SPDX-License-Identifier: Apache-2.0
// What a directory of files must hold, and what it may hold after its file system was killed.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace varve::fsx {

using Bytes = std::vector<std::uint8_t>;

/// The content of one file: the bytes it has, and those that it had since it was last known to be
/// on disk. A file system that dies may bring back any of them, byte by byte, and any size between
/// the smallest and the largest.
class FileModel {
 public:
  [[nodiscard]] const Bytes& bytes() const { return bytes_; }
  [[nodiscard]] std::uint64_t size() const { return bytes_.size(); }

  void write(std::uint64_t offset, std::span<const std::uint8_t> data);
  void resize(std::uint64_t size);
  /// Zeros from `offset` to the end of the file at most.
  void zero(std::uint64_t offset, std::uint64_t bytes);

  /// What the file holds now is on disk.
  void is_durable();
  /// Bytes kept to know what may come back.
  [[nodiscard]] std::uint64_t undo_bytes() const { return undo_bytes_; }

  /// Empty if the file may hold `found` after a crash; else what is wrong with it.
  [[nodiscard]] std::string explain_after_crash(const Bytes& found) const;
  /// The file holds this now, on disk.
  void take_over(Bytes found);

 private:
  struct Undo {
    std::uint64_t offset;
    Bytes old;
  };
  void remember(std::uint64_t offset, std::uint64_t bytes);

  Bytes bytes_;
  std::vector<Undo> undo_;
  std::uint64_t undo_bytes_ = 0;
  std::uint64_t size_min_ = 0;
  std::uint64_t size_max_ = 0;
  bool changed_ = false;
};

/// Number of a file in the model. 0: none.
using FileId = std::uint64_t;

struct File {
  FileModel content;
  std::uint64_t st_ino = 0;
  int names = 0;
  int handles = 0;
  /// It had a name on disk and was never without one since: it must be found again.
  bool is_rooted = false;
};

/// Names and files.
class TreeModel {
 public:
  [[nodiscard]] FileId find(const std::string& name) const;
  [[nodiscard]] File& file(FileId id) { return files_.at(id); }
  [[nodiscard]] std::map<FileId, File>& files() { return files_; }

  FileId create(const std::string& name);
  void set_name(const std::string& name, FileId id);
  void unlink(const std::string& name) { set_name(name, 0); }
  void rename(const std::string& from, const std::string& to);
  void exchange(const std::string& a, const std::string& b);
  /// Drops the file if it has neither name nor handle.
  void reap(FileId id);

  /// Names as they are now are on disk.
  void names_are_durable();
  /// Files, too.
  void all_is_durable();

  /// What stands in the directory after a crash: name → st_ino. Empty if that may be; else what
  /// is wrong. Takes it over.
  [[nodiscard]] std::string take_over_names(const std::map<std::string, std::uint64_t>& found);

  [[nodiscard]] const std::map<std::string, FileId>& names() const { return names_; }

 private:
  std::map<FileId, File> files_;
  std::map<std::string, FileId> names_;             // Only those that exist.
  std::map<std::string, std::set<FileId>> before_;  // What else a name meant since the last sync.
  FileId last_ = 0;
};

}  // namespace varve::fsx
