// SPDX-License-Identifier: Apache-2.0
// Shows a test the keys and nonces used by a program.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "crypto/aead.h"
#include "crypto/hmac.h"

namespace varve::crypto {

/// A text being sealed.
struct SealedText {
  std::array<std::byte, sizeof(Mac)>
      key{};  ///< HMAC of a fixed text under the key: equal keys have equal HMACs.
  Nonce nonce{};
  std::span<const std::byte> associated{};
  std::span<const std::byte> text{};  ///< The unsealed text.
};

using SealObserver = void (*)(const SealedText& sealed);

/// Calls `observer` from now on before each text is sealed, on any thread; null ends the calls.
/// Only for tests, because an observer makes sealing slow.
void observe_seals(SealObserver observer);

}  // namespace varve::crypto
