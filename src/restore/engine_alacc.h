// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "restore/chunk_cache.h"
#include "restore/chunk_resolver.h"
#include "restore/look_ahead_window.h"
#include "restore/restore_engine.h"

namespace varve::restore {

/// Varve's default engine: forward assembly of one area, a look-ahead window six times the
/// memory long, and a chunk cache that evicts what is needed last. After ALACC (Cao et al.,
/// FAST'18 §4); we differ in that the three sizes stay fixed, the next use of each chunk is
/// known from one pass, and slices are read instead of containers.
class AlaccEngine final : public RestoreEngine {
 public:
  AlaccEngine(const EngineContext& context, const EngineMemory& memory);
  ~AlaccEngine() override;

  [[nodiscard]] std::uint64_t position() const override { return position_; }
  void set_memory(const EngineMemory& memory) override;
  [[nodiscard]] Result<void> skip_to(std::uint64_t position) override;
  [[nodiscard]] Result<std::shared_ptr<const AssemblyArea>> assemble(
      std::size_t bytes_max) override;

 private:
  enum class SlotState : std::uint8_t {
    kUnplanned,
    kNeeded,    // To be read.
    kFollower,  // The same chunk as an earlier slot of this area.
    kFilled,    // Out of the cache.
  };
  // One chunk of the area under assembly. Slot i is the window's position begin() + i.
  struct Slot {
    std::uint32_t offset = 0;  // In the area.
    std::uint32_t bytes = 0;
    std::uint32_t container = 0;
    std::uint32_t index = 0;  // In the container's chunk table.
    std::uint32_t frame = 0;
    SlotState state = SlotState::kUnplanned;
  };
  using SlotIndexes = std::span<const std::uint32_t>;

  void fill_window();
  [[nodiscard]] bool pull_run();
  [[nodiscard]] Result<void> plan(std::size_t bytes_max);
  void fill_from_cache();
  void collect_needed();
  void read_container(SlotIndexes needed);
  [[nodiscard]] std::uint32_t extend(const format::ContainerHead& head, Slice slice,
                                     std::uint32_t end);
  void read_slice(const format::ContainerHead& head, Slice slice, SlotIndexes needed);
  void place_frame(const format::ContainerHead& head, Slice slice, std::uint32_t frame,
                   std::span<const std::byte> stored, SlotIndexes needed);
  void keep_rest(const format::ContainerHead& head, std::uint32_t frame);
  [[nodiscard]] bool is_wanted(const format::ContainerHead& head, std::uint32_t frame) const;
  void spread(std::uint32_t slot);
  void mark_bad(SlotIndexes needed);
  void leave_area();
  void leave_chunk();

  const EngineContext context_;
  LookAheadWindow window_;
  ChunkCache cache_;
  ChunkResolver resolver_;
  Buffer stored_;                   // A slice as it lies on disk.
  Buffer frame_;                    // A decoded frame of which only parts are needed.
  const std::size_t tables_bytes_;  // Window, files and plan.

  // The runs whose chunks are in the window. The first is left from `front_chunks_` on, the
  // last has come in up to `back_chunks_`.
  std::deque<StreamRun> runs_;
  std::uint32_t front_chunks_ = 0;
  std::uint64_t front_bytes_ = 0;
  std::uint32_t back_chunks_ = 0;
  std::uint64_t window_bytes_ = 0;  // Estimated by the runs' average chunk.
  std::uint64_t window_bytes_max_ = 0;
  std::optional<Error> stream_error_;
  bool stream_ended_ = false;
  std::uint64_t position_ = 0;

  // Of the area under assembly.
  std::shared_ptr<AssemblyArea> area_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> needed_;
  std::uint64_t area_begin_ = 0;  // Positions in the window.
  std::uint64_t area_end_ = 0;
};

}  // namespace varve::restore
