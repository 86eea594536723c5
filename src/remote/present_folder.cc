// SPDX-License-Identifier: Apache-2.0
#include "remote/present_folder.h"

#include "store/repository_paths.h"
#include "store/superblock_text.h"

namespace varve::remote {

Result<std::unique_ptr<io::FileSystem>> open_present(const std::string& folder, bool trust_owner) {
  auto files = store::open_folder(folder, trust_owner);
  if (!files && files.error().code() == ErrorCode::kNoRepository) {
    return std::unique_ptr<io::FileSystem>();
  }
  if (!files) return files;
  VARVE_TRY_ASSIGN(const bool exists,
                   (*files)->exists(store::RepositoryPaths(folder).superblock()));
  return exists ? std::move(files) : std::unique_ptr<io::FileSystem>();
}

}  // namespace varve::remote
