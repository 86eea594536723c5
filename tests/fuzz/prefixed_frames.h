// SPDX-License-Identifier: Apache-2.0
// Repositories whose volumes have frames with prefixes. docs/FORMAT.md §4.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/coding.h"
#include "format/container.h"
#include "support/file_content.h"
#include "support/noise.h"

namespace varve::test {

/// Number of versions after which eight successive deaths are joined, behind a window of one
/// version.
inline constexpr std::uint64_t kVersionsToJoin = 11;

/// Returns bytes of which each version changes a few.
inline std::string edited_noise(std::uint64_t version) {
  auto bytes = noise(40'000, 99);
  for (std::size_t at = 500; at < bytes.size(); at += 4000) {
    bytes.replace(at, 8, base::be64(version * 1'000'003));
  }
  return bytes;
}

/// Returns the number of containers in volumes below a folder whose flags say that a frame has a
/// prefix.
inline std::uint64_t containers_with_prefixes(const std::string& folder) {
  constexpr std::uint32_t kDeltaFlag = 8;
  const auto magic = format::kContainerMagic;
  const std::string start(reinterpret_cast<const char*>(&magic), sizeof magic);
  std::uint64_t found = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder)) {
    if (file.path().extension() != ".vol") continue;
    std::ifstream in(file.path(), std::ios::binary);
    const auto bytes = rest_of(in);
    for (auto at = bytes.find(start); at < bytes.size(); at = bytes.find(start, at + 1)) {
      if (bytes.size() - at < format::kContainerFixedHeaderBytes) break;
      const auto flags = base::load_le<std::uint32_t>(base::as_bytes(bytes).data() + at + 8);
      if ((flags & kDeltaFlag) != 0) ++found;
    }
  }
  return found;
}

}  // namespace varve::test
