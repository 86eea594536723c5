// SPDX-License-Identifier: Apache-2.0
#include "repo/beside_table.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "base/coding.h"
#include "base/log.h"
#include "format/dir_entry_codec.h"
#include "store/repository_names.h"

namespace varve::repo {

namespace {

/// The time after which a read-only repository reads the file again: another process may write.
constexpr std::chrono::seconds kReadAgain{1};

/// The kept bits: all except set-user-ID and set-group-ID.
constexpr std::uint32_t kModeBits = 01777;

Error no_name() { return {ErrorCode::kNotFound, "no such name beside the versions"}; }
Error limit(const char* what) { return {ErrorCode::kNoSpace, what}; }

}  // namespace

void BesideTable::load() {
  const auto now = std::chrono::steady_clock::now();
  if (loaded_at_ && !(place_.read_only && now - *loaded_at_ >= kReadAgain)) return;
  const bool was_unreadable = unreadable_.has_value();
  loaded_at_ = now;
  unreadable_.reset();
  const auto path = fmt::format("{}/{}", place_.directory, store::kBesideName);
  const auto bytes = place_.files.read_file(path, format::kBesideImageBytesMax);
  Result<format::BesideImage> image(format::BesideImage{});
  if (bytes) {
    image = format::decode_beside(place_.series, *bytes);
  } else if (bytes.error().code() != ErrorCode::kNotFound) {
    image = bytes.error();
  }
  if (!image) {
    unreadable_ = std::move(image.error())
                      .with_more("; the programs' files in " + path +
                                 " are missing until the file is restored or removed");
    if (!was_unreadable) base::log(base::LogLevel::kError, unreadable_->message());
    image = format::BesideImage{};
  }
  next_ = std::max(next_, image->next);
  entries_.clear();
  for (auto& record : image->records) {
    const Ino ino = record.ino;
    entries_.emplace(ino, Entry{.record = std::move(record)});
  }
}

Result<void> BesideTable::allow_change() {
  load();
  if (place_.read_only) return Error(ErrorCode::kReadOnly, "the repository is open read-only");
  if (unreadable_) return *unreadable_;
  return {};
}

OpenEntry BesideTable::entry_of(const Entry& entry) const {
  const Record& record = entry.record;
  OpenEntry open;
  open.ino = record.ino;
  open.attributes = {.mode = record.mode,
                     .uid = record.uid,
                     .gid = record.gid,
                     .nlink = entry.removed          ? 0U
                              : S_ISDIR(record.mode) ? 2U
                                                     : 1U,
                     .rdev = 0,
                     .size = record.content.size(),
                     .data_bytes = record.content.size(),
                     .mtime = record.mtime,
                     .ctime = record.ctime,
                     .atime = record.atime};
  return open;
}

Result<void> BesideTable::check_directory(Ino directory) const {
  if (directory == kRootIno) return {};
  const auto place = entries_.find(directory);
  if (place == entries_.end()) return Error(ErrorCode::kStale, "the folder is gone");
  if (!S_ISDIR(place->second.record.mode)) return Error(ErrorCode::kNotDirectory, "no folder");
  return {};
}

BesideTable::Entries::iterator BesideTable::find_name(Ino directory, std::string_view name) {
  return std::ranges::find_if(entries_, [&](const auto& pair) {
    const Entry& entry = pair.second;
    return !entry.removed && entry.record.parent == directory && entry.record.name == name;
  });
}

Result<BesideTable::Entry*> BesideTable::find(Ino ino) {
  load();
  const auto place = entries_.find(ino);
  if (place == entries_.end()) return Error(ErrorCode::kStale, "the file is gone");
  return &place->second;
}

bool BesideTable::has_names(Ino folder) const {
  return std::ranges::any_of(entries_, [&](const auto& pair) {
    return !pair.second.removed && pair.second.record.parent == folder;
  });
}

Result<void> BesideTable::write() {
  format::BesideImage image;
  image.next = next_;
  for (const auto& [ino, entry] : entries_) {
    if (!entry.removed) image.records.push_back(entry.record);
  }
  const auto bytes = format::encode_beside(place_.series, image);
  VARVE_TRY(place_.files.write_file_atomically(place_.directory, std::string(store::kBesideName),
                                               base::as_bytes(bytes)));
  dirty_ = false;
  return {};
}

Result<void> BesideTable::commit(const Entries& before) {
  auto written = write();
  if (!written) entries_ = before;
  return written;
}

void BesideTable::remove(Entries::iterator entry) {
  if (opened_.contains(entry->first)) {
    entry->second.removed = true;
    touch(entry->second, false);
  } else {
    entries_.erase(entry);
  }
}

Result<void> BesideTable::check_size(const Entry& entry, std::uint64_t bytes) const {
  if (bytes > kBesideFileBytesMax) {
    return Error(ErrorCode::kTooLarge, "a file beside the versions may have 1 MiB");
  }
  std::uint64_t all = bytes;
  for (const auto& [ino, other] : entries_) {
    if (ino != entry.record.ino) all += other.record.content.size();
  }
  if (all > kBesideBytesMax) return limit("the files beside the versions may have 4 MiB together");
  return {};
}

void BesideTable::touch(Entry& entry, bool content) {
  entry.record.ctime = place_.clock.now();
  if (content) entry.record.mtime = entry.record.ctime;
}

void BesideTable::close(Ino ino) {
  const std::lock_guard lock(mutex_);
  const auto place = opened_.find(ino);
  if (--place->second > 0) return;
  opened_.erase(place);
  const auto entry = entries_.find(ino);
  if (entry != entries_.end() && entry->second.removed) entries_.erase(entry);
  if (!dirty_) return;
  // The caller of close(2) got the error from the earlier flush.
  if (const auto written = write(); !written) {
    base::log(base::LogLevel::kWarning, "closing: " + written.error().message());
  }
}

Result<OpenEntry> BesideTable::get(Ino ino) {
  const std::lock_guard lock(mutex_);
  VARVE_TRY_ASSIGN(const Entry* const entry, find(ino));
  return entry_of(*entry);
}

Result<OpenEntry> BesideTable::lookup(Ino directory, std::string_view name) {
  const std::lock_guard lock(mutex_);
  load();
  VARVE_TRY(check_directory(directory));
  const auto place = find_name(directory, name);
  if (place == entries_.end()) return no_name();
  return entry_of(place->second);
}

Result<Ino> BesideTable::parent(Ino ino) {
  const std::lock_guard lock(mutex_);
  VARVE_TRY_ASSIGN(const Entry* const entry, find(ino));
  return entry->record.parent;
}

Result<std::vector<std::pair<std::string, OpenEntry>>> BesideTable::list(Ino directory) {
  const std::lock_guard lock(mutex_);
  load();
  if (unreadable_) return *unreadable_;
  VARVE_TRY(check_directory(directory));
  std::vector<std::pair<std::string, OpenEntry>> found;
  for (const auto& [ino, entry] : entries_) {
    if (!entry.removed && entry.record.parent == directory) {
      found.emplace_back(entry.record.name, entry_of(entry));
    }
  }
  std::ranges::sort(found, {}, [](const auto& named) { return named.first; });
  return found;
}

Result<OpenEntry> BesideTable::create(Ino directory, std::string_view name, const NewFile& file) {
  const std::lock_guard lock(mutex_);
  VARVE_TRY(allow_change());
  VARVE_TRY(check_directory(directory));
  if (name.size() > kNameBytesMax) return Error(ErrorCode::kNameTooLong, "the name is too long");
  if (!format::is_entry_name(name)) return Error(ErrorCode::kInvalid, "no file has such a name");
  const bool is_folder = S_ISDIR(file.mode);
  if ((!S_ISREG(file.mode) && !S_ISLNK(file.mode) && !is_folder) ||
      (is_folder && directory != kRootIno)) {
    return Error(ErrorCode::kNotPermitted,
                 "beside the versions are only files, links and folders without folders");
  }
  if (file.symlink_target.size() > kSymlinkBytesMax) {
    return Error(ErrorCode::kNameTooLong, "the target is too long");
  }
  if (find_name(directory, name) != entries_.end()) return Error(ErrorCode::kExists, "it exists");
  if (entries_.size() >= kBesideNamesMax || next_ >= format::kBesideInoEnd) {
    return limit("beside the versions may be 256 files");
  }
  const Entries before = entries_;
  Entry entry;
  entry.record = {.ino = next_,
                  .parent = directory,
                  .name = std::string(name),
                  .mode = file.mode & (S_IFMT | kModeBits),
                  .uid = file.uid,
                  .gid = file.gid,
                  .mtime = {},
                  .ctime = {},
                  .atime = {},
                  .content = S_ISLNK(file.mode) ? file.symlink_target : std::string()};
  touch(entry, true);
  entry.record.atime = entry.record.mtime;
  VARVE_TRY(check_size(entry, entry.record.content.size()));
  const auto result = entry_of(entry);
  entries_.emplace(next_++, std::move(entry));
  VARVE_TRY(commit(before));
  return result;
}

Result<void> BesideTable::unlink(Ino directory, std::string_view name) {
  const std::lock_guard lock(mutex_);
  VARVE_TRY(allow_change());
  const auto place = find_name(directory, name);
  if (place == entries_.end()) return no_name();
  if (S_ISDIR(place->second.record.mode)) return Error(ErrorCode::kIsDirectory, "a folder");
  const Entries before = entries_;
  remove(place);
  return commit(before);
}

Result<void> BesideTable::remove_directory(Ino directory, std::string_view name) {
  const std::lock_guard lock(mutex_);
  VARVE_TRY(allow_change());
  const auto place = find_name(directory, name);
  if (place == entries_.end()) return no_name();
  if (!S_ISDIR(place->second.record.mode)) return Error(ErrorCode::kNotDirectory, "no folder");
  if (has_names(place->first)) return Error(ErrorCode::kNotEmpty, "the folder has names");
  const Entries before = entries_;
  entries_.erase(place);
  return commit(before);
}

Result<void> BesideTable::rename(Ino from_directory, std::string_view from_name, Ino to_directory,
                                 std::string_view to_name, RenameMode mode) {
  const std::lock_guard lock(mutex_);
  VARVE_TRY(allow_change());
  VARVE_TRY(check_directory(to_directory));
  if (mode == RenameMode::kExchange) return Error(ErrorCode::kUnsupported, "no exchange here");
  if (to_name.size() > kNameBytesMax) return Error(ErrorCode::kNameTooLong, "the name is too long");
  if (!format::is_entry_name(to_name)) return Error(ErrorCode::kInvalid, "not a name");
  const auto from = find_name(from_directory, from_name);
  if (from == entries_.end()) return no_name();
  const bool is_folder = S_ISDIR(from->second.record.mode);
  if (is_folder && to_directory != kRootIno) {
    return Error(ErrorCode::kNotPermitted, "folders beside the versions have no folders");
  }
  const Entries before = entries_;
  const auto to = find_name(to_directory, to_name);
  if (to == from) return {};
  if (to != entries_.end()) {
    if (mode == RenameMode::kNoReplace) return Error(ErrorCode::kExists, "it exists");
    const bool onto_folder = S_ISDIR(to->second.record.mode);
    if (onto_folder && !is_folder) return Error(ErrorCode::kIsDirectory, "a folder");
    if (!onto_folder && is_folder) return Error(ErrorCode::kNotDirectory, "no folder");
    if (onto_folder && has_names(to->first)) return Error(ErrorCode::kNotEmpty, "it has names");
    remove(to);
  }
  from->second.record.parent = to_directory;
  from->second.record.name = to_name;
  touch(from->second, false);
  return commit(before);
}

Result<OpenEntry> BesideTable::set_attributes(Ino ino, const AttributeChange& change) {
  const std::lock_guard lock(mutex_);
  VARVE_TRY(allow_change());
  VARVE_TRY_ASSIGN(Entry* const entry, find(ino));
  Record& record = entry->record;
  if (change.size) {
    if (!S_ISREG(record.mode)) return Error(ErrorCode::kInvalid, "only files have a size to set");
    VARVE_TRY(check_size(*entry, *change.size));
  }
  const Entries before = entries_;
  if (change.mode) record.mode = (record.mode & S_IFMT) | (*change.mode & kModeBits);
  if (change.uid) record.uid = *change.uid;
  if (change.gid) record.gid = *change.gid;
  if (change.size) record.content.resize(*change.size);
  touch(*entry, change.size.has_value());
  if (change.atime) record.atime = *change.atime;
  if (change.mtime) record.mtime = *change.mtime;
  const auto result = entry_of(*entry);
  // A program that opens a file with O_TRUNC will write to the file and close the file.
  if (change.size && opened_.contains(ino)) {
    dirty_ = true;
    return result;
  }
  VARVE_TRY(commit(before));
  return result;
}

Result<std::string> BesideTable::read_link(Ino ino) {
  const std::lock_guard lock(mutex_);
  VARVE_TRY_ASSIGN(const Entry* const entry, find(ino));
  if (!S_ISLNK(entry->record.mode)) return Error(ErrorCode::kInvalid, "not a symbolic link");
  return entry->record.content;
}

Result<void> BesideTable::sync() {
  const std::lock_guard lock(mutex_);
  return dirty_ ? write() : Result<void>();
}

/// An open file.
class BesideTable::File final : public OpenFile {
 public:
  File(std::shared_ptr<BesideTable> table, Ino ino, bool writable)
      : table_(std::move(table)), ino_(ino), writable_(writable) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() override { table_->close(ino_); }

  [[nodiscard]] Ino ino() const override { return ino_; }

  [[nodiscard]] Result<void> write(std::uint64_t offset, std::span<const std::byte> data) override {
    const std::lock_guard lock(table_->mutex_);
    VARVE_TRY_ASSIGN(std::string* const content, grow(offset, data.size(), true));
    std::memcpy(content->data() + offset, data.data(), data.size());
    return {};
  }
  [[nodiscard]] Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> out) override {
    const std::lock_guard lock(table_->mutex_);
    VARVE_TRY_ASSIGN(const Entry* const entry, table_->find(ino_));
    const std::string& content = entry->record.content;
    if (offset >= content.size()) return std::size_t{0};
    const std::size_t bytes = std::min<std::size_t>(out.size(), content.size() - offset);
    std::memcpy(out.data(), content.data() + offset, bytes);
    return bytes;
  }
  [[nodiscard]] Result<std::uint64_t> seek_data(std::uint64_t offset) override {
    VARVE_TRY(size_after(offset));
    return offset;
  }
  [[nodiscard]] Result<std::uint64_t> seek_hole(std::uint64_t offset) override {
    return size_after(offset);
  }
  [[nodiscard]] Result<void> allocate(std::uint64_t offset, std::uint64_t bytes,
                                      AllocateMode mode) override {
    if (mode == AllocateMode::kKeepSize) return {};
    const std::lock_guard lock(table_->mutex_);
    VARVE_TRY_ASSIGN(const Entry* const entry, table_->find(ino_));
    const std::uint64_t size = entry->record.content.size();
    const bool extends = mode == AllocateMode::kExtend || mode == AllocateMode::kZeroRange;
    if (!extends && offset >= size) return {};
    if (!extends) bytes = std::min(bytes, size - offset);
    VARVE_TRY_ASSIGN(std::string* const content,
                     grow(offset, bytes, mode != AllocateMode::kExtend));
    if (mode != AllocateMode::kExtend) std::memset(content->data() + offset, 0, bytes);
    return {};
  }
  [[nodiscard]] Result<std::uint64_t> clone_range(FileReader& /*source*/, std::uint64_t /*begin*/,
                                                  std::uint64_t /*offset*/,
                                                  std::uint64_t /*bytes*/) override {
    return Error(ErrorCode::kOtherVersion, "nothing can be shared");
  }
  [[nodiscard]] Result<std::uint64_t> clone_range(OpenFile& /*source*/, std::uint64_t /*begin*/,
                                                  std::uint64_t /*offset*/,
                                                  std::uint64_t /*bytes*/) override {
    return Error(ErrorCode::kOtherVersion, "nothing can be shared");
  }
  [[nodiscard]] Result<void> flush() override { return table_->sync(); }
  [[nodiscard]] Result<void> sync() override { return table_->sync(); }

 private:
  /// Makes the file at least `bytes` longer than `offset`. The caller holds the mutex.
  [[nodiscard]] Result<std::string*> grow(std::uint64_t offset, std::uint64_t bytes, bool writes) {
    if (!writable_) return Error(ErrorCode::kBadHandle, "the file is open only for reading");
    VARVE_TRY(table_->allow_change());
    VARVE_TRY_ASSIGN(Entry* const entry, table_->find(ino_));
    std::string& content = entry->record.content;
    if (offset > kBesideFileBytesMax || bytes > kBesideFileBytesMax) {
      return Error(ErrorCode::kTooLarge, "a file beside the versions may have 1 MiB");
    }
    if (offset + bytes > content.size()) {
      VARVE_TRY(table_->check_size(*entry, offset + bytes));
      content.resize(offset + bytes);
    }
    table_->touch(*entry, writes);
    table_->dirty_ = true;
    return &content;
  }
  [[nodiscard]] Result<std::uint64_t> size_after(std::uint64_t offset) {
    const std::lock_guard lock(table_->mutex_);
    VARVE_TRY_ASSIGN(const Entry* const entry, table_->find(ino_));
    const std::uint64_t size = entry->record.content.size();
    if (offset >= size) return Error(ErrorCode::kPastEnd, "past the end");
    return size;
  }

  const std::shared_ptr<BesideTable> table_;
  const Ino ino_;
  const bool writable_;
};

Result<std::unique_ptr<OpenFile>> BesideTable::open(Ino ino, bool for_writing) {
  {
    const std::lock_guard lock(mutex_);
    VARVE_TRY_ASSIGN(const Entry* const entry, find(ino));
    if (S_ISDIR(entry->record.mode)) return Error(ErrorCode::kIsDirectory, "a folder");
    if (!S_ISREG(entry->record.mode)) return Error(ErrorCode::kInvalid, "not a regular file");
    if (for_writing) VARVE_TRY(allow_change());
    ++opened_[ino];
  }
  return std::unique_ptr<OpenFile>(std::make_unique<File>(shared_from_this(), ino, for_writing));
}

}  // namespace varve::repo
