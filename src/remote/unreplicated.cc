// SPDX-License-Identifier: Apache-2.0
// Compares a writer's folder with the newest replicated state, as the disk has both.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/coding.h"
#include "catalog/key_record.h"
#include "catalog/sequence_record.h"
#include "format/superblock.h"
#include "meta/lmdb.h"
#include "meta/schema.h"
#include "meta/stored_records.h"
#include "remote/copy_check.h"
#include "remote/head.h"
#include "remote/replica_state.h"
#include "store/superblock_text.h"
#include "varve/remote_folder.h"

namespace varve {

namespace {

// The catalog of a folder, and the folder's copy of the replicated catalog.
struct BothCatalogs {
  meta::Env here;
  std::optional<meta::Env> there;  // Empty before the first replication.
};

Result<BothCatalogs> open_catalogs(const std::string& folder, bool trust_owner) {
  VARVE_TRY_ASSIGN(const auto files, store::open_folder(folder, trust_owner));
  VARVE_TRY_ASSIGN(auto here, remote::open_catalog_without_keys(*files, folder));
  VARVE_TRY_ASSIGN(const bool any, remote::has_state(*files, folder));
  if (!any) return BothCatalogs{std::move(here), std::nullopt};
  VARVE_TRY_ASSIGN(auto there, remote::open_copy(*files, folder, true));
  return BothCatalogs{std::move(here), std::move(there)};
}

constexpr const char* kVersionsTable = meta::catalog::kTables[meta::catalog::kVersions];
constexpr const char* kRetentionTable = meta::catalog::kTables[meta::catalog::kRetention];
constexpr const char* kSettingsTable = meta::catalog::kTables[meta::catalog::kSettings];

// Returns the keys of a table's records that are missing from `other` or have a different value.
Result<std::vector<std::string>> keys_that_differ(const meta::Txn& txn, const meta::Txn& other,
                                                  const char* table) {
  std::vector<std::string> keys;
  VARVE_TRY_ASSIGN(auto cursor, meta::StoredCursor::open(txn, table));
  VARVE_TRY_ASSIGN(auto record, cursor.next());
  while (record) {
    VARVE_TRY_ASSIGN(const auto value, meta::find_stored(other, table, record->key));
    if (value != record->value) keys.emplace_back(record->key);
    VARVE_TRY_ASSIGN(record, cursor.next());
  }
  return keys;
}

Result<bool> do_keys_differ(const std::string& here, const std::string& there) {
  VARVE_TRY_ASSIGN(const auto one, format::decode_superblock(here));
  VARVE_TRY_ASSIGN(const auto other, format::decode_superblock(there));
  return one.encryption && other.encryption &&
         one.encryption->key_counter != other.encryption->key_counter;
}

// The lock of a version counts only if the store has the version in the same state: otherwise the
// whole version is unreplicated.
Result<bool> do_settings_differ(const meta::Txn& here, const meta::Txn& there) {
  for (const auto& [one, other] : {std::pair(&here, &there), std::pair(&there, &here)}) {
    VARVE_TRY_ASSIGN(const auto keys, keys_that_differ(*one, *other, kSettingsTable));
    for (const auto& key : keys) {
      if (key == catalog::kKeyCounterSetting) continue;
      if (catalog::counts_in_sequence(meta::catalog::kSettings, key)) return true;
    }
  }
  VARVE_TRY_ASSIGN(const auto locks, keys_that_differ(here, there, kRetentionTable));
  for (const auto& key : locks) {
    VARVE_TRY_ASSIGN(const auto present, meta::find_stored(here, kVersionsTable, key));
    VARVE_TRY_ASSIGN(const auto replicated, meta::find_stored(there, kVersionsTable, key));
    if (present && present == replicated) return true;
  }
  return false;
}

}  // namespace

Result<std::vector<VersionId>> RemoteFolder::unreplicated_versions() const {
  std::vector<VersionId> found;
  VARVE_TRY_ASSIGN(const auto known, info());
  if (!known || known->reads_only) return found;
  VARVE_TRY_ASSIGN(const auto both, open_catalogs(path_, trust_owner_));
  VARVE_TRY_ASSIGN(const auto here, meta::ReadTxn::begin(both.here));
  std::optional<meta::ReadTxn> there;
  if (both.there) {
    VARVE_TRY_ASSIGN(auto txn, meta::ReadTxn::begin(*both.there));
    there.emplace(std::move(txn));
  }
  VARVE_TRY_ASSIGN(auto cursor, meta::StoredCursor::open(here, kVersionsTable));
  VARVE_TRY_ASSIGN(auto record, cursor.next());
  while (record) {
    std::optional<std::string_view> replicated;
    if (there) {
      VARVE_TRY_ASSIGN(replicated, meta::find_stored(*there, kVersionsTable, record->key));
    }
    if (replicated != record->value && record->key.size() == 8) {
      found.push_back({static_cast<SeriesId>(base::load_be32(record->key)),
                       static_cast<VersionNumber>(base::load_be32(record->key.substr(4)))});
    }
    VARVE_TRY_ASSIGN(record, cursor.next());
  }
  return found;
}

Result<UnreplicatedChanges> RemoteFolder::unreplicated_changes() const {
  UnreplicatedChanges changes;
  VARVE_TRY_ASSIGN(const auto known, info());
  if (!known || known->reads_only || known->head == 0) return changes;
  VARVE_TRY_ASSIGN(const auto files, store::open_folder(path_, trust_owner_));
  {
    VARVE_TRY_ASSIGN(const auto state, remote::find_state(*files, path_));
    if (!state) return changes;
    VARVE_TRY_ASSIGN(const auto text, state->head());
    if (!text) return changes;
    VARVE_TRY_ASSIGN(const auto head, remote::decode_head(*text));
    VARVE_TRY_ASSIGN(const auto superblock, store::read_superblock_text(*files, path_));
    VARVE_TRY_ASSIGN(const auto differ, do_keys_differ(superblock, head.superblock));
    changes.keys = differ;
    changes.settings = !differ && superblock != head.superblock;
  }
  VARVE_TRY_ASSIGN(const auto both, open_catalogs(path_, trust_owner_));
  if (!both.there) return changes;
  VARVE_TRY_ASSIGN(const auto here, meta::ReadTxn::begin(both.here));
  VARVE_TRY_ASSIGN(const auto there, meta::ReadTxn::begin(*both.there));
  VARVE_TRY_ASSIGN(const bool settings, do_settings_differ(here, there));
  changes.settings = changes.settings || settings;
  VARVE_TRY_ASSIGN(const auto replicated, keys_that_differ(there, here, kVersionsTable));
  for (const auto& key : replicated) {
    VARVE_TRY_ASSIGN(const auto present, meta::find_stored(here, kVersionsTable, key));
    if (!present) ++changes.deleted_versions;
  }
  return changes;
}

Result<bool> RemoteFolder::is_replicated(SeriesId series, VersionNumber number) const {
  VARVE_TRY_ASSIGN(const auto both, open_catalogs(path_, trust_owner_));
  VARVE_TRY_ASSIGN(const auto here, meta::ReadTxn::begin(both.here));
  const auto key = meta::version_key(series, number);
  VARVE_TRY_ASSIGN(const auto wanted, meta::find_stored(here, kVersionsTable, key));
  if (!wanted) return Error(ErrorCode::kNotFound, "there is no such version");
  if (!both.there) return false;
  VARVE_TRY_ASSIGN(const auto there, meta::ReadTxn::begin(*both.there));
  VARVE_TRY_ASSIGN(const auto found, meta::find_stored(there, kVersionsTable, key));
  return found == wanted;
}

}  // namespace varve
