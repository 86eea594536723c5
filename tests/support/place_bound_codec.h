// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "base/checksum.h"
#include "format/frame_codec.h"

namespace varve::format {

/// A codec whose stored bytes depend on the frame's place, as with a key per container. For tests:
/// it shows that every reader and writer names the right place.
class PlaceBoundCodec final : public FrameCodec {
 public:
  explicit PlaceBoundCodec(const Compression& compression)
      : plain_(make_plain_frame_codec(compression)) {}

  [[nodiscard]] Compression compression() const override { return plain_->compression(); }
  [[nodiscard]] EncodedFrame compress_as(const Compression& compression,
                                         std::span<const std::byte> raw) const override {
    return plain_->compress_as(compression, raw);
  }
  [[nodiscard]] std::uint64_t seal(const FramePlace& place,
                                   std::span<std::byte> stored) const override {
    mask(place, stored);
    return base::checksum64(stored) ^ seed_of(place);
  }
  [[nodiscard]] Result<void> decode(const FramePlace& place, const FrameEntry& frame,
                                    std::span<const std::byte> stored,
                                    std::span<std::byte> out) const override {
    if ((base::checksum64(stored) ^ seed_of(place)) != frame.checksum) {
      return Error(ErrorCode::kCorrupt, "frame: it is damaged, or in another place");
    }
    std::vector<std::byte> plain(stored.begin(), stored.end());
    mask(place, plain);
    FrameEntry entry = frame;
    entry.checksum = base::checksum64(plain);
    return plain_->decode(place, entry, plain, out);
  }

 private:
  static std::uint64_t seed_of(const FramePlace& place) {
    std::uint64_t seed = static_cast<std::uint64_t>(place.unit) + 1;
    for (const std::uint64_t part :
         {std::uint64_t{place.owner}, std::uint64_t{place.number}, std::uint64_t{place.frame}}) {
      seed = (seed ^ part) * 0x9e3779b97f4a7c15ULL;
    }
    return seed;
  }
  static void mask(const FramePlace& place, std::span<std::byte> bytes) {
    std::mt19937_64 random(seed_of(place));
    for (auto& b : bytes) b ^= static_cast<std::byte>(random());
  }

  std::unique_ptr<const FrameCodec> plain_;
};

}  // namespace varve::format
