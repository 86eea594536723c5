// SPDX-License-Identifier: Apache-2.0
#include "meta/value_seal.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "base/assert.h"
#include "base/coding.h"
#include "base/padding.h"

namespace varve::meta {

namespace {

// The record of a sealed environment: salt, nonce and the tag of an empty text.
constexpr std::size_t kRecordBytes = crypto::kSaltBytes + crypto::kNonceBytes + crypto::kTagBytes;
constexpr std::size_t kHashBytes = 16;
constexpr std::byte kPaddingMark{1};  // The first byte of the padding; zeros follow.
// A table of many records with four numbers each, together nearly always less than 16 bytes.
constexpr std::string_view kTableOfNumbers = "locations";

std::string_view text_of(std::span<const std::byte> bytes) { return base::as_text(bytes); }

// Binds the record's tag to the environment's place. No table has an empty name.
std::string associated_of(const EnvKeys& keys, const crypto::Salt& salt) {
  std::string text(text_of(salt));
  text.push_back('\0');
  text.append(keys.place);
  return text;
}

/// The associated data of a value. Each read and write of a value needs associated data, so the
/// usual lengths take no memory of the heap.
class ValuePlace {
 public:
  ValuePlace(const crypto::Salt& salt, std::string_view table, std::string_view key)
      : size_(salt.size() + 1 + table.size() + key.size()) {
    if (size_ > short_.size()) long_.resize(size_);
    char* at = long_.empty() ? short_.data() : long_.data();
    at = std::ranges::copy(text_of(salt), at).out;
    *at++ = static_cast<char>(table.size());
    at = std::ranges::copy(table, at).out;
    std::ranges::copy(key, at);
  }
  [[nodiscard]] std::span<const std::byte> bytes() const {
    return base::as_bytes({long_.empty() ? short_.data() : long_.data(), size_});
  }

 private:
  const std::size_t size_;
  std::array<char, 128> short_;  // Not zeroed: zeroing would take longer than filling.
  std::string long_;
};

Error cannot_open() {
  return {ErrorCode::kCorrupt,
          "the database was encrypted with another key, or for another place; restore it from a "
          "copy of the repository"};
}

}  // namespace

Result<std::shared_ptr<const ValueSeal>> ValueSeal::make(const EnvKeys& keys) {
  VARVE_TRY_ASSIGN(const auto salt, keys.ring->nonces().new_salt(base::as_bytes(keys.place)));
  VARVE_TRY_ASSIGN(auto aead, keys.ring->salted(keys.purpose, salt));
  VARVE_TRY_ASSIGN(const auto seal, aead.seal(base::as_bytes(associated_of(keys, salt)), {}));
  const std::shared_ptr<ValueSeal> made(new ValueSeal(keys, salt, std::move(aead)));
  made->record_.append(text_of(salt)).append(text_of(seal.nonce)).append(text_of(seal.tag));
  return std::shared_ptr<const ValueSeal>(made);
}

Result<std::shared_ptr<const ValueSeal>> ValueSeal::open(const EnvKeys& keys,
                                                         std::string_view record) {
  if (record.size() != kRecordBytes) return cannot_open();
  auto bytes = base::as_bytes(record);
  const auto take = [&bytes](auto& out) {
    std::copy_n(bytes.begin(), out.size(), out.begin());
    bytes = bytes.subspan(out.size());
  };
  crypto::Salt salt{};
  crypto::HedgedAead::Seal seal;
  take(salt);
  take(seal.nonce);
  take(seal.tag);
  VARVE_TRY_ASSIGN(auto aead, keys.ring->salted(keys.purpose, salt));
  const auto associated = associated_of(keys, salt);
  if (!aead.open(seal, base::as_bytes(associated), std::span<std::byte>())) {
    return cannot_open();
  }
  const std::shared_ptr<ValueSeal> opened(new ValueSeal(keys, salt, std::move(aead)));
  opened->record_ = record;
  return std::shared_ptr<const ValueSeal>(opened);
}

std::size_t ValueSeal::sealed_bytes(std::string_view table, std::size_t value_bytes) {
  const auto padded = table == kTableOfNumbers ? base::padded_numbers_bytes(value_bytes)
                                               : base::padded_value_bytes(value_bytes);
  return static_cast<std::size_t>(padded) + kExtraBytes;
}

void ValueSeal::seal(std::string_view table, std::string_view key, const crypto::NonceSeed& seed,
                     std::string_view value, std::span<std::byte> out) const {
  const auto text = out.subspan(crypto::kNonceBytes, out.size() - kExtraBytes);
  VARVE_ASSERT(out.size() == sealed_bytes(table, value.size()));
  std::ranges::copy(base::as_bytes(value), text.begin());
  const auto padding = text.subspan(value.size());
  std::ranges::fill(padding, std::byte{0});
  padding.front() = kPaddingMark;
  const auto [nonce, tag] = aead_.seal(seed, ValuePlace(salt_, table, key).bytes(), text);
  std::copy(nonce.begin(), nonce.end(), out.begin());
  std::copy(tag.begin(), tag.end(), out.last(tag.size()).begin());
}

Result<Value> ValueSeal::open(std::string_view table, std::string_view key,
                              std::string_view sealed) const {
  if (sealed.size() >= kExtraBytes) {
    const auto bytes = base::as_bytes(sealed);
    crypto::HedgedAead::Seal seal;
    std::copy_n(bytes.begin(), seal.nonce.size(), seal.nonce.begin());
    std::copy_n(bytes.end() - crypto::kTagBytes, seal.tag.size(), seal.tag.begin());
    const auto text = bytes.subspan(seal.nonce.size(), sealed.size() - kExtraBytes);
    // One additional byte, so that even an empty value has its own memory.
    auto owned = std::make_unique_for_overwrite<char[]>(text.size() + 1);
    const std::span<std::byte> out(reinterpret_cast<std::byte*>(owned.get()), text.size());
    if (aead_.open(seal, ValuePlace(salt_, table, key).bytes(), text, out)) {
      std::size_t end = out.size();
      while (end > 0 && out[end - 1] == std::byte{0}) --end;
      if (end > 0 && out[end - 1] == kPaddingMark) return Value(std::move(owned), end - 1);
    }
  }
  return Error(ErrorCode::kCorrupt, "catalog: a record cannot be decrypted; run `varve check`");
}

std::string ValueSeal::hash_of(std::string_view prefix, std::string_view name) const {
  // The salt has a fixed length, and the first byte of a prefix determines the prefix's length.
  const auto mac = ring_->names().of({salt_, base::as_bytes(prefix), base::as_bytes(name)});
  return std::string(text_of(mac).substr(0, kHashBytes));
}

}  // namespace varve::meta
