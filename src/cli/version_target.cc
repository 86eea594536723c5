// SPDX-License-Identifier: Apache-2.0
#include "cli/version_target.h"

#include <cstdlib>
#include <utility>

#include "cli/command.h"
#include "cli/named_places.h"
#include "control/mounted_path.h"

namespace varve::cli {
namespace {

Error nothing_named() {
  return usage_error(
      "no version is named; give REPO SERIES/VERSION, or the path of a version in a mount");
}

Result<VersionTarget> from_environment(const std::string& version) {
  const char* repository = std::getenv("VARVE_REPO");
  if (repository == nullptr || *repository == '\0') {
    if (holds_repository(version)) return nothing_named();
    return usage_error("no repository is named, and " + version +
                       " is not in a mount; give REPO SERIES/VERSION, or set VARVE_REPO");
  }
  VersionTarget target;
  target.repository = repository;
  VARVE_TRY_ASSIGN(target.version, require_version(version, false));
  VARVE_TRY(use_folder_of_place(target.repository, control::Purpose::kChange));
  return target;
}

/// Finds the version in VARVE_REPO, but only if the path is outside any Varve mount: a path in an
/// untrusted mount must not name something else.
Result<VersionTarget> without_mount(const std::string& version, const Error& why) {
  if (why.code() != ErrorCode::kNotFound) return why;
  return from_environment(version);
}

Result<VersionTarget> from_both(const std::string& repository, const std::string& version) {
  if (auto swapped = swapped_words(repository, {version})) return std::move(*swapped);
  VersionTarget target;
  target.repository = repository;
  VARVE_TRY_ASSIGN(target.version, require_version(version, false));
  VARVE_TRY(use_folder_of_place(target.repository, control::Purpose::kChange));
  return target;
}

Result<VersionTarget> find_unchecked(const std::string& first, const std::string& second) {
  if (!second.empty()) return from_both(first, second);
  if (first.empty()) return nothing_named();
  std::string path = first;
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  const std::size_t slash = path.rfind('/');
  std::string directory = ".";
  if (slash != std::string::npos) directory = slash == 0 ? "/" : path.substr(0, slash);
  auto mounted = control::find_mounted(directory, control::Purpose::kChange);
  if (!mounted) return without_mount(first, mounted.error());
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  const std::string& above = mounted->in_repository;
  return from_both(mounted->repository, above.empty() ? name : above + "/" + name);
}

}  // namespace

void add_target_words(Command& command, TargetWords& words, const std::string& what,
                      const std::string& version_help) {
  command.add_option(
      "REPO", words.first,
      "Folder of the repository (default: $VARVE_REPO); or, without VERSION, the path of " + what +
          " in a mount");
  command.add_option("VERSION", words.second, version_help);
}

Result<VersionTarget> find_target(const std::string& first, const std::string& second) {
  if (!second.empty()) return from_both(first, second);
  if (first.empty()) return nothing_named();
  auto mounted = control::find_mounted(first, control::Purpose::kChange);
  if (!mounted) return without_mount(first, mounted.error());
  return from_both(mounted->repository, mounted->in_repository);
}

Result<VersionTarget> find_new_target(const std::string& first, const std::string& second) {
  VARVE_TRY_ASSIGN(VersionTarget target, find_unchecked(first, second));
  VARVE_TRY(check_new_names(target.version, VersionState::kOpen));
  return target;
}

std::string name_of(const VersionPath& path) { return path.series + "/" + path.version; }

}  // namespace varve::cli
