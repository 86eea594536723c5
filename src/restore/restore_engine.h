// SPDX-License-Identifier: Apache-2.0
// The restore engine: turns a stream of chunk runs into areas of assembled output.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/thread_pool.h"
#include "layout/layout.h"
#include "restore/alacc_rules.h"
#include "restore/assembly_area.h"
#include "restore/buffer_pool.h"
#include "restore/memory_meter.h"
#include "restore/read_metrics.h"
#include "restore/slice_reader.h"
#include "restore/stream_window.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::restore {

/// A report on the assembly of one area, with the sizes at that time.
struct EngineCycle {
  std::uint64_t number = 0;  ///< Number of areas assembled before.
  AlaccSizes sizes;
  std::size_t memory = 0;  ///< Memory of forward assembly and cache together, in areas.
  std::size_t containers_read = 0;
  std::uint64_t future_bytes = 0;     ///< Bytes of the F-chunks in the cache.
  std::uint64_t past_bytes = 0;       ///< Bytes of the P-chunks in the cache.
  AlaccRule rule = AlaccRule::kNone;  ///< Rule that adapted the sizes after this cycle.
};

/// Receives a report of every cycle, on the assembling thread.
class EngineObserver {
 public:
  virtual ~EngineObserver() = default;
  virtual void on_cycle(const EngineCycle& cycle) = 0;
};

/// The parts of an engine.
/// Lifetime: everything must outlive the engine.
struct EngineContext {
  layout::ChunkSource* source = nullptr;
  RunStream* stream = nullptr;
  SliceReader* reader = nullptr;
  BufferPool* areas = nullptr;   ///< Pool of the areas.
  BufferPool* slices = nullptr;  ///< Pool of the buffers for stored bytes.
  MemoryMeter* meter = nullptr;
  const ReadMetrics* metrics = nullptr;
  // Optional parts: may be nullptr.
  base::ThreadPool* workers = nullptr;        ///< Threads that help to read and decode.
  base::ThreadPool* ahead_readers = nullptr;  ///< Threads that read for the next area in advance.
  EngineObserver* observer = nullptr;
  /// Whether every request fetches a whole container, as in the published engines. For comparisons.
  bool whole_containers = false;
  /// Whether the reader has announced a read of the whole stream. The engine then sends a distant
  /// store the maximum of requests in advance, from the start on.
  bool reads_all = false;
};

/// Limits on the memory of one engine, in bytes.
struct EngineMemory {
  std::size_t total = 0;  ///< Areas, caches and tables together.
  std::size_t areas = 0;  ///< Part of `total` for the returned areas and the next area.
};

/// Assembles the stream, area by area. Engines differ in the cached chunks, and return the same
/// bytes. Not thread-safe: one call at a time.
class RestoreEngine {
 public:
  virtual ~RestoreEngine() = default;

  /// Returns the stream position at which the next area starts.
  [[nodiscard]] virtual std::uint64_t position() const = 0;

  /// Sets the memory from now on. Evicts cached chunks above the limit at once.
  virtual void set_memory(const EngineMemory& memory) = 0;

  /// Sets the maximum size of a request for the areas ahead, from now on; a local engine joins
  /// slices up to that size. A session starts with small requests, because its reader may leave out
  /// files. The default is kJoinedBytesMax.
  virtual void set_request_bytes(std::size_t bytes) = 0;

  /// Skips the whole runs before `position` without reading them.
  [[nodiscard]] virtual Result<void> skip_to(std::uint64_t position) = 0;

  /// Assembles the next area from whole chunks. Returns nullptr at the end of the stream. The area
  /// has at most `bytes_max` bytes; `bytes_max` must be enough for any chunk. Marks unreadable
  /// chunks as bad in the area. An error means that the engine cannot continue the stream.
  [[nodiscard]] virtual Result<std::shared_ptr<const AssemblyArea>> assemble(
      std::size_t bytes_max) = 0;
};

/// One row of the table of engines.
struct EngineInfo {
  std::string_view name;
  std::string_view help;
  /// Creates the engine.
  std::unique_ptr<RestoreEngine> (*make)(const EngineContext& context,
                                         const EngineMemory& memory) = nullptr;
};
/// Returns the table. To add an engine, add a row to engines.cc; names, help, checks and the
/// contract suite follow.
[[nodiscard]] std::span<const EngineInfo> engine_infos();

/// Checks that the table has an engine of this name.
/// Errors: kInvalid, with the known names.
[[nodiscard]] Result<void> check_engine(std::string_view name);

/// Creates an engine. `memory` also determines the size of the tables for the engine's lifetime.
/// Errors: the errors of check_engine().
[[nodiscard]] Result<std::unique_ptr<RestoreEngine>> make_engine(std::string_view name,
                                                                 const EngineContext& context,
                                                                 const EngineMemory& memory);

}  // namespace varve::restore
