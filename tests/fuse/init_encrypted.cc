// SPDX-License-Identifier: Apache-2.0
// Makes an encrypted repository that a passphrase opens at little cost:
// init_encrypted REPO PASSPHRASE
#include <cstdio>
#include <span>
#include <string_view>

#include "varve/encryption.h"
#include "varve/repository.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string_view passphrase = argv[2];
  auto secret = varve::Secret::copy_of(std::as_bytes(std::span(passphrase)));
  if (!secret) return 1;
  varve::CreateOptions options;
  options.encryption.emplace();
  options.encryption->first_key.key.secret = *std::move(secret);
  options.encryption->first_key.cost = {.memory_kib = 64, .passes = 1, .lanes = 2};
  const auto made = varve::Repository::create(argv[1], {}, options);
  if (made) return 0;
  std::fprintf(stderr, "%s\n", made.error().message().c_str());
  return 1;
}
