// SPDX-License-Identifier: Apache-2.0
#include "transfer/entry_lister.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "transfer/transfer_error.h"

namespace varve::transfer {
namespace {
constexpr std::size_t kListBatch = 256;
}  // namespace

bool safe_name(std::string_view name) {
  return !name.empty() && name.size() <= kNameBytesMax && name != "." && name != ".." &&
         name.find('/') == std::string_view::npos && name.find('\0') == std::string_view::npos;
}

Result<SealedEntry> find_entry(VersionReader& version, const std::string& path,
                               std::string& last_name) {
  VARVE_TRY_ASSIGN(SealedEntry entry, version.get(0));
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string name = path.substr(at, end - at);
    at = end + 1;
    if (name.empty()) continue;
    if (!S_ISDIR(entry.attributes.mode)) {
      return Error(ErrorCode::kNotDirectory, last_name + " is not a directory in the version");
    }
    auto found = version.lookup(entry.rank, name);
    if (!found && found.error().code() == ErrorCode::kNotFound) {
      const VersionInfo& info = version.info();
      return Error(ErrorCode::kNotFound,
                   "there is no file \"" + info.series_name + "/" + info.name + "/" + path + "\"");
    }
    if (!found) return std::move(found).error().with_context(path);
    entry = *found;
    last_name = name;
  }
  if (!S_ISDIR(entry.attributes.mode) && !safe_name(last_name)) {
    return Error(ErrorCode::kCorrupt, "the version's root is not a directory");
  }
  return entry;
}

Result<ListedEntry*> EntryLister::next(VersionReader& version, const std::string& path,
                                       ProblemList& problems) {
  const auto path_of = [&](const std::string& name) {
    return path.empty() ? name : path + "/" + name;
  };
  while (true) {
    if (next_ == batch_.size()) {
      if (listed_) return static_cast<ListedEntry*>(nullptr);
      VARVE_TRY(fill(version, path, problems));
      continue;
    }
    ListedEntry& item = batch_[next_++];
    if (!safe_name(item.name)) {
      problems.add(path_of(item.name), "left out: not a valid file name");
    } else if (item.name <= last_name_) {
      problems.add(path_of(item.name), "left out: the name is a duplicate or out of order");
    } else {
      last_name_ = item.name;
      return &item;
    }
  }
}

/// Fills `batch_` with the next entries; with none at the directory's end. Copies them, because a
/// visitor must not call the version.
Result<void> EntryLister::fill(VersionReader& version, const std::string& path,
                               ProblemList& problems) {
  batch_.clear();
  next_ = 0;
  auto listed =
      version.list(directory_, after_,
                   [&](std::uint64_t position, std::string_view name, const SealedEntry& entry) {
                     batch_.push_back(ListedEntry{position, std::string(name), entry});
                     return batch_.size() < kListBatch;
                   });
  if (!listed) {
    if (ends_transfer(listed.error())) return listed;
    problems.add(path.empty() ? "." : path,
                 "some entries are unreadable: " + listed.error().message());
  }
  listed_ = !listed || batch_.size() < kListBatch;
  if (!batch_.empty()) {
    if (batch_.back().position <= after_) {
      return Error(ErrorCode::kCorrupt, path + ": the directory's entries are out of order");
    }
    after_ = batch_.back().position;
  }
  return {};
}

}  // namespace varve::transfer
