// SPDX-License-Identifier: Apache-2.0
#include "meta/open_catalog.h"

#include <cstdint>
#include <utility>

#include "meta/env_files.h"
#include "meta/probe.h"
#include "meta/schema.h"

namespace varve::meta {

namespace {

// Largest catalog probed at each opening. The probe takes a fraction of a second
// (bench-catalog-probe).
constexpr std::uint64_t kProbedBytesMax = 256U << 20;

Error with_advice(Error of_catalog) {
  return std::move(of_catalog).with_more("; run `varve repair`, which rebuilds it");
}

}  // namespace

Result<Env> open_catalog(io::FileSystem& files, const std::string& directory,
                         const EnvOptions& options, bool probe) {
  VARVE_TRY_ASSIGN(const auto bytes, files.tree_bytes(directory + "/data.mdb"));
  const bool probes = probe || bytes <= kProbedBytesMax;
  VARVE_TRY_ASSIGN(const auto env_files, EnvFiles::open(files, directory, options));
  if (probes) {
    const auto probed = probe_environment(env_files, options);
    if (!probed) return with_advice(probed.error());
  }
  auto env = Env::open(env_files, options);
  if (!env) return std::move(env).error().with_context(directory);
  return env;
}

EnvOptions catalog_options(std::string writer_lock, std::shared_ptr<const crypto::KeyRing> keys) {
  EnvOptions options;
  options.tables = catalog::kTables;
  options.optional_tables = catalog::kTablesOptional;
  options.must_exist = true;
  options.writer_lock = std::move(writer_lock);
  options.keys.ring = std::move(keys);
  return options;
}

}  // namespace varve::meta
