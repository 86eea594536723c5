// SPDX-License-Identifier: Apache-2.0
#include "crypto/sealed_blocks.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <vector>

#include "base/checksum.h"
#include "base/coding.h"

namespace varve::crypto {

namespace {

using base::load_le;
using base::store_le;

constexpr std::uint32_t kSealedMagic = 0x46535656;  // "VVSF"
constexpr std::uint16_t kSealedFormat = 1;
constexpr std::size_t kHeaderChecksumAt = 56;
constexpr std::size_t kSaltAt = 16;
constexpr std::uint32_t kBlockBytesMin = 512;
constexpr std::uint32_t kBlockBytesMax = std::uint32_t{1} << 16;

// A block on disk: checksum (8), length (4), nonce (12), tag (16), sealed text.
constexpr std::size_t kLengthAt = 8;
constexpr std::size_t kNonceAt = 12;
constexpr std::size_t kTagAt = kNonceAt + kNonceBytes;
static_assert(kTagAt + kTagBytes == kSealedTextAt);

constexpr std::size_t kRequestBytes = std::size_t{256} << 10;

Error bad_header(const char* what) { return {ErrorCode::kCorrupt, what}; }

std::uint64_t slot_checksum(std::span<const std::byte> slot, std::uint64_t block) {
  return base::checksum64(slot.subspan(kLengthAt)) ^ block;
}

}  // namespace

std::uint64_t SealedShape::text_bytes(std::uint64_t file_bytes) const {
  if (file_bytes <= kSealedHeaderBytes) return 0;
  const auto blocks = (file_bytes - kSealedHeaderBytes) / slot_bytes();
  const auto rest = (file_bytes - kSealedHeaderBytes) % slot_bytes();
  return blocks * block_bytes + (rest > kSealedTextAt ? rest - kSealedTextAt : 0);
}

std::size_t SealedShape::slots_at_once() const { return kRequestBytes / slot_bytes(); }

SealedHeader encode_sealed_header(std::uint32_t block_bytes, const Salt& salt) {
  SealedHeader header{};
  store_le(header.data(), kSealedMagic);
  store_le(header.data() + 4, kSealedFormat);
  store_le(header.data() + 8, block_bytes);
  std::ranges::copy(salt, header.begin() + kSaltAt);
  store_le(header.data() + kHeaderChecksumAt,
           base::checksum64(std::span(header).first<kHeaderChecksumAt>()));
  return header;
}

Result<std::pair<SealedShape, Salt>> decode_sealed_header(std::span<const std::byte> header) {
  if (header.size() < kSealedHeaderBytes || load_le<std::uint32_t>(header.data()) != kSealedMagic) {
    return bad_header("this is no sealed file, or its header is damaged");
  }
  header = header.first(kSealedHeaderBytes);
  if (load_le<std::uint64_t>(header.data() + kHeaderChecksumAt) !=
      base::checksum64(header.first(kHeaderChecksumAt))) {
    return bad_header("the header of the sealed file is damaged");
  }
  if (load_le<std::uint16_t>(header.data() + 4) != kSealedFormat) {
    return Error(ErrorCode::kUnsupported, "a newer version of Varve wrote this file");
  }
  const SealedShape shape{load_le<std::uint32_t>(header.data() + 8)};
  Salt salt{};
  std::copy_n(header.begin() + kSaltAt, salt.size(), salt.begin());
  if (!std::ranges::equal(encode_sealed_header(shape.block_bytes, salt), header) ||
      !std::has_single_bit(shape.block_bytes) || shape.block_bytes < kBlockBytesMin ||
      shape.block_bytes > kBlockBytesMax) {
    return bad_header("the header of the sealed file is not valid");
  }
  return std::pair(shape, salt);
}

std::optional<std::span<const std::byte>> sound_block(std::span<const std::byte> slot,
                                                      std::uint64_t block) {
  if (slot.size() <= kSealedTextAt) return std::nullopt;
  const auto length = load_le<std::uint32_t>(slot.data() + kLengthAt);
  if (length == 0 || length > slot.size() - kSealedTextAt) return std::nullopt;
  slot = slot.first(kSealedTextAt + length);
  if (load_le<std::uint64_t>(slot.data()) != slot_checksum(slot, block)) return std::nullopt;
  return slot;
}

void BlockCipher::seal(std::uint64_t block, const NonceSeed& seed,
                       std::span<std::byte> slot) const {
  const auto text = slot.subspan(kSealedTextAt);
  const auto [nonce, tag] = aead_.seal(seed, associated(block, text.size()), text);
  store_le(slot.data() + kLengthAt, static_cast<std::uint32_t>(text.size()));
  std::ranges::copy(nonce, slot.begin() + kNonceAt);
  std::ranges::copy(tag, slot.begin() + kTagAt);
  store_le(slot.data(), slot_checksum(slot, block));
}

bool BlockCipher::open(std::uint64_t block, std::span<const std::byte> slot,
                       std::span<std::byte> out) const {
  HedgedAead::Seal seal;
  std::copy_n(slot.begin() + kNonceAt, seal.nonce.size(), seal.nonce.begin());
  std::copy_n(slot.begin() + kTagAt, seal.tag.size(), seal.tag.begin());
  return aead_.open(seal, associated(block, out.size()), slot.subspan(kSealedTextAt), out);
}

// FORMAT.md has the same table.
std::array<std::byte, 32> BlockCipher::associated(std::uint64_t block, std::size_t length) const {
  std::array<std::byte, 32> bytes{};
  store_le(bytes.data(), place_.kind);
  store_le(bytes.data() + 4, place_.store);
  store_le(bytes.data() + 8, place_.number);
  store_le(bytes.data() + 12, shape_.block_bytes);
  store_le(bytes.data() + 16, block);
  store_le(bytes.data() + 24, static_cast<std::uint32_t>(length));
  return bytes;
}

std::uint64_t sealed_bytes(const SealedPlace& place, std::uint64_t bytes) {
  if (bytes == 0) return 0;
  const auto blocks = (bytes + place.block_bytes - 1) / place.block_bytes;
  return kSealedHeaderBytes + blocks * kSealedTextAt + bytes;
}

Result<SealedFault> find_sealed_fault(io::File& file,
                                      const std::function<bool(std::uint64_t bytes)>& goes_on) {
  SealedHeader header{};
  VARVE_TRY_ASSIGN(auto got, file.read_at(0, header));
  const auto decoded = decode_sealed_header(std::span(header).first(got));
  if (!decoded && decoded.error().code() == ErrorCode::kUnsupported) return decoded.error();
  if (!decoded) return SealedFault{decoded.error().message(), false, false};
  const SealedShape& shape = decoded->first;
  std::vector<std::byte> slots(shape.slots_at_once() * shape.slot_bytes());
  SealedFault fault;
  std::size_t other_bytes = 0;  // Bytes behind the last block in the block's slot.
  for (std::uint64_t block = 0; got != 0;) {
    VARVE_TRY_ASSIGN(got, file.read_at(shape.slot_at(block), slots));
    fault.stopped = goes_on && !goes_on(got);
    if (fault.stopped) return fault;
    for (std::size_t at = 0; at < got; at += shape.slot_bytes(), ++block) {
      const auto slot = std::span(slots).subspan(at, std::min(got - at, shape.slot_bytes()));
      const auto sound = sound_block(slot, block);
      other_bytes = sound ? slot.size() - sound->size() : 0;
      if (sound) {
        fault.only_at_end = false;
      } else if (fault.what.empty()) {
        fault = {fmt::format("block {} is damaged", block), true, false};
      }
    }
  }
  if (fault.what.empty() && other_bytes != 0)
    fault = {"other bytes follow the last block", true, false};
  return fault;
}

}  // namespace varve::crypto
