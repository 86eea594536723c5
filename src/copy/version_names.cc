// SPDX-License-Identifier: Apache-2.0
#include "copy/version_names.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

namespace varve::copy {
namespace {

std::string with_suffix(const std::string& name, const char* word, VersionNumber number) {
  const std::string suffix = fmt::format(".{}-{}", word, static_cast<std::uint32_t>(number));
  return name.substr(0, kNameBytesMax - suffix.size()) + suffix;
}

/// Orders renames, so each rename leads to a free name.
class Renaming {
 public:
  explicit Renaming(const std::vector<TargetVersion>& copies) {
    for (const TargetVersion& copy : copies) used_.insert(copy.name);
  }
  [[nodiscard]] bool is_used(const std::string& name) const { return used_.contains(name); }
  void add(NameChange change) { waiting_.push_back(std::move(change)); }
  std::vector<NameChange> ordered();

 private:
  void take(NameChange change) {
    used_.erase(change.from);
    used_.insert(change.to);
    done_.push_back(std::move(change));
  }
  std::set<std::string> used_;
  std::vector<NameChange> waiting_;
  std::vector<NameChange> done_;
};

std::vector<NameChange> Renaming::ordered() {
  while (!waiting_.empty()) {
    const auto free = std::ranges::find_if(
        waiting_, [&](const NameChange& change) { return !used_.contains(change.to); });
    if (free != waiting_.end()) {
      const NameChange change = *free;
      waiting_.erase(free);
      take(change);
      continue;
    }
    // Only exchanges are left.
    NameChange& first = waiting_.front();
    const std::string aside = with_suffix(first.from, "moving", first.number);
    take({first.number, first.from, aside});
    first.from = aside;
  }
  return std::move(done_);
}

}  // namespace

std::vector<NameChange> plan_names(const std::vector<VersionInfo>& originals,
                                   const std::vector<TargetVersion>& copies) {
  std::map<VersionNumber, std::string> names;
  std::set<std::string> taken;
  for (const VersionInfo& original : originals) {
    names[original.number] = original.name;
    taken.insert(original.name);
  }
  Renaming renaming(copies);
  for (const TargetVersion& copy : copies) {
    if (!copy.origin) continue;
    const auto original = names.find(copy.origin->number);
    if (original != names.end()) {
      if (original->second != copy.name) {
        renaming.add({copy.number, copy.name, original->second});
      }
    } else if (taken.contains(copy.name)) {
      renaming.add({copy.number, copy.name, with_suffix(copy.name, "kept", copy.number)});
    }
  }
  return renaming.ordered();
}

}  // namespace varve::copy
