// SPDX-License-Identifier: Apache-2.0
// Walks a source and a sealed version in step, in the importer's tree order. Opens only
// directories.
#include "transfer/tree_planner.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "transfer/directory_stack.h"
#include "transfer/entry_lister.h"
#include "transfer/metadata_importer.h"
#include "transfer/problem_list.h"
#include "transfer/source_filter.h"
#include "transfer/target_entry.h"
#include "transfer/transfer_error.h"

namespace varve::transfer {
namespace {

struct PlanFrame {
  std::vector<std::string> names;
  std::size_t next = 0;
  std::size_t path_bytes = 0;
  std::optional<EntryLister> stored;  // Nullopt if the version lacks the directory.
  const ListedEntry* peeked = nullptr;
};

class TreePlanner {
 public:
  TreePlanner(SourceFilter& filter, const PlanBase& base,
              const std::function<void(StoreChange, const std::string&)>& changed,
              const std::function<bool(const TransferProgress&)>& progress)
      : filter_(filter), base_(base), changed_(changed), progress_(progress) {}

  Result<StorePlan> run(const std::string& directory) {
    base::UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd.valid()) return system_error("cannot open " + directory, errno);
    VARVE_TRY(
        enter(std::move(fd), base_.version != nullptr ? std::optional<Rank>(0) : std::nullopt));
    while (!frames_.empty()) {
      PlanFrame& frame = frames_.back();
      if (frame.next == frame.names.size()) {
        VARVE_TRY(find_stored(nullptr));
        VARVE_TRY(directories_.pop());
        path_.resize(frame.path_bytes);
        frames_.pop_back();
        continue;
      }
      const std::string name = std::move(frame.names[frame.next++]);
      VARVE_TRY(plan_named(name));
      if (progress_ && !progress_(done_)) return Error(ErrorCode::kInterrupted, "interrupted");
    }
    for (const std::string& path : filter_.missing()) {
      problems_.add(path, "would not be stored: the directory has no such file");
    }
    plan_.problems = problems_.take();
    return std::move(plan_);
  }

 private:
  void report(StoreChange change, const std::string& path) {
    if (change == StoreChange::kRemoved) ++plan_.removed;
    if (changed_) changed_(change, path);
  }

  Result<void> enter(base::UniqueFd fd, std::optional<Rank> stored) {
    PlanFrame frame;
    struct stat status {};
    if (::fstat(fd.get(), &status) != 0) return system_error("fstat", errno);
    VARVE_TRY_ASSIGN(frame.names, filter_.list(fd.get(), status, path_));
    if (stored) frame.stored.emplace(*stored);
    VARVE_TRY(directories_.push(std::move(fd)));
    frames_.push_back(std::move(frame));
    return {};
  }

  /// Returns the version's entry `name`. Reports each earlier name of the version as removed,
  /// because the source lacks that name; null reports all remaining names.
  Result<std::optional<SealedEntry>> find_stored(const std::string* name) {
    PlanFrame& frame = frames_.back();
    while (frame.stored) {
      if (frame.peeked == nullptr) {
        VARVE_TRY_ASSIGN(frame.peeked, frame.stored->next(*base_.version, path_, problems_));
      }
      if (frame.peeked == nullptr) break;
      if (name != nullptr && frame.peeked->name > *name) break;
      const ListedEntry found = *std::exchange(frame.peeked, nullptr);
      if (name != nullptr && found.name == *name) return std::optional(found.entry);
      const bool in_root = frames_.size() == 1;
      report(StoreChange::kRemoved, in_root ? found.name : directory_path() + "/" + found.name);
    }
    return std::optional<SealedEntry>();
  }
  /// Returns the path of the present directory; path_ may already name an entry below.
  std::string directory_path() const { return path_.substr(0, directory_bytes_); }

  Result<void> plan_named(const std::string& name) {
    const std::size_t path_bytes = path_.size();
    directory_bytes_ = path_bytes;
    VARVE_TRY_ASSIGN(const auto stored, find_stored(&name));
    if (!path_.empty()) path_ += '/';
    path_ += name;
    struct stat status {};
    const bool seen =
        ::fstatat(directories_.top(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
    const int reason = errno;
    const std::size_t depth = frames_.size();
    if (filter_.leaves_out(path_, seen ? std::optional(status.st_mode) : std::nullopt)) {
      if (stored) report(StoreChange::kRemoved, path_);
    } else if (!seen) {
      problems_.add(path_, system_error("would not be stored", reason).message());
    } else {
      auto planned = plan_entry(name, status, stored);
      if (!planned && ends_transfer(planned.error())) return planned;
      if (!planned) problems_.add(path_, planned.error().message());
    }
    if (frames_.size() == depth) {
      path_.resize(path_bytes);
    } else {
      frames_.back().path_bytes = path_bytes;
      directory_bytes_ = path_.size();
    }
    return {};
  }

  Result<void> plan_entry(const std::string& name, const struct stat& status,
                          const std::optional<SealedEntry>& stored) {
    ++plan_.entries;
    ++done_.files_done;
    compare(status, stored);
    if (S_ISREG(status.st_mode) && status.st_size > 0) ++plan_.filled;
    if (!S_ISDIR(status.st_mode)) {
      count_reading(status, stored);
      return {};
    }
    base::UniqueFd fd(::openat(directories_.top(), name.c_str(), kDirectoryFlags));
    if (!fd.valid()) return system_error("would not be stored", errno);
    const bool also = stored && S_ISDIR(stored->attributes.mode);
    return enter(std::move(fd), also ? std::optional(stored->rank) : std::nullopt);
  }

  void compare(const struct stat& status, const std::optional<SealedEntry>& stored) {
    if (!stored) return report(StoreChange::kAdded, path_);
    const Attributes& has = stored->attributes;
    const bool directory = S_ISDIR(status.st_mode);
    if ((has.mode & S_IFMT) != (status.st_mode & S_IFMT) ||
        (!directory && has.size != static_cast<std::uint64_t>(status.st_size) &&
         (S_ISREG(status.st_mode) || S_ISLNK(status.st_mode))) ||
        (!directory && has.mtime != time_of(status.st_mtim))) {
      return report(StoreChange::kChanged, path_);
    }
    if (has.mode != status.st_mode || has.uid != status.st_uid || has.gid != status.st_gid) {
      report(StoreChange::kMetadata, path_);
    }
  }

  void count_reading(const struct stat& status, const std::optional<SealedEntry>& stored) {
    if (status.st_nlink > 1 && !links_.insert({status.st_dev, status.st_ino}).second) return;
    const Timestamp mtime = time_of(status.st_mtim);
    const Timestamp ctime = time_of(status.st_ctim);
    const bool known =
        stored && base_.states != nullptr && stored->attributes.mode == status.st_mode &&
        stored->attributes.mtime == mtime &&
        base_.clock->is_settled(directories_.top(), status.st_dev, mtime, ctime) &&
        base_.states->matches(stored->rank, SourceState{status.st_ino, status.st_dev, ctime});
    if (known) {
      ++plan_.unchanged;
      plan_.unchanged_bytes += stored->attributes.data_bytes;
    } else if (S_ISREG(status.st_mode)) {
      plan_.bytes += static_cast<std::uint64_t>(status.st_size);
    }
  }

  SourceFilter& filter_;
  const PlanBase& base_;
  const std::function<void(StoreChange, const std::string&)>& changed_;
  const std::function<bool(const TransferProgress&)>& progress_;
  ProblemList problems_;
  StorePlan plan_;
  TransferProgress done_;
  DirectoryStack directories_;
  std::vector<PlanFrame> frames_;  // A frame for each directory of the stack.
  std::string path_;
  std::size_t directory_bytes_ = 0;
  std::set<std::pair<dev_t, ino_t>> links_;
};

}  // namespace

Result<StorePlan> plan_tree(const std::string& directory, const StoreOptions& options,
                            const PlanBase& base,
                            const std::function<void(StoreChange, const std::string&)>& changed,
                            const std::function<bool(const TransferProgress&)>& progress) {
  VARVE_TRY_ASSIGN(SourceFilter filter, SourceFilter::create(options));
  return TreePlanner(filter, base, changed, progress).run(directory);
}

}  // namespace varve::transfer
