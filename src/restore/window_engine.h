// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
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

/// The differences between the engines.
struct EngineKind {
  enum class Keep : std::uint8_t {
    kNothing,
    kGroups,           ///< F-chunks, by saved reads.
    kFuture,           ///< F-chunks, by next use.
    kFutureAndPast,    ///< F-chunks by next use, and P-chunks by last use.
    kChunks,           ///< All chunks read, by last use.
    kContainers,       ///< Whole containers, by last use.
    kContainersAhead,  ///< Whole containers, by next use.
  };
  enum class Forward : std::uint8_t {
    kOneArea,
    /// The present area, and a planned area with slices read in advance; three planned areas if
    /// requests join slices. If the source answers later, as many planned areas as the reads in
    /// advance have room for.
    kOneAssembled,
    kAllMemory,
    kAdaptive,  ///< Adapted by AlaccRules, as is the length of the window.
    kFixed,     ///< The sizes of the kind, as far as the memory allows.
  };
  Keep keep = Keep::kFuture;
  Forward forward = Forward::kOneArea;
  AlaccRules::Options rules = {};  ///< Rules for kAdaptive.
  AlaccSizes sizes = {};           ///< Sizes for kFixed.
};

/// The common implementation of all engines: a look-ahead window, forward assembly and a cache. The
/// kind determines their sizes and the content of the cache.
///
/// A call of assemble() is one cycle with the following steps:
/// 1. Window: extends the look-ahead window by the next chunks of the stream (StreamWindow).
/// 2. Area: enters areas at the end of the forward area (ForwardArea). Finds the container of each
///    chunk, and fills the slots of cached chunks at once, before later reads can evict the chunks.
///    A planned area takes no memory; its chunks stay in the cache.
/// 3. Plan: sorts the empty slots of the first area by container, and marks the needed frames of
///    each container.
/// 4. Slices: joins neighbouring frames into requests (plan_slices()). The lanes fetch the requests
///    in parallel; AheadReads has read some of them already, and begins with the second area's
///    requests.
/// 5. Frames: verifies and decodes the needed frames of each slice.
/// 6. Chunks: copies each chunk to all slots that need the chunk, and offers it to the cache. A
///    frame needed as a whole by an area is decoded into the area. If the frame's stored bytes are
///    raw and lent by the source, the frame is verified and lent to the area, without a copy.
/// 7. Returns the first area. The session lends its bytes to readers.
class WindowEngine final : public RestoreEngine {
 public:
  WindowEngine(const EngineKind& kind, const EngineContext& context, const EngineMemory& memory);
  WindowEngine(const WindowEngine&) = delete;
  WindowEngine& operator=(const WindowEngine&) = delete;
  ~WindowEngine() override;

  [[nodiscard]] std::uint64_t position() const override { return window_.stream_position(); }
  void set_memory(const EngineMemory& memory) override;
  void set_request_bytes(std::size_t bytes) override;
  [[nodiscard]] Result<void> skip_to(std::uint64_t position) override;
  [[nodiscard]] Result<std::shared_ptr<const AssemblyArea>> assemble(
      std::size_t bytes_max) override;

 private:
  static constexpr std::uint64_t kNever = LookAheadWindow::kNever;

  // A slice to fetch.
  struct Job {
    std::shared_ptr<const format::ContainerHeader> header;
    Slice slice;
    std::shared_ptr<const std::vector<FrameNeed>> needs;
    SealedWindows::Set windows;  // Sealed container: windows needed by the look-ahead window.
  };

  // The frames to read in advance for an area.
  struct AheadPlan {
    std::uint32_t area = 0;  // Number of the area in `forward_`.
    std::unordered_map<ContainerNumber, std::vector<FrameNeed>> needs;
  };

  [[nodiscard]] std::unique_ptr<RestoreCache> make_cache() const;
  /// Returns whether the sizes are as published, in areas, including the length of the window.
  [[nodiscard]] bool has_published_sizes() const {
    return kind_.forward == EngineKind::Forward::kAdaptive ||
           kind_.forward == EngineKind::Forward::kFixed;
  }
  /// Returns whether all areas but the first are planned only.
  [[nodiscard]] bool plans_areas() const {
    return kind_.forward == EngineKind::Forward::kOneAssembled;
  }
  /// Returns whether requests join slices, also slices of several areas.
  [[nodiscard]] bool joins_slices() const { return request_bytes_ > kSliceBytesMax; }
  /// Returns whether the slices of the present area are read through AheadReads, too.
  [[nodiscard]] bool reads_all_ahead() const {
    return context_.source->answers_later() || joins_slices();
  }
  [[nodiscard]] const LookAheadWindow& chunks() const { return window_.chunks(); }
  [[nodiscard]] ChunkUse use_of(std::uint64_t at) const;
  /// Returns `next_use`, or kNever if `next_use` is after the near end of the window.
  [[nodiscard]] std::uint64_t covered(std::uint64_t next_use) const;

  // Sizes.
  [[nodiscard]] std::size_t free_bytes() const;
  void resize(std::size_t area_bytes);
  [[nodiscard]] std::size_t areas_forward(std::size_t area_bytes) const;
  void look_ahead();
  void announce(std::uint64_t from, std::uint64_t bytes);
  [[nodiscard]] std::uint64_t distant_bytes_announced() const;
  void adapt(const StreamWindow::Cursor& end);

  // Areas.
  void enter_areas(std::size_t bytes_max);
  [[nodiscard]] Result<bool> enter_area(std::size_t bytes_max);
  [[nodiscard]] std::shared_ptr<AssemblyArea> make_area(const ForwardArea::Area& area,
                                                        std::size_t bytes_max);
  void fill_from_cache(const ForwardArea::Area& area);
  void retreat(std::size_t areas);
  [[nodiscard]] std::shared_ptr<AssemblyArea> leave_area();

  // Reading.
  [[nodiscard]] std::vector<std::uint64_t> empty_slots(const ForwardArea::Area& area) const;
  void read_missing();
  void plan_reads();
  void plan_ahead();
  void plan_ahead(std::span<const std::uint64_t> places, std::vector<AheadReads::Planned>& planned);
  [[nodiscard]] std::vector<Slice> plan_slices_of(const format::ContainerHeader& header,
                                                  const std::vector<FrameNeed>& needs) const;
  [[nodiscard]] SealedWindows::Set windows_of(const format::ContainerHeader& header);
  void drop_unfetched(const std::vector<Slice>& slices, std::vector<FrameNeed>& needs) const;
  [[nodiscard]] bool is_read_before(ContainerNumber container, std::uint32_t frame) const;
  template <typename Plan>
  void for_each_container(std::vector<std::uint64_t>& missing, const Plan& plan);
  void plan_container(std::span<const std::uint64_t> missing);
  void announce_chunks();
  [[nodiscard]] bool copy_plan(const format::ContainerHeader& header,
                               std::vector<FrameNeed>& needs) const;
  void mark_later(const format::ContainerHeader& header, std::vector<FrameNeed>& needs);
  [[nodiscard]] bool is_wanted(const format::ContainerHeader& header, std::uint32_t frame);
  [[nodiscard]] Result<SliceBytes> fetch(const Job& job, std::span<std::byte> room);
  void read_job(const Job& job, ReadLane& lane);
  enum class IfBad : std::uint8_t { kStop, kMark };
  [[nodiscard]] bool place_slice(const Job& job, const SliceBytes& stored, ReadLane& lane,
                                 IfBad if_bad);
  void place_frame(const format::ContainerHeader& header, std::uint32_t frame,
                   std::span<const std::byte> raw, const std::byte* lent = nullptr);
  [[nodiscard]] bool lend_frame(const Job& job, std::uint32_t frame, const SliceBytes& stored,
                                std::span<std::byte> place);
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
  const std::size_t tables_bytes_;  // Memory of the window, the files and the slots.
  EngineMemory memory_;

  std::size_t request_bytes_ = 0;  // Limit for requests of several slices; 0 for single slices.
  std::size_t area_bytes_ = 0;     // Size of an area, the unit of the sizes.
  std::size_t units_ = 0;          // Memory of forward assembly and cache together, in areas.
  AlaccSizes sizes_;
  std::optional<AlaccRules> rules_;
  std::optional<Error> enter_error_;  // Reason why no further area could enter.

  std::vector<ForwardArea::Slot> entering_;
  std::vector<std::uint64_t> missing_;
  std::vector<Job> jobs_;
  std::deque<std::pair<ContainerNumber, SealedWindows::Set>> windows_known_;  // Recent containers.
  AheadPlan present_plan_;             // Plan of the present area, if made in advance.
  std::deque<AheadPlan> ahead_plans_;  // Plans of the areas after the present area, in order.
  std::size_t room_ = 0;               // Remaining room of the cache for chunks needed later.
  std::uint64_t later_end_ = 0;        // Limit of the uses for which optional frames are read.
  std::size_t planned_room_ = 0;       // Room that the cache can make for chunks of planned areas.
  std::size_t containers_read_ = 0;    // Containers read in this cycle.
  std::uint64_t future_added_before_ = 0;
  std::uint64_t cycles_ = 0;

  // Guards the cache and `stale_` while the lanes work. Only the meter is used under this mutex.
  std::mutex cache_mutex_;
  std::unique_ptr<RestoreCache> cache_;
  ChunkCache* chunk_cache_ = nullptr;   // The cache, if it is a ChunkCache.
  std::vector<ContainerNumber> stale_;  // Containers removed before they were read.
};

}  // namespace varve::restore
