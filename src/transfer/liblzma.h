// SPDX-License-Identifier: Apache-2.0
// liblzma, loaded when the first archive made by xz is read.
#pragma once

#include <lzma.h>

#include "varve/result.h"

// The functions of liblzma used in the room.
#define VARVE_LIBLZMA_FUNCTIONS(F) \
  F(lzma_code)                     \
  F(lzma_end)                      \
  F(lzma_memusage)                 \
  F(lzma_stream_decoder)

namespace varve::transfer {

/// Pointers to functions of liblzma, under the functions' names.
struct Liblzma {
#define VARVE_POINTER(function) decltype(&::function) function = nullptr;
  VARVE_LIBLZMA_FUNCTIONS(VARVE_POINTER)
#undef VARVE_POINTER
};

/// Returns the functions of the library, and loads the library if necessary. The static program
/// links the library. Thread-safe. Lifetime: until the process ends. Errors: kUnsupported without
/// the library.
[[nodiscard]] Result<const Liblzma*> load_liblzma();

}  // namespace varve::transfer
