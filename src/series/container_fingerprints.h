// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_set>

#include "base/ids.h"
#include "index/stored_fingerprints.h"
#include "layout/layout.h"

namespace varve::series {

/// Reads the fingerprints beside a chunk from its container. Thread-safe.
class ContainerFingerprints final : public index::StoredFingerprints {
 public:
  /// Meaning of a chunk without a location. The pool's index also names chunks freed by a deletion.
  enum class Unlocated : bool { kError, kFreed };
  /// `name` stands before the errors in the log. Lifetime: `chunks` outlives the object.
  ContainerFingerprints(layout::ChunkSource& chunks, std::string name,
                        Unlocated unlocated = Unlocated::kError)
      : chunks_(chunks), name_(std::move(name)), unlocated_(unlocated) {}
  bool around(ChunkId id, const Visit& visit) override;
  /// Passes on the chunks from `id` on that are stored in the container of `id`, `count` at most.
  /// Returns the number of chunks, 0 if none can be located. Skips chunks of an unreadable
  /// container.
  std::uint64_t from(ChunkId id, std::uint64_t count, const Visit& visit);

 private:
  struct Place {
    layout::LocationRun where;
    std::shared_ptr<const format::ContainerHeader> header;  // Null if the header cannot be read.
  };
  [[nodiscard]] std::optional<Place> find(ChunkId id);
  /// Logs an error, for a container only once.
  void report(ContainerNumber container, const Error& error);
  /// Returns whether the store has not answered a short time ago.
  [[nodiscard]] bool is_unavailable() const;

  layout::ChunkSource& chunks_;
  const std::string name_;
  const Unlocated unlocated_;
  std::mutex mutex_;
  std::unordered_set<ContainerNumber> unreadable_;
  using Clock = std::chrono::steady_clock;
  std::atomic<Clock::time_point> tried_ = Clock::time_point();  // The store did not answer then.
};

}  // namespace varve::series
