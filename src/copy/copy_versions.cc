// SPDX-License-Identifier: Apache-2.0
#include "copy/copier.h"
#include "copy/local_target.h"
#include "varve/copy.h"

namespace varve {

std::shared_ptr<copy::Target> copy_target(Repository& repository) {
  return std::make_shared<copy::LocalTarget>(repository);
}

Result<CopyReport> copy_versions(Repository& source, copy::Target* target,
                                 const CopyOptions& options, const CopyObserver& observer) {
  return copy::Copier(source, target, options, observer).run();
}

}  // namespace varve
