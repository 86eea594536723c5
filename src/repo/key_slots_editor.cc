// SPDX-License-Identifier: Apache-2.0
#include "repo/key_slots_editor.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "format/key_slot_text.h"

namespace varve::repo {

namespace {

Result<void> take_out(format::KeyLines& lines, std::uint32_t number) {
  const auto removed = std::erase_if(
      lines.slots, [&](const crypto::KeySlot& slot) { return slot.info.number == number; });
  if (removed != 0) return {};
  return Error(ErrorCode::kNotFound,
               fmt::format("the repository has no key {}; see `varve key list`", number));
}

}  // namespace

EncryptionInfo info_of(const format::KeyLines& lines) {
  EncryptionInfo info;
  info.cipher = format::cipher_name(lines.cipher);
  info.key_counter = lines.key_counter;
  for (const auto& slot : lines.slots) info.slots.push_back(slot.info);
  return info;
}

Result<void> check_usable(const format::KeyLines& lines) {
  const bool usable = std::ranges::any_of(lines.slots, [](const crypto::KeySlot& slot) {
    return slot.info.kind != KeyKind::kRecovery;
  });
  if (usable) return {};
  return Error(
      ErrorCode::kNotPermitted,
      "this is the last key of the repository; add another one first with `varve key add`");
}

Result<void> KeySlotsEditor::remove(std::uint32_t number) {
  return change([&](format::KeyLines& lines) -> Result<void> {
    VARVE_TRY(take_out(lines, number));
    return check_usable(lines);
  });
}

Result<KeySlotInfo> KeySlotsEditor::put(const NewKey& key, std::optional<std::uint32_t> replaced) {
  KeySlotInfo made;
  const auto done = change([&](format::KeyLines& lines) -> Result<void> {
    std::uint32_t number = 1;
    if (!lines.slots.empty()) number = lines.slots.back().info.number + 1;
    if (replaced) VARVE_TRY(take_out(lines, *replaced));
    if (lines.slots.size() == kKeySlotsMax) {
      return Error(ErrorCode::kTooLarge,
                   fmt::format("the repository has {} keys, the most that it can have; remove one "
                               "with `varve key rm`",
                               kKeySlotsMax));
    }
    if (crypto::is_guessable(key.key.kind)) {
      VARVE_TRY(crypto::check_cost(key.cost));
      auto costs = lines.slots;
      costs.emplace_back().info = {.kind = key.key.kind, .cost = key.cost};
      VARVE_TRY(crypto::check_total_cost(costs));
    }
    VARVE_TRY_ASSIGN(auto slot, seal(key, number));
    made = slot.info;
    lines.slots.push_back(std::move(slot));
    return {};
  });
  if (!done) return done.error();
  return made;
}

}  // namespace varve::repo
