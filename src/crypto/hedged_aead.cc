// SPDX-License-Identifier: Apache-2.0
#include "crypto/hedged_aead.h"

#include <tuple>

#include "base/random_bytes.h"

namespace varve::crypto {

Result<HedgedAead::Seal> HedgedAead::seal(std::span<const std::byte> associated,
                                          std::span<std::byte> text) const {
  VARVE_TRY_ASSIGN(const auto seed, base::random_bytes<std::tuple_size_v<NonceSeed>>());
  return seal(seed, associated, text);
}

}  // namespace varve::crypto
