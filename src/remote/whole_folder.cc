// SPDX-License-Identifier: Apache-2.0
#include "remote/whole_folder.h"

#include <utility>

#include "remote/open_storage.h"
#include "store/superblock_text.h"
#include "varve/remote_folder.h"
#include "varve/replication.h"

namespace varve::remote {

Result<WholeFolder> open_whole_folder(const std::string& folder, const OpenOptions& options,
                                      const BucketHooks& hooks) {
  VARVE_TRY(refuse_attached(folder, options.trust_owner));
  WholeFolder whole;
  VARVE_TRY_ASSIGN(whole.files, store::open_folder(folder, options.trust_owner));
  VARVE_TRY_ASSIGN(const auto config, config_to_open(*whole.files, folder, options.read_only));
  HeadLearning learning;
  VARVE_TRY_ASSIGN(std::shared_ptr<FolderStorage> storage,
                   open_storage(folder, config, options, hooks, nullptr, learning));
  if (auto open = storage->opener()) {
    whole.open_store = [storage, open](io::FileSystem& files, const std::string& directory) {
      return open(files, directory);
    };
  }
  return whole;
}

Result<void> refuse_attached(const std::string& folder, bool trust_owner) {
  VARVE_TRY_ASSIGN(const auto info, RemoteFolder(folder, trust_owner).info());
  if (!info || !info->reads_only) return {};
  return Error(ErrorCode::kReadOnly,
               folder + " only reads " + info->place +
                   "; if the folder is damaged, attach another one and remove this one");
}

}  // namespace varve::remote
