// SPDX-License-Identifier: Apache-2.0
#include "repo/open_catalog.h"

#include <cstdint>
#include <utility>

#include "meta/env_files.h"
#include "meta/probe.h"
#include "meta/schema.h"

namespace varve::repo {

namespace {

// Largest catalog probed at each opening. The probe takes a fraction of a second
// (bench-catalog-probe).
constexpr std::uint64_t kProbedBytesMax = 256U << 20;

Error with_advice(Error of_catalog) {
  return std::move(of_catalog).with_more("; run `varve repair`, which rebuilds it");
}

}  // namespace

Result<meta::Env> open_catalog(io::FileSystem& files, const store::RepositoryPaths& paths,
                               const meta::EnvOptions& options, bool probe) {
  const auto directory = paths.catalog();
  VARVE_TRY_ASSIGN(const auto bytes, files.tree_bytes(paths.catalog_data()));
  const bool probes = probe || bytes <= kProbedBytesMax;
  VARVE_TRY_ASSIGN(const auto env_files, meta::EnvFiles::open(files, directory, options));
  if (probes) {
    const auto probed = meta::probe_environment(env_files, options);
    if (!probed) return with_advice(probed.error());
  }
  auto env = meta::Env::open(env_files, options);
  if (!env) return std::move(env).error().with_context(directory);
  return env;
}

meta::EnvOptions catalog_options(const std::string& folder,
                                 std::shared_ptr<const crypto::KeyRing> keys) {
  meta::EnvOptions options;
  options.tables = meta::catalog::kTables;
  options.optional_tables = meta::catalog::kTablesOptional;
  options.must_exist = true;
  options.writer_lock = store::RepositoryPaths(folder).lock();
  options.keys.ring = std::move(keys);
  return options;
}

}  // namespace varve::repo
