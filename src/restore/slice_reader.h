// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "format/container.h"
#include "format/frame_codec.h"
#include "format/prefix_cache.h"
#include "layout/layout.h"
#include "restore/read_costs.h"
#include "restore/read_metrics.h"
#include "restore/sealed_windows.h"
#include "varve/result.h"

namespace varve::restore {

/// Reads slices from their containers and counts the bytes. Reads sealed containers as a whole or
/// in windows of one size. Thread-safe.
class SliceReader {
 public:
  /// Lifetime: `metrics` must outlive the reader.
  explicit SliceReader(const ReadMetrics& metrics) : metrics_(metrics) {}

  /// Reads the stored bytes of a slice into `room`, or returns them in cached memory. `room` has at
  /// least slice_bytes(). `plan`: the reader's further needs in a sealed container. Unreadable
  /// bytes are listed in SliceBytes::unread: the remaining frames of the slice may be sound.
  [[nodiscard]] Result<SliceBytes> read(layout::ChunkSource& source,
                                        const format::ContainerHeader& header, Slice slice,
                                        std::span<std::byte> room,
                                        const SealedWindows::Plan& plan = {});
  /// Reads as read(), for a slice that will hardly be read again. For `room`, see
  /// ChunkSource::read_once().
  [[nodiscard]] Result<SliceBytes> read_once(layout::ChunkSource& source,
                                             const format::ContainerHeader& header, Slice slice,
                                             std::span<std::byte> room,
                                             const SealedWindows::Plan& plan = {});

  /// Announces a read of a slice in the near future, unless the container is sealed.
  static void announce(layout::ChunkSource& source, const format::ContainerHeader& header,
                       Slice slice);
  /// Drops the cached data of a container, here and in the source, because a frame is damaged.
  /// Returns whether the next read asks a distant store again.
  [[nodiscard]] bool drop(layout::ChunkSource& source, const format::ContainerHeader& header) {
    windows_.forget(header);
    return source.drop(header.number);
  }
  /// Verifies and decodes one frame from the stored bytes of a slice. Takes the frame's prefixes
  /// from a cache if they were decoded lately. Error messages name the container and the frame.
  [[nodiscard]] Result<void> decode_once(const format::FrameCodec& codec,
                                         const format::ContainerHeader& header, Slice slice,
                                         std::uint32_t frame, const SliceBytes& stored,
                                         std::span<std::byte> out);
  /// Decodes a frame as decode_once(). After damage, drops the container, and asks a distant
  /// store once more: the bytes may have been damaged on their way. Tells the source of damage that
  /// stays.
  [[nodiscard]] Result<void> decode(layout::ChunkSource& source,
                                    const format::ContainerHeader& header, Slice slice,
                                    std::uint32_t frame, const SliceBytes& stored,
                                    std::span<std::byte> out);

  /// One slice of a batch.
  struct Read {
    std::shared_ptr<const format::ContainerHeader> header;
    Slice slice;
    std::span<std::byte> room;
    store::LentBytes* lent = nullptr;  ///< As DataRead::lent.
  };
  /// Reads slices as read_once(), all at once. See ChunkSource::read_many().
  void read_many(layout::ChunkSource& source, const std::vector<Read>& reads,
                 const layout::DataCompletion& done);

  /// Sets the costs for the planning of requests from now on.
  void set_costs(const ReadCosts& costs) {
    gap_bytes_max_.store(costs.gap_bytes_max);
    request_bytes_max_.store(costs.request_bytes_max);
  }
  [[nodiscard]] ReadCosts costs() const {
    return {gap_bytes_max_.load(), request_bytes_max_.load()};
  }

 private:
  void count(std::size_t bytes, std::uint64_t requests = 1);
  [[nodiscard]] Result<SliceBytes> read_windows(layout::ChunkSource& source,
                                                const format::ContainerHeader& header, Slice slice,
                                                std::span<std::byte> room, bool once,
                                                const SealedWindows::Plan& plan);
  [[nodiscard]] Result<SliceBytes> read_around(layout::ChunkSource& source,
                                               const format::ContainerHeader& header, Slice slice,
                                               std::span<std::byte> out, Error error);

  // 4 MiB: the prefixes of all groups of a container, for some readers at the same time.
  static constexpr std::size_t kPrefixesMax = 32;

  const ReadMetrics& metrics_;
  format::PrefixCache prefixes_{kPrefixesMax};
  SealedWindows windows_;
  std::atomic<std::uint32_t> gap_bytes_max_ = ReadCosts{}.gap_bytes_max;
  std::atomic<std::uint32_t> request_bytes_max_ = ReadCosts{}.request_bytes_max;
};

/// Verifies one frame in the stored bytes of a slice. Returns the stored bytes of the frame if they
/// are raw. Returns nothing if the frame is compressed or damaged: the caller decodes the frame.
[[nodiscard]] std::span<const std::byte> find_raw_frame(const format::ContainerHeader& header,
                                                        Slice slice, std::uint32_t frame,
                                                        const SliceBytes& stored);

}  // namespace varve::restore
