// SPDX-License-Identifier: Apache-2.0
#include "cli/version_target.h"

#include <cstdlib>
#include <utility>

#include "control/mount_table.h"

namespace varve::cli {
namespace {

Result<VersionTarget> from_environment(const std::string& version, Error otherwise) {
  const char* repository = std::getenv("VARVE_REPO");
  if (repository == nullptr || *repository == '\0') {
    return std::move(otherwise).with_context(version);
  }
  VersionTarget target;
  target.repository = repository;
  VARVE_TRY_ASSIGN(target.version, require_version(version, false));
  return target;
}

Result<VersionTarget> from_both(const std::string& repository, const std::string& version) {
  VersionTarget target;
  target.repository = repository;
  VARVE_TRY_ASSIGN(target.version, require_version(version, false));
  return target;
}

Error nothing_named() {
  return {ErrorCode::kInvalid,
          "name the version: REPO SERIES/VERSION, or a version's path in a mount"};
}

}  // namespace

Result<VersionTarget> find_target(const std::string& first, const std::string& second) {
  if (!second.empty()) return from_both(first, second);
  if (first.empty()) return nothing_named();
  auto mounted = control::find_mount(first);
  if (!mounted) return from_environment(first, mounted.error());
  VARVE_TRY_ASSIGN(const std::string path, control::path_in_repository(*mounted));
  return from_both(mounted->repository, path);
}

Result<VersionTarget> find_new_target(const std::string& first, const std::string& second) {
  if (!second.empty()) return from_both(first, second);
  if (first.empty()) return nothing_named();
  std::string path = first;
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  const std::size_t slash = path.rfind('/');
  std::string directory = ".";
  if (slash != std::string::npos) directory = slash == 0 ? "/" : path.substr(0, slash);
  auto mounted = control::find_mount(directory);
  if (!mounted) return from_environment(first, mounted.error());
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  VARVE_TRY_ASSIGN(const std::string above, control::path_in_repository(*mounted));
  return from_both(mounted->repository, above.empty() ? name : above + "/" + name);
}

std::string name_of(const VersionPath& path) { return path.series + "/" + path.version; }

}  // namespace varve::cli
