// SPDX-License-Identifier: Apache-2.0
// Random bytes of the kernel.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "varve/result.h"

namespace varve::base {

/// Fills `out` with bytes of the kernel's generator (getrandom(2)), which an attacker cannot
/// predict. No state is in the process, so a fork repeats no byte. A virtual machine that goes back
/// to a snapshot may repeat bytes: see crypto::NonceHedge. Thread-safe. Errors: kIo.
[[nodiscard]] Result<void> fill_random(std::span<std::byte> out);

/// Returns kBytes random bytes. Errors: as fill_random().
template <std::size_t kBytes>
[[nodiscard]] Result<std::array<std::byte, kBytes>> random_bytes() {
  std::array<std::byte, kBytes> bytes{};
  VARVE_TRY(fill_random(bytes));
  return bytes;
}

}  // namespace varve::base
