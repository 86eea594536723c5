// SPDX-License-Identifier: Apache-2.0
// A model of a directory of files: its required content, and its possible content after a kill of
// its file system.
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

/// The content of one file: its present bytes, and all bytes that it has had since its content was
/// last known to be on disk. A crash may restore any of these, byte by byte, and any size between
/// the smallest and the largest.
class FileModel {
 public:
  [[nodiscard]] const Bytes& bytes() const { return bytes_; }
  [[nodiscard]] std::uint64_t size() const { return bytes_.size(); }

  void write(std::uint64_t offset, std::span<const std::uint8_t> data);
  void resize(std::uint64_t size);
  /// Writes zeros from `offset` on, up to the end of the file at most.
  void zero(std::uint64_t offset, std::uint64_t bytes);

  /// Notes that the present content is on disk.
  void is_durable();
  /// Returns the memory for older bytes.
  [[nodiscard]] std::uint64_t undo_bytes() const { return undo_bytes_; }

  /// Returns "" if the file may have the content `found` after a crash, otherwise the defect.
  [[nodiscard]] std::string explain_after_crash(const Bytes& found) const;
  /// Sets the present content, which is on disk.
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

/// Number of a file in the model; 0 for none.
using FileId = std::uint64_t;

struct File {
  FileModel content;
  std::uint64_t st_ino = 0;
  int names = 0;
  int handles = 0;
  /// True if the file had a name on disk and has had one ever since. It must then exist after a
  /// crash.
  bool is_rooted = false;
};

/// The names and files of a tree.
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

  /// Notes that the present names are on disk.
  void names_are_durable();
  /// Notes that the present names and files are on disk.
  void all_is_durable();

  /// Takes over the names found after a crash (name → st_ino). Returns "" if they are allowed,
  /// otherwise the defect.
  [[nodiscard]] std::string take_over_names(const std::map<std::string, std::uint64_t>& found);

  [[nodiscard]] const std::map<std::string, FileId>& names() const { return names_; }

 private:
  std::map<FileId, File> files_;
  std::map<std::string, FileId> names_;  // The existing names.
  // Other files that a name has had since the last sync.
  std::map<std::string, std::set<FileId>> before_;
  FileId last_ = 0;
};

}  // namespace varve::fsx
