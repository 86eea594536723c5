// SPDX-License-Identifier: Apache-2.0
// store_tree(): stores the files below a directory in an open version.
//
// The importer walks the tree in the read order of a sealed version: depth first, names in byte
// order. Neighbours in the tree therefore become neighbours in the store. The tree may change
// during the walk. The importer opens each file by name in an open directory, without following
// symlinks, and uses the attributes of the opened file, not the result of an earlier stat(2).
//
// With SourceTracking, the version starts as a clone of an earlier version, and the importer makes
// the clone equal to the source. A file stays unchanged if the clone did not change the file, and
// if the source file still has the recorded inode and ctime. The importer counts the entries during
// the walk: an entry's number is its rank in the sealed version.
#include "transfer/tree_importer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "transfer/data_importer.h"
#include "transfer/directory_stack.h"
#include "transfer/file_metadata.h"
#include "transfer/metadata_importer.h"
#include "transfer/problem_list.h"
#include "transfer/source_file.h"
#include "transfer/source_filter.h"
#include "transfer/target_entry.h"
#include "transfer/transfer_error.h"
#include "transfer/version_names.h"
#include "varve/backup.h"

namespace varve {
namespace transfer {
namespace {

using base::UniqueFd;

constexpr std::uint64_t kRoomAskedMax = 64U << 20;
constexpr int kReadsMax = 4;
constexpr auto kChangedText =
    "it changed each time while it was read; its parts may be of different times";

struct Frame {
  Ino ino = 0;
  struct stat status {};
  std::vector<std::string> names;
  std::size_t next = 0;
  std::size_t path_bytes = 0;
  bool is_new = false;
  VersionNames stored;  // Names in the version. Only used with SourceTracking.
};

/// A hard-linked file already stored under the first name.
struct StoredLink {
  Ino ino = 0;
  std::uint64_t names_left = 0;
};

class TreeImporter {
 public:
  TreeImporter(VersionWriter& version, const std::function<bool(const TransferProgress&)>& progress,
               SourceFilter& filter, const SourceTracking* tracking)
      : version_(version),
        progress_(progress),
        filter_(filter),
        tracking_(tracking),
        data_(version, errors_, [this](std::uint64_t bytes) { return advance(bytes); }),
        metadata_(version, errors_, problems_) {}

  [[nodiscard]] Result<TransferReport> run(const std::string& directory);

 private:
  [[nodiscard]] Result<void> store_children();
  [[nodiscard]] Result<bool> store_named(const std::string& name);
  [[nodiscard]] Result<void> store_entry(const std::string& name, const struct stat& status);
  [[nodiscard]] Result<void> find_stored(const std::string* name);
  [[nodiscard]] bool is_unchanged(const struct stat& status);
  void count(const std::optional<SourceState>& state);
  [[nodiscard]] std::optional<SourceState> state_of(const struct stat& status);
  [[nodiscard]] Result<void> store_file(const std::string& name);
  [[nodiscard]] Result<bool> store_file_once(const std::string& name, bool is_last);
  [[nodiscard]] Result<void> ask_for_room(const std::string& name, const struct stat& status);
  [[nodiscard]] Result<bool> store_link(const struct stat& status, const std::string& name);
  [[nodiscard]] Result<void> enter_directory(UniqueFd fd, Ino ino, bool is_new);
  [[nodiscard]] Result<void> leave_directory();
  [[nodiscard]] Result<void> store_directory(const std::string& name);
  [[nodiscard]] Result<void> store_other(const std::string& name, const struct stat& status);
  [[nodiscard]] Result<OpenEntry> make(const std::string& name, const struct stat& status,
                                       std::string symlink_target);
  [[nodiscard]] Result<void> drop_incomplete(const std::string& name);
  void remember_link(const struct stat& status, Ino ino);
  [[nodiscard]] bool advance(std::uint64_t bytes);
  template <typename T>
  [[nodiscard]] Result<T> checked(Result<T> answer) {
    return errors_.checked(std::move(answer));
  }
  [[nodiscard]] bool ends(const Error& error) const { return errors_.ends(error); }

  VersionWriter& version_;
  const std::function<bool(const TransferProgress&)>& progress_;
  SourceFilter& filter_;
  const SourceTracking* const tracking_;  // Null: entries are only added and replaced.
  VersionErrors errors_;
  DataImporter data_;
  ProblemList problems_;
  MetadataImporter metadata_;
  bool counted_ = false;               // True once the present entry has a rank.
  std::optional<OpenEntry> existing_;  // The version's entry with the present entry's name.
  TransferProgress done_;
  TransferReport report_;
  DirectoryStack directories_;
  std::vector<Frame> frames_;  // A frame for each directory of the stack.
  std::string path_;           // Path of the entry being stored, for messages.
  std::map<std::pair<dev_t, ino_t>, StoredLink> links_;
};

Result<TransferReport> TreeImporter::run(const std::string& directory) {
  UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return system_error("cannot open " + directory, errno);
  VARVE_TRY(enter_directory(std::move(fd), kRootIno, false));
  count(std::nullopt);
  VARVE_TRY(store_children());
  for (const std::string& path : filter_.missing()) {
    problems_.add(path, "not stored: the directory has no such file");
  }
  report_.problems = problems_.take();
  return std::move(report_);
}

Result<void> TreeImporter::store_children() {
  while (!frames_.empty()) {
    Frame& frame = frames_.back();
    if (frame.next == frame.names.size()) {
      VARVE_TRY(find_stored(nullptr));
      VARVE_TRY(leave_directory());
      continue;
    }
    const std::string name = std::move(frame.names[frame.next++]);
    const std::size_t path_bytes = path_.size();
    if (!path_.empty()) path_ += '/';
    path_ += name;
    const std::size_t depth = frames_.size();
    auto stored = store_named(name);
    if (!stored) {
      if (ends(stored.error())) return std::move(stored).error().with_context(path_);
      problems_.add(path_, stored.error().message());
      VARVE_TRY(drop_incomplete(name));
    } else if (*stored) {
      ++report_.entries;
      ++done_.files_done;
    }
    if (!advance(0)) return Error(ErrorCode::kInterrupted, "interrupted");
    if (frames_.size() == depth) {
      path_.resize(path_bytes);
    } else {
      frames_.back().path_bytes = path_bytes;
    }
  }
  return {};
}

/// Returns false if the entry is excluded. With SourceTracking, the version loses an excluded
/// entry.
Result<bool> TreeImporter::store_named(const std::string& name) {
  counted_ = false;
  VARVE_TRY(find_stored(&name));
  struct stat status {};
  const bool seen = ::fstatat(directories_.top(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
  const int reason = errno;
  if (filter_.leaves_out(path_, seen ? std::optional(status.st_mode) : std::nullopt)) {
    if (existing_) {
      VARVE_TRY(checked(remove_tree(version_, frames_.back().ino, name)));
      ++report_.removed;
    }
    return false;
  }
  if (!seen) return system_error("not stored", reason);
  VARVE_TRY(store_entry(name, status));
  return true;
}

/// Sets `existing_` for a name of the present directory. Removes the version's earlier names,
/// because the source lacks these names; null removes all remaining names.
Result<void> TreeImporter::find_stored(const std::string* name) {
  existing_.reset();
  if (tracking_ == nullptr) return {};
  Frame& frame = frames_.back();
  while (true) {
    VARVE_TRY_ASSIGN(const VersionName* found, checked(frame.stored.peek(version_)));
    if (found == nullptr || (name != nullptr && found->name > *name)) return {};
    frame.stored.take();
    if (name != nullptr && found->name == *name) {
      existing_ = found->entry;
      return {};
    }
    VARVE_TRY(checked(remove_tree(version_, frame.ino, found->name)));
    ++report_.removed;
  }
}

/// Removes the version's part of an entry that could not be stored, so that the version never has
/// the entry's state in an earlier version. A directory that could not be listed stays, without
/// entries.
Result<void> TreeImporter::drop_incomplete(const std::string& name) {
  if (tracking_ == nullptr) return {};
  const Ino directory = frames_.back().ino;
  if (!counted_) return checked(remove_tree(version_, directory, name));
  VARVE_TRY_ASSIGN(const auto entry, checked(version_.lookup(directory, name)));
  return checked(clear_directory(version_, entry.ino));
}

/// Returns the state by which the next store finds the file unchanged; nullopt if the next store
/// must read the file.
std::optional<SourceState> TreeImporter::state_of(const struct stat& status) {
  if (tracking_ == nullptr) return std::nullopt;
  const Timestamp mtime = time_of(status.st_mtim);
  const Timestamp ctime = time_of(status.st_ctim);
  if (!tracking_->clock->is_settled(directories_.top(), status.st_dev, mtime, ctime)) {
    return std::nullopt;
  }
  return SourceState{status.st_ino, status.st_dev, ctime};
}

/// Gives the present entry the next rank.
void TreeImporter::count(const std::optional<SourceState>& state) {
  counted_ = true;
  if (tracking_ != nullptr) tracking_->next->add(state);
}

/// Returns whether the version already has the file's present state.
bool TreeImporter::is_unchanged(const struct stat& status) {
  if (!existing_ || !existing_->as_in_base || tracking_->previous == nullptr) return false;
  const Attributes& stored = existing_->attributes;
  const bool special = S_ISBLK(status.st_mode) || S_ISCHR(status.st_mode);
  if (stored.mode != status.st_mode || stored.uid != status.st_uid || stored.gid != status.st_gid ||
      stored.mtime != time_of(status.st_mtim) || (special && stored.rdev != status.st_rdev) ||
      (!special && stored.size != static_cast<std::uint64_t>(status.st_size))) {
    return false;
  }
  const auto state = state_of(status);
  return state && tracking_->previous->matches(existing_->ino - 1, *state);
}

Result<void> TreeImporter::store_entry(const std::string& name, const struct stat& status) {
  if (S_ISDIR(status.st_mode)) return store_directory(name);
  VARVE_TRY_ASSIGN(const bool linked, store_link(status, name));
  if (linked) {
    count(std::nullopt);  // The file's state belongs to the first name.
    return {};
  }
  if (is_unchanged(status)) {
    remember_link(status, existing_->ino);
    count(state_of(status));
    ++report_.unchanged;
    report_.unchanged_bytes += existing_->attributes.data_bytes;
    return {};
  }
  if (existing_ && S_ISDIR(existing_->attributes.mode)) {
    VARVE_TRY(checked(remove_tree(version_, frames_.back().ino, name)));
  }
  return S_ISREG(status.st_mode) ? store_file(name) : store_other(name, status);
}

/// Links `name` to the file if the version already has the file; otherwise returns false.
Result<bool> TreeImporter::store_link(const struct stat& status, const std::string& name) {
  const auto found = links_.find({status.st_dev, status.st_ino});
  if (found == links_.end()) return false;
  const Ino directory = frames_.back().ino;
  if (!existing_ || existing_->ino != found->second.ino) {
    auto linked = checked(version_.link(found->second.ino, directory, name));
    if (!linked && linked.error().code() == ErrorCode::kExists) {
      VARVE_TRY(checked(remove_tree(version_, directory, name)));
      linked = checked(version_.link(found->second.ino, directory, name));
    }
    if (!linked) return std::move(linked).error();
  }
  if (--found->second.names_left == 0) links_.erase(found);
  return true;
}

void TreeImporter::remember_link(const struct stat& status, Ino ino) {
  if (status.st_nlink < 2) return;
  links_[{status.st_dev, status.st_ino}] = StoredLink{ino, status.st_nlink - 1};
}

Result<void> TreeImporter::enter_directory(UniqueFd fd, Ino ino, bool is_new) {
  Frame frame;
  frame.ino = ino;
  frame.is_new = is_new;
  if (!is_new) frame.stored = VersionNames(ino);
  if (::fstat(fd.get(), &frame.status) != 0) return system_error("fstat", errno);
  VARVE_TRY_ASSIGN(frame.names, filter_.list(fd.get(), frame.status, path_));
  VARVE_TRY(directories_.push(std::move(fd)));
  frames_.push_back(std::move(frame));
  return {};
}

/// Sets a directory's metadata last, because new files change the directory's mtime.
Result<void> TreeImporter::leave_directory() {
  VARVE_TRY_ASSIGN(const SharedFd fd, directories_.pop());
  const Frame frame = std::move(frames_.back());
  frames_.pop_back();
  const FileRef file = FileRef::opened(fd->get());
  const std::string& path = path_.empty() ? "." : path_;
  auto finished = tracking_ != nullptr && !frame.is_new
                      ? metadata_.adjust(file, frame.ino, frame.status, path)
                      : metadata_.set(file, frame.ino, frame.status, path);
  if (!finished) {
    if (ends(finished.error())) return finished;
    problems_.add(path, finished.error().message());
  }
  path_.resize(frame.path_bytes);
  return {};
}

Result<void> TreeImporter::store_directory(const std::string& name) {
  UniqueFd fd(::openat(directories_.top(), name.c_str(), kDirectoryFlags));
  if (!fd.valid()) return system_error("not stored", errno);
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return system_error("fstat", errno);
  const Ino parent = frames_.back().ino;
  if (tracking_ == nullptr) {
    if (auto found = checked(version_.lookup(parent, name)); found) existing_ = *found;
  }
  const bool is_new = !existing_ || !S_ISDIR(existing_->attributes.mode);
  if (is_new) {
    VARVE_TRY_ASSIGN(existing_, make(name, status, {}));
  }
  count(std::nullopt);
  return enter_directory(std::move(fd), existing_->ino, is_new);
}

/// Creates `name`. Replaces an entry that an interrupted run left there.
Result<OpenEntry> TreeImporter::make(const std::string& name, const struct stat& status,
                                     std::string symlink_target) {
  NewFile file;
  file.mode = status.st_mode;
  file.uid = status.st_uid;
  file.gid = status.st_gid;
  if (S_ISBLK(status.st_mode) || S_ISCHR(status.st_mode)) file.rdev = status.st_rdev;
  file.symlink_target = std::move(symlink_target);
  const Ino directory = frames_.back().ino;
  auto made = checked(version_.create(directory, name, file));
  if (made || made.error().code() != ErrorCode::kExists) return made;
  auto removed = checked(version_.unlink(directory, name));
  if (!removed && removed.error().code() == ErrorCode::kIsDirectory) {
    removed = checked(version_.remove_directory(directory, name));
  }
  if (!removed) return std::move(removed).error().with_context("cannot be replaced");
  return checked(version_.create(directory, name, file));
}

/// Checks that the disk has room for new data, before an earlier run's file `name` is dropped. The
/// amount of new data is not known yet, because most of a large file may be stored already.
Result<void> TreeImporter::ask_for_room(const std::string& name, const struct stat& status) {
  const auto present = checked(version_.lookup(frames_.back().ino, name));
  if (!present || !S_ISREG(present->attributes.mode) || status.st_size == 0) return {};
  VARVE_TRY_ASSIGN(const auto file, checked(version_.open(present->ino, true)));
  const auto bytes = std::min(static_cast<std::uint64_t>(status.st_size), kRoomAskedMax);
  return checked(file->allocate(0, bytes, AllocateMode::kKeepSize));
}

/// Stores a file, and again if another program changed the file meanwhile: the stored parts would
/// be of different times.
Result<void> TreeImporter::store_file(const std::string& name) {
  for (int reads = 1;; ++reads) {
    const std::uint64_t before = done_.bytes_done;
    VARVE_TRY_ASSIGN(const bool is_done, store_file_once(name, reads == kReadsMax));
    if (!is_done) continue;
    report_.bytes += done_.bytes_done - before;  // Without the former reads.
    return {};
  }
}

/// Returns false if the file changed meanwhile, unless `is_last`.
Result<bool> TreeImporter::store_file_once(const std::string& name, bool is_last) {
  struct stat status {};
  VARVE_TRY_ASSIGN(const UniqueFd fd, open_source_file(directories_.top(), name, status));
  auto state = state_of(status);
  if (state && !tracking_->clock->settle_mappings(fd.get(), state->ctime)) state.reset();
  const std::uint64_t problems = metadata_.problems();
  VARVE_TRY(ask_for_room(name, status));
  VARVE_TRY_ASSIGN(const OpenEntry made, make(name, status, {}));
  auto stored = data_.store(fd.get(), status, made.ino);
  if (stored) stored = metadata_.set(FileRef::opened(fd.get()), made.ino, status, path_);
  if (!stored) {
    // An incomplete file could be mistaken for a complete one.
    VARVE_TRY(checked(version_.unlink(frames_.back().ino, name)));
    return std::move(stored).error().with_context("not stored");
  }
  VARVE_TRY_ASSIGN(const bool changed, has_changed(fd.get(), status));
  if (changed && !is_last) return false;
  if (changed) problems_.add(path_, kChangedText);
  remember_link(status, made.ino);
  count(changed || problems != metadata_.problems() ? std::nullopt : state);
  return true;
}

/// Stores symlinks, devices, FIFOs and sockets.
Result<void> TreeImporter::store_other(const std::string& name, const struct stat& status) {
  std::string target;
  if (S_ISLNK(status.st_mode)) {
    target.resize(kSymlinkBytesMax + 1);
    const ssize_t n = ::readlinkat(directories_.top(), name.c_str(), target.data(), target.size());
    if (n < 0) return system_error("readlink", errno);
    target.resize(static_cast<std::size_t>(n));
  }
  VARVE_TRY_ASSIGN(const OpenEntry made, make(name, status, std::move(target)));
  const std::uint64_t problems = metadata_.problems();
  const FileRef file = FileRef::named(directories_.top(), name);
  VARVE_TRY(metadata_.set(file, made.ino, status, path_));
  remember_link(status, made.ino);
  count(problems == metadata_.problems() ? state_of(status) : std::nullopt);
  return {};
}

bool TreeImporter::advance(std::uint64_t bytes) {
  done_.bytes_done += bytes;
  return !progress_ || progress_(done_);
}

}  // namespace

Result<TransferReport> import_tree(VersionWriter& version, const std::string& directory,
                                   const std::function<bool(const TransferProgress&)>& progress,
                                   const StoreOptions& options, const SourceTracking* tracking) {
  VARVE_TRY_ASSIGN(SourceFilter filter, SourceFilter::create(options));
  return TreeImporter(version, progress, filter, tracking).run(directory);
}

}  // namespace transfer

Result<TransferReport> store_tree(VersionWriter& version, const std::string& directory,
                                  const std::function<bool(const TransferProgress&)>& progress,
                                  const StoreOptions& options) {
  return transfer::import_tree(version, directory, progress, options, nullptr);
}

}  // namespace varve
