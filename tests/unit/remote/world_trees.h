// SPDX-License-Identifier: Apache-2.0
// Files of a version, and what may happen to a World.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "base/clock.h"
#include "support/temp_repository.h"

namespace varve::test {

using Tree = std::map<std::string, std::string>;  ///< Files by name.
using Versions = std::map<std::string, Tree>;     ///< Sealed versions by name.

class TestClock final : public base::Clock {
 public:
  [[nodiscard]] Timestamp now() const override { return {seconds, 0}; }
  std::int64_t seconds = 1'700'000'000;
};

enum class Mishap : std::uint8_t {
  kNone,
  kBefore,
  kLost,
  kLater,
  kHangs,  // Until the user interrupts the process.
  kKilledBefore,
  kKilledAfter,
};

/// Returns the series "s". Creates the series if needed.
inline SeriesId series_s(Repository& repository) {
  auto series = repository.find_series("s");
  if (!series) series = repository.create_series("s");
  return must(std::move(series)).id;
}

/// Stores the files of a tree as a sealed version of the series "s".
inline void store_tree(Repository& repository, const std::string& name, const Tree& tree) {
  const auto id = series_s(repository);
  const auto number = must(repository.open_version(id, name, folder())).number;
  {
    const auto writer = must(repository.writer(id));
    for (const auto& [file, bytes] : tree) write_file(*writer, kRootIno, file, bytes);
  }
  must(repository.seal(id, number, ""));
}

}  // namespace varve::test
