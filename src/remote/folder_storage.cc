// SPDX-License-Identifier: Apache-2.0
#include "remote/folder_storage.h"

namespace varve::remote {

Result<void> NoReplication::allow_lock(const ObjectLock&) {
  return Error(ErrorCode::kInvalid, "only a repository in an object store can lock its objects");
}

}  // namespace varve::remote
