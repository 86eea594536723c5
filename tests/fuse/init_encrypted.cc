// SPDX-License-Identifier: Apache-2.0
// Makes an encrypted repository that a passphrase opens at little cost:
// init_encrypted REPO PASSPHRASE [LIKE]
// With LIKE, the new repository has the parameters and settings of that one, which is plain or has
// the same passphrase.
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "varve/arrange.h"
#include "varve/copy.h"
#include "varve/encryption.h"
#include "varve/repository.h"

namespace {

varve::Result<void> create(const std::string& path, std::string_view passphrase,
                           const std::string& like) {
  varve::CreateOptions options;
  options.encryption.emplace();
  VARVE_TRY_ASSIGN(options.encryption->first_key.key.secret,
                   varve::Secret::copy_of(std::as_bytes(std::span(passphrase))));
  const auto key = options.encryption->first_key.key;
  options.encryption->first_key.cost = {.memory_kib = 64, .passes = 1, .lanes = 2};
  if (like.empty()) return varve::Repository::create(path, {}, options);

  varve::OpenOptions opening;
  opening.arrange = false;
  opening.key = [&] { return varve::Result<varve::UserKey>(key); };
  auto reading = opening;
  reading.read_only = true;
  VARVE_TRY_ASSIGN(const auto other, varve::Repository::open(like, reading));
  VARVE_TRY_ASSIGN(const auto setup, varve::target_setup(*other));
  VARVE_TRY(varve::Repository::create(path, setup.parameters, options));
  VARVE_TRY_ASSIGN(const auto made, varve::Repository::open(path, opening));
  VARVE_TRY(made->change_series_defaults({setup.new_series.placement, setup.new_series.rewrite}));
  VARVE_TRY(made->set_arrange_settings(setup.arrange));
  VARVE_TRY(made->set_pool_index(setup.pool_index));
  return made->close();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) return 2;
  const auto made = create(argv[1], argv[2], argc == 4 ? argv[3] : "");
  if (made) return 0;
  std::fprintf(stderr, "%s\n", made.error().message().c_str());
  return 1;
}
