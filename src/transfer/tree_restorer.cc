// SPDX-License-Identifier: Apache-2.0
// restore_version(): a sealed tree becomes files below a directory.
//
// The repository is not trusted: names are checked, every file is made by its name in an open
// directory with a call that fails where something already stands, and no symlink is followed.
// Files are read strictly in tree order, so that the read sessions stream.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "transfer/directory_stack.h"
#include "transfer/file_metadata.h"
#include "transfer/file_restorer.h"
#include "transfer/problem_list.h"
#include "transfer/source_listing.h"
#include "transfer/transfer_error.h"
#include "varve/maintenance.h"
#include "varve/version_reader.h"

namespace varve {
namespace transfer {
namespace {

using base::UniqueFd;

constexpr std::size_t kListBatch = 256;
// Deeper than any path that system calls take whole; bounds what a hostile tree can cost.
constexpr std::size_t kDepthMax = 16384;
constexpr int kDirectoryFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

bool safe_name(std::string_view name) {
  return !name.empty() && name.size() <= kNameBytesMax && name != "." && name != ".." &&
         name.find('/') == std::string_view::npos && name.find('\0') == std::string_view::npos;
}

/// A directory's place below the target; links in it share one object.
struct Place {
  std::shared_ptr<const Place> parent;
  std::string name;
};
using PlacePtr = std::shared_ptr<const Place>;

struct ListedEntry {
  std::uint64_t position = 0;
  std::string name;
  SealedEntry entry;
};

/// A directory whose entries are being restored.
struct Frame {
  Frame(const SealedEntry& its_entry, PlacePtr its_place)
      : entry(its_entry), place(std::move(its_place)) {}

  SealedEntry entry;
  std::size_t path_bytes = 0;  // Length of path_ without this directory's name.
  PlacePtr place;
  std::vector<ListedEntry> batch;
  std::size_t next = 0;
  std::uint64_t after = 0;
  bool listed = false;  // The last batch is in `batch`.
};

/// The first name of a hard-linked file; the others are linked to it.
struct FirstName {
  PlacePtr directory;
  std::string name;
  std::uint64_t names_left = 0;
};

class TreeRestorer {
 public:
  TreeRestorer(VersionReader& version, bool sparse,
               const std::function<bool(const TransferProgress&)>& progress)
      : version_(version),
        progress_(progress),
        data_(sparse, [this](std::uint64_t bytes) { return advance(bytes); }) {}

  [[nodiscard]] Result<TransferReport> run(const std::string& directory, const std::string& path);

 private:
  [[nodiscard]] Result<SealedEntry> find(const std::string& path, std::string& last_name);
  [[nodiscard]] Result<void> restore_children();
  [[nodiscard]] Result<void> fill_batch(Frame& frame);
  [[nodiscard]] Result<void> restore_entry(const std::string& name, const SealedEntry& entry);
  [[nodiscard]] Result<void> make_entry(const std::string& name, const SealedEntry& entry);
  [[nodiscard]] Result<void> enter_directory(const std::string& name, const SealedEntry& entry);
  [[nodiscard]] Result<void> leave_directory();
  [[nodiscard]] Result<void> make_file(const std::string& name, const SealedEntry& entry);
  [[nodiscard]] Result<void> make_symlink(const std::string& name, const SealedEntry& entry);
  [[nodiscard]] Result<void> make_special(const std::string& name, const SealedEntry& entry);
  [[nodiscard]] Result<bool> link_to_first(const std::string& name, const SealedEntry& entry);
  [[nodiscard]] Result<UniqueFd> open_place(const PlacePtr& place);
  void finish(const FileRef& file, const SealedEntry& entry);
  [[nodiscard]] bool advance(std::uint64_t bytes);

  VersionReader& version_;
  const std::function<bool(const TransferProgress&)>& progress_;
  FileRestorer data_;
  ProblemList problems_;
  TransferProgress done_;
  TransferReport report_;
  UniqueFd root_;
  DirectoryStack directories_;
  std::vector<Frame> frames_;  // One for each directory of the stack.
  std::string path_;           // Of the entry being restored, for messages.
  std::unordered_map<std::uint64_t, FirstName> first_names_;
};

/// The target directory, made if it is absent. It must be empty.
Result<UniqueFd> open_target(const std::string& directory) {
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    return system_error("cannot make " + directory, errno);
  }
  UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return system_error("cannot open " + directory, errno);
  auto names = list_names(fd.get());
  if (!names) return std::move(names).error().with_context("cannot list " + directory);
  if (!names->empty()) {
    return Error(ErrorCode::kNotEmpty, directory +
                                           " is not empty; restore into an empty or new "
                                           "directory");
  }
  // Default ACLs that the target inherited would stick to all that is made in it.
  for (const char* name : {"system.posix_acl_default", "system.posix_acl_access"}) {
    (void)::fremovexattr(fd.get(), name);
  }
  return fd;
}

Result<TransferReport> TreeRestorer::run(const std::string& directory, const std::string& path) {
  std::string name;
  VARVE_TRY_ASSIGN(const SealedEntry top, find(path, name));
  VARVE_TRY_ASSIGN(root_, open_target(directory));
  if (path.empty()) done_.bytes_total = version_.info().logical_bytes;
  UniqueFd fd(::openat(root_.get(), ".", kDirectoryFlags));
  if (!fd.valid()) return system_error("cannot open " + directory, errno);
  VARVE_TRY(directories_.push(std::move(fd)));
  if (S_ISDIR(top.attributes.mode)) {
    frames_.push_back(Frame(top, nullptr));
    ++report_.entries;
    VARVE_TRY(restore_children());
  } else {
    path_ = name;
    VARVE_TRY(restore_entry(name, top));
  }
  report_.bytes = done_.bytes_done;
  report_.problems = problems_.take();
  return std::move(report_);
}

Result<SealedEntry> TreeRestorer::find(const std::string& path, std::string& last_name) {
  VARVE_TRY_ASSIGN(SealedEntry entry, version_.get(0));
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string name = path.substr(at, end - at);
    at = end + 1;
    if (name.empty()) continue;
    if (!S_ISDIR(entry.attributes.mode)) {
      return Error(ErrorCode::kNotDirectory, last_name + " is not a directory in the version");
    }
    auto found = version_.lookup(entry.rank, name);
    if (!found) return std::move(found).error().with_context(path);
    entry = *found;
    last_name = name;
  }
  if (!S_ISDIR(entry.attributes.mode) && !safe_name(last_name)) {
    return Error(ErrorCode::kCorrupt, "the version's root is not a directory");
  }
  return entry;
}

Result<void> TreeRestorer::restore_children() {
  while (!frames_.empty()) {
    Frame& frame = frames_.back();
    if (frame.next == frame.batch.size()) {
      if (frame.listed) {
        VARVE_TRY(leave_directory());
      } else {
        VARVE_TRY(fill_batch(frame));
      }
      continue;
    }
    const ListedEntry item = std::move(frame.batch[frame.next++]);
    const std::size_t path_bytes = path_.size();
    if (!path_.empty()) path_ += '/';
    path_ += item.name;
    const std::size_t depth = frames_.size();
    VARVE_TRY(restore_entry(item.name, item.entry));
    if (frames_.size() == depth) {
      path_.resize(path_bytes);
    } else {
      frames_.back().path_bytes = path_bytes;
    }
  }
  return {};
}

/// The next entries, none at the directory's end. Entries are copied first
/// because a visitor must not call the version.
Result<void> TreeRestorer::fill_batch(Frame& frame) {
  frame.batch.clear();
  frame.next = 0;
  auto listed =
      version_.list(frame.entry.rank, frame.after,
                    [&](std::uint64_t position, std::string_view name, const SealedEntry& entry) {
                      frame.batch.push_back(ListedEntry{position, std::string(name), entry});
                      return frame.batch.size() < kListBatch;
                    });
  if (!listed) {
    if (ends_transfer(listed.error())) return listed;
    problems_.add(path_.empty() ? "." : path_, "not all entries: " + listed.error().message());
  }
  frame.listed = !listed || frame.batch.size() < kListBatch;
  if (!frame.batch.empty()) {
    if (frame.batch.back().position <= frame.after) {
      return Error(ErrorCode::kCorrupt, path_ + ": the directory's entries are out of order");
    }
    frame.after = frame.batch.back().position;
  }
  return {};
}

/// One entry; what concerns it alone becomes a problem, only what ends all is an error.
Result<void> TreeRestorer::restore_entry(const std::string& name, const SealedEntry& entry) {
  if (!safe_name(name)) {
    problems_.add(path_, "left out: a name that no file can have");
    return {};
  }
  auto made = make_entry(name, entry);
  if (!made) {
    if (ends_transfer(made.error())) return std::move(made).error().with_context(path_);
    problems_.add(path_, made.error().message());
    return {};
  }
  ++report_.entries;
  ++done_.files_done;
  if (!advance(0)) return Error(ErrorCode::kInterrupted, "interrupted");
  return {};
}

Result<void> TreeRestorer::make_entry(const std::string& name, const SealedEntry& entry) {
  if (S_ISDIR(entry.attributes.mode)) return enter_directory(name, entry);
  const bool linked = entry.link_group != 0;
  if (linked) {
    VARVE_TRY_ASSIGN(const bool done, link_to_first(name, entry));
    if (done) return {};
  }
  switch (entry.attributes.mode & S_IFMT) {
    case S_IFREG:
      VARVE_TRY(make_file(name, entry));
      break;
    case S_IFLNK:
      VARVE_TRY(make_symlink(name, entry));
      break;
    case S_IFBLK:
    case S_IFCHR:
    case S_IFIFO:
    case S_IFSOCK:
      VARVE_TRY(make_special(name, entry));
      break;
    default:
      return Error(ErrorCode::kCorrupt, "unknown file type");
  }
  if (linked && entry.attributes.nlink > 1) {
    const PlacePtr place = frames_.empty() ? nullptr : frames_.back().place;
    first_names_[entry.link_group] = FirstName{place, name, entry.attributes.nlink - 1ULL};
  }
  return {};
}

Result<void> TreeRestorer::enter_directory(const std::string& name, const SealedEntry& entry) {
  // Ranks ascend on every way down a sound tree, so this ends loops in a forged one.
  if (entry.rank <= frames_.back().entry.rank || directories_.depth() >= kDepthMax) {
    return Error(ErrorCode::kCorrupt, "left out: directories nested too deeply or in a circle");
  }
  if (::mkdirat(directories_.top(), name.c_str(), 0700) != 0) return system_error("mkdir", errno);
  UniqueFd fd(::openat(directories_.top(), name.c_str(), kDirectoryFlags));
  if (!fd.valid()) return system_error("open", errno);
  VARVE_TRY(directories_.push(std::move(fd)));
  frames_.push_back(Frame(entry, std::make_shared<const Place>(Place{frames_.back().place, name})));
  return {};
}

/// A directory's metadata comes last: its mode may forbid making files, which change its mtime.
Result<void> TreeRestorer::leave_directory() {
  VARVE_TRY_ASSIGN(const UniqueFd fd, directories_.pop());
  const Frame& frame = frames_.back();
  finish(FileRef::opened(fd.get()), frame.entry);
  path_.resize(frame.path_bytes);
  frames_.pop_back();
  return {};
}

Result<void> TreeRestorer::make_file(const std::string& name, const SealedEntry& entry) {
  VARVE_TRY_ASSIGN(const auto source, version_.open(entry.rank));
  UniqueFd fd(::openat(directories_.top(), name.c_str(),
                       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd.valid()) return system_error("create", errno);
  VARVE_TRY_ASSIGN(const UnreadableData lost, data_.copy(*source, fd.get()));
  if (lost.ranges > 0) {
    problems_.add(path_, fmt::format("damaged: {} bytes in {} places from offset {} on left as "
                                     "holes: {}",
                                     lost.bytes, lost.ranges, lost.first_offset, lost.reason));
  }
  finish(FileRef::opened(fd.get()), entry);
  // Network filesystems report failed writes here.
  if (::close(fd.release()) != 0) return system_error("close", errno);
  return {};
}

Result<void> TreeRestorer::make_symlink(const std::string& name, const SealedEntry& entry) {
  VARVE_TRY_ASSIGN(const std::string target, version_.read_link(entry.rank));
  if (target.empty() || target.find('\0') != std::string::npos) {
    return Error(ErrorCode::kCorrupt, "left out: a symlink without a target");
  }
  if (::symlinkat(target.c_str(), directories_.top(), name.c_str()) != 0) {
    return system_error("symlink", errno);
  }
  finish(FileRef::named(directories_.top(), name), entry);
  return {};
}

Result<void> TreeRestorer::make_special(const std::string& name, const SealedEntry& entry) {
  const mode_t mode = (entry.attributes.mode & S_IFMT) | 0600;
  if (::mknodat(directories_.top(), name.c_str(), mode,
                static_cast<dev_t>(entry.attributes.rdev)) != 0) {
    return system_error("mknod", errno);
  }
  finish(FileRef::named(directories_.top(), name), entry);
  return {};
}

/// False if this is the first of the file's names that could be restored.
Result<bool> TreeRestorer::link_to_first(const std::string& name, const SealedEntry& entry) {
  const auto found = first_names_.find(entry.link_group);
  if (found == first_names_.end()) return false;
  FirstName& first = found->second;
  auto directory = open_place(first.directory);
  const bool opened = directory.has_value();
  if (!opened ||
      ::linkat(directory->get(), first.name.c_str(), directories_.top(), name.c_str(), 0) != 0) {
    // Some filesystems take fewer links, or none: then the name becomes a file of its own.
    const int reason = opened ? errno : directory.error().errno_value();
    problems_.add(path_, "stands alone instead of as a hard link: " + errno_text(reason));
    return false;
  }
  if (--first.names_left == 0) first_names_.erase(found);
  return true;
}

/// Opened name by name: the path may be longer than a system call takes, and nothing in it
/// may be a symlink.
Result<UniqueFd> TreeRestorer::open_place(const PlacePtr& place) {
  std::vector<const Place*> way;
  for (const Place* at = place.get(); at != nullptr; at = at->parent.get()) way.push_back(at);
  UniqueFd fd(::openat(root_.get(), ".", kDirectoryFlags | O_PATH));
  for (auto at = way.rbegin(); fd.valid() && at != way.rend(); ++at) {
    fd = UniqueFd(::openat(fd.get(), (*at)->name.c_str(), kDirectoryFlags | O_PATH));
  }
  if (!fd.valid()) return system_error("open", errno);
  return fd;
}

void TreeRestorer::finish(const FileRef& file, const SealedEntry& entry) {
  const std::string& path = path_.empty() ? "." : path_;
  auto xattrs = version_.xattrs(entry.rank);
  if (!xattrs) problems_.add(path, "extended attributes: " + xattrs.error().message());
  apply_metadata(file, entry.attributes, xattrs ? *xattrs : Xattrs(), path, problems_);
}

bool TreeRestorer::advance(std::uint64_t bytes) {
  done_.bytes_done += bytes;
  return !progress_ || progress_(done_);
}

}  // namespace
}  // namespace transfer

Result<TransferReport> restore_version(
    VersionReader& version, const std::string& directory, const RestoreOptions& options,
    const std::function<bool(const TransferProgress&)>& progress) {
  return transfer::TreeRestorer(version, options.sparse, progress).run(directory, options.path);
}

}  // namespace varve
