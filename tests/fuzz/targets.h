// SPDX-License-Identifier: Apache-2.0
// All decoders of bytes that another program may have written: the repository's files, the values
// of its catalog, and messages on its socket.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace varve::fuzz {

struct Target {
  const char* name;
  /// Corrects checksums in the input and decodes it. If the decoder accepts it, encodes and decodes
  /// again. Ends the program if that changes anything.
  void (*run)(std::span<const std::byte> input);
  /// Returns valid inputs, from which the fuzzer derives others.
  std::vector<std::string> (*seeds)();
  /// Relative time of a run. The test runs the target less often by this factor.
  unsigned cost = 1;
};

[[nodiscard]] std::span<const Target> targets();

}  // namespace varve::fuzz
