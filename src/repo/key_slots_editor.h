// SPDX-License-Identifier: Apache-2.0
// Changes of key slots, wherever the changed text of `varve.repo` goes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "crypto/key_slots.h"
#include "format/superblock.h"
#include "varve/keys.h"

namespace varve::repo {

/// Changes the lines of the keys, or returns an error and leaves the repository unchanged.
using KeyLinesChange = std::function<Result<void>(format::KeyLines&)>;

/// Returns the part of the lines shown to users.
[[nodiscard]] EncryptionInfo info_of(const format::KeyLines& lines);

/// Checks that the lines have a key besides recovery codes. Errors: kNotPermitted.
[[nodiscard]] Result<void> check_usable(const format::KeyLines& lines);

/// Implements the changes of KeySlots. Subclasses store the lines and seal slots.
class KeySlotsEditor : public KeySlots {
 public:
  [[nodiscard]] Result<KeySlotInfo> add(const NewKey& key) override {
    return put(key, std::nullopt);
  }
  [[nodiscard]] Result<KeySlotInfo> replace(std::uint32_t number, const NewKey& key) override {
    return put(key, number);
  }
  [[nodiscard]] Result<void> remove(std::uint32_t number) override;

 private:
  /// Applies `change` to the present lines, and makes the result durable with the next counter.
  [[nodiscard]] virtual Result<void> change(const KeyLinesChange& change) = 0;
  /// Returns a slot sealed under a key.
  [[nodiscard]] virtual Result<crypto::KeySlot> seal(const NewKey& key, std::uint32_t number) = 0;

  [[nodiscard]] Result<KeySlotInfo> put(const NewKey& key, std::optional<std::uint32_t> replaced);
};

}  // namespace varve::repo
