// SPDX-License-Identifier: Apache-2.0
#include "format/frame_codec.h"

#include <algorithm>
#include <string>

#include "base/assert.h"
#include "base/checksum.h"

namespace varve::format {

namespace {

Error damaged_frame(const std::string& what) { return {ErrorCode::kCorrupt, "frame: " + what}; }

// Memory for one compressed frame. Each thread keeps its own.
std::span<std::byte> scratch_of_this_thread() {
  static thread_local std::vector<std::byte> scratch(kFrameRawBytesMax);
  return scratch;
}

/// Compresses and checks frames by an XXH3 of their stored bytes.
class PlainFrameCodec final : public FrameCodec {
 public:
  explicit PlainFrameCodec(const Compression& compression) : compression_(compression) {}

  [[nodiscard]] Compression compression() const override { return compression_; }

  [[nodiscard]] EncodedFrame compress_as(const Compression& compression,
                                         std::span<const std::byte> raw) const override {
    VARVE_ASSERT(raw.size() <= kFrameRawBytesMax);
    const auto* const method = find_compression(static_cast<std::uint32_t>(compression.codec));
    VARVE_ASSERT(method != nullptr);
    if (method->compress == nullptr || raw.empty()) return {};
    // The compressor gives up as soon as the result would be longer than it is worth.
    const std::size_t stored_bytes_max = raw.size() - std::max<std::size_t>(raw.size() / 32, 1);
    const auto out = scratch_of_this_thread().first(stored_bytes_max);
    const std::size_t n = method->compress(raw, compression.level, out);
    if (n == 0) return {};
    const auto stored = out.first(n);
    return {compression.codec, {stored.begin(), stored.end()}};
  }

  [[nodiscard]] std::uint64_t seal(const FramePlace& /*place*/,
                                   std::span<std::byte> stored) const override {
    return base::checksum64(stored);
  }

  [[nodiscard]] Result<void> decode(const FramePlace& /*place*/, const FrameEntry& frame,
                                    std::span<const std::byte> stored,
                                    std::span<std::byte> out) const override {
    VARVE_ASSERT(out.size() == frame.raw_bytes);
    if (stored.size() != frame.stored_bytes) return damaged_frame("its stored bytes are cut short");
    if (base::checksum64(stored) != frame.checksum) {
      return damaged_frame("its stored bytes do not match their checksum");
    }
    const auto* const method = find_compression(static_cast<std::uint32_t>(frame.codec));
    if (method == nullptr) return damaged_frame("unknown codec");
    if (method->decompress != nullptr) return method->decompress(stored, out);
    if (stored.size() != out.size()) return damaged_frame("stored and raw length differ");
    std::copy(stored.begin(), stored.end(), out.begin());
    return {};
  }

 private:
  const Compression compression_;
};

}  // namespace

FramePlace place_of_frame(const ContainerHeader& header, std::uint32_t frame) {
  return {FramePlace::Unit::kContainer, static_cast<std::uint32_t>(header.store),
          static_cast<std::uint32_t>(header.number), frame};
}

std::unique_ptr<const FrameCodec> make_plain_frame_codec(const Compression& compression) {
  return std::make_unique<PlainFrameCodec>(compression);
}

}  // namespace varve::format
