// SPDX-License-Identifier: Apache-2.0
#include "har/engine_reads.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "must.h"
#include "restore_engines/engine_parts.h"

namespace varve::bench {
namespace {

class Visits final : public restore::EngineObserver {
 public:
  void on_cycle(const restore::EngineCycle& cycle) override {
    containers_ += cycle.containers_read;
  }
  [[nodiscard]] std::size_t containers() const { return containers_; }

 private:
  std::size_t containers_ = 0;
};

/// Returns a version's chunks as the runs of its recipes.
std::vector<restore::StreamRun> runs_of(const std::vector<StoredChunk>& version) {
  std::vector<restore::StreamRun> runs;
  std::uint64_t position = 0;
  for (const auto& chunk : version) {
    if (runs.empty() || runs.back().first.plus(runs.back().count) != chunk.id) {
      runs.push_back({chunk.id, 0, 0, position});
    }
    ++runs.back().count;
    runs.back().bytes += chunk.bytes;
    position += chunk.bytes;
  }
  return runs;
}

/// Returns a header with its derived members. It has no size, so that the data may have 4 MiB.
format::ContainerHeader header_of(const std::vector<StoredChunk>& chunks, std::uint32_t number) {
  format::ContainerHeader header;
  header.store = kPoolStore;
  header.number = static_cast<ContainerNumber>(number);
  for (const auto& chunk : chunks) {
    if (header.frames.empty() ||
        header.frames.back().raw_bytes + chunk.bytes > format::kFrameRawBytesMax) {
      auto& frame = header.frames.emplace_back();
      frame.first_chunk = static_cast<std::uint32_t>(header.chunks.size());
      frame.offset = header.data_bytes;
    }
    auto& frame = header.frames.back();
    format::ChunkEntry entry;
    entry.id = chunk.id;
    entry.raw_bytes = chunk.bytes;
    entry.frame = static_cast<std::uint32_t>(header.frames.size() - 1);
    entry.frame_offset = frame.raw_bytes;
    header.chunks.push_back(entry);
    ++frame.chunk_count;
    frame.raw_bytes += chunk.bytes;
    frame.stored_bytes = frame.raw_bytes;
    header.data_bytes += chunk.bytes;
  }
  header.raw_bytes = header.data_bytes;
  return header;
}

}  // namespace

format::EncodedFrame NoBytesCodec::compress_as(const format::Compression&,
                                               std::span<const std::byte>,
                                               std::span<const std::byte>) const {
  return {};
}
std::uint64_t NoBytesCodec::seal(const format::FramePlace&, std::span<std::byte>) const {
  return 0;
}
Result<void> NoBytesCodec::decode_on(const format::FramePlace&, const format::FrameEntry&,
                                     std::span<const std::byte>, std::span<const std::byte>,
                                     std::span<std::byte>) const {
  return {};
}

void SimulatedSource::update(const SimulatedPool& pool) {
  const auto& containers = pool.containers();
  while (headers_.size() < containers.size()) {
    const auto number = static_cast<std::uint32_t>(headers_.size());
    const auto& chunks = containers[number];
    for (std::uint32_t i = 0; i < chunks.size(); ++i) places_[chunks[i].id.value] = {number, i};
    headers_.push_back(std::make_shared<const format::ContainerHeader>(header_of(chunks, number)));
  }
}

Result<layout::LocationRun> SimulatedSource::locate(ChunkId id) {
  const auto found = places_.find(id.value);
  if (found == places_.end()) return Error(ErrorCode::kCorrupt, "no such chunk");
  const auto [container, index] = found->second;
  const auto& chunks = headers_[container]->chunks;
  layout::LocationRun run{id, 0, 0, static_cast<ContainerNumber>(container), index};
  for (std::size_t i = index; i < chunks.size() && chunks[i].id == id.plus(run.count); ++i) {
    ++run.count;
    run.raw_bytes += chunks[i].raw_bytes;
  }
  return run;
}

Result<std::shared_ptr<const format::ContainerHeader>> SimulatedSource::header(
    ContainerNumber number) {
  return headers_.at(static_cast<std::uint32_t>(number));
}

EngineReads engine_reads(SimulatedSource& source, const std::vector<StoredChunk>& version,
                         std::string_view engine, std::size_t memory, bool whole_containers) {
  const auto runs = runs_of(version);
  RunList stream(runs);
  EngineParts parts(whole_containers);
  Visits visits;
  const auto context = parts.context(source, stream, &visits);
  std::uint64_t restored = 0;
  {
    const auto restorer =
        must(restore::make_engine(engine, context, parts.memory_for(engine, memory)));
    while (const auto area = must(restorer->assemble(kEngineAreaBytes))) {
      restored += area->good_bytes(area->position());
    }
  }
  if (runs.empty() || restored != runs.back().position + runs.back().bytes) {
    fmt::print(stderr, "bench: {} did not restore everything\n", engine);
    std::exit(1);
  }
  return {visits.containers(), parts.metrics().read_bytes.value()};
}

}  // namespace varve::bench
