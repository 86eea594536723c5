// SPDX-License-Identifier: Apache-2.0
// The stream index's estimates for each stream: a uniform sample of the arrivals, a forecast of the
// temporal locality, and a threshold for runs of duplicates.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <random>
#include <span>
#include <vector>

namespace varve::index {

/// A generator of random numbers with the same results everywhere. Not thread-safe.
class SeededRandom {
 public:
  explicit SeededRandom(std::uint64_t seed) : engine_(seed) {}
  /// Returns a number below `end`; `end` must not be 0.
  [[nodiscard]] std::uint64_t below(std::uint64_t end) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((static_cast<Wide>(engine_()) * end) >> 64);
  }
  /// Returns a number from 0 to 1, without 1.
  [[nodiscard]] double share() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }

 private:
  std::mt19937_64 engine_;
};

/// A uniform sample of the offered values (Vitter's Algorithm R). Not thread-safe.
class Reservoir {
 public:
  Reservoir() = default;
  explicit Reservoir(std::size_t capacity) : capacity_(capacity) {}
  /// Keeps the value with the probability capacity / arrivals.
  void offer(std::uint64_t value, SeededRandom& random);
  [[nodiscard]] std::uint64_t arrivals() const { return arrivals_; }
  [[nodiscard]] const std::vector<std::uint64_t>& sample() const { return sample_; }
  /// Returns the sample, and begins a new sample.
  [[nodiscard]] std::vector<std::uint64_t> take(std::size_t new_capacity);
  [[nodiscard]] std::size_t bytes() const { return sample_.capacity() * sizeof(std::uint64_t); }

 private:
  std::size_t capacity_ = 0;
  std::uint64_t arrivals_ = 0;
  std::vector<std::uint64_t> sample_;
};

/// Forecasts the next value of a series by double exponential smoothing (Holt). Chooses the two
/// weights, from 0.2 to 0.8, with the best forecast of the last values. Not thread-safe.
class HoltForecast {
 public:
  static constexpr std::size_t kValuesMax = 8;
  void add(double value);
  [[nodiscard]] bool empty() const { return values_.empty(); }
  /// Returns the forecast, at least 0; 0 without a value.
  [[nodiscard]] double next() const { return next_; }

 private:
  std::deque<double> values_;
  double next_ = 0;
};

/// The minimum run length for duplicates: shorter runs are stored again. Balances short runs, which
/// writes prefer, and long runs, which reads prefer (Wu et al., TPDS'18 §6). Not thread-safe.
class RunThreshold {
 public:
  static constexpr std::size_t kLengthMax = 64;
  static constexpr std::uint32_t kInitial = 16;

  void note_duplicates(std::uint64_t run_length) { note(written_, run_length); }
  void note_read(std::uint64_t run_length) { note(read_, run_length); }
  /// Counts the arrivals and their duplicates since the last update(), and computes the threshold:
  /// (1 - r) * mean duplicate run + r * mean read, with the share r of reads among all requests.
  /// Forgets the lengths first if the share of duplicates fell to less than half.
  void update(std::uint64_t arrivals, std::uint64_t duplicates);
  /// Returns the threshold, from 1 to 64.
  [[nodiscard]] std::uint32_t value() const { return value_; }

 private:
  /// Number of runs by length; longer runs count as the longest.
  struct Lengths {
    std::array<std::uint64_t, kLengthMax> counts{};
    [[nodiscard]] std::uint64_t total() const;
    [[nodiscard]] double mean() const;
  };
  static void note(Lengths& lengths, std::uint64_t run_length);

  Lengths written_;
  Lengths read_;
  double ratio_ = 0;  // Share at the last update.
  std::uint32_t value_ = kInitial;
};

}  // namespace varve::index
