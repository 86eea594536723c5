// SPDX-License-Identifier: Apache-2.0
#include "repo/key_ring_editor.h"

#include <fmt/core.h>

#include <utility>

#include "catalog/key_record.h"
#include "format/superblock.h"
#include "ingest/parameters.h"
#include "meta/lmdb.h"

namespace varve::repo {

EncryptionInfo KeyRingEditor::info() const { return info_of(folder_.superblock.key_lines()); }

Result<void> KeyRingEditor::change(const KeyLinesChange& change) {
  auto lines = folder_.superblock.key_lines();
  VARVE_TRY(change(lines));
  ++lines.key_counter;
  VARVE_TRY(folder_.settled.clear());
  VARVE_TRY(folder_.superblock.set_key_lines(std::move(lines)));  // O42
  VARVE_TRY(note_counter());
  series_.write_all_labels();  // The labels have a copy of the counter, for a rebuilt catalog.
  folder_.replication().changed();
  return {};
}

Result<void> KeyRingEditor::note_counter() {
  const auto counter = folder_.superblock.key_lines().key_counter;
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(folder_.catalog));
  VARVE_TRY(catalog::put_key_counter(txn, counter));
  return txn.commit();
}

Result<void> KeyRingEditor::check_counter() {
  if (!folder_.codecs.keys()) return {};
  std::uint32_t known = 0;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(folder_.catalog));
    VARVE_TRY_ASSIGN(known, catalog::find_key_counter(txn));
  }
  if (folder_.options.read_only && known > folder_.superblock.key_lines().key_counter) {
    VARVE_TRY(folder_.superblock.read_again());  // A writer may have changed the keys since.
  }
  const auto present = folder_.superblock.key_lines().key_counter;
  if (known > present) {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("{} has the keys of change {}, but the catalog knows change {}: an "
                             "older copy of the file was put back, and removed keys may open the "
                             "repository. Run `varve repair`",
                             folder_.paths.superblock(), present, known));
  }
  if (folder_.options.read_only) return {};
  VARVE_TRY(folder_.superblock.complete_copy());
  return known < present ? note_counter() : Result<void>();
}

Result<void> KeyRingEditor::adopt(std::string_view superblock) {
  VARVE_TRY(folder_.check_writable());
  if (!is_encrypted()) {
    return Error(ErrorCode::kNotPermitted,
                 folder_.paths.root() + " is not encrypted, and has no keys");
  }
  VARVE_TRY_ASSIGN(const auto changed, ingest::read_superblock(superblock));
  VARVE_TRY(format::authenticate_superblock(superblock, *folder_.codecs.keys()));
  if (changed.repository_id != folder_.superblock.repository_id() || !changed.encryption) {
    return Error(ErrorCode::kCorrupt, "these keys are those of another repository");
  }
  VARVE_TRY(check_usable(*changed.encryption));
  const std::lock_guard lock(adopt_mutex_);
  return change([&](format::KeyLines& lines) -> Result<void> {
    if (changed.encryption->key_counter != lines.key_counter + 1) {
      return Error(ErrorCode::kBusy,
                   "the keys of the repository were changed meanwhile; run the command again");
    }
    lines.slots = changed.encryption->slots;
    return {};
  });
}

Result<crypto::KeySlot> KeyRingEditor::seal_slot(const NewKey& key, std::uint32_t number) const {
  return crypto::seal_slot(key, number, folder_.clock.now().seconds,
                           folder_.codecs.keys()->master(), folder_.superblock.repository_id());
}

}  // namespace varve::repo
