// SPDX-License-Identifier: Apache-2.0
#include "base/checksum.h"

#include <xxhash.h>
#if defined(__x86_64__) && !defined(VARVE_STATIC) && __has_include(<xxh_x86dispatch.h>)
// Replaces the functions by the variants for the present processor. The static library lacks them.
#include <xxh_x86dispatch.h>
#endif

namespace varve::base {

std::uint64_t checksum64(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

struct ChecksumStream::State {
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> xxh{XXH3_createState()};
};

ChecksumStream::ChecksumStream() : state_(std::make_unique<State>()) {
  XXH3_64bits_reset(state_->xxh.get());
}

ChecksumStream::~ChecksumStream() = default;

void ChecksumStream::add(std::span<const std::byte> bytes) {
  XXH3_64bits_update(state_->xxh.get(), bytes.data(), bytes.size());
}

std::uint64_t ChecksumStream::sum() const { return XXH3_64bits_digest(state_->xxh.get()); }

}  // namespace varve::base
