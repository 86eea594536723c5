// SPDX-License-Identifier: Apache-2.0
// A stream of chunks of one length in containers of one length, and an engine that restores it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "restore/chunk_cache.h"
#include "restore/restore_engine.h"
#include "support/fake_source.h"

namespace varve::restore {

/// Full containers in memory, and a stream over their chunks. Chunk `c` is in container
/// `c / kContainerChunks`. An area has the size of a container, as in the publications.
class ContainerTrace {
 public:
  static constexpr std::size_t kChunkBytes = 16U << 10;
  static constexpr std::size_t kContainerChunks = 16;
  static constexpr std::size_t kAreaBytes = kChunkBytes * kContainerChunks;
  /// Memory that a cache may take for the tables of the chunks of one container.
  static constexpr std::size_t kContainerTableBytes = kContainerChunks * 256;

  ContainerTrace(std::string name, std::size_t containers)
      : source(Codec::kNone, kAreaBytes), name_(std::move(name)) {
    for (std::size_t chunk = 0; chunk < containers * kContainerChunks; ++chunk) {
      source.place(id(chunk), bytes_of(chunk));
    }
    source.end_container();
  }

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] static ChunkId id(std::size_t chunk) {
    return ChunkId::make(VersionNumber{1}, static_cast<std::uint32_t>(chunk));
  }
  [[nodiscard]] static Bytes bytes_of(std::size_t chunk) {
    Bytes raw(kChunkBytes, std::byte{5});
    std::memcpy(raw.data(), &chunk, sizeof(chunk));
    return raw;
  }

  /// Adds a chunk at the end of the stream.
  void use(std::size_t chunk) { chunks.push_back(chunk); }
  /// Adds chunks in order, from `first` on.
  void use(std::size_t first, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) use(first + i);
  }
  /// Returns the number of areas of the stream.
  [[nodiscard]] std::size_t areas() const {
    return (chunks.size() + kContainerChunks - 1) / kContainerChunks;
  }
  /// Returns the container of the chunk at a position of the stream.
  [[nodiscard]] std::size_t container(std::size_t at) const {
    return chunks[at] / kContainerChunks;
  }

  /// Returns the source to restore from, and the id of a chunk there.
  [[nodiscard]] layout::ChunkSource& chunk_source() {
    return elsewhere == nullptr ? source : *elsewhere;
  }
  [[nodiscard]] ChunkId id_there(std::size_t chunk) const {
    return elsewhere == nullptr ? id(chunk) : ids_elsewhere.at(chunk);
  }

  FakeSource source;
  std::vector<std::size_t> chunks;  ///< The stream.
  /// Another source with the same containers, if any, and the ids of its chunks.
  layout::ChunkSource* elsewhere = nullptr;
  std::vector<ChunkId> ids_elsewhere;

 private:
  const std::string name_;
};

/// The runs of a trace.
class TraceRuns final : public RunStream {
 public:
  explicit TraceRuns(const ContainerTrace& trace) : trace_(trace) {}
  Result<std::optional<StreamRun>> next() override {
    const auto& chunks = trace_.chunks;
    if (at_ == chunks.size()) return std::optional<StreamRun>();
    StreamRun run{trace_.id_there(chunks[at_]), 0, 0, at_ * ContainerTrace::kChunkBytes};
    do {
      ++run.count;
      run.bytes += ContainerTrace::kChunkBytes;
    } while (++at_ < chunks.size() && trace_.id_there(chunks[at_]) == run.first.plus(run.count));
    return std::optional<StreamRun>(run);
  }

 private:
  const ContainerTrace& trace_;
  std::size_t at_ = 0;
};

/// The outcome of a restore.
struct TraceReplay {
  std::vector<EngineCycle> cycles;
  std::size_t containers_read = 0;
  /// Requests to ContainerTrace::source, and their stored bytes.
  std::size_t requests = 0;
  std::uint64_t bytes_read = 0;
  /// Memory of the cache and of all areas under assembly but the first, in bytes.
  std::size_t memory = 0;
  /// Number of chunks of which the engine knows the order in advance.
  std::size_t window_chunks = 0;
};

/// Restores the trace with whole containers, or with planned slices, and room for `containers` of
/// them, and their tables, beside the area. Checks the bytes.
inline TraceReplay replay(ContainerTrace& trace, const std::string& engine_name,
                          std::size_t containers, bool whole_containers = true) {
  struct Recorder final : EngineObserver {
    void on_cycle(const EngineCycle& cycle) override { cycles.push_back(cycle); }
    std::vector<EngineCycle> cycles;
  } recorder;
  constexpr std::size_t kArea = ContainerTrace::kAreaBytes;
  MemoryMeter meter;
  base::Metrics registry;
  const ReadMetrics metrics(registry);
  SliceReader reader(metrics);
  reader.set_costs({64U << 10, kArea});
  BufferPool areas(1, &meter);
  BufferPool slices(2, &meter);
  TraceRuns stream(trace);
  EngineContext context;
  context.source = &trace.chunk_source();
  context.stream = &stream;
  context.reader = &reader;
  context.areas = &areas;
  context.slices = &slices;
  context.meter = &meter;
  context.metrics = &metrics;
  context.observer = &recorder;
  context.whole_containers = whole_containers;
  TraceReplay result;
  // More memory, until the tables and buffers leave enough.
  EngineMemory memory{(containers + 1) * kArea, kArea};
  std::unique_ptr<RestoreEngine> engine;
  const std::size_t memory_wanted = containers * (kArea + ContainerTrace::kContainerTableBytes);
  while (result.memory < memory_wanted) {
    engine.reset();
    memory.total += 4096;
    engine = std::move(*make_engine(engine_name, context, memory));
    const std::size_t taken = meter.held() + memory.areas;
    result.memory = memory.total > taken ? memory.total - taken : 0;
  }
  // The window is six times as long as the memory.
  result.window_chunks =
      (6 * memory.total + ContainerTrace::kChunkBytes - 1) / ContainerTrace::kChunkBytes;
  std::vector<FakeSource::Read> reads;
  trace.source.recorded = &reads;
  std::size_t at = 0;
  while (true) {
    const auto area = engine->assemble(kArea);
    EXPECT_TRUE(area.has_value());
    if (!area || !*area) break;
    for (std::uint64_t byte = (*area)->position(); byte < (*area)->end(); ++at) {
      const Bytes wanted = ContainerTrace::bytes_of(trace.chunks.at(at));
      EXPECT_GE((*area)->good_bytes(byte), wanted.size());
      EXPECT_EQ(std::memcmp((*area)->bytes_at(byte), wanted.data(), wanted.size()), 0) << at;
      byte += wanted.size();
    }
  }
  trace.source.recorded = nullptr;
  EXPECT_EQ(at, trace.chunks.size());
  result.cycles = std::move(recorder.cycles);
  result.requests = reads.size();
  for (const FakeSource::Read& read : reads) result.bytes_read += read.bytes;
  for (const EngineCycle& cycle : result.cycles) {
    result.containers_read += cycle.containers_read;
    EXPECT_EQ(cycle.memory, 1 + result.memory / kArea);
  }
  return result;
}

}  // namespace varve::restore
