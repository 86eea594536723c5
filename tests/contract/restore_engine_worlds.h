// SPDX-License-Identifier: Apache-2.0
// The data that the contract of the restore engines restores: in memory, or in the layout of a
// series, whose chunks may be in the pool.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "format/fingerprinter.h"
#include "layout_benches.h"
#include "support/fake_source.h"

namespace varve::restore {

/// The place of the chunks.
enum class Placed { kInMemory, kInSeries, kInPool, kInBoth, kInBothSealed };

inline bool is_in_both(Placed placed) {
  return placed == Placed::kInBoth || placed == Placed::kInBothSealed;
}

inline std::string name_of(Placed placed) {
  switch (placed) {
    case Placed::kInMemory:
      return "in_memory";
    case Placed::kInSeries:
      return "in_series";
    case Placed::kInPool:
      return "in_pool";
    case Placed::kInBoth:
      return "in_both";
    case Placed::kInBothSealed:
      return "in_both_sealed";
  }
  return {};
}

/// A world, and the source that has its chunks. The expected bytes are those that the world was
/// filled with; they never pass through the layout.
class StoredWorld {
 public:
  StoredWorld(unsigned seed, Placed placed, Codec codec = Codec::kNone)
      : world(seed, codec), placed_(placed) {}

  /// Stores the chunks, after the world was filled. The files have other chunk ids from now on.
  void finish() {
    world.finish();
    if (placed_ != Placed::kInMemory) move_to_layout();
    for (const World::File& file : world.files) append_stream(file);
  }

  [[nodiscard]] layout::ChunkSource& source() {
    return layout_ ? static_cast<layout::ChunkSource&>(layout_->layout()) : world.source;
  }
  /// Returns the containers of the files' chunks, those of the pool last.
  [[nodiscard]] std::set<ContainerNumber> containers() {
    std::set<ContainerNumber> all;
    for (const World::File& file : world.files) {
      for (const format::RecipeRun& run : file.recipe->runs) {
        if (run.is_hole()) continue;
        for (std::uint32_t i = 0; i < run.count;) {
          const auto at = *source().locate(run.first.plus(i));
          all.insert(at.container);
          i = static_cast<std::uint32_t>(at.first.value + at.count - run.first.value);
        }
      }
    }
    return all;
  }
  /// Changes the first byte of a frame where it is stored.
  void damage(ContainerNumber container, std::uint32_t frame) {
    if (layout_) {
      layout_->damage(container, (*source().header(container))->frames.at(frame).offset);
    } else {
      world.source.flip_byte(static_cast<std::uint32_t>(container), frame);
    }
  }

  World world;
  Bytes stream;  ///< The data of all files, without holes. finish() sets it.

 private:
  void append_stream(const World::File& file) {
    std::size_t at = 0;
    for (const format::RecipeRun& run : file.recipe->runs) {
      const auto begin = file.content.begin() + static_cast<std::ptrdiff_t>(at);
      if (!run.is_hole()) {
        stream.insert(stream.end(), begin, begin + static_cast<std::ptrdiff_t>(run.bytes));
      }
      at += run.bytes;
    }
  }

  ChunkId place(std::span<const std::byte> raw, bool in_pool) {
    const auto fingerprint = fingerprinter_->fingerprint(raw);
    auto& layout = layout_->layout();
    return test::must(in_pool ? layout.place_shared(fingerprint, raw)
                              : layout.place(fingerprint, raw));
  }
  /// Stores the chunks in three versions, and deletes the first one with chunks of its own.
  void move_to_layout() {
    layout_ = std::make_unique<layout::SeriesBench>(placed_ == Placed::kInBothSealed
                                                        ? layout::Kind::kSeriesMixedSealed
                                                        : layout::Kind::kSeriesMixed);
    const auto& chunks = world.chunks();
    std::map<ChunkId, ChunkId> ids;
    std::vector<base::IdRun> live;
    std::uint32_t version = 0;
    std::size_t next = 0;      // Number of placed chunks.
    std::size_t of_place = 0;  // Number of chunks until the place changes.
    bool in_pool = placed_ == Placed::kInPool;
    for (const auto& [id, raw] : chunks) {
      if (next * 3 / chunks.size() == version) {
        if (version != 0) seal(version, live);
        layout_->open(static_cast<VersionNumber>(++version));
      }
      if (is_in_both(placed_) && of_place-- == 0) {
        in_pool = !in_pool;
        of_place = world.random() % 64;
      }
      ids[id] = place(raw, in_pool);
      live.push_back({ids[id], 1});
      if (version == 1 && next % 16 == 0) {
        dying_.push_back({place(base::as_bytes(test::noise(5000, next)), in_pool), 1});
      }
      ++next;
    }
    seal(version, live);
    layout_->remove({VersionNumber{1}});
    rename(ids);
  }
  void seal(std::uint32_t version, std::vector<base::IdRun> live) {
    if (version == 1) live.insert(live.end(), dying_.begin(), dying_.end());
    layout_->seal(static_cast<VersionNumber>(version), base::IdRuns::from(std::move(live)));
  }
  void rename(const std::map<ChunkId, ChunkId>& ids) {
    for (World::File& file : world.files) {
      const auto old = std::exchange(file.recipe, std::make_shared<format::Recipe>());
      for (const format::RecipeRun& run : old->runs) {
        if (run.is_hole()) file.recipe->append_hole(run.bytes);
        for (std::uint32_t i = 0; !run.is_hole() && i < run.count; ++i) {
          const ChunkId id = run.first.plus(i);
          const auto bytes = static_cast<std::uint32_t>(world.chunks().at(id).size());
          file.recipe->append_chunk(ids.at(id), bytes);
        }
      }
    }
  }

  const Placed placed_;
  const std::unique_ptr<const format::Fingerprinter> fingerprinter_ =
      format::make_sha256_fingerprinter();
  std::unique_ptr<layout::SeriesBench> layout_;
  std::vector<base::IdRun> dying_;  // Chunks of the first version alone.
};

}  // namespace varve::restore
