// SPDX-License-Identifier: Apache-2.0
// Counts what a restore engine of the product reads from a pool without bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "format/container.h"
#include "format/frame_codec.h"
#include "har/simulated_pool.h"
#include "layout/layout.h"

namespace varve::bench {

/// A codec of frames whose bytes nobody looks at.
class NoBytesCodec final : public format::FrameCodec {
 public:
  format::Compression compression() const override { return {}; }
  format::EncodedFrame compress_as(const format::Compression& compression,
                                   std::span<const std::byte> raw,
                                   std::span<const std::byte> prefix) const override;
  std::uint64_t seal(const format::FramePlace& place, std::span<std::byte> stored) const override;
  Result<void> decode_on(const format::FramePlace& place, const format::FrameEntry& frame,
                         std::span<const std::byte> prefix, std::span<const std::byte> stored,
                         std::span<std::byte> out) const override;
};

/// The written containers of a simulated pool, as a restore engine sees those of a real one. Its
/// reads leave the bytes as they are. Takes new containers at update().
class SimulatedSource final : public layout::ChunkSource {
 public:
  /// Adds the containers that the pool has written since the last call.
  void update(const SimulatedPool& pool);

  const format::FrameCodec& codec() const override { return codec_; }
  Result<layout::LocationRun> locate(ChunkId id) override;
  Result<std::shared_ptr<const format::ContainerHeader>> header(ContainerNumber number) override;
  Result<void> read_data(ContainerNumber, std::uint32_t, std::span<std::byte>) override {
    return {};
  }
  Result<std::uint64_t> place_of(ContainerNumber number) override {
    return static_cast<std::uint32_t>(number);
  }

 private:
  struct Place {
    std::uint32_t container = 0;
    std::uint32_t index = 0;
  };
  const NoBytesCodec codec_{};
  std::vector<std::shared_ptr<const format::ContainerHeader>> headers_;
  std::unordered_map<std::uint64_t, Place> places_;
};

/// The reads of one restore.
struct EngineReads {
  std::size_t containers = 0;  ///< Visits of containers, one in each cycle that reads from them.
  std::uint64_t bytes = 0;     ///< Bytes of all requests.
};

/// Restores a version with an engine that has `memory` bytes for assembly and cache, and reads
/// slices or whole containers. An incomplete restore ends the program.
[[nodiscard]] EngineReads engine_reads(SimulatedSource& source,
                                       const std::vector<StoredChunk>& version,
                                       std::string_view engine, std::size_t memory,
                                       bool whole_containers);

}  // namespace varve::bench
