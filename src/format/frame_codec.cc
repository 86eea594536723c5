// SPDX-License-Identifier: Apache-2.0
#include "format/frame_codec.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include "base/assert.h"
#include "base/checksum.h"
#include "base/coding.h"
#include "format/raw_frame.h"

namespace varve::format {

namespace {

Error damaged_frame(const std::string& what) { return {ErrorCode::kCorrupt, "frame: " + what}; }
std::vector<std::byte> zeros_for(const ContainerHeader& header) {
  return std::vector<std::byte>(header.stored_bytes() - header.header_bytes - header.data_bytes);
}

Error damaged_padding() { return {ErrorCode::kCorrupt, "the padding is damaged"}; }

// Returns memory for a compressed frame, separate for each thread.
std::span<std::byte> scratch_of_this_thread() {
  static thread_local std::vector<std::byte> scratch(kFrameRawBytesMax);
  return scratch;
}

Result<void> decompress(Codec codec, std::span<const std::byte> stored,
                        std::span<const std::byte> prefix, std::span<std::byte> out) {
  const auto* const method = find_compression(static_cast<std::uint32_t>(codec));
  if (method == nullptr || method->decompress == nullptr) return damaged_frame("unknown codec");
  return method->decompress(stored, prefix, out);
}

Result<void> check_prefix(const FrameEntry& frame, std::span<const std::byte> prefix) {
  if (prefix.empty() == (frame.prefix == 0)) return {};
  return damaged_frame(prefix.empty() ? "its prefix is missing" : "it has no prefix");
}

/// Compresses frames, and checks frames by an XXH3 of the stored bytes.
class PlainFrameCodec : public FrameCodec {
 public:
  explicit PlainFrameCodec(const Compression& compression) : compression_(compression) {}

  [[nodiscard]] Compression compression() const override { return compression_; }

  [[nodiscard]] EncodedFrame compress_as(const Compression& compression,
                                         std::span<const std::byte> raw,
                                         std::span<const std::byte> prefix) const override {
    VARVE_ASSERT(raw.size() <= kFrameRawBytesMax);
    const auto* const method = find_compression(static_cast<std::uint32_t>(compression.codec));
    VARVE_ASSERT(method != nullptr);
    if (method->compress == nullptr || raw.empty()) return {};
    // The compressor gives up as soon as the result would be too long to be worth storing.
    const std::size_t stored_bytes_max = raw.size() - std::max<std::size_t>(raw.size() / 32, 1);
    const auto out = scratch_of_this_thread().first(stored_bytes_max);
    const std::size_t n = method->compress(raw, prefix, compression.level, out);
    if (n == 0) return {};
    const auto stored = out.first(n);
    return {compression.codec, {stored.begin(), stored.end()}};
  }

  [[nodiscard]] std::uint64_t seal(const FramePlace& /*place*/,
                                   std::span<std::byte> stored) const override {
    return base::checksum64(stored);
  }

  [[nodiscard]] Result<void> decode_on(const FramePlace& /*place*/, const FrameEntry& frame,
                                       std::span<const std::byte> prefix,
                                       std::span<const std::byte> stored,
                                       std::span<std::byte> out) const override {
    VARVE_ASSERT(out.size() == frame.raw_bytes);
    VARVE_TRY(check_prefix(frame, prefix));
    VARVE_TRY(verify_plain_frame(frame, stored));
    if (frame.codec != Codec::kNone) return decompress(frame.codec, stored, prefix, out);
    if (stored.size() != out.size()) return damaged_frame("stored and raw length differ");
    std::copy(stored.begin(), stored.end(), out.begin());
    return {};
  }

 private:
  const Compression compression_;
};

/// Compresses as PlainFrameCodec; seals the frames of containers with the container's key.
class SealedFrameCodec final : public PlainFrameCodec {
 public:
  SealedFrameCodec(const Compression& compression, std::unique_ptr<const ContainerKeys> keys)
      : PlainFrameCodec(compression), keys_(std::move(keys)) {}

  [[nodiscard]] Result<std::string> finish_container(ContainerHeader& header,
                                                     std::span<std::byte> data) const override {
    ContainerHeader sealed = header;
    sealed.seal = ContainerSeal{};
    sealed.checksum.reset();
    complete_header(sealed);
    // The fingerprints determine the chunks. The checksum distinguishes the stored bytes of
    // different compressions of the same chunks. A code over all bytes takes a fifth of the time of
    // a store (docs/decisions/131).
    const auto text = unsealed_header_text(sealed);
    const auto sum = XXH3_128bits(data.data(), sealed.data_bytes);
    std::array<std::byte, 2 * sizeof(std::uint64_t)> content{};
    base::store_le(content.data(), std::uint64_t{sum.low64});
    base::store_le(content.data() + sizeof(std::uint64_t), std::uint64_t{sum.high64});
    // After the salt and the key, nothing can fail: a frame sealed twice would open to wrong bytes.
    VARVE_TRY_ASSIGN(const auto salt, keys_->new_salt(base::as_bytes(text), content));
    VARVE_TRY_ASSIGN(const auto key, keys_->key_of(salt));
    sealed.seal->salt = salt;
    header = std::move(sealed);
    return seal_container(header, key, data);
  }

  [[nodiscard]] Result<void> decode_on(const FramePlace& place, const FrameEntry& frame,
                                       std::span<const std::byte> prefix,
                                       std::span<const std::byte> stored,
                                       std::span<std::byte> out) const override {
    if (place.unit != FramePlace::Unit::kContainer) {
      return PlainFrameCodec::decode_on(place, frame, prefix, stored, out);
    }
    VARVE_ASSERT(out.size() == frame.raw_bytes);
    VARVE_TRY(check_prefix(frame, prefix));
    if (!place.seal) return damaged_frame("it is not sealed");
    if (stored.size() != frame.stored_bytes || stored.size() > kFrameRawBytesMax) {
      return damaged_frame("its stored bytes are cut short");
    }
    const bool packed = frame.codec != Codec::kNone;
    if (!packed && stored.size() != out.size()) {
      return damaged_frame("stored and raw length differ");
    }
    const ContainerPart part{static_cast<StoreId>(place.owner),
                             static_cast<ContainerNumber>(place.number),
                             container_features({place.compact, true}, false),
                             *place.seal,
                             place.frame,
                             frame.raw_bytes};
    const auto text = packed ? scratch_of_this_thread().first(stored.size()) : out;
    VARVE_TRY_ASSIGN(const auto key, keys_->key_of(place.seal->salt));
    auto opened = key.open(part, stored, frame.tag(), text);
    if (!opened) return std::move(opened).error().with_context("frame");
    return packed ? decompress(frame.codec, text, prefix, out) : Result<void>();
  }

  [[nodiscard]] Result<void> verify_padding(const ContainerHeader& header,
                                            std::span<const std::byte> padding) const override {
    if (!header.seal) return damaged_padding();
    VARVE_TRY_ASSIGN(const auto key, keys_->key_of(header.seal->salt));
    if (key.is_sealed_zeros(ContainerPart::kPadding, padding)) return {};
    return damaged_padding();
  }

  [[nodiscard]] Result<std::vector<std::byte>> padding_of(
      const ContainerHeader& header) const override {
    VARVE_ASSERT(header.seal.has_value());
    VARVE_TRY_ASSIGN(const auto key, keys_->key_of(header.seal->salt));
    auto padding = zeros_for(header);
    seal_padding(header, key, padding);
    return padding;
  }

  [[nodiscard]] const ContainerKeys* keys() const override { return keys_.get(); }

 private:
  const std::unique_ptr<const ContainerKeys> keys_;
};

}  // namespace

FramePlace place_of_frame(const ContainerHeader& header, std::uint32_t frame) {
  return {FramePlace::Unit::kContainer,
          static_cast<std::uint32_t>(header.store),
          static_cast<std::uint32_t>(header.number),
          frame,
          header.compact,
          header.seal};
}

Result<void> decode_frame(const FrameCodec& codec, const ContainerHeader& header,
                          std::uint32_t frame, std::span<const std::byte> stored,
                          std::span<std::byte> out) {
  const std::uint32_t from = extent_begin(header.frames[frame]);
  const auto decode_one = [&](std::uint32_t number, std::span<const std::byte> prefix,
                              std::span<std::byte> raw) -> Result<void> {
    const auto& entry = header.frames[number];
    const std::size_t at = entry.offset - from;
    if (at + entry.stored_bytes > stored.size()) {
      return damaged_frame("its stored bytes are cut short");
    }
    return codec.decode_on(place_of_frame(header, number), entry, prefix,
                           stored.subspan(at, entry.stored_bytes), raw);
  };
  if (header.frames[frame].prefix == 0) return decode_one(frame, {}, out);
  static thread_local std::array<std::vector<std::byte>, 2> memory{
      std::vector<std::byte>(kFrameRawBytesMax), std::vector<std::byte>(kFrameRawBytesMax)};
  std::array<std::uint32_t, kFramePrefixesMax> prefixes{};
  std::size_t count = 0;
  for (std::uint32_t number = frame; header.frames[number].prefix != 0; ++count) {
    number -= header.frames[number].prefix;
    prefixes.at(count) = number;
  }
  std::span<const std::byte> prefix;
  while (count != 0) {
    const std::uint32_t number = prefixes.at(--count);
    const auto raw = std::span(memory.at(count % 2)).first(header.frames[number].raw_bytes);
    VARVE_TRY(decode_one(number, prefix, raw));
    prefix = raw;
  }
  return decode_one(frame, prefix, out);
}

Result<std::string> FrameCodec::finish_container(ContainerHeader& header,
                                                 std::span<std::byte> data) const {
  complete_header(header);
  for (std::uint32_t i = 0; i < header.frames.size(); ++i) {
    auto& frame = header.frames[i];
    frame.checksum = base::checksum64(data.subspan(frame.offset, frame.stored_bytes));
  }
  const auto rest = data.first(header.stored_bytes() - header.header_bytes);
  const auto padding = rest.subspan(header.data_bytes);
  std::fill(padding.begin(), padding.end(), std::byte{0});
  return encode_container_header(header);
}

Result<void> FrameCodec::verify_padding(const ContainerHeader& /*header*/,
                                        std::span<const std::byte> padding) const {
  const bool zero = std::ranges::all_of(padding, [](std::byte b) { return b == std::byte{0}; });
  return zero ? Result<void>() : damaged_padding();
}

Result<std::vector<std::byte>> FrameCodec::padding_of(const ContainerHeader& header) const {
  return zeros_for(header);
}

std::unique_ptr<const FrameCodec> make_sealed_frame_codec(
    const Compression& compression, std::unique_ptr<const ContainerKeys> keys) {
  VARVE_ASSERT(keys != nullptr);
  return std::make_unique<SealedFrameCodec>(compression, std::move(keys));
}

std::unique_ptr<const FrameCodec> make_plain_frame_codec(const Compression& compression) {
  return std::make_unique<PlainFrameCodec>(compression);
}

}  // namespace varve::format
