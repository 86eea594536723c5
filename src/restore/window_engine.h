// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "restore/ahead_reads.h"
#include "restore/alacc_rules.h"
#include "restore/chunk_cache.h"
#include "restore/chunk_resolver.h"
#include "restore/forward_area.h"
#include "restore/read_announcer.h"
#include "restore/read_lanes.h"
#include "restore/restore_engine.h"
#include "restore/stream_window.h"

namespace varve::restore {

/// What tells the engines apart.
struct EngineKind {
  enum class Keep : std::uint8_t {
    kNothing,
    kFuture,           ///< Chunks by their next use.
    kFutureAndPast,    ///< And those that were used, by their last use.
    kChunks,           ///< All chunks that were read, by their last use.
    kContainers,       ///< By their last use.
    kContainersAhead,  ///< By their next use.
  };
  enum class Forward : std::uint8_t {
    kOneArea,
    kTwoAreas,  ///< And the next one, which is read already while the first is put together.
    kAllMemory,
    kAdaptive,  ///< By AlaccRules, as is what the window covers.
  };
  Keep keep = Keep::kFuture;
  Forward forward = Forward::kOneArea;
  AlaccRules::Options rules;
};

/// The engine that all engines are: forward assembly, a look-ahead window, and something that
/// keeps chunks. Which sizes they have and what is kept is the kind's.
///
/// A cycle assembles the first of the areas: chunks that are kept were filled in when their
/// area entered (so that nothing evicts them before); what is missing is planned into requests,
/// container by container, which the lanes fetch, verify and decode; each chunk then goes to
/// all places in the areas that need it, and is offered to the cache.
class WindowEngine final : public RestoreEngine {
 public:
  WindowEngine(const EngineKind& kind, const EngineContext& context, const EngineMemory& memory);
  WindowEngine(const WindowEngine&) = delete;
  WindowEngine& operator=(const WindowEngine&) = delete;
  ~WindowEngine() override;

  [[nodiscard]] std::uint64_t position() const override { return window_.stream_position(); }
  void set_memory(const EngineMemory& memory) override;
  [[nodiscard]] Result<void> skip_to(std::uint64_t position) override;
  [[nodiscard]] Result<std::shared_ptr<const AssemblyArea>> assemble(
      std::size_t bytes_max) override;

 private:
  // A slice to be fetched.
  struct Job {
    std::shared_ptr<const format::ContainerHeader> header;
    Slice slice;
    std::shared_ptr<const std::vector<FrameNeed>> needs;
  };

  [[nodiscard]] std::unique_ptr<RestoreCache> make_cache() const;
  [[nodiscard]] const LookAheadWindow& chunks() const { return window_.chunks(); }
  [[nodiscard]] ChunkUse use_of(std::uint64_t at) const;
  /// The next use, unless it is beyond what the window covers now.
  [[nodiscard]] std::uint64_t covered(std::uint64_t next_use) const;

  // Sizes.
  [[nodiscard]] std::size_t free_bytes() const;
  void resize(std::size_t area_bytes);
  void look_ahead();
  void adapt(const StreamWindow::Cursor& end);

  // Areas.
  void enter_areas(std::size_t bytes_max);
  [[nodiscard]] Result<bool> enter_area(std::size_t bytes_max);
  void fill_from_cache();
  void retreat(std::size_t areas);
  [[nodiscard]] std::shared_ptr<AssemblyArea> leave_area();

  // Reading.
  [[nodiscard]] std::vector<std::uint64_t> empty_slots(const ForwardArea::Area& area) const;
  void read_missing();
  void plan_reads();
  void plan_ahead();
  template <typename Plan>
  void for_each_container(std::vector<std::uint64_t>& missing, const Plan& plan);
  void plan_container(std::span<const std::uint64_t> missing);
  void mark_later(const format::ContainerHeader& header, std::vector<FrameNeed>& needs);
  [[nodiscard]] bool is_wanted(const format::ContainerHeader& header, std::uint32_t frame);
  [[nodiscard]] Result<std::span<const std::byte>> fetch(const format::ContainerHeader& header,
                                                         Slice slice, std::span<std::byte> room);
  void read_job(const Job& job, ReadLane& lane);
  enum class IfBad : std::uint8_t { kStop, kMark };
  [[nodiscard]] bool place_slice(const Job& job, std::span<const std::byte> stored, ReadLane& lane,
                                 IfBad if_bad);
  void place_frame(const format::ContainerHeader& header, std::uint32_t frame,
                   std::span<const std::byte> raw);
  void mark_frame_bad(const format::ContainerHeader& header, std::uint32_t frame);
  [[nodiscard]] bool is_used(const format::ContainerHeader& header, std::uint32_t frame) const;
  void locate_again();

  const EngineKind kind_;
  const EngineContext context_;
  StreamWindow window_;
  ForwardArea forward_;
  ChunkResolver resolver_;
  ReadAnnouncer announcer_;
  ReadLanes lanes_;
  AheadReads ahead_;
  const std::size_t tables_bytes_;  // Window, files and slots.
  EngineMemory memory_;

  std::size_t area_bytes_ = 0;  // Of an area: the unit of the sizes.
  std::size_t units_ = 0;       // Areas that forward assembly and cache have together.
  AlaccSizes sizes_;
  std::optional<AlaccRules> rules_;
  std::optional<Error> enter_error_;  // Why no further area could enter.

  std::vector<ForwardArea::Slot> entering_;
  std::vector<std::uint64_t> missing_;
  std::vector<Job> jobs_;
  std::size_t room_ = 0;             // That is left for what is read for later.
  std::size_t containers_read_ = 0;  // In this cycle.
  std::uint64_t future_added_before_ = 0;
  std::uint64_t cycles_ = 0;

  // Guards the cache and `stale_` while the lanes work. Innermost but for the meter.
  std::mutex cache_mutex_;
  std::unique_ptr<RestoreCache> cache_;
  ChunkCache* chunk_cache_ = nullptr;  // The cache, if it is one.
  std::vector<std::uint32_t> stale_;   // Containers that went away before they were read.
};

}  // namespace varve::restore
