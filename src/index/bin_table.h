// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace varve::index {

/// Number of a bin. Numbers are consecutive from 0.
using BinNumber = std::uint32_t;

/// The place of the newest copy of a bin, and the bin's hook.
struct BinPlace {
  std::uint64_t hook = 0;  ///< Key of the bin's hook, without a meaning here.
  std::uint64_t offset = 0;
  std::uint32_t bytes = 0;  ///< 0: the bin was never written.
};

/// The places of bins, by number and by hook. Not thread-safe.
class BinTable {
 public:
  [[nodiscard]] std::size_t size() const { return places_.size(); }
  [[nodiscard]] const BinPlace& operator[](BinNumber bin) const { return places_[bin]; }
  [[nodiscard]] const std::vector<BinPlace>& places() const { return places_; }
  /// Returns the first bin with this hook.
  [[nodiscard]] std::optional<BinNumber> find(std::uint64_t hook) const;
  /// Adds a bin without content.
  BinNumber add(std::uint64_t hook);
  /// Sets the place of the newest copy.
  void put(BinNumber bin, std::uint64_t offset, std::uint32_t bytes);
  /// Returns the sum of the bins' sizes.
  [[nodiscard]] std::uint64_t live_bytes() const { return live_bytes_; }
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  void insert_slot(BinNumber bin);

  std::vector<BinPlace> places_;
  std::vector<BinNumber> slots_;  // Bins by hook; a power of two, at most 3/4 full.
  std::uint64_t live_bytes_ = 0;
};

}  // namespace varve::index
