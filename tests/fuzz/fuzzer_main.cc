// SPDX-License-Identifier: Apache-2.0
// For libFuzzer: one program for all targets; VARVE_FUZZ_TARGET names the one to run.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  static const varve::fuzz::Target* const target = [] {
    const char* name = std::getenv("VARVE_FUZZ_TARGET");
    for (const auto& one : varve::fuzz::targets()) {
      if (name != nullptr && std::strcmp(one.name, name) == 0) return &one;
    }
    std::fprintf(stderr, "VARVE_FUZZ_TARGET must be one of:");
    for (const auto& one : varve::fuzz::targets()) std::fprintf(stderr, " %s", one.name);
    std::fprintf(stderr, "\n");
    std::exit(1);
  }();
  target->run({reinterpret_cast<const std::byte*>(data), bytes});
  return 0;
}
