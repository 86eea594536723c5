// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace varve::test {

/// Gives a repository a reserve without blocks. To fill Varve's own reserve with 8 MB of noise
/// takes longer than a version.
inline void give_reserve(const std::string& repository) {
  const auto reserve = repository + "/reserve";
  std::ofstream(reserve).close();
  std::filesystem::resize_file(reserve, std::uintmax_t{8} << 20);
}

}  // namespace varve::test
