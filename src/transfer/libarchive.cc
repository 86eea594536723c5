// SPDX-License-Identifier: Apache-2.0
#include "transfer/libarchive.h"

#include <string>

#include "base/assert.h"
#ifndef VARVE_STATIC
#include "base/shared_library.h"
#endif

namespace varve::transfer {
namespace {

/// The functions of the library, and why the library cannot be used.
struct Loaded {
  Libarchive functions;
  std::string fault;  // Empty: none.
};

#ifdef VARVE_STATIC

Loaded load() {
  Loaded loaded;
#define VARVE_LINK(function) loaded.functions.function = &::function;
  VARVE_LIBARCHIVE_FUNCTIONS(VARVE_LINK)
#undef VARVE_LINK
  return loaded;
}

#else

// The soname has been the same since libarchive 3.1 (2013).
constexpr const char* kSoname = "libarchive.so.13";

Loaded load() {
  base::SharedLibrary library(kSoname);
  Loaded loaded;
#define VARVE_FIND(function) library.find(#function, loaded.functions.function);
  VARVE_LIBARCHIVE_FUNCTIONS(VARVE_FIND)
#undef VARVE_FIND
  loaded.fault = library.fault();
  return loaded;
}

#endif

const Loaded& loaded() {
  static const Loaded loaded = load();
  return loaded;
}

}  // namespace

Result<void> load_libarchive() {
  if (loaded().fault.empty()) return {};
  return Error(ErrorCode::kUnsupported,
               "archives need libarchive; install it (" + loaded().fault + ")");
}

const Libarchive& libarchive() {
  VARVE_ASSERT(loaded().fault.empty());
  return loaded().functions;
}

}  // namespace varve::transfer
