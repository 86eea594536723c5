// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace varve::ingest {

/// The rewrite limit of CAP and CBR: the part of a version allowed to be stored again.
class RewriteBudget {
 public:
  static constexpr double kAlone = 0.05;
  static constexpr double kAfterHar = 0.005;  ///< In a hybrid (ATC'14 §5.4).

  /// `last_bytes`: size of the preceding version. The limit is a part of the larger of `last_bytes`
  /// and the bytes of the chunks seen.
  RewriteBudget(double limit, std::uint64_t last_bytes) : limit_(limit), last_bytes_(last_bytes) {}

  /// Counts a chunk of the version, rewritten or not.
  void see(std::uint64_t bytes) { seen_ += bytes; }
  [[nodiscard]] std::uint64_t seen() const { return seen_; }
  [[nodiscard]] double limit() const { return limit_; }
  /// Counts chunks as rewritten if the limit allows the rewrite; else returns false.
  bool spend(std::uint64_t bytes) {
    const double most = limit_ * static_cast<double>(std::max(seen_, last_bytes_));
    if (static_cast<double>(spent_ + bytes) > most) return false;
    spent_ += bytes;
    return true;
  }

 private:
  const double limit_;
  const std::uint64_t last_bytes_;
  std::uint64_t seen_ = 0;
  std::uint64_t spent_ = 0;
};

}  // namespace varve::ingest
