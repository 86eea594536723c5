// SPDX-License-Identifier: Apache-2.0
#include "remote/unfinished_rebuild.h"

#include <fmt/core.h>

#include <vector>

#include "remote/bucket_config.h"
#include "store/repository_names.h"

namespace varve::remote {

namespace {

// Removes a file, or a folder with its content.
Result<void> remove_tree(io::FileSystem& files, const std::string& path) {
  const auto names = files.list(path);
  for (const auto& name : names ? *names : std::vector<std::string>()) {
    VARVE_TRY(remove_tree(files, std::string(path).append("/" + name)));
  }
  const auto removed = files.remove(path);
  return !removed && removed.error().code() == ErrorCode::kNotFound ? Result<void>() : removed;
}

}  // namespace

Result<void> refuse_unfinished_rebuild(io::FileSystem& files, const std::string& folder) {
  VARVE_TRY_ASSIGN(const bool exists, files.exists(folder + "/" + kUnfinishedRebuild));
  if (!exists) return {};
  // A writing folder is complete, and may have versions missing in the store.
  VARVE_TRY_ASSIGN(const auto config, read_config(files, folder));
  if (config && !config->reads_only) return {};
  return Error(ErrorCode::kExists,
               fmt::format("the rebuild in {0} was interrupted, or is not done yet: {0} shows no "
                           "version. `varve attach --rebuild {1} {0}` begins again",
                           folder, config ? config->place : "STORE"));
}

// An interrupted rebuild leaves only data of the store, except in a writing folder.
Result<void> clear_unfinished_rebuild(io::FileSystem& files, const std::string& folder) {
  const auto mark = folder + "/" + kUnfinishedRebuild;
  VARVE_TRY_ASSIGN(const bool unfinished, files.exists(mark));
  if (!unfinished) return {};
  VARVE_TRY_ASSIGN(const auto config, read_config(files, folder));
  if (config && !config->reads_only) return {};
  const auto unused = files.lock(mark);
  if (!unused && unused.error().code() == ErrorCode::kLocked) {
    return Error(ErrorCode::kLocked, "another process rebuilds the catalog in " + folder);
  }
  if (!unused) return unused.error();
  VARVE_TRY_ASSIGN(const auto names, files.list(folder));
  for (const auto& name : names) {
    const auto known = store::known_name(store::FolderKind::kRepository, name);
    if (known) VARVE_TRY(remove_tree(files, folder + "/" + name));
  }
  return {};
}

}  // namespace varve::remote
