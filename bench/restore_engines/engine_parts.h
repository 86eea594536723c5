// SPDX-License-Identifier: Apache-2.0
// Makes the parts of a restore engine, to measure one engine with a given memory.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "base/metrics.h"
#include "restore/buffer_pool.h"
#include "restore/memory_meter.h"
#include "restore/read_metrics.h"
#include "restore/restore_engine.h"
#include "restore/slice_reader.h"

namespace varve::bench {

inline constexpr std::size_t kEngineAreaBytes = 4U << 20;

/// Yields the runs of a list. Lifetime: the list outlives it.
class RunList final : public restore::RunStream {
 public:
  explicit RunList(const std::vector<restore::StreamRun>& runs) : runs_(runs) {}
  Result<std::optional<restore::StreamRun>> next() override {
    if (next_ == runs_.size()) return std::optional<restore::StreamRun>();
    return std::optional<restore::StreamRun>(runs_[next_++]);
  }

 private:
  const std::vector<restore::StreamRun>& runs_;
  std::size_t next_ = 0;
};

/// The parts of an engine's context that do not depend on what it restores. An engine reads slices
/// of containers, or whole ones, as published engines do.
class EngineParts {
 public:
  explicit EngineParts(bool whole_containers) : whole_containers_(whole_containers) {
    if (whole_containers) reader_.set_costs({64U << 10, kEngineAreaBytes});
  }

  /// Lifetime: the arguments and the parts outlive the engine.
  restore::EngineContext context(layout::ChunkSource& source, restore::RunStream& stream,
                                 restore::EngineObserver* observer) {
    restore::EngineContext context;
    context.source = &source;
    context.stream = &stream;
    context.reader = &reader_;
    context.areas = &areas_;
    context.slices = &slices_;
    context.meter = &meter_;
    context.metrics = &metrics_;
    context.observer = observer;
    context.whole_containers = whole_containers_;
    return context;
  }
  /// Returns the memory with which an engine has `bytes` for forward assembly and cache, besides
  /// the tables and a request's buffers.
  [[nodiscard]] restore::EngineMemory memory_for(std::string_view engine, std::size_t bytes) const {
    const bool has_more_slots = engine == "faa" || engine.starts_with("alacc-");
    const double tables = has_more_slots ? 3.0 / 32 : 2.0 / 32;
    const double beside = static_cast<double>(reader_.costs().request_bytes_max) + 0.7 * (1U << 20);
    const double total = (static_cast<double>(bytes) + beside) / (1 - tables);
    return {static_cast<std::size_t>(total), kEngineAreaBytes};
  }
  [[nodiscard]] const restore::ReadMetrics& metrics() const { return metrics_; }
  [[nodiscard]] std::size_t peak_bytes() const { return meter_.peak(); }

 private:
  const bool whole_containers_;
  restore::MemoryMeter meter_;
  base::Metrics registry_;
  const restore::ReadMetrics metrics_{registry_};
  restore::SliceReader reader_{metrics_};
  restore::BufferPool areas_{1, &meter_};
  restore::BufferPool slices_{2, &meter_};
};

}  // namespace varve::bench
