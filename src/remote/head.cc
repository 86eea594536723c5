// SPDX-License-Identifier: Apache-2.0
#include "remote/head.h"

#include <fmt/core.h>
#include <openssl/sha.h>

#include <algorithm>
#include <charconv>
#include <system_error>

#include "base/assert.h"
#include "base/checksum.h"
#include "base/coding.h"
#include "crypto/authentic.h"
#include "crypto/hmac.h"

namespace varve::remote {

namespace {

constexpr std::uint32_t kHeadMagic = 0x44485656;  // "VVHD"
constexpr std::uint16_t kHeadFormat = 1;
constexpr std::size_t kIdChars = 32;
constexpr std::size_t kHolderChars = 16;
constexpr std::size_t kSuperblockBytesMax = 64U << 10;
constexpr std::size_t kNameMax = 1024;
constexpr std::size_t kMacBytes = 32;
constexpr std::size_t kHeadSumBytes = 8;
constexpr std::string_view kCopyEnding = ".copy";
// A name of a head has ten digits.
constexpr std::uint64_t kHeadNumberMax = 9'999'999'999;

bool is_hex(std::string_view text) {
  return std::ranges::all_of(
      text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

Error head_damaged(const std::string& what) {
  return {ErrorCode::kCorrupt, "the head of the object store is damaged: " + what};
}

// Returns the MAC of a head's text; zeros in a plain repository.
crypto::Mac mac_of(std::string_view text, const crypto::KeyRing* keys) {
  if (keys == nullptr) return {};
  return crypto::hmac_sha256(keys->key(crypto::Purpose::kHeads), base::as_bytes(text));
}

Digest read_digest(base::ByteReader& reader) {
  Digest digest{};
  const auto bytes = reader.bytes(digest.size());
  if (bytes.size() == digest.size()) std::ranges::copy(bytes, digest.begin());
  return digest;
}

}  // namespace

Digest digest_of(std::string_view text) {
  Digest digest{};
  const bool ok = SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(),
                         reinterpret_cast<unsigned char*>(digest.data())) != nullptr;
  VARVE_ASSERT(ok);
  return digest;
}

std::string encode_head(const Head& head, const crypto::KeyRing* keys) {
  std::string out;
  base::ByteWriter writer(out);
  writer.u32(kHeadMagic);
  writer.u16(kHeadFormat);
  writer.u16(0);
  writer.text(head.repository_id);
  writer.u64(head.number);
  writer.u64(head.epoch);
  writer.text(head.holder);
  writer.u64(static_cast<std::uint64_t>(head.seconds));
  writer.bytes(head.previous);
  writer.u64(head.commit);
  writer.sized_text(head.superblock);
  writer.varint(head.base_objects);
  writer.varint(head.catalog.size());
  for (const auto& object : head.catalog) {
    writer.sized_text(object.name);
    writer.varint(object.bytes);
    writer.bytes(object.digest);
  }
  writer.bytes(mac_of(out, keys));
  writer.u64(base::checksum64(base::as_bytes(out)));
  return out;
}

Result<Head> decode_head(std::string_view text) {
  if (text.size() < kMacBytes + kHeadSumBytes || text.size() > kHeadBytesMax) {
    return head_damaged("its length is wrong");
  }
  base::ByteReader sum(text.substr(text.size() - kHeadSumBytes));
  if (sum.u64() != base::checksum64(base::as_bytes(text.substr(0, text.size() - kHeadSumBytes)))) {
    return head_damaged("its checksum is wrong");
  }
  base::ByteReader reader(text.substr(0, text.size() - kMacBytes - kHeadSumBytes));
  if (reader.u32() != kHeadMagic) return head_damaged("it does not begin as a head");
  if (reader.u16() != kHeadFormat || reader.u16() != 0) {
    return Error(ErrorCode::kUnsupported,
                 "the repository in the object store needs a newer version of Varve");
  }
  Head head;
  head.repository_id = reader.text(kIdChars);
  head.number = reader.u64();
  head.epoch = reader.u64();
  head.holder = reader.text(kHolderChars);
  head.seconds = static_cast<std::int64_t>(reader.u64());
  head.previous = read_digest(reader);
  head.commit = reader.u64();
  head.superblock = reader.sized_text(kSuperblockBytesMax);
  head.base_objects = reader.varint();
  const auto objects = reader.varint();
  if (objects > kCatalogObjectsMax || head.base_objects > objects)
    return head_damaged("its counts");
  for (std::uint64_t i = 0; i < objects && reader.ok(); ++i) {
    CatalogObject object;
    object.name = reader.sized_text(kNameMax);
    object.bytes = reader.varint();
    object.digest = read_digest(reader);
    head.catalog.push_back(std::move(object));
  }
  if (!reader.done() || !is_hex(head.repository_id) || !is_hex(head.holder) || head.number == 0 ||
      head.number > kHeadNumberMax) {
    return head_damaged("its fields");
  }
  return head;
}

Result<void> authenticate_head(std::string_view text, const crypto::KeyRing* keys) {
  if (text.size() < kMacBytes + kHeadSumBytes) return head_damaged("its length is wrong");
  const auto body = text.substr(0, text.size() - kMacBytes - kHeadSumBytes);
  const auto stored = base::as_bytes(text.substr(body.size(), kMacBytes));
  if (crypto::is_authentic(stored, mac_of(body, keys))) return {};
  return head_damaged("a program without the keys of the repository has written it");
}

std::string head_prefix(const std::string& repository_id) { return repository_id + "/head/"; }

std::string head_name(const std::string& repository_id, std::uint64_t number) {
  return fmt::format("{}{:010}", head_prefix(repository_id), number);
}

std::optional<std::uint64_t> head_number(const std::string& repository_id, std::string_view name) {
  constexpr std::size_t kDigits = 10;
  const auto prefix = head_prefix(repository_id);
  if (!name.starts_with(prefix) || name.size() != prefix.size() + kDigits) return std::nullopt;
  name.remove_prefix(prefix.size());
  std::uint64_t number = 0;
  const auto parsed = std::from_chars(name.data(), name.data() + name.size(), number);
  if (parsed.ec != std::errc() || parsed.ptr != name.data() + name.size()) return std::nullopt;
  return number == 0 ? std::nullopt : std::optional(number);
}

std::string copy_name(std::string_view name) { return std::string(name).append(kCopyEnding); }

std::optional<std::string> copied_name(std::string_view name) {
  if (!name.ends_with(kCopyEnding)) return std::nullopt;
  return std::string(name.substr(0, name.size() - kCopyEnding.size()));
}

std::set<std::string> names_of(const Head& head) {
  std::set<std::string> names{head_name(head.repository_id, head.number)};
  for (const auto& object : head.catalog) names.insert(object.name);
  std::set<std::string> copies;
  for (const auto& name : names) copies.insert(copy_name(name));
  names.merge(copies);
  return names;
}

}  // namespace varve::remote
