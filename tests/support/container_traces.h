// SPDX-License-Identifier: Apache-2.0
// Streams with different kinds of locality, for replays of restore engines.
#pragma once

#include <algorithm>
#include <memory>
#include <random>
#include <span>
#include <utility>
#include <vector>

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

/// A large file of `areas` areas. Each version replaced single chunks anywhere, and the chunks of a
/// version follow each other.
inline TracePointer small_edits(std::size_t areas, std::size_t versions) {
  constexpr std::size_t kChunks = ContainerTrace::kContainerChunks;
  const std::size_t edits = areas * kChunks / 50;
  auto trace =
      std::make_unique<ContainerTrace>("small edits", areas + versions * edits / kChunks + 1);
  std::mt19937 random(46);
  std::vector<std::size_t> file(areas * kChunks);
  for (std::size_t i = 0; i < file.size(); ++i) file[i] = i;
  std::size_t next = file.size();
  for (std::size_t version = 0; version < versions; ++version) {
    std::vector<std::size_t> places(edits);
    for (std::size_t& place : places) place = random() % file.size();
    std::ranges::sort(places);
    for (const std::size_t place : places) file[place] = next++;
  }
  for (const std::size_t chunk : file) trace->use(chunk);
  return trace;
}

/// An image of a disk: stretches in order, a few contents that are everywhere, a busy part that was
/// overwritten many times, and copied files.
inline TracePointer disk_image(std::size_t areas) {
  constexpr std::size_t kChunks = ContainerTrace::kContainerChunks;
  auto trace = std::make_unique<ContainerTrace>("disk image", areas);
  std::mt19937 random(47);
  std::size_t at = 0;
  while (trace->chunks.size() < areas * kChunks) {
    const std::size_t length = 1 + random() % 24;
    switch (random() % 8) {
      case 0:  // A content that is everywhere.
        trace->use(random() % 6 * 5 * kChunks, 1);
        break;
      case 1:  // The busy part.
        for (std::size_t i = 0; i < length; ++i) {
          trace->use((areas / 2 + random() % (areas / 8)) * kChunks + random() % kChunks);
        }
        break;
      case 2:  // A copy of an earlier part.
        if (trace->chunks.size() > 4 * kChunks) {
          const std::size_t from = random() % (trace->chunks.size() - 2 * kChunks);
          for (std::size_t i = 0; i < length; ++i) trace->use(trace->chunks[from + i]);
        }
        break;
      default:
        if (at + length > areas * kChunks) at = 0;
        trace->use(at, length);
        at += length;
    }
  }
  return trace;
}

/// Files of one to six chunks. Most directories are in the order of storing, some were stored by
/// other versions, and files moved between directories.
inline TracePointer small_files(std::size_t areas) {
  constexpr std::size_t kChunks = ContainerTrace::kContainerChunks;
  auto trace = std::make_unique<ContainerTrace>("small files", areas);
  std::mt19937 random(48);
  struct File {
    std::size_t first;
    std::size_t count;
  };
  std::vector<File> files;
  for (std::size_t at = 0; at + 6 < areas * kChunks;) {
    files.push_back({at, 1 + random() % 6});
    at += files.back().count;
  }
  for (std::size_t moved = files.size() / 5; moved > 0; --moved) {
    std::swap(files[random() % files.size()], files[random() % files.size()]);
  }
  for (std::size_t block = 0; block + 40 < files.size(); block += 40) {  // Directories.
    if (random() % 3 != 0) continue;
    const std::size_t other = random() % (files.size() - 40);
    std::ranges::swap_ranges(std::span(files).subspan(block, 20),
                             std::span(files).subspan(other, 20));
  }
  for (const File& file : files) trace->use(file.first, file.count);
  return trace;
}

/// Several runs, each in the order of the stream, that a restore merges.
inline TracePointer merged_runs(std::size_t areas, std::size_t runs) {
  constexpr std::size_t kChunks = ContainerTrace::kContainerChunks;
  auto trace = std::make_unique<ContainerTrace>("merged runs", areas);
  std::mt19937 random(49);
  const std::size_t of_run = areas / runs * kChunks;
  std::vector<std::size_t> next(runs, 0);
  while (trace->chunks.size() + 16 < areas * kChunks) {
    const std::size_t run = random() % (1 + random() % runs);
    const std::size_t length = 1 + random() % 12;
    if (next[run] + length > of_run) next[run] = random() % (of_run / 2);
    trace->use(run * of_run + next[run], length);
    next[run] += length + random() % 3;
  }
  return trace;
}

}  // namespace varve::restore
