// SPDX-License-Identifier: Apache-2.0
// Everything that decodes bytes which somebody else may have written: the repository's files,
// the values of its catalog, and what comes through its socket.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace varve::fuzz {

struct Target {
  const char* name;
  /// Decodes, and if it is accepted, encodes and decodes again: that must change nothing. Ends
  /// the program if it does. Checksums that stand in the way are made right first.
  void (*run)(std::span<const std::byte> input);
  /// Valid inputs, from which others are made.
  std::vector<std::string> (*seeds)();
  /// How many times longer than others it takes, so that it is run so many times less.
  unsigned cost = 1;
};

[[nodiscard]] std::span<const Target> targets();

}  // namespace varve::fuzz
