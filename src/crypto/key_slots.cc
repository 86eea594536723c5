// SPDX-License-Identifier: Apache-2.0
#include "crypto/key_slots.h"

#include <argon2.h>
#include <fmt/core.h>

#include <algorithm>

#include "base/coding.h"
#include "crypto/authentic.h"

namespace varve {

std::string_view key_kind_name(KeyKind kind) {
  switch (kind) {
    case KeyKind::kPassphrase:
      return "passphrase";
    case KeyKind::kKeyFile:
      return "key-file";
    case KeyKind::kCommand:
      return "command";
    case KeyKind::kRecovery:
      return "recovery";
  }
  return "unknown";
}

namespace crypto {

namespace {

constexpr std::uint32_t kMemoryKibMax = 1U << 20;
constexpr std::uint32_t kMemoryKibALane = 8;  // Required by RFC 9106.
constexpr std::uint32_t kPassesMax = 16;
constexpr std::uint32_t kLanesMax = 16;
constexpr std::size_t kLabelBytesMax = 64;
constexpr std::size_t kKeyFileBytesMin = 32;

unsigned char* octets_of(std::span<std::byte> bytes) {
  return reinterpret_cast<unsigned char*>(bytes.data());
}

/// The two keys of a slot. AES-GCM alone does not commit to a key: a text can open under several
/// keys chosen by the text's author. So the slot's key derives both keys, and the slot stores the
/// second key.
struct SlotKeys {
  SecretKey sealing;     // Seals the master key.
  SecretKey commitment;  // Stands in the slot.
};

/// Returns the data to which a slot is bound.
std::string associated_with(std::string_view word, const KeySlot& slot,
                            std::string_view repository_id) {
  std::string text(word);
  base::ByteWriter writer(text);
  writer.text(repository_id);
  writer.u8(static_cast<std::uint8_t>(slot.info.kind));
  writer.u32(slot.info.cost.memory_kib);
  writer.u32(slot.info.cost.passes);
  writer.u32(slot.info.cost.lanes);
  return text;
}

Result<SlotKeys> slot_keys(const KeySlot& slot, std::span<const std::byte> secret,
                           std::string_view repository_id) {
  VARVE_TRY_ASSIGN(const auto key, is_guessable(slot.info.kind)
                                       ? stretch(secret, slot.salt, slot.info.cost)
                                       : derive_key(secret, slot.salt, "varve slot"));
  VARVE_TRY_ASSIGN(auto sealing, derive_key(key, slot.salt, "varve slot sealing"));
  VARVE_TRY_ASSIGN(
      auto commitment,
      derive_key(key, slot.salt, associated_with("varve slot commitment", slot, repository_id)));
  return SlotKeys{std::move(sealing), std::move(commitment)};
}

/// Returns the master key if `secret` opens the slot. A wrong commitment and a failed opening look
/// the same.
Result<std::optional<SecretKey>> open_slot(const KeySlot& slot, std::span<const std::byte> secret,
                                           std::string_view repository_id) {
  VARVE_TRY_ASSIGN(auto keys, slot_keys(slot, secret, repository_id));
  if (!is_authentic(slot.commitment, keys.commitment.bytes())) return std::optional<SecretKey>();
  std::array<std::byte, kKeyBytes> text = slot.sealed;
  const auto associated = associated_with("varve slot", slot, repository_id);
  const bool opened = Aead(Cipher::kAes256Gcm, std::move(keys.sealing))
                          .open(nonce_of(0), base::as_bytes(associated), text, slot.tag);
  if (!opened) return std::optional<SecretKey>();
  auto master = SecretKey::copy_of(text);
  wipe(text);
  if (!master) return std::move(master).error();
  return std::optional(*std::move(master));
}

/// Returns the cost of trying a slot, in KiB of memory times passes.
std::uint64_t cost_of(const KeySlot* slot) {
  return std::uint64_t{slot->info.cost.memory_kib} * slot->info.cost.passes;
}

std::vector<const KeySlot*> slots_of(const std::vector<KeySlot>& slots, KeyKind kind) {
  std::vector<const KeySlot*> found;
  for (const auto& slot : slots) {
    if (slot.info.kind == kind) found.push_back(&slot);
  }
  return found;
}

}  // namespace

bool is_guessable(KeyKind kind) {
  return kind == KeyKind::kPassphrase || kind == KeyKind::kCommand;
}

Result<void> check_cost(const PassphraseCost& cost) {
  const bool fits = cost.lanes >= 1 && cost.lanes <= kLanesMax && cost.passes >= 1 &&
                    cost.passes <= kPassesMax && cost.memory_kib >= kMemoryKibALane * cost.lanes &&
                    cost.memory_kib <= kMemoryKibMax;
  if (fits) return {};
  return Error(ErrorCode::kInvalid,
               fmt::format("the cost of a passphrase is {} KiB a lane to {} KiB of memory, 1 to {} "
                           "passes, and 1 to {} lanes",
                           kMemoryKibALane, kMemoryKibMax, kPassesMax, kLanesMax));
}

Result<SecretKey> stretch(std::span<const std::byte> text, std::span<const std::byte> salt,
                          const PassphraseCost& cost) {
  VARVE_TRY(check_cost(cost));
  std::array<std::byte, kKeyBytes> derived{};
  argon2_context context{};
  context.out = octets_of(derived);
  context.outlen = kKeyBytes;
  // Argon2 only reads both buffers: without ARGON2_FLAG_CLEAR_PASSWORD, Argon2 does not wipe the
  // text.
  const auto read_only = [](std::span<const std::byte> bytes) {
    return reinterpret_cast<unsigned char*>(const_cast<std::byte*>(bytes.data()));
  };
  context.pwd = read_only(text);
  context.pwdlen = static_cast<std::uint32_t>(text.size());
  context.salt = read_only(salt);
  context.saltlen = static_cast<std::uint32_t>(salt.size());
  context.t_cost = cost.passes;
  context.m_cost = cost.memory_kib;
  context.lanes = cost.lanes;
  context.threads = cost.lanes;
  context.version = ARGON2_VERSION_13;
  int result = argon2_ctx(&context, Argon2_id);
  if (result == ARGON2_THREAD_FAIL) {  // Slower, with the same result.
    context.threads = 1;
    result = argon2_ctx(&context, Argon2_id);
  }
  if (result != ARGON2_OK) {
    return Error(ErrorCode::kIo, fmt::format("cannot use the passphrase, which needs {} MiB of "
                                             "memory: {}",
                                             cost.memory_kib >> 10, argon2_error_message(result)));
  }
  auto key = SecretKey::copy_of(derived);
  wipe(derived);
  return key;
}

Result<void> check_label(std::string_view label) {
  const bool printable = std::ranges::none_of(
      label, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
  if (printable && label.size() <= kLabelBytesMax) return {};
  return Error(ErrorCode::kInvalid,
               fmt::format("the label of a key is one line of at most {} bytes", kLabelBytesMax));
}

Result<KeySlot> seal_slot(const NewKey& key, std::uint32_t number, std::int64_t created_s,
                          const SecretKey& master, std::string_view repository_id) {
  VARVE_TRY(check_label(key.label));
  KeySlot slot;
  slot.info = {.number = number, .kind = key.key.kind, .label = key.label, .created_s = created_s};
  Secret secret = key.key.secret;
  if (is_guessable(slot.info.kind)) {
    VARVE_TRY(check_cost(key.cost));
    slot.info.cost = key.cost;
  } else {
    slot.info.cost = {0, 0, 0};
  }
  if (secret.empty()) return Error(ErrorCode::kInvalid, "the key is empty");
  if (slot.info.kind == KeyKind::kKeyFile && secret.bytes().size() < kKeyFileBytesMin) {
    return Error(ErrorCode::kInvalid,
                 fmt::format("a key file has at least {} random bytes; make one with `head -c 32 "
                             "/dev/urandom`",
                             kKeyFileBytesMin));
  }
  if (slot.info.kind == KeyKind::kRecovery) {
    VARVE_TRY_ASSIGN(auto code, parse_recovery_code(secret.bytes()));
    if (!code) return Error(ErrorCode::kInvalid, "this is no recovery code");
    secret = *std::move(code);
  }
  const auto associated = associated_with("varve slot", slot, repository_id);
  VARVE_TRY_ASSIGN(const auto hedge, NonceHedge::make(master, repository_id, Cipher::kAes256Gcm));
  // The text is the same for each slot, but the secret affects the key, too.
  VARVE_TRY_ASSIGN(slot.salt, hedge.new_salt(base::as_bytes(associated)));
  VARVE_TRY_ASSIGN(auto keys, slot_keys(slot, secret.bytes(), repository_id));
  std::ranges::copy(keys.commitment.bytes(), slot.commitment.begin());
  std::ranges::copy(master.bytes(), slot.sealed.begin());
  slot.tag = Aead(Cipher::kAes256Gcm, std::move(keys.sealing))
                 .seal(nonce_of(0), base::as_bytes(associated), slot.sealed);
  return slot;
}

SlotTries slots_to_try(const std::vector<KeySlot>& slots, std::uint64_t cost_max) {
  SlotTries tries;
  for (const auto& slot : slots) {
    if (is_guessable(slot.info.kind)) tries.slots.push_back(&slot);
  }
  std::ranges::stable_sort(tries.slots, {}, cost_of);
  std::uint64_t cost = 0;
  const auto first_out = std::ranges::find_if(tries.slots, [&](const KeySlot* slot) {
    cost += cost_of(slot);
    return cost > cost_max;
  });
  tries.left_out = static_cast<std::size_t>(tries.slots.end() - first_out);
  tries.slots.erase(first_out, tries.slots.end());
  return tries;
}

Result<void> check_total_cost(const std::vector<KeySlot>& slots) {
  if (slots_to_try(slots, kTriedCostMax).left_out == 0) return {};
  constexpr std::uint64_t kKibOfGib = std::uint64_t{1} << 20;
  return Error(ErrorCode::kInvalid,
               fmt::format("the passphrases of a repository cost {} GiB together at most, memory "
                           "times passes; give this one or another one a lower cost",
                           kTriedCostMax / kKibOfGib));
}

Result<SecretKey> open_slots(const std::vector<KeySlot>& all, const UserKey& key,
                             std::string_view repository_id, std::uint64_t cost_max) {
  auto slots = all;
  if (key.slot != 0) {
    std::erase_if(slots, [&](const KeySlot& slot) { return slot.info.number != key.slot; });
    if (slots.empty()) {
      return Error(ErrorCode::kWrongKey,
                   fmt::format("the repository has no key {}; see `varve key list`", key.slot));
    }
    cost_max = kTriedCostMax;
  }
  const auto open_one = [&](const std::vector<const KeySlot*>& tried,
                            const Secret& secret) -> Result<std::optional<SecretKey>> {
    for (const auto* const slot : tried) {
      VARVE_TRY_ASSIGN(auto master, open_slot(*slot, secret.bytes(), repository_id));
      if (master) return master;
    }
    return std::optional<SecretKey>();
  };
  if (is_guessable(key.kind) || key.kind == KeyKind::kRecovery) {
    VARVE_TRY_ASSIGN(const auto code, parse_recovery_code(key.secret.bytes()));
    if (code) {
      VARVE_TRY_ASSIGN(auto master, open_one(slots_of(slots, KeyKind::kRecovery), *code));
      if (master) return *std::move(master);
    }
  }
  SlotTries tries;
  if (is_guessable(key.kind)) tries = slots_to_try(slots, cost_max);
  if (key.kind == KeyKind::kKeyFile) tries.slots = slots_of(slots, key.kind);
  VARVE_TRY_ASSIGN(auto master, open_one(tries.slots, key.secret));
  if (master) return *std::move(master);
  const auto* const kind =
      key.slot == 0 ? "opens no key slot of this repository" : "does not open this key slot";
  std::string refusal = fmt::format("the {} {}", key_kind_name(key.kind), kind);
  if (tries.left_out != 0) {
    refusal += fmt::format(
        " that was tried; {} more would cost too much. If you know that one of them is yours, "
        "VARVE_KEY_SLOT=NUMBER has only that one tried (`varve key list` shows the numbers)",
        tries.left_out);
  }
  return Error(ErrorCode::kWrongKey, std::move(refusal));
}

}  // namespace crypto
}  // namespace varve
