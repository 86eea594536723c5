// SPDX-License-Identifier: Apache-2.0
// Files in memory, sealed if the environment says so: a suite then runs with and without a key.
#pragma once

#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "base/checksum.h"
#include "base/coding.h"
#include "crypto/sealed_file_system.h"
#include "io/memory_file_system.h"

namespace varve::test {

inline std::shared_ptr<const crypto::KeyRing> random_keys() {
  auto master = crypto::SecretKey::random();
  auto keys = master ? crypto::KeyRing::make(*master, "0123456789abcdef0123456789abcdef",
                                             crypto::Cipher::kAes256Gcm)
                     : master.error();
  if (!keys) throw std::runtime_error(keys.error().message());
  return std::move(*keys);
}

/// Returns a file system that seals every file of `below`, in small blocks. The name of a file is
/// its place.
inline std::unique_ptr<io::FileSystem> seal_all(std::unique_ptr<io::FileSystem> below,
                                                std::shared_ptr<const crypto::KeyRing> keys) {
  const auto place_of = [](const std::string& path) {
    std::string_view name = path;
    if (name.ends_with(".tmp")) name.remove_suffix(4);
    crypto::SealedPlace place;
    place.number = static_cast<std::uint32_t>(base::checksum64(base::as_bytes(name)));
    place.block_bytes = 512;
    place.grows = name.ends_with(".log") || name.ends_with(".bins");
    return std::optional(place);
  };
  return crypto::make_sealed_file_system(std::move(below), std::move(keys), place_of);
}

inline bool seals_memory() { return std::getenv("VARVE_TEST_SEALED") != nullptr; }

/// Returns a file system in memory; with VARVE_TEST_SEALED in the environment, a sealed one.
inline std::unique_ptr<io::FileSystem> memory_files() {
  auto files = io::make_memory_file_system();
  return seals_memory() ? seal_all(std::move(files), random_keys()) : std::move(files);
}

}  // namespace varve::test
