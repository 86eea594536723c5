// SPDX-License-Identifier: Apache-2.0
#include "transfer/entry_walk.h"

#include <sys/stat.h>

#include <utility>

namespace varve::transfer {

EntryWalk::EntryWalk(VersionReader& version, const std::vector<std::string>& paths,
                     ProblemList& problems)
    : version_(version),
      paths_(paths),
      problems_(problems),
      selection_(paths.size() > 1 ? paths : std::vector<std::string>()) {}

Result<SealedEntry> EntryWalk::begin() {
  std::string name;
  for (const std::string& path : paths_) VARVE_TRY(find_entry(version_, path, name));
  const std::string start = paths_.size() == 1 ? paths_.front() : "";
  VARVE_TRY_ASSIGN(SealedEntry top, find_entry(version_, start, name));
  if (S_ISDIR(top.attributes.mode)) {
    frames_.push_back(Frame{EntryLister(top.rank), top.rank, 0});
  } else {
    frames_.push_back(Frame{EntryLister(ListedEntry{1, name, top}), 0, 0});
  }
  return top;
}

Result<void> EntryWalk::run(const std::function<Result<void>(const SealedEntry&)>& add,
                            const std::function<Result<void>()>& refuse) {
  while (!frames_.empty()) {
    VARVE_TRY_ASSIGN(ListedEntry * next, frames_.back().lister.next(version_, path_, problems_));
    if (next == nullptr) {
      path_.resize(frames_.back().path_bytes);
      frames_.pop_back();
      continue;
    }
    const std::size_t path_bytes = path_.size();
    if (!path_.empty()) path_ += '/';
    path_ += next->name;
    if (selection_.match(path_) == PathSelection::Match::kNone) {
      path_.resize(path_bytes);
      continue;
    }
    const SealedEntry entry = next->entry;
    const bool is_directory = S_ISDIR(entry.attributes.mode);
    if (is_directory && (entry.rank <= frames_.back().rank || frames_.size() >= kDepthMax)) {
      VARVE_TRY(refuse());
      path_.resize(path_bytes);
      continue;
    }
    VARVE_TRY(add(entry));
    if (is_directory) {
      frames_.push_back(Frame{EntryLister(entry.rank), entry.rank, path_bytes});
    } else {
      path_.resize(path_bytes);
    }
  }
  return {};
}

}  // namespace varve::transfer
