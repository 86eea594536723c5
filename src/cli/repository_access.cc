// SPDX-License-Identifier: Apache-2.0
#include "cli/repository_access.h"

#include <cstdlib>
#include <map>
#include <mutex>
#include <utility>

#include "base/file_limit.h"
#include "base/path_list.h"
#include "cli/output.h"
#include "cli/quantity.h"
#include "cli/wait_signals.h"
#include "control/client_state.h"
#include "control/key_source.h"
#include "control/open_control.h"
#include "varve/options.h"

namespace varve::cli {
namespace {

// Returns the source of a repository's key. A command may open a repository several times, or
// attach a folder first: all of that asks for the key once.
KeySource key_of(const std::string& path, const control::KeyPlace& place, bool trusted) {
  static std::mutex mutex;
  static std::map<std::string, KeySource> sources;
  const std::lock_guard lock(mutex);
  auto& source = sources[path];
  if (!source) source = control::key_source(place, {path, printable(path), trusted});
  return source;
}

OpenOptions options_for(const std::string& path, control::Purpose purpose,
                        const StoreWaits& waits = {}) {
  OpenOptions options;
  options.read_only = purpose == control::Purpose::kLook;
  options.trust_owner = is_trusted(path);
  // The process ends after the command, so nothing arranges in the background.
  options.arrange = false;
  const auto place = control::key_place_of_environment();
  options.key = key_of(path, place, options.trust_owner);
  options.encrypted_only = !place.empty();
  control::use_client_state(options);
  options.store = StoreWaiting::use(waits, std::move(options.store.access));
  return options;
}

}  // namespace

OpenOptions options_to_write(const std::string& path, const StoreWaits& waits) {
  return options_for(path, control::Purpose::kChange, waits);
}

OpenOptions options_to_read(const std::string& path) {
  return options_for(path, control::Purpose::kLook);
}

std::vector<std::string> own_folders(const std::string& repository) {
  OpenOptions options;
  control::use_client_state(options);
  return {repository, options.memory_folder};
}

bool is_trusted(const std::string& path) { return base::is_listed_path("VARVE_TRUST", path); }

Result<std::string> repository_at(const std::string& path, control::Purpose purpose) {
  // The mount table comes first: below a mount whose daemon is stopped, any access hangs.
  auto mounted = control::find_mounted(path, purpose);
  if (mounted) return mounted->in_repository.empty() ? std::move(mounted->repository) : path;
  const ErrorCode code = mounted.error().code();
  const bool is_inside = code == ErrorCode::kNotPermitted && control::is_repository(path);
  if (code == ErrorCode::kNotFound || is_inside) return path;
  return std::move(mounted).error();
}

control::LockWait lock_wait(std::chrono::seconds most) {
  const char* const value = std::getenv(kLockWaitVariable);
  // The start of the program has checked the variable.
  const auto given = parse_wait(value == nullptr ? "" : value);
  // A user who names a time, or a command that waits long, outlasts mounts, too.
  return {.most = given ? *given : most,
          .for_mounts = given || most > control::kEndingMax,
          .begin = [] { return std::make_shared<const WaitSignals>(); }};
}

control::LockWait lock_wait_to_view(std::chrono::seconds most) {
  control::LockWait wait = lock_wait(most);
  wait.reads_catalog = true;
  return wait;
}

Result<std::unique_ptr<Repository>> open_to_read(const std::string& named, bool probe_catalog) {
  base::raise_file_limit();
  VARVE_TRY_ASSIGN(const std::string path, repository_at(named, control::Purpose::kLook));
  OpenOptions options = options_for(path, control::Purpose::kLook);
  options.probe_catalog = probe_catalog;
  return Repository::open(path, options);
}

Result<std::unique_ptr<Repository>> open_to_write(const std::string& named,
                                                  const WriteChoices& choices) {
  base::raise_file_limit();
  VARVE_TRY_ASSIGN(const std::string path, repository_at(named, control::Purpose::kChange));
  OpenOptions options = options_to_write(path, choices.waits);
  options.index_bytes = choices.index_bytes.value_or(options.index_bytes);
  return control::open_when_unlocked(path, choices.lock,
                                     [&] { return Repository::open(path, options); });
}

Result<std::unique_ptr<control::RepositoryControl>> open_control(const std::string& named,
                                                                 control::Purpose purpose,
                                                                 const StoreWaits& waits,
                                                                 const control::LockWait& lock) {
  base::raise_file_limit();
  VARVE_TRY_ASSIGN(const std::string path, repository_at(named, purpose));
  return control::open_control(path, options_for(path, purpose, waits), lock);
}

}  // namespace varve::cli
