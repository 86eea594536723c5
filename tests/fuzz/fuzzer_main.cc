// SPDX-License-Identifier: Apache-2.0
// One program for all targets, for libFuzzer. VARVE_FUZZ_TARGET names the target to run. With
// VARVE_FUZZ_SEEDS, the program first writes that target's valid inputs to this folder.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "targets.h"

namespace {

const varve::fuzz::Target* chosen() {
  const char* name = std::getenv("VARVE_FUZZ_TARGET");
  for (const auto& one : varve::fuzz::targets()) {
    if (name != nullptr && std::strcmp(one.name, name) == 0) return &one;
  }
  std::fprintf(stderr, "VARVE_FUZZ_TARGET must be one of:");
  for (const auto& one : varve::fuzz::targets()) std::fprintf(stderr, " %s", one.name);
  std::fprintf(stderr, "\n");
  std::exit(1);
}

const varve::fuzz::Target& target() {
  static const varve::fuzz::Target* const one = chosen();
  return *one;
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* /*count*/, char*** /*arguments*/) {
  const char* folder = std::getenv("VARVE_FUZZ_SEEDS");
  if (folder == nullptr) return 0;
  std::size_t number = 0;
  for (const auto& seed : target().seeds()) {
    std::ofstream(folder + std::string("/seed-") + std::to_string(number++), std::ios::binary)
        << seed;
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  target().run({reinterpret_cast<const std::byte*>(data), bytes});
  return 0;
}
