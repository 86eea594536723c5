// SPDX-License-Identifier: Apache-2.0
// Repositories that are encrypted if the environment says so: a suite then runs with and without a
// key.
#pragma once

#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>

#include "crypto/key_ring.h"
#include "format/superblock.h"
#include "support/file_content.h"
#include "support/temp_repository.h"
#include "varve/repair.h"

namespace varve::test {

/// Returns true with VARVE_TEST_ENCRYPTED in the environment.
inline bool encrypts() { return std::getenv("VARVE_TEST_ENCRYPTED") != nullptr; }

/// Returns the options to create a repository: with VARVE_TEST_ENCRYPTED, those of encrypted().
inline CreateOptions chosen_encryption() { return encrypts() ? encrypted() : CreateOptions(); }

/// Returns the options to open such a repository.
inline OpenOptions keyed(OpenOptions options = quiet_options()) {
  return with_key(std::move(options));
}

/// Returns the options to repair such a repository.
inline RepairOptions keyed_repair(RepairOptions options = {}) {
  options.key = with_key({}).key;
  return options;
}

/// Returns the keys of a repository that test_key() opens, or null for a plain one.
inline std::shared_ptr<const crypto::KeyRing> keys_of(const std::string& path) {
  std::ifstream in(path + "/varve.repo", std::ios::binary);
  const std::string text = varve::test::rest_of(in);
  const auto superblock = must(format::decode_superblock(text));
  return must(format::unlock_superblock(superblock, text, with_key({}).key, false));
}

}  // namespace varve::test
