// SPDX-License-Identifier: Apache-2.0
// The workloads of bench-restore-engines: versions of generated files, stored in four ways.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "avar/stored_series.h"
#include "avar/version_source.h"
#include "restore/restore_engine.h"
#include "restore_engines/packed_containers.h"

namespace varve::bench {

/// The recipes of some versions of one store.
struct Trace {
  struct Version {
    std::string name;
    std::vector<restore::StreamRun> runs;
    std::uint64_t bytes = 0;
  };
  std::string name;
  layout::ChunkSource* source = nullptr;
  std::vector<Version> versions;  ///< Newest, middle, oldest.

  // Own the source.
  std::unique_ptr<PackedContainers> packed;
  std::unique_ptr<StoredSeries> series;
};

/// Returns a version's chunks as the runs of its recipes.
template <typename BytesOf>
Trace::Version to_runs(std::string name, const std::vector<ChunkId>& chunks, BytesOf bytes_of) {
  Trace::Version version{std::move(name), {}, 0};
  for (const ChunkId id : chunks) {
    const std::uint64_t bytes = bytes_of(id);
    if (version.runs.empty() || version.runs.back().first.plus(version.runs.back().count) != id) {
      version.runs.push_back({id, 0, 0, version.bytes});
    }
    ++version.runs.back().count;
    version.runs.back().bytes += bytes;
    version.bytes += bytes;
  }
  return version;
}

inline std::vector<std::pair<std::string, std::size_t>> picked(std::size_t versions) {
  return {{"newest", versions - 1}, {"middle", versions / 2}, {"oldest", 0}};
}

/// Stores every content once, where it first appears, and never moves it.
inline Trace classic_trace(std::string name, const SourceOptions& options, std::size_t versions) {
  Trace trace;
  trace.name = std::move(name);
  trace.packed = std::make_unique<PackedContainers>();
  trace.source = trace.packed.get();
  VersionSource source(options);
  std::vector<std::vector<ChunkId>> streams;
  std::unordered_map<Content, ChunkId> ids;
  std::unordered_map<std::uint64_t, std::size_t> bytes;
  for (std::size_t i = 0; i < versions; ++i) {
    if (i > 0) source.next_version();
    auto next = ChunkId::make(static_cast<VersionNumber>(i + 1), 0);
    std::vector<ChunkId> stream;
    for (const Content content : source.stream()) {
      const auto [known, is_new] = ids.try_emplace(content, next);
      if (is_new) {
        const auto raw = source.data_of(content);
        trace.packed->place(next, raw);
        bytes[next.value] = raw.size();
        next = next.plus(1);
      }
      stream.push_back(known->second);
    }
    trace.packed->end_container();
    streams.push_back(std::move(stream));
  }
  for (const auto& [label, version] : picked(versions)) {
    trace.versions.push_back(
        to_runs(label, streams[version], [&bytes](ChunkId id) { return bytes.at(id.value); }));
  }
  return trace;
}

/// Stores a series with the layout that the policy produces.
inline Trace series_trace(std::string name, const std::string& directory,
                          const SourceOptions& options, ArrangePolicyKind policy,
                          std::size_t versions) {
  Trace trace;
  trace.name = std::move(name);
  ArrangeSettings settings;
  settings.policy = policy;
  trace.series = std::make_unique<StoredSeries>(directory, settings);
  trace.source = &trace.series->chunks();
  VersionSource source(options);
  for (std::size_t i = 0; i < versions; ++i) {
    if (i > 0) source.next_version();
    trace.series->store(source.stream(), source);
    static_cast<void>(trace.series->arrange());
  }
  for (const auto& [label, version] : picked(versions)) {
    trace.versions.push_back(to_runs(label, trace.series->stream(version),
                                     [&](ChunkId id) { return trace.series->bytes_of(id); }));
  }
  return trace;
}

}  // namespace varve::bench
