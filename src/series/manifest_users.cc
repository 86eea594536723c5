// SPDX-License-Identifier: Apache-2.0
#include "series/manifest_users.h"

#include "catalog/object_set.h"

namespace varve::series {

ManifestUsers::ManifestUsers(catalog::ObjectReader& objects,
                             const std::vector<catalog::VersionRecord>& records,
                             const std::set<VersionNumber>& gone)
    : objects_(objects) {
  for (const auto& record : records) {
    const bool stays = record.state == VersionState::kSealed && !gone.contains(record.number);
    if (stays) root_of_.emplace(record.number, record.root.child);
  }
}

VersionNumber ManifestUsers::after(VersionNumber number) const {
  const auto next = root_of_.upper_bound(number);
  return next == root_of_.end() ? VersionNumber{} : next->first;
}

std::set<VersionNumber> ManifestUsers::used_by(VersionNumber user,
                                               const std::set<VersionNumber>& manifests) const {
  const auto root = root_of_.find(user);
  if (root == root_of_.end() || manifests.empty()) return {};
  auto found = catalog::referred_births(objects_, root->second, manifests);
  return found ? std::move(*found) : manifests;
}

// A version shares objects only with the version before it. If the next version refers to none of a
// manifest's objects, no later version does.
std::set<VersionNumber> ManifestUsers::used(const std::set<VersionNumber>& manifests) const {
  std::set<VersionNumber> found;
  for (auto at = manifests.begin(); at != manifests.end();) {
    const auto user = after(*at);
    if (user == VersionNumber{}) break;
    const auto end = manifests.lower_bound(user);
    found.merge(used_by(user, {at, end}));
    at = end;
  }
  return found;
}

}  // namespace varve::series
