// SPDX-License-Identifier: Apache-2.0
// Streams with different kinds of locality, for replays of restore engines.
#pragma once

#include <algorithm>
#include <memory>
#include <random>

#include "support/container_trace.h"

namespace varve::restore {

using TracePointer = std::unique_ptr<ContainerTrace>;

/// Old containers in order, where a tenth of the chunks changed later and are in newer containers.
inline TracePointer sequential_with_drift(std::size_t areas) {
  auto trace = std::make_unique<ContainerTrace>("sequential with drift", areas + areas / 8);
  std::mt19937 random(41);
  for (std::size_t area = 0; area < areas; ++area) {
    for (std::size_t i = 0; i < ContainerTrace::kContainerChunks; ++i) {
      const bool changed = random() % 10 == 0;
      const std::size_t newer = areas + random() % (areas / 8);
      const std::size_t chunk = ContainerTrace::kContainerChunks * (changed ? newer : area) + i;
      trace->use(chunk);
    }
  }
  return trace;
}

/// Short runs from anywhere near, as after many versions of small changes.
inline TracePointer scattered(std::size_t areas, std::size_t reach) {
  auto trace = std::make_unique<ContainerTrace>("scattered", areas);
  std::mt19937 random(42);
  while (trace->chunks.size() < areas * ContainerTrace::kContainerChunks) {
    const std::size_t here = trace->chunks.size() / ContainerTrace::kContainerChunks;
    const std::size_t first = here > reach ? here - reach : 0;
    const std::size_t container = first + random() % (std::min(here + reach, areas) - first);
    const std::size_t index = random() % ContainerTrace::kContainerChunks;
    trace->use(container * ContainerTrace::kContainerChunks + index,
               1 + random() % std::min<std::size_t>(4, ContainerTrace::kContainerChunks - index));
  }
  return trace;
}

/// The same containers in the same order again and again. Eviction by last use keeps the wrong
/// ones.
inline TracePointer cyclic(std::size_t containers, std::size_t rounds) {
  auto trace = std::make_unique<ContainerTrace>("cyclic", containers);
  for (std::size_t i = 0; i < rounds; ++i)
    trace->use(0, containers * ContainerTrace::kContainerChunks);
  return trace;
}

/// Runs of `run` chunks from everywhere.
inline TracePointer random_chunks(std::size_t containers, std::size_t areas, std::size_t run) {
  auto trace = std::make_unique<ContainerTrace>("random", containers);
  std::mt19937 random(43);
  while (trace->chunks.size() < areas * ContainerTrace::kContainerChunks) {
    trace->use(random() % (containers * ContainerTrace::kContainerChunks - run), run);
  }
  return trace;
}

/// Most chunks from a few containers that are always in use, the others from all.
inline TracePointer skewed(std::size_t containers, std::size_t areas) {
  auto trace = std::make_unique<ContainerTrace>("skewed", containers);
  std::mt19937 random(44);
  while (trace->chunks.size() < areas * ContainerTrace::kContainerChunks) {
    const std::size_t of = random() % 3 != 0 ? containers / 8 : containers;
    trace->use(random() % (of * ContainerTrace::kContainerChunks - 4), 4);
  }
  return trace;
}

/// A few chunks of each container, never used again.
inline void append_sparse(ContainerTrace& trace, std::size_t first_container,
                          std::size_t containers) {
  for (std::size_t i = 0; i < containers; ++i) {
    trace.use((first_container + i) * ContainerTrace::kContainerChunks + i % 7, 3);
  }
}

/// Phases that ask for other sizes each: data in order, containers with few needed chunks, copies
/// that are near, copies that are far, and chunks from everywhere.
inline TracePointer phases() {
  constexpr std::size_t kChunks = ContainerTrace::kContainerChunks;
  auto trace = std::make_unique<ContainerTrace>("phases", 260);
  std::mt19937 random(45);
  trace->use(0, 40 * kChunks);
  append_sparse(*trace, 40, 150);
  for (std::size_t i = 0; i < 30; ++i) {
    trace->use((190 + i) * kChunks, kChunks);
    trace->use((190 + i) * kChunks, kChunks);
  }
  for (std::size_t i = 0; i < 4; ++i) trace->use(220 * kChunks, 18 * kChunks);
  for (std::size_t i = 0; i < 300; ++i) trace->use(random() % (250 * kChunks), 5);
  append_sparse(*trace, 40, 150);
  return trace;
}

}  // namespace varve::restore
