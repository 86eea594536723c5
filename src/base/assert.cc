// SPDX-License-Identifier: Apache-2.0
#include "base/assert.h"

#include <cstdio>
#include <cstdlib>

namespace varve::base {

void assertion_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "varve: internal error: %s at %s:%d\n", condition, file, line);
  std::abort();
}

}  // namespace varve::base
