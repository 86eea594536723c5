// SPDX-License-Identifier: Apache-2.0
// Finds the paths of small files whose map of objects is lost.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "crypto/key_ring.h"
#include "varve/types.h"

namespace varve::remote {

/// Returns the path of a series' labels in the repository.
[[nodiscard]] std::string labels_path(SeriesId series);
/// Returns whether labels may begin so, sealed or clear.
[[nodiscard]] bool may_be_labels(std::string_view front);

/// Finds the path of a small file from its first bytes. A sealed file opens only in its own place,
/// so the places are tried. Not thread-safe.
class PathFinder {
 public:
  /// `keys` are null in a plain repository. `series`: the series of the data objects.
  PathFinder(std::shared_ptr<const crypto::KeyRing> keys, std::set<SeriesId> series);

  /// Returns the path in the repository; nullopt for parity, and for bytes of no known file.
  [[nodiscard]] std::optional<std::string> find(const std::string& front);
  /// Learns the next number of a series from the series' labels.
  void learn(SeriesId series, std::uint32_t next_number);

 private:
  std::optional<std::string> clear_path(std::string_view front);
  [[nodiscard]] std::vector<std::string> labels() const;
  const std::vector<std::string>& others();
  bool opens_at(const std::string& front, const std::string& path);

  const std::shared_ptr<const crypto::KeyRing> keys_;
  const std::set<SeriesId> series_;
  std::map<SeriesId, std::uint32_t> numbers_;  // The next numbers of versions.
  std::vector<std::string> others_;
  std::uint32_t aliases_ = 0;
};

}  // namespace varve::remote
