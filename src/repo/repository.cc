// SPDX-License-Identifier: Apache-2.0
// The public entry points.
#include "varve/repository.h"

#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "base/coding.h"
#include "base/log.h"
#include "format/superblock.h"
#include "io/posix_file_system.h"
#include "maintain/checker.h"
#include "maintain/repairer.h"
#include "maintain/scrub.h"
#include "meta/lmdb.h"
#include "meta/schema.h"
#include "repo/repository_impl.h"
#include "varve/maintenance.h"
#include "varve/new_series.h"
#include "varve/repair.h"

namespace varve {

namespace {

// Makes the repository's folder, for its owner only, and the folders above it with the modes of
// mkdir(1).
Result<void> make_folder(const std::string& path) {
  auto normal = std::filesystem::path(path).lexically_normal();
  if (!normal.has_filename()) normal = normal.parent_path();  // Drops the trailing slash of "a/b/".
  const auto parent = normal.parent_path();
  std::error_code failed;
  if (!parent.empty()) std::filesystem::create_directories(parent, failed);
  if (failed) return io::error_from_errno(failed.value(), "cannot make " + parent.string());
  return io::make_posix_file_system()->make_directory(path);
}

}  // namespace

Result<void> Repository::create(const std::string& path, const RepositoryParameters& parameters,
                                bool trust_owner) {
  VARVE_TRY(format::validate_parameters(parameters));
  VARVE_TRY(make_folder(path));
  VARVE_TRY_ASSIGN(const auto files, io::open_root(path, {.trust_owner = trust_owner}));
  VARVE_TRY_ASSIGN(const auto names, files->list(path));
  if (std::find(names.begin(), names.end(), "varve.repo") != names.end()) {
    return Error(ErrorCode::kExists, path + " is a Varve repository already", EEXIST);
  }
  for (const auto& name : names) {
    if (name == "lost+found") continue;
    return Error(ErrorCode::kNotEmpty,
                 path + " is not empty; give an empty or a new folder for the repository",
                 ENOTEMPTY);
  }
  for (const char* name : {"/catalog", "/series", "/staging"}) {
    VARVE_TRY(files->make_directory(path + name));
  }
  {
    meta::EnvOptions options;
    options.tables = meta::catalog::kTables;
    VARVE_TRY(meta::Env::open(*files, path + "/catalog", options));
  }
  VARVE_TRY(files->sync_directory(path + "/catalog"));
  format::Superblock superblock;
  superblock.parameters = parameters;
  std::array<unsigned char, 16> id{};
  if (RAND_bytes(id.data(), static_cast<int>(id.size())) != 1) {
    return Error(ErrorCode::kIo, "no random numbers for the repository's id", EIO);
  }
  superblock.repository_id = fmt::format("{:02x}", fmt::join(id, ""));
  // Written last: a folder without this file is not a repository.
  return files->write_file_atomically(path, "varve.repo",
                                      base::as_bytes(format::encode_superblock(superblock)));
}

Result<std::unique_ptr<Repository>> Repository::open(const std::string& path,
                                                     const OpenOptions& options) {
  return repo::RepositoryImpl::open(path, options);
}

Result<VersionInfo> open_in_series(
    Repository& repository, std::string_view name,
    const std::function<Result<VersionInfo>(const SeriesInfo&)>& open) {
  auto series = repository.find_series(name);
  const bool missing = !series && series.error().code() == ErrorCode::kNotFound;
  if (missing) series = repository.create_series(name);
  if (!series) return std::move(series).error();
  auto opened = open(*series);
  if (!opened && missing) {
    // kNotEmpty: the version exists despite the error, or another caller opened one.
    const auto removed = repository.remove_series(name);
    if (!removed && removed.error().code() != ErrorCode::kNotEmpty) {
      base::log(base::LogLevel::kWarning, removed.error().message());
    }
  }
  return opened;
}

Result<CheckReport> check_repository(Repository& repository, const CheckOptions& options,
                                     const std::function<void(const CheckProgress&)>& progress) {
  auto& impl = static_cast<repo::RepositoryImpl&>(repository);
  maintain::Checker checker(impl.catalog(), impl.files(), impl.path(), options, progress);
  return checker.run();
}

Result<ScrubReport> scrub_repository(Repository& repository, const ScrubOptions& options,
                                     const std::function<void(const CheckProgress&)>& progress) {
  auto& impl = static_cast<repo::RepositoryImpl&>(repository);
  return maintain::scrub(impl.catalog(), impl.files(), impl.path(), options, progress);
}

Result<std::unique_ptr<Repair>> Repair::plan(
    const std::string& path, const RepairOptions& options, bool scan_only,
    const std::function<void(const CheckProgress&)>& progress) {
  return maintain::Repairer::plan(path, options, scan_only, progress);
}

}  // namespace varve
