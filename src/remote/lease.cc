// SPDX-License-Identifier: Apache-2.0
#include "remote/lease.h"

#include <fmt/core.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <span>

#include "base/clock.h"
#include "base/coding.h"
#include "crypto/hedged_aead.h"

namespace varve::remote {

namespace {

constexpr std::uint32_t kLeaseMagic = 0x534c5656;  // "VVLS"
constexpr std::uint16_t kLeaseFormat = 1;
constexpr std::size_t kLeaseFieldMax = 4096;
constexpr std::size_t kLeaseBytesMax = std::size_t{64} << 10;
constexpr std::size_t kLeaseHeaderBytes = 8;
constexpr std::size_t kShownBytesMax = 200;
// Keys in the state: the folder's own lease, the time of the lease, and another folder's object.
constexpr std::string_view kOwnLease = "lease";
constexpr std::string_view kOwnLeaseSince = "lease since";
constexpr std::string_view kStoredLease = "lease object";

Error lease_damaged() { return {ErrorCode::kCorrupt, "the lease of the object store is damaged"}; }

Result<crypto::HedgedAead> cipher_of(const crypto::KeyRing& keys) {
  VARVE_TRY_ASSIGN(auto key, crypto::derive_key(keys.master(), base::as_bytes(keys.repository_id()),
                                                "varve lease"));
  return keys.hedged(std::move(key));
}

std::string shown(const std::string& text) {
  auto line = text.substr(0, kShownBytesMax);
  std::ranges::replace_if(
      line, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; }, '?');
  return line;
}

std::string name_of_user() {
  std::array<char, 4096> space{};
  passwd entry{};
  passwd* found = nullptr;
  const auto id = ::geteuid();
  if (::getpwuid_r(id, &entry, space.data(), space.size(), &found) == 0 && found != nullptr) {
    return found->pw_name;
  }
  return std::to_string(id);
}

std::string name_of_object(const std::string& repository_id) { return repository_id + "/lease"; }

}  // namespace

Lease lease_of_this_machine(const std::string& folder, std::int64_t now_s) {
  std::array<char, 256> host{};
  static_cast<void>(::gethostname(host.data(), host.size() - 1));
  return {.host = host.data(), .user = name_of_user(), .folder = folder, .since_s = now_s};
}

std::string lease_text(const Lease& lease) {
  return fmt::format("{} on host {} in {} since {}", shown(lease.user), shown(lease.host),
                     shown(lease.folder), base::local_time_text({lease.since_s, 0}));
}

Result<std::string> encode_lease(const Lease& lease, const crypto::KeyRing* keys) {
  std::string body;
  base::ByteWriter fields(body);
  fields.sized_text(lease.host);
  fields.sized_text(lease.user);
  fields.sized_text(lease.folder);
  fields.u64(static_cast<std::uint64_t>(lease.since_s));
  std::string text;
  base::ByteWriter writer(text);
  writer.u32(kLeaseMagic);
  writer.u16(kLeaseFormat);
  writer.u16(keys == nullptr ? 0 : 1);
  if (keys != nullptr) {
    VARVE_TRY_ASSIGN(const auto cipher, cipher_of(*keys));
    VARVE_TRY_ASSIGN(const auto seal,
                     cipher.seal(base::as_bytes(text), std::as_writable_bytes(std::span(body))));
    writer.bytes(seal.nonce);
    writer.bytes(seal.tag);
  }
  writer.text(body);
  return text;
}

Result<Lease> decode_lease(std::string_view text, const crypto::KeyRing* keys) {
  base::ByteReader reader(text);
  const bool is_lease = reader.u32() == kLeaseMagic && reader.u16() == kLeaseFormat &&
                        reader.u16() == (keys == nullptr ? 0 : 1);
  if (!is_lease || text.size() > kLeaseBytesMax) return lease_damaged();
  std::string body;
  if (keys != nullptr) {
    crypto::HedgedAead::Seal seal;
    const auto given_nonce = reader.bytes(seal.nonce.size());
    const auto given_tag = reader.bytes(seal.tag.size());
    if (!reader.ok()) return lease_damaged();
    std::ranges::copy(given_nonce, seal.nonce.begin());
    std::ranges::copy(given_tag, seal.tag.begin());
    body = reader.text(reader.left());
    VARVE_TRY_ASSIGN(const auto cipher, cipher_of(*keys));
    if (!cipher.open(seal, base::as_bytes(text.substr(0, kLeaseHeaderBytes)),
                     std::as_writable_bytes(std::span(body)))) {
      return lease_damaged();
    }
  } else {
    body = reader.text(reader.left());
  }
  base::ByteReader fields(body);
  Lease lease;
  lease.host = fields.sized_text(kLeaseFieldMax);
  lease.user = fields.sized_text(kLeaseFieldMax);
  lease.folder = fields.sized_text(kLeaseFieldMax);
  lease.since_s = static_cast<std::int64_t>(fields.u64());
  if (!fields.done()) return lease_damaged();
  return lease;
}

Result<void> write_lease(bucket::Bucket& bucket, const std::string& repository_id,
                         const Lease& lease, const crypto::KeyRing* keys) {
  VARVE_TRY_ASSIGN(const auto text, encode_lease(lease, keys));
  const std::array<std::span<const std::byte>, 1> bytes{base::as_bytes(text)};
  return bucket.put(name_of_object(repository_id), bytes, {});
}

std::optional<Lease> read_lease(bucket::Bucket& bucket, const std::string& repository_id,
                                const crypto::KeyRing* keys) {
  const auto bytes = bucket.get_all(name_of_object(repository_id), kLeaseBytesMax);
  if (!bytes) return std::nullopt;
  auto lease = decode_lease(base::as_text(*bytes), keys);
  if (!lease) return std::nullopt;
  return *std::move(lease);
}

Result<void> keep_lease(bucket::Bucket& bucket, const std::string& repository_id,
                        ReplicaState& state) {
  const auto bytes = bucket.get_all(name_of_object(repository_id), kLeaseBytesMax);
  if (!bytes && bytes.error().code() == ErrorCode::kNotFound) return {};
  if (!bytes) return bytes.error();
  return state.set_text(kStoredLease, base::as_text(*bytes));
}

Result<void> keep_own_lease(ReplicaState& state, const Lease& lease) {
  VARVE_TRY(state.set_number(kOwnLeaseSince, static_cast<std::uint64_t>(lease.since_s)));
  return state.set_text(kOwnLease, lease.host + '\n' + lease.user + '\n' + lease.folder);
}

std::optional<Lease> kept_lease(const ReplicaState& state, const crypto::KeyRing* keys) {
  const auto own = state.text(kOwnLease);
  const auto since = state.number(kOwnLeaseSince);
  if (own && *own && since) {
    std::string_view text = **own;
    Lease lease;
    for (auto* const field : {&lease.host, &lease.user}) {
      const auto end = text.find('\n');
      if (end == std::string_view::npos) return std::nullopt;
      *field = text.substr(0, end);
      text.remove_prefix(end + 1);
    }
    lease.folder = text;
    lease.since_s = static_cast<std::int64_t>(*since);
    return lease;
  }
  const auto stored = state.text(kStoredLease);
  if (!stored || !*stored) return std::nullopt;
  auto lease = decode_lease(**stored, keys);
  if (!lease) return std::nullopt;
  return *std::move(lease);
}

}  // namespace varve::remote
