// SPDX-License-Identifier: Apache-2.0
#include "remote/object_lock_setting.h"

#include <fmt/core.h>

#include <utility>

#include "bucket/abilities.h"
#include "catalog/upkeep_record.h"
#include "meta/open_catalog.h"
#include "store/repository_paths.h"
#include "store/sealed_places.h"

namespace varve::remote {

Result<ObjectLock> object_lock_of(const meta::Env& catalog) {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog));
  VARVE_TRY_ASSIGN(const auto settings, catalog::find_upkeep_settings(txn));
  return settings.object_lock;
}

Result<void> require_locks(bucket::Bucket& bucket, const ObjectLock& lock,
                           const base::Clock& clock) {
  if (!lock.on()) return {};
  if (lock.days > kLockDaysMax) {
    return Error(ErrorCode::kInvalid,
                 fmt::format("a lock has 1 to {} days, not {}", kLockDaysMax, lock.days));
  }
  VARVE_TRY_ASSIGN(const auto reason,
                   bucket::try_lock(bucket, "probe/", lock.mode, clock.now().seconds));
  if (reason.empty()) return {};
  return Error(ErrorCode::kUnsupported,
               fmt::format("{} does not lock objects ({}). A bucket has object lock if it was made "
                           "with it (aws s3api create-bucket --object-lock-enabled-for-bucket), "
                           "and the key needs the rights s3:PutObjectRetention and "
                           "s3:GetObjectRetention",
                           bucket.describe(), reason));
}

Result<void> put_first_lock(std::unique_ptr<io::FileSystem> files, const std::string& folder,
                            std::shared_ptr<const crypto::KeyRing> keys, const ObjectLock& lock) {
  const auto sealed = store::seal_files(std::move(files), keys, folder);
  VARVE_TRY_ASSIGN(const auto catalog,
                   meta::Env::open(*sealed, folder + "/catalog",
                                   meta::catalog_options(store::RepositoryPaths(folder).lock(),
                                                         std::move(keys))));
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(catalog));
  VARVE_TRY_ASSIGN(auto settings, catalog::find_upkeep_settings(txn));
  settings.object_lock = lock;
  VARVE_TRY(catalog::put_upkeep_settings(txn, settings));
  return txn.commit();
}

}  // namespace varve::remote
