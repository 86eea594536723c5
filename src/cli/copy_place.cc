// SPDX-License-Identifier: Apache-2.0
#include "cli/copy_place.h"

#include <optional>
#include <utility>

#include "base/file_limit.h"
#include "cli/repository_access.h"
#include "control/key_source.h"
#include "control/lock_wait.h"

namespace varve::cli {
namespace {

/// Checks that a repository is what the source wants of its target.
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

/// Creates the target. Returns its key, or nullopt for a plain one.
Result<std::optional<UserKey>> create(const std::string& path, const TargetSetup& setup,
                                      const std::string& key_options) {
  CreateOptions options;
  options.trust_owner = is_trusted(path);
  std::optional<UserKey> key;
  if (setup.kind == TargetKind::kEncrypted) {
    const auto place = control::key_place_of_environment();
    VARVE_TRY_ASSIGN(key, control::read_new_key(place, key_options));
    options.encryption = Encryption{.first_key = {.key = *key}};
  }
  VARVE_TRY(create_target(path, setup, options));
  return key;
}

}  // namespace

Result<std::unique_ptr<Repository>> open_copy_place(const std::string& named,
                                                    const TargetSetup& setup, bool dry_run,
                                                    const std::string& key_options) {
  base::raise_file_limit();
  const auto purpose = dry_run ? control::Purpose::kLook : control::Purpose::kChange;
  VARVE_TRY_ASSIGN(const std::string path, repository_at(named, purpose));
  const auto present = read_encryption(path, is_trusted(path));
  if (!present && present.error().code() != ErrorCode::kNoRepository) return present.error();
  if (present) VARVE_TRY(check_kind(path, setup.kind, present->has_value()));
  if (!present && setup.kind == TargetKind::kExistingEncrypted) {
    return Error(ErrorCode::kNoRepository,
                 "there is no repository in " + path +
                     ", and one that must be encrypted is not created by accident: --encrypt "
                     "creates it, --plain creates one in the clear");
  }
  OpenOptions options = options_to_write(path);
  options.read_only = dry_run;
  if (setup.kind == TargetKind::kPlain) {
    options.key = {};  // The one in the environment is that of the source.
    options.encrypted_only = false;
  } else if (setup.kind != TargetKind::kAny) {
    options.encrypted_only = true;
  }
  if (!present && dry_run) return std::unique_ptr<Repository>();
  if (!present) {
    VARVE_TRY_ASSIGN(const auto key, create(path, setup, key_options));
    if (key) options.key = [key]() -> Result<UserKey> { return *key; };
  }
  auto opened = control::open_when_unlocked(path, [&] { return Repository::open(path, options); });
  if (!opened && opened.error().code() == ErrorCode::kLocked) {
    return std::move(opened).error().with_context(
        "the target of a copy must not be mounted read-write, nor receive another copy");
  }
  return opened;
}

}  // namespace varve::cli
