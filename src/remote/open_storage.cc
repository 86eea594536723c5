// SPDX-License-Identifier: Apache-2.0
#include "remote/open_storage.h"

#include <fmt/core.h>

#include <utility>

#include "remote/local_folder.h"
#include "remote/reading_folder.h"
#include "remote/unfinished_rebuild.h"
#include "remote/writing_folder.h"
#include "store/superblock_text.h"

namespace varve::remote {

Result<std::optional<BucketConfig>> config_to_open(io::FileSystem& files, const std::string& path,
                                                   bool read_only) {
  VARVE_TRY_ASSIGN(auto config, read_config(files, path));
  if (config && config->reads_only && !read_only) {
    return Error(ErrorCode::kReadOnly,
                 fmt::format("{0} is attached to {1} for reading only, and another folder writes: "
                             "`varve status {0}` names it. If that folder is gone, `varve attach "
                             "--write {1} {0}` makes this one the folder that writes",
                             path, config->place));
  }
  if (config && config->reads_only) VARVE_TRY(refuse_unfinished_rebuild(files, path));
  return config;
}

Result<std::unique_ptr<FolderStorage>> open_storage(
    const std::string& path, const std::optional<BucketConfig>& config, const OpenOptions& options,
    const BucketHooks& hooks, const crypto::KeyRing* keys, HeadLearning& learning) {
  if (!config) return std::unique_ptr<FolderStorage>(std::make_unique<LocalFolder>());
  FolderToOpen folder;
  folder.path = path;
  VARVE_TRY_ASSIGN(folder.files, store::open_folder(path, options.trust_owner));
  folder.config = *config;
  folder.use = options.store;
  folder.read_only = options.read_only;
  folder.hooks = hooks;
  if (config->reads_only) {
    VARVE_TRY_ASSIGN(auto reading, ReadingFolder::open(std::move(folder), keys, learning));
    return std::unique_ptr<FolderStorage>(std::move(reading));
  }
  VARVE_TRY_ASSIGN(auto writing, WritingFolder::open(std::move(folder)));
  return std::unique_ptr<FolderStorage>(std::move(writing));
}

}  // namespace varve::remote
