// SPDX-License-Identifier: Apache-2.0
#include "transfer/version_names.h"

#include <sys/stat.h>

#include <utility>

namespace varve::transfer {
namespace {

constexpr std::size_t kNamesListed = 256;

struct RemovalLevel {
  Ino parent = 0;
  std::string name;
  Ino ino = 0;
  VersionNames names;
};

// Removes everything below the levels, and the directories of all levels but the first `kept`.
Result<void> remove_levels(VersionWriter& version, std::vector<RemovalLevel> levels,
                           std::size_t kept) {
  while (!levels.empty()) {
    RemovalLevel& level = levels.back();
    VARVE_TRY_ASSIGN(const VersionName* found, level.names.peek(version));
    if (found == nullptr) {
      if (levels.size() > kept) VARVE_TRY(version.remove_directory(level.parent, level.name));
      levels.pop_back();
      continue;
    }
    const VersionName child = *found;
    level.names.take();
    if (S_ISDIR(child.entry.attributes.mode)) {
      const Ino ino = child.entry.ino;
      levels.push_back({level.ino, child.name, ino, VersionNames(ino)});
    } else {
      VARVE_TRY(version.unlink(level.ino, child.name));
    }
  }
  return {};
}

}  // namespace

Result<const VersionName*> VersionNames::peek(VersionWriter& version) {
  if (next_ < batch_.size()) return &batch_[next_];
  if (listed_) return static_cast<const VersionName*>(nullptr);
  const std::string after = batch_.empty() ? "" : batch_.back().name;
  batch_.clear();
  next_ = 0;
  VARVE_TRY(version.list(directory_, after, [&](std::string_view name, const OpenEntry& entry) {
    batch_.push_back({std::string(name), entry});
    return batch_.size() < kNamesListed;
  }));
  listed_ = batch_.size() < kNamesListed;
  return batch_.empty() ? nullptr : &batch_.front();
}

Result<void> clear_directory(VersionWriter& version, Ino directory) {
  std::vector<RemovalLevel> levels;
  levels.push_back({0, {}, directory, VersionNames(directory)});
  return remove_levels(version, std::move(levels), 1);
}

}  // namespace varve::transfer

namespace varve {

Result<void> remove_tree(VersionWriter& version, Ino directory, const std::string& name) {
  auto found = version.lookup(directory, name);
  if (!found) {
    if (found.error().code() == ErrorCode::kNotFound) return {};
    return std::move(found).error();
  }
  if (!S_ISDIR(found->attributes.mode)) return version.unlink(directory, name);
  std::vector<transfer::RemovalLevel> levels;
  levels.push_back({directory, name, found->ino, transfer::VersionNames(found->ino)});
  return transfer::remove_levels(version, std::move(levels), 0);
}

}  // namespace varve
