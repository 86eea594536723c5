// SPDX-License-Identifier: Apache-2.0
// The restore engine: turns a stream of chunk runs into areas of assembled output.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/thread_pool.h"
#include "layout/layout.h"
#include "restore/alacc_rules.h"
#include "restore/assembly_area.h"
#include "restore/buffer_pool.h"
#include "restore/memory_meter.h"
#include "restore/slice_reader.h"
#include "restore/stream_window.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::restore {

/// What an engine did to assemble one area, and the sizes it had then.
struct EngineCycle {
  std::uint64_t number = 0;  ///< Areas assembled before.
  AlaccSizes sizes;
  std::size_t memory = 0;  ///< Areas that forward assembly and cache have together.
  std::size_t containers_read = 0;
  std::uint64_t future_bytes = 0;     ///< F-chunks in the cache.
  std::uint64_t past_bytes = 0;       ///< P-chunks in the cache.
  AlaccRule rule = AlaccRule::kNone;  ///< That adapted the sizes behind this cycle.
};

/// Is told of every cycle, by the thread that assembles.
class EngineObserver {
 public:
  virtual ~EngineObserver() = default;
  virtual void on_cycle(const EngineCycle& cycle) = 0;
};

/// What an engine works with; everything outlives it.
struct EngineContext {
  layout::ChunkSource* source = nullptr;
  RunStream* stream = nullptr;
  SliceReader* reader = nullptr;
  BufferPool* areas = nullptr;   ///< Where areas come from.
  BufferPool* slices = nullptr;  ///< Where buffers for stored bytes come from.
  MemoryMeter* meter = nullptr;
  // Any of these may be nullptr.
  base::ThreadPool* workers = nullptr;        ///< Help to read and to decode.
  base::ThreadPool* ahead_readers = nullptr;  ///< Read for the next area meanwhile.
  EngineObserver* observer = nullptr;
  /// Every request fetches a whole container, as the published engines do: for comparisons.
  bool whole_containers = false;
};

/// Bytes that one engine may hold.
struct EngineMemory {
  std::size_t total = 0;  ///< Its areas, caches and tables together.
  std::size_t areas = 0;  ///< Of which the areas handed out, and the next one, take so much.
};

/// Assembles the stream, area after area. Engines differ in which chunks they keep, and give
/// the same bytes. Not synchronised: one call at a time.
class RestoreEngine {
 public:
  virtual ~RestoreEngine() = default;

  /// Stream position where the next area starts.
  [[nodiscard]] virtual std::uint64_t position() const = 0;

  /// From now on. Drops cached chunks over it at once.
  virtual void set_memory(const EngineMemory& memory) = 0;

  /// Passes over the whole runs before `position`, without reading them.
  [[nodiscard]] virtual Result<void> skip_to(std::uint64_t position) = 0;

  /// The next area, of whole chunks and at most `bytes_max` (which must hold one). nullptr
  /// at the end of the stream. Chunks that cannot be read are marked bad in the area; an
  /// error means that the stream cannot be followed any further.
  [[nodiscard]] virtual Result<std::shared_ptr<const AssemblyArea>> assemble(
      std::size_t bytes_max) = 0;
};

/// Whether make_engine() knows the name.
[[nodiscard]] bool is_engine_name(std::string_view name);
/// All names, separated by commas, for messages.
[[nodiscard]] std::string engine_names();

/// kInvalid for an unknown name. `memory` also sizes the tables, once and for all.
[[nodiscard]] Result<std::unique_ptr<RestoreEngine>> make_engine(std::string_view name,
                                                                 const EngineContext& context,
                                                                 const EngineMemory& memory);

}  // namespace varve::restore
