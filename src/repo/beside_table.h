// SPDX-License-Identifier: Apache-2.0
// The files beside the versions of a series, in the file series/ID/beside.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "format/beside.h"
#include "io/file_system.h"
#include "varve/beside.h"
#include "varve/result.h"

namespace varve::repo {

/// Implements BesideFiles. Keeps all entries in memory, and writes the whole file at each change;
/// the limits bound the size of the file.
class BesideTable final : public BesideFiles, public std::enable_shared_from_this<BesideTable> {
 public:
  struct Place {
    io::FileSystem& files;
    const base::Clock& clock;
    SeriesId series;
    std::string directory;  ///< The series' folder.
    bool read_only;
  };
  /// Lifetime: the file system and the clock must outlive the object.
  explicit BesideTable(Place place) : place_(std::move(place)) {}

  [[nodiscard]] Result<OpenEntry> get(Ino ino) override;
  [[nodiscard]] Result<OpenEntry> lookup(Ino directory, std::string_view name) override;
  [[nodiscard]] Result<Ino> parent(Ino ino) override;
  [[nodiscard]] Result<std::vector<std::pair<std::string, OpenEntry>>> list(Ino directory) override;
  [[nodiscard]] Result<OpenEntry> create(Ino directory, std::string_view name,
                                         const NewFile& file) override;
  [[nodiscard]] Result<void> unlink(Ino directory, std::string_view name) override;
  [[nodiscard]] Result<void> remove_directory(Ino directory, std::string_view name) override;
  [[nodiscard]] Result<void> rename(Ino from_directory, std::string_view from_name,
                                    Ino to_directory, std::string_view to_name,
                                    RenameMode mode) override;
  [[nodiscard]] Result<OpenEntry> set_attributes(Ino ino, const AttributeChange& change) override;
  [[nodiscard]] Result<std::string> read_link(Ino ino) override;
  [[nodiscard]] Result<std::unique_ptr<OpenFile>> open(Ino ino, bool for_writing) override;
  [[nodiscard]] Result<void> sync() override;

 private:
  class File;
  using Record = format::BesideRecord;
  /// An entry. A removed file has no name, and stays while open.
  struct Entry {
    Record record;
    bool removed = false;
  };
  using Entries = std::map<Ino, Entry>;

  // The caller holds the mutex.
  /// Reads the file on disk, if due. A damaged file counts as empty.
  void load();
  /// Errors: kReadOnly; kCorrupt or kUnsupported if the file on disk cannot be read.
  [[nodiscard]] Result<void> allow_change();
  [[nodiscard]] Result<void> check_directory(Ino directory) const;
  [[nodiscard]] Entries::iterator find_name(Ino directory, std::string_view name);
  [[nodiscard]] Result<Entry*> find(Ino ino);
  [[nodiscard]] bool has_names(Ino folder) const;
  [[nodiscard]] OpenEntry entry_of(const Entry& entry) const;
  /// Writes the present entries to disk. Restores `before` on failure.
  [[nodiscard]] Result<void> commit(const Entries& before);
  [[nodiscard]] Result<void> write();
  /// Removes the name of an entry.
  void remove(Entries::iterator entry);
  /// Checks that a file may have `bytes` bytes.
  [[nodiscard]] Result<void> check_size(const Entry& entry, std::uint64_t bytes) const;
  void touch(Entry& entry, bool content);
  void close(Ino ino);

  const Place place_;
  std::mutex mutex_;  // Innermost, but for the file system.
  std::optional<std::chrono::steady_clock::time_point> loaded_at_;
  std::optional<Error> unreadable_;
  Ino next_ = kRootIno + 1;
  Entries entries_;
  std::map<Ino, std::size_t> opened_;
  bool dirty_ = false;  // Written bytes are not on disk yet.
};

}  // namespace varve::repo
