// SPDX-License-Identifier: Apache-2.0
#include "remote/creation.h"

#include <fmt/core.h>

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "base/clock.h"
#include "base/coding.h"
#include "bucket/abilities.h"
#include "bucket/locking_bucket.h"
#include "format/superblock.h"
#include "remote/bucket_config.h"
#include "remote/head.h"
#include "remote/object_lock_setting.h"
#include "remote/present_folder.h"
#include "remote/replica_state.h"
#include "remote/store_probe.h"
#include "store/superblock_text.h"
#include "varve/copy_name.h"

namespace varve::remote {

namespace {

Error taken(const bucket::Bucket& bucket) {
  return {ErrorCode::kExists,
          bucket.describe() + " has a Varve repository already; `varve attach` reads it"};
}

// Refuses a place that holds objects of a repository without `varve.repo`, which the store has
// lost: a second repository would hide the first.
Result<void> check_unused(const bucket::Bucket& bucket, const bucket::ListPage& listed) {
  for (const auto& object : listed.objects) {
    const auto slash = object.name.find('/');
    if (slash == std::string::npos) continue;
    const auto id = object.name.substr(0, slash);
    if (!is_repository_id(id)) continue;
    return Error(
        ErrorCode::kExists,
        fmt::format("{0} has objects of the repository {1}, but no {2}: the store has lost "
                    "the object. `varve repair` in the folder that writes puts the object "
                    "back, and `varve attach` reads the repository; choose another place "
                    "for a new repository",
                    bucket.describe(), id, kSuperblockName));
  }
  return {};
}

// Returns whether the folder is a repository left unconnected by an interrupted creation.
Result<bool> is_unconnected(const std::string& folder, bool trust_owner) {
  VARVE_TRY_ASSIGN(const auto files, open_present(folder, trust_owner));
  if (!files) return false;
  VARVE_TRY_ASSIGN(const bool connecting, is_connecting(*files, folder));
  if (connecting) return true;
  VARVE_TRY_ASSIGN(const auto config, read_config(*files, folder));
  if (config) return Error(ErrorCode::kExists, folder + " is a repository in " + config->place);
  VARVE_TRY_ASSIGN(const bool used, files->exists(folder + "/series/00000001"));
  if (used) return Error(ErrorCode::kExists, folder + " is a Varve repository already");
  return true;
}

// A repository left by an interrupted creation has the keys of the creation. Errors unless the
// creation's key opens the repository.
Result<void> check_first_key(const std::string& text, const Creation& creation) {
  if (!creation.key) return {};
  VARVE_TRY_ASSIGN(const auto superblock, creation.read_superblock(text));
  const auto keys = format::unlock_superblock(superblock, text, creation.key, true);
  if (keys) return {};
  return Error(keys.error())
      .with_context(
          creation.folder +
          " is a repository without data, which cannot be created in the store as wanted; "
          "remove it, or choose another folder");
}

Result<bucket::ProbeRecord> probe(bucket::Bucket& bucket, const base::Clock& clock,
                                  const ProbeRequest& request) {
  VARVE_TRY_ASSIGN(const auto probed, probe_store(bucket, clock, request));
  if (probed.abilities.conditions == bucket::Conditions::kHonoured) return probed;
  return Error(ErrorCode::kUnsupported,
               bucket.describe() +
                   " does not honour conditional requests (If-None-Match), so two writers "
                   "could harm each other; use another store" +
                   (probed.abilities.keeps_versions
                        ? ", or a bucket without versions: some stores ignore the condition in "
                          "a bucket that keeps versions, as each one with object lock does"
                        : ""));
}

}  // namespace

Result<void> create_in_store(const Creation& creation, const BucketHooks& hooks) {
  const auto& folder = creation.folder;
  const auto config = config_of(creation.place, false);
  VARVE_TRY(check_volume_class(config.volume_class));
  const base::SystemClock system_clock;
  const base::Clock& clock = hooks.clock != nullptr ? *hooks.clock : system_clock;
  VARVE_TRY_ASSIGN(auto opened, bucket_opener(hooks, creation.access)(config));
  const auto bucket = std::make_unique<bucket::LockingBucket>(std::move(opened), clock);
  // The errors of a list say the most.
  VARVE_TRY_ASSIGN(const auto listed, bucket->list({}, {}, bucket::kListMax));
  VARVE_TRY_ASSIGN(const auto present, superblock_in(*bucket));
  VARVE_TRY_ASSIGN(const bool unconnected, is_unconnected(folder, creation.trust_owner));
  if (present && !unconnected) return taken(*bucket);
  if (!present) VARVE_TRY(check_unused(*bucket, listed));
  bucket::ProbeRecord probed;
  if (!present) {
    VARVE_TRY_ASSIGN(probed, probe(*bucket, clock,
                                   {.lock = creation.lock,
                                    .locks = LockProbe::kAlways,
                                    .open_client = racer_opener(hooks, creation.access, config)}));
  }
  if (!unconnected) {
    VARVE_TRY(creation.create([&](io::FileSystem& made) { return note_connecting(made, folder); }));
  }
  VARVE_TRY_ASSIGN(const auto files, store::open_folder(folder, creation.trust_owner));
  VARVE_TRY_ASSIGN(const auto text, store::read_superblock_text(*files, folder));
  if (unconnected) VARVE_TRY(check_first_key(text, creation));
  if (creation.lock.on()) {
    VARVE_TRY_ASSIGN(const auto superblock, creation.read_superblock(text));
    VARVE_TRY_ASSIGN(auto keys, format::unlock_superblock(superblock, text, creation.key, false));
    VARVE_TRY_ASSIGN(auto whole, store::open_folder(folder, creation.trust_owner));
    VARVE_TRY(put_first_lock(std::move(whole), folder, std::move(keys), creation.lock));
    bucket->set_rule(creation.lock);
  }
  const std::array<std::span<const std::byte>, 1> bytes{base::as_bytes(text)};
  const auto put =
      bucket->put(kSuperblockName, bytes, {.condition = bucket::PutCondition::kIfAbsent});  // O45
  if (!put && put.error().code() != ErrorCode::kExists) return put;
  VARVE_TRY_ASSIGN(const auto now, superblock_in(*bucket));
  if (now != text) return taken(*bucket).with_more(". The folder " + folder + " can be removed");
  VARVE_TRY(write_config(*files, folder, config));
  VARVE_TRY(note_connected(*files, folder));
  VARVE_TRY(open_copy(*files, folder, false));  // Goes together with the state.
  return note_first_use(*bucket, *files, folder, probed);
}

}  // namespace varve::remote
