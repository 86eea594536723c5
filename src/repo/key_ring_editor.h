// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <string_view>

#include "crypto/key_slots.h"
#include "repo/key_slots_editor.h"
#include "repo/repository_folder.h"
#include "repo/series_table.h"
#include "varve/keys.h"
#include "varve/result.h"

namespace varve::repo {

/// Changes the key slots of an open repository. docs/decisions/080 gives the order of writes. For
/// one thread, except adopt().
class KeyRingEditor {
 public:
  /// Lifetime: the arguments outlive the object.
  KeyRingEditor(RepositoryFolder& folder, SeriesTable& series) : folder_(folder), series_(series) {}

  [[nodiscard]] bool is_encrypted() const { return folder_.codecs.keys() != nullptr; }
  /// Refuses key slots older than the catalog, and completes a change interrupted by a crash. Does
  /// nothing in a plain repository. Errors: kCorrupt for older key slots.
  [[nodiscard]] Result<void> check_counter();

  // The repository is encrypted.
  [[nodiscard]] EncryptionInfo info() const;
  /// Changes the key slots with `change`, unless `change` fails.
  [[nodiscard]] Result<void> change(const KeyLinesChange& change);
  /// Returns a slot sealed under a key.
  [[nodiscard]] Result<crypto::KeySlot> seal_slot(const NewKey& key, std::uint32_t number) const;

  /// As Repository::adopt_keys().
  [[nodiscard]] Result<void> adopt(std::string_view superblock);

 private:
  /// Notes the counter of the key slots in the catalog.
  [[nodiscard]] Result<void> note_counter();

  RepositoryFolder& folder_;
  SeriesTable& series_;
  std::mutex adopt_mutex_;  // Held while key slots are adopted.
};

}  // namespace varve::repo
