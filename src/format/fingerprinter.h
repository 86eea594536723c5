// SPDX-License-Identifier: Apache-2.0
// Computes a chunk's fingerprint from the raw bytes.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "varve/types.h"

namespace varve::format {

/// Computes the fingerprints of one repository's chunks. Equal bytes have equal fingerprints.
/// Thread-safe and immutable.
class Fingerprinter {
 public:
  virtual ~Fingerprinter() = default;
  /// Returns the fingerprint of a chunk's raw bytes.
  [[nodiscard]] virtual Fingerprint fingerprint(std::span<const std::byte> bytes) const = 0;
};

/// Returns the fingerprinter of a repository without a key: SHA-256.
[[nodiscard]] std::unique_ptr<const Fingerprinter> make_sha256_fingerprinter();

}  // namespace varve::format
