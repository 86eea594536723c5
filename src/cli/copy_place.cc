// SPDX-License-Identifier: Apache-2.0
#include "cli/copy_place.h"

#include <optional>
#include <utility>

#include "base/file_limit.h"
#include "cli/command.h"
#include "cli/repository_access.h"
#include "control/key_source.h"
#include "control/lock_wait.h"
#include "control/place_folder.h"
#include "control/store_access.h"
#include "varve/remote_folder.h"
#include "varve/restore.h"

namespace varve::cli {
namespace {

/// Checks that a repository is of the kind requested for the target.
Result<void> check_kind(const std::string& path, TargetKind kind, bool is_encrypted) {
  if (kind == TargetKind::kPlain && is_encrypted) {
    return Error(ErrorCode::kWrongKey, path + " is encrypted, and --plain asks for a plain copy");
  }
  if (kind == TargetKind::kAny || kind == TargetKind::kPlain || is_encrypted) return {};
  return Error(ErrorCode::kWrongKey,
               "the repository " + path +
                   " is plain: it would store the copy in the clear. Give another folder, or "
                   "--plain if that is what you want");
}

CreateOptions options_to_create(const CopyPlace& place) {
  CreateOptions options;
  options.trust_owner = is_trusted(place.folder);
  options.store_access = control::store_access_of_environment();
  return options;
}

/// Creates the target, or completes a target after an interrupted creation in the object store.
Result<void> make_target(const CopyPlace& place, const TargetSetup& setup,
                         const CreateOptions& options) {
  if (!place.store) return create_target(place.folder, setup, options);
  VARVE_TRY(create_target(*place.store, place.folder, setup, options));
  remember_store_folder(options_to_read(place.folder).memory_folder, place.store->place,
                        place.folder);
  return {};
}

/// Creates the target. Returns the target's key, or nullopt for a plain target.
Result<std::optional<UserKey>> create(const CopyPlace& place, const TargetSetup& setup,
                                      const std::string& key_options) {
  auto options = options_to_create(place);
  std::optional<UserKey> key;
  if (setup.kind == TargetKind::kEncrypted) {
    const auto named = control::key_place_of_environment();
    VARVE_TRY_ASSIGN(key, control::read_new_key(named, key_options));
    options.encryption = Encryption{.first_key = {.key = *key}};
  }
  VARVE_TRY(make_target(place, setup, options));
  return key;
}

/// Completes a repository after an interrupted creation in the object store.
Result<void> complete(const CopyPlace& place, const TargetSetup& setup) {
  if (!place.store) return {};
  VARVE_TRY_ASSIGN(const auto connected,
                   RemoteFolder(place.folder, is_trusted(place.folder)).place());
  return connected ? Result<void>() : make_target(place, setup, options_to_create(place));
}

}  // namespace

Result<CopyPlace> find_copy_place(const std::string& named, const std::string& local,
                                  const StorePlace& how, control::Purpose purpose) {
  CopyPlace found;
  if (!control::names_store(named)) {
    if (!local.empty()) {
      return usage_error("--local names the folder of a repository in s3://BUCKET/PREFIX");
    }
    VARVE_TRY_ASSIGN(found.folder, repository_at(named, purpose));
    return found;
  }
  found.store = how;
  VARVE_TRY_ASSIGN(found.store->place, as_usage(normalized_place(named)));
  if (local.empty()) {
    auto known = control::known_folder_of_place(named);
    if (!known && known.error().code() == ErrorCode::kNoRepository) {
      return usage_error("no folder of this machine is known to belong to " + found.store->place +
                         "; give one that keeps what is not in the store yet: --local=DIR");
    }
    VARVE_TRY_ASSIGN(found.folder, std::move(known));
    return found;
  }
  VARVE_TRY_ASSIGN(found.folder, repository_at(local, purpose));
  VARVE_TRY_ASSIGN(const auto there, RemoteFolder(found.folder, is_trusted(found.folder)).place());
  if (!there) return found;
  const auto place = normalized_place(there->place.place);
  if (place && *place == found.store->place) return found;
  return Error(ErrorCode::kInvalid, found.folder + " belongs to " + there->place.place +
                                        "; give another folder with --local");
}

Result<std::unique_ptr<Repository>> open_copy_place(const CopyPlace& place,
                                                    const TargetSetup& setup, bool dry_run,
                                                    const std::string& key_options,
                                                    const StoreWaits& waits) {
  base::raise_file_limit();
  const std::string& path = place.folder;
  const auto present = read_encryption(path, is_trusted(path));
  if (!present && present.error().code() != ErrorCode::kNoRepository) return present.error();
  if (present) VARVE_TRY(check_kind(path, setup.kind, present->has_value()));
  if (!present && setup.kind == TargetKind::kExistingEncrypted) {
    return Error(ErrorCode::kNoRepository,
                 "there is no repository in " + path +
                     ", and one that must be encrypted is not created by accident: --encrypt "
                     "creates it, --plain creates one in the clear");
  }
  if (!present) {
    VARVE_TRY(check_outside_repositories(path, PlaceKind::kRepository, own_folders(""),
                                         "copy to a folder outside it"));
  }
  OpenOptions options = options_to_write(path, waits);
  options.read_only = dry_run;
  if (setup.kind == TargetKind::kPlain) {
    options.key = {};  // The key in the environment belongs to the source.
    options.encrypted_only = false;
  } else if (setup.kind != TargetKind::kAny) {
    options.encrypted_only = true;
  }
  if (!present && dry_run) return std::unique_ptr<Repository>();
  if (!present) {
    VARVE_TRY_ASSIGN(const auto key, create(place, setup, key_options));
    if (key) options.key = [key]() -> Result<UserKey> { return *key; };
  } else if (!dry_run) {
    VARVE_TRY(complete(place, setup));
  }
  auto opened = control::open_when_unlocked(path, lock_wait(),
                                            [&] { return Repository::open(path, options); });
  if (!opened && opened.error().code() == ErrorCode::kLocked) {
    return std::move(opened).error().with_context(
        "the target of a copy must not be mounted read-write, nor receive another copy");
  }
  return opened;
}

}  // namespace varve::cli
