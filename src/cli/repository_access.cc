// SPDX-License-Identifier: Apache-2.0
#include "cli/repository_access.h"

#include <utility>

#include "base/file_limit.h"
#include "base/path_list.h"
#include "control/lock_wait.h"
#include "varve/options.h"

namespace varve::cli {

bool is_trusted(const std::string& path) { return base::is_listed_path("VARVE_TRUST", path); }

Result<std::unique_ptr<Repository>> open_to_read(const std::string& path, bool probe_catalog) {
  OpenOptions options;
  base::raise_file_limit();
  options.read_only = true;
  options.trust_owner = is_trusted(path);
  options.probe_catalog = probe_catalog;
  return Repository::open(path, options);
}

Result<std::unique_ptr<Repository>> open_to_write(const std::string& path) {
  base::raise_file_limit();
  OpenOptions options;
  options.trust_owner = is_trusted(path);
  // The process ends after the command, so nothing arranges in the background.
  options.arrange = false;
  return control::open_when_unlocked(path, [&] { return Repository::open(path, options); });
}

Result<WriteAccess> open_or_reach(const std::string& path) {
  WriteAccess access;
  auto repository = open_to_write(path);
  if (repository) {
    access.repository = std::move(*repository);
    return access;
  }
  if (repository.error().code() != ErrorCode::kLocked) return std::move(repository).error();
  auto daemon = control::Client::connect(path);
  if (!daemon) {
    if (daemon.error().code() == ErrorCode::kNotFound) return std::move(repository).error();
    return std::move(daemon).error();
  }
  access.daemon.emplace(std::move(*daemon));
  return access;
}

Result<VersionInfo> close_after(Repository& repository, Result<VersionInfo> made) {
  auto closed = repository.close();
  if (made && !closed) return std::move(closed).error();
  return made;
}

}  // namespace varve::cli
