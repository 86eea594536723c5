// SPDX-License-Identifier: Apache-2.0
// Reads whole files by blocks. Tests are compiled without the optimizer, and each byte of an
// istreambuf_iterator then costs a dozen calls.
#pragma once

#include <cstddef>
#include <istream>
#include <string>

namespace varve::test {

/// Reads a stream to its end. Returns the bytes; an unopened stream has none.
inline std::string rest_of(std::istream& in) {
  constexpr std::size_t kPieceBytes = 256 << 10;
  std::string all;
  std::size_t bytes = 0;
  while (in) {
    all.resize(bytes + kPieceBytes);
    in.read(all.data() + bytes, static_cast<std::streamsize>(kPieceBytes));
    bytes += static_cast<std::size_t>(in.gcount());
  }
  all.resize(bytes);
  return all;
}

}  // namespace varve::test
