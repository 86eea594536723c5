// SPDX-License-Identifier: Apache-2.0
// Lets a test see which keys and nonces a program uses.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "crypto/aead.h"
#include "crypto/hmac.h"

namespace varve::crypto {

/// A text that is sealed.
struct SealedText {
  std::array<std::byte, sizeof(Mac)>
      key{};  ///< HMAC of a fixed text under the key: equal keys have equal ones.
  Nonce nonce{};
  std::span<const std::byte> associated{};
  std::span<const std::byte> text{};  ///< The text before it is sealed.
};

using SealObserver = void (*)(const SealedText& sealed);

/// Calls `observer` from now on before each text is sealed, on any thread; null ends that. Only for
/// tests: it makes sealing slow.
void observe_seals(SealObserver observer);

}  // namespace varve::crypto
