// SPDX-License-Identifier: Apache-2.0
// store_tree(): stores the files below a directory in an open version.
//
// The importer walks the tree in the order in which a sealed version is read: depth first, names in
// byte order. Neighbours in the tree therefore become neighbours in the store. The tree may change
// during the walk. The importer opens each file by name in an open directory, without following
// symlinks. It uses the attributes of the opened file, not those of an earlier look.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "transfer/directory_stack.h"
#include "transfer/file_metadata.h"
#include "transfer/problem_list.h"
#include "transfer/source_listing.h"
#include "transfer/target_entry.h"
#include "transfer/transfer_error.h"
#include "varve/backup.h"

namespace varve {
namespace transfer {
namespace {

using base::UniqueFd;

constexpr std::size_t kWriteBytes = 1U << 20;
constexpr std::uint64_t kRoomAskedMax = 64U << 20;
/// Varve itself provides attributes with this prefix at a version's root.
constexpr std::string_view kOwnXattrPrefix = "user.varve.";

struct Frame {
  Ino ino = 0;
  struct stat status {};
  std::vector<std::string> names;
  std::size_t next = 0;
  std::size_t path_bytes = 0;
};

/// A hard-linked file already stored under its first name.
struct StoredLink {
  Ino ino = 0;
  std::uint64_t names_left = 0;
};

class TreeImporter {
 public:
  TreeImporter(VersionWriter& version, const std::function<bool(const TransferProgress&)>& progress,
               const StoreOptions& options)
      : version_(version), progress_(progress), options_(options), buffer_(kWriteBytes) {}

  [[nodiscard]] Result<TransferReport> run(const std::string& directory);

 private:
  [[nodiscard]] Result<void> store_children();
  [[nodiscard]] Result<void> store_entry(const std::string& name);
  [[nodiscard]] Result<void> store_file(const std::string& name);
  [[nodiscard]] Result<void> ask_for_room(const std::string& name, const struct stat& status);
  [[nodiscard]] Result<bool> store_link(const struct stat& status, const std::string& name);
  [[nodiscard]] Result<void> enter_directory(UniqueFd fd, Ino ino);
  [[nodiscard]] Result<void> leave_directory();
  [[nodiscard]] Result<void> store_directory(const std::string& name);
  [[nodiscard]] Result<void> store_data(int fd, const struct stat& status, Ino ino);
  [[nodiscard]] Result<void> store_range(int fd, OpenFile& file, std::uint64_t begin,
                                         std::uint64_t& end);
  [[nodiscard]] Result<void> store_other(const std::string& name, const struct stat& status);
  [[nodiscard]] Result<OpenEntry> make(const std::string& name, const struct stat& status,
                                       std::string symlink_target);
  [[nodiscard]] Result<void> finish(const FileRef& file, Ino ino, const struct stat& status);
  void remember_link(const struct stat& status, Ino ino);
  [[nodiscard]] bool advance(std::uint64_t bytes);
  /// Returns the version's answer. Records if the repository is broken: then the importer does not
  /// continue with the next file.
  template <typename T>
  [[nodiscard]] Result<T> checked(Result<T> answer) {
    if (!answer &&
        (answer.error().code() == ErrorCode::kIo || answer.error().code() == ErrorCode::kCorrupt)) {
      repository_failed_ = true;
    }
    return answer;
  }
  [[nodiscard]] bool ends(const Error& error) const {
    return repository_failed_ || ends_transfer(error);
  }

  VersionWriter& version_;
  const std::function<bool(const TransferProgress&)>& progress_;
  const StoreOptions& options_;
  std::vector<std::byte> buffer_;
  bool repository_failed_ = false;
  ProblemList problems_;
  TransferProgress done_;
  TransferReport report_;
  DirectoryStack directories_;
  std::vector<Frame> frames_;  // One for each directory of the stack.
  std::string path_;           // Path of the entry being stored, for messages.
  std::map<std::pair<dev_t, ino_t>, StoredLink> links_;
};

Result<TransferReport> TreeImporter::run(const std::string& directory) {
  UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return system_error("cannot open " + directory, errno);
  VARVE_TRY(enter_directory(std::move(fd), kRootIno));
  ++report_.entries;
  VARVE_TRY(store_children());
  report_.bytes = done_.bytes_done;
  report_.problems = problems_.take();
  return std::move(report_);
}

Result<void> TreeImporter::store_children() {
  while (!frames_.empty()) {
    Frame& frame = frames_.back();
    if (frame.next == frame.names.size()) {
      VARVE_TRY(leave_directory());
      continue;
    }
    const std::string name = std::move(frame.names[frame.next++]);
    const std::size_t path_bytes = path_.size();
    if (!path_.empty()) path_ += '/';
    path_ += name;
    const std::size_t depth = frames_.size();
    auto stored = store_entry(name);
    if (!stored) {
      if (ends(stored.error())) return std::move(stored).error().with_context(path_);
      problems_.add(path_, stored.error().message());
    } else {
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

Result<void> TreeImporter::store_entry(const std::string& name) {
  struct stat status {};
  if (::fstatat(directories_.top(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
    return system_error("not stored", errno);
  }
  if (S_ISDIR(status.st_mode)) return store_directory(name);
  VARVE_TRY_ASSIGN(const bool linked, store_link(status, name));
  if (linked) return {};
  return S_ISREG(status.st_mode) ? store_file(name) : store_other(name, status);
}

/// Links `name` to the file if the version already has it. Returns false if it does not.
Result<bool> TreeImporter::store_link(const struct stat& status, const std::string& name) {
  const auto found = links_.find({status.st_dev, status.st_ino});
  if (found == links_.end()) return false;
  const Ino directory = frames_.back().ino;
  auto linked = checked(version_.link(found->second.ino, directory, name));
  if (!linked && linked.error().code() == ErrorCode::kExists) {
    VARVE_TRY(checked(version_.unlink(directory, name)));
    linked = checked(version_.link(found->second.ino, directory, name));
  }
  if (!linked) return std::move(linked).error();
  if (--found->second.names_left == 0) links_.erase(found);
  return true;
}

void TreeImporter::remember_link(const struct stat& status, Ino ino) {
  if (status.st_nlink < 2) return;
  links_[{status.st_dev, status.st_ino}] = StoredLink{ino, status.st_nlink - 1};
}

Result<void> TreeImporter::enter_directory(UniqueFd fd, Ino ino) {
  Frame frame;
  frame.ino = ino;
  if (::fstat(fd.get(), &frame.status) != 0) return system_error("fstat", errno);
  const DirectoryIdentity identity{frame.status.st_dev, frame.status.st_ino};
  if (std::ranges::find(options_.without_entries, identity) == options_.without_entries.end()) {
    VARVE_TRY_ASSIGN(frame.names, list_names(fd.get()));
  } else if (options_.left_out) {
    options_.left_out(path_);
  }
  VARVE_TRY(directories_.push(std::move(fd)));
  frames_.push_back(std::move(frame));
  return {};
}

/// Sets a directory's metadata last, because new files in it change its mtime.
Result<void> TreeImporter::leave_directory() {
  VARVE_TRY_ASSIGN(const SharedFd fd, directories_.pop());
  const Frame frame = std::move(frames_.back());
  frames_.pop_back();
  auto finished = finish(FileRef::opened(fd->get()), frame.ino, frame.status);
  if (!finished) {
    if (ends(finished.error())) return finished;
    problems_.add(path_.empty() ? "." : path_, finished.error().message());
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
  auto existing = checked(version_.lookup(parent, name));
  Ino ino = 0;
  if (existing && S_ISDIR(existing->attributes.mode)) {
    ino = existing->ino;
  } else {
    VARVE_TRY_ASSIGN(const OpenEntry made, make(name, status, {}));
    ino = made.ino;
  }
  return enter_directory(std::move(fd), ino);
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

/// Checks that the disk has room for new data, before an earlier run's file of that name is
/// dropped. The amount of new data is not known yet, because most of a large file may be stored
/// already.
Result<void> TreeImporter::ask_for_room(const std::string& name, const struct stat& status) {
  const auto present = checked(version_.lookup(frames_.back().ino, name));
  if (!present || !S_ISREG(present->attributes.mode) || status.st_size == 0) return {};
  VARVE_TRY_ASSIGN(const auto file, checked(version_.open(present->ino, true)));
  const auto bytes = std::min(static_cast<std::uint64_t>(status.st_size), kRoomAskedMax);
  return checked(file->allocate(0, bytes, AllocateMode::kKeepSize));
}

Result<void> TreeImporter::store_file(const std::string& name) {
  // O_NONBLOCK: a FIFO that has replaced the file must not block the importer. Only the owner and
  // root may use O_NOATIME.
  constexpr int kFlags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
  UniqueFd fd(::openat(directories_.top(), name.c_str(), kFlags | O_NOATIME));
  if (!fd.valid() && errno == EPERM) {
    fd = UniqueFd(::openat(directories_.top(), name.c_str(), kFlags));
  }
  if (!fd.valid()) return system_error("not stored", errno);
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return system_error("fstat", errno);
  if (!S_ISREG(status.st_mode)) {
    return Error(ErrorCode::kInvalid, "replaced by another kind of file during the import");
  }
  VARVE_TRY(ask_for_room(name, status));
  VARVE_TRY_ASSIGN(const OpenEntry made, make(name, status, {}));
  auto stored = store_data(fd.get(), status, made.ino);
  if (stored) stored = finish(FileRef::opened(fd.get()), made.ino, status);
  if (!stored) {
    // An incomplete file could be mistaken for a complete one.
    VARVE_TRY(checked(version_.unlink(frames_.back().ino, name)));
    return std::move(stored).error().with_context("not stored");
  }
  remember_link(status, made.ino);
  return {};
}

/// Stores a file's data. Never reads past the size seen first, so a growing file ends too.
Result<void> TreeImporter::store_data(int fd, const struct stat& status, Ino ino) {
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size == 0) return {};
  VARVE_TRY_ASSIGN(const auto file, checked(version_.open(ino, true)));
  // Only a file with fewer blocks than bytes can have holes.
  const bool may_have_holes = static_cast<std::uint64_t>(status.st_blocks) * 512 < size;
  std::uint64_t size_now = size;
  for (std::uint64_t offset = 0; offset < size_now;) {
    std::uint64_t end = size_now;
    if (may_have_holes) {
      const off_t data = ::lseek(fd, static_cast<off_t>(offset), SEEK_DATA);
      if (data < 0 && errno == ENXIO) break;  // The rest is a hole.
      if (data >= 0) {
        offset = static_cast<std::uint64_t>(data);
        const off_t hole = ::lseek(fd, data, SEEK_HOLE);
        if (hole > data) end = std::min(size_now, static_cast<std::uint64_t>(hole));
      }
    }
    if (offset >= end) break;
    const std::uint64_t wanted = end;
    VARVE_TRY(store_range(fd, *file, offset, end));
    if (end < wanted) size_now = end;  // The file was truncated meanwhile.
    offset = end;
  }
  VARVE_TRY(checked(file->flush()));
  if (may_have_holes) {
    AttributeChange change;
    change.size = size_now;
    VARVE_TRY(checked(version_.set_attributes(ino, change)));
  }
  return {};
}

/// Stores [begin, end). If the file ends earlier, sets `end` to its end.
Result<void> TreeImporter::store_range(int fd, OpenFile& file, std::uint64_t begin,
                                       std::uint64_t& end) {
  while (begin < end) {
    const std::size_t length = std::min<std::uint64_t>(kWriteBytes, end - begin);
    const ssize_t n = ::pread(fd, buffer_.data(), length, static_cast<off_t>(begin));
    if (n < 0) {
      if (errno == EINTR) continue;
      return system_error("read", errno);
    }
    if (n == 0) {
      end = begin;
      return {};
    }
    const auto got = static_cast<std::size_t>(n);
    VARVE_TRY(checked(file.write(begin, std::span<const std::byte>(buffer_).first(got))));
    begin += got;
    if (!advance(got)) return Error(ErrorCode::kInterrupted, "interrupted");
  }
  return {};
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
  VARVE_TRY(finish(FileRef::named(directories_.top(), name), made.ino, status));
  remember_link(status, made.ino);
  return {};
}

/// Sets extended attributes and the other metadata. This must follow the data, because a write
/// changes the mtime and clears the setuid bit.
Result<void> TreeImporter::finish(const FileRef& file, Ino ino, const struct stat& status) {
  const std::string& path = path_.empty() ? "." : path_;
  auto xattrs = read_xattrs(file);
  if (!xattrs) {
    problems_.add(path, xattrs.error().message());
    xattrs = Xattrs();
  }
  for (const Xattr& xattr : *xattrs) {
    if (ino == kRootIno && xattr.name.starts_with(kOwnXattrPrefix)) continue;
    auto set = checked(version_.set_xattr(ino, xattr.name, xattr.value, XattrMode::kAny));
    if (!set && ends(set.error())) return set;
    if (!set) {
      problems_.add_shared("attribute " + xattr.name + " not stored: " + set.error().message(),
                           path);
    }
  }
  AttributeChange change;
  change.mode = status.st_mode & 07777U;
  change.uid = status.st_uid;
  change.gid = status.st_gid;
  change.mtime =
      Timestamp{status.st_mtim.tv_sec, static_cast<std::uint32_t>(status.st_mtim.tv_nsec)};
  VARVE_TRY(checked(version_.set_attributes(ino, change)));
  return {};
}

bool TreeImporter::advance(std::uint64_t bytes) {
  done_.bytes_done += bytes;
  return !progress_ || progress_(done_);
}

}  // namespace
}  // namespace transfer

Result<TransferReport> store_tree(VersionWriter& version, const std::string& directory,
                                  const std::function<bool(const TransferProgress&)>& progress,
                                  const StoreOptions& options) {
  return transfer::TreeImporter(version, progress, options).run(directory);
}

}  // namespace varve
