// SPDX-License-Identifier: Apache-2.0
// Creates a repository in an object store, and attaches folders to an existing repository.
#include "repo/store_repository.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ingest/parameters.h"
#include "remote/attach.h"
#include "remote/creation.h"
#include "remote/rebuild.h"
#include "remote/reclaim.h"
#include "repo/create_repository.h"
#include "repo/repository_impl.h"
#include "varve/arrange.h"
#include "varve/check.h"
#include "varve/remote_folder.h"
#include "varve/repository.h"

namespace varve::repo {

namespace {

constexpr std::size_t kAffectedNamed = 5;

std::string describe(const Damage& damage) {
  auto text = damage.where + ": " + damage.what + "; needed by ";
  for (std::size_t i = 0; i < damage.affected.size() && i < kAffectedNamed; ++i) {
    text += (i == 0 ? "" : ", ") + damage.affected[i];
  }
  if (damage.affected.size() <= kAffectedNamed) return text;
  return text + " and " + std::to_string(damage.affected.size() - kAffectedNamed) + " more";
}

// The rebuilt catalog shows which chunks no container has. The rebuild has the headers of the
// containers in the folder's cache.
Result<std::vector<std::string>> find_losses(const std::string& folder, const OpenOptions& options,
                                             const remote::BucketHooks& hooks) {
  auto reading = options;
  reading.read_only = true;
  VARVE_TRY_ASSIGN(const auto repository, RepositoryImpl::open(folder, reading, hooks));
  CheckOptions how;
  how.read_data = false;
  how.verify_chunks = false;
  VARVE_TRY_ASSIGN(const auto report, repository->check(how, {}));
  std::vector<std::string> losses;
  for (const auto& damage : report.damages) {
    if (damage.affected.empty()) continue;  // Missing manifests, which the next writer makes again.
    auto text = describe(damage);
    if (std::ranges::find(losses, text) == losses.end()) losses.push_back(std::move(text));
  }
  return losses;
}

// Arranging uploads the rewritten data, so a repository in a store tolerates more dead space than a
// local repository. docs/decisions/117.
CreateOptions with_store_defaults(CreateOptions options) {
  if (!options.settings.arrange) {
    options.settings.arrange = ArrangeSettings{.dead_permille = kStoreDeadPermille};
  }
  return options;
}

}  // namespace

Result<void> create_in_store(const StorePlace& place, const std::string& folder,
                             const RepositoryParameters& parameters, const CreateOptions& options,
                             const remote::BucketHooks& hooks, const ObjectLock& lock) {
  remote::Creation creation;
  creation.place = place;
  creation.folder = folder;
  creation.trust_owner = options.trust_owner;
  creation.access = options.store_access;
  creation.lock = lock;
  if (options.encryption) {
    creation.key = [&] { return Result<UserKey>(options.encryption->first_key.key); };
  }
  creation.read_superblock = ingest::read_superblock;
  creation.create = [&](const auto& before_last) {
    return create_repository(folder, parameters, with_store_defaults(options), before_last);
  };
  return remote::create_in_store(creation, hooks);
}

Result<void> attach_to_store(const StorePlace& place, const std::string& folder,
                             const OpenOptions& options, const remote::BucketHooks& hooks,
                             AttachRole role) {
  return remote::attach_to_store(place, folder, options, hooks, role, ingest::read_superblock);
}

Result<StoreRebuild> rebuild_from_store(const StorePlace& place, const std::string& folder,
                                        const OpenOptions& options,
                                        const remote::BucketHooks& hooks, AttachRole role) {
  VARVE_TRY_ASSIGN(auto rebuilt,
                   remote::rebuild({place, folder, role, ingest::read_superblock}, options, hooks));
  auto losses = find_losses(folder, options, hooks);
  if (!losses) {
    rebuilt.problems.push_back("the rebuilt folder could not be checked: " +
                               losses.error().message() + "; `varve check` names what is lost");
    return rebuilt;
  }
  for (auto& loss : *losses) rebuilt.problems.push_back(std::move(loss));
  return rebuilt;
}

Result<ReclaimReport> reclaim_store(const std::string& folder, const OpenOptions& options,
                                    std::int64_t wait_seconds, const remote::BucketHooks& hooks) {
  // The opening brings the folder to the newest head, and checks that the head was written with the
  // repository's keys.
  const auto refresh = [&]() -> Result<ObjectLock> {
    auto reading = options;
    reading.read_only = true;
    VARVE_TRY_ASSIGN(const auto refreshed, RepositoryImpl::open(folder, reading, hooks));
    VARVE_TRY_ASSIGN(const auto settings, refreshed->upkeep_settings());
    return settings.object_lock;
  };
  return remote::reclaim_store(folder, options, wait_seconds, hooks, refresh);
}

}  // namespace varve::repo

namespace varve {

Result<void> create_in_store(const StorePlace& place, const std::string& folder,
                             const RepositoryParameters& parameters, const CreateOptions& options,
                             const ObjectLock& lock) {
  return repo::create_in_store(place, folder, parameters, options, {}, lock);
}

Result<void> attach_to_store(const StorePlace& place, const std::string& folder,
                             const OpenOptions& options, AttachRole role) {
  return repo::attach_to_store(place, folder, options, {}, role);
}

Result<StoreSurvey> survey_store(const StorePlace& place, const OpenOptions& options) {
  return remote::survey({place, {}, AttachRole::kReads, ingest::read_superblock}, options, {});
}

Result<StoreRebuild> rebuild_from_store(const StorePlace& place, const std::string& folder,
                                        const OpenOptions& options, AttachRole role) {
  return repo::rebuild_from_store(place, folder, options, {}, role);
}

Result<ReclaimReport> RemoteFolder::reclaim(const OpenOptions& options,
                                            std::int64_t wait_seconds) const {
  return repo::reclaim_store(path_, options, wait_seconds, {});
}

}  // namespace varve
