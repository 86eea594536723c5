// SPDX-License-Identifier: Apache-2.0
#include "remote/copy_check.h"

#include <utility>

#include "meta/page_check.h"
#include "meta/schema.h"
#include "meta/stored_records.h"
#include "remote/changes.h"
#include "remote/head.h"
#include "remote/replica_state.h"
#include "store/repository_paths.h"

namespace varve::remote {

namespace {

constexpr std::string_view kIdKey = "catalog_id";  // In the settings.

// Returns the commit of the newest head; nullopt before the first one.
Result<std::optional<std::uint64_t>> commit_of_head(const ReplicaState& state) {
  VARVE_TRY_ASSIGN(const auto text, state.head());
  if (!text) return std::optional<std::uint64_t>();
  VARVE_TRY_ASSIGN(const auto head, decode_head(*text));
  return std::optional(head.commit);
}

}  // namespace

Result<meta::Env> open_catalog_without_keys(io::FileSystem& files, const std::string& root) {
  const store::RepositoryPaths paths(root);
  meta::EnvOptions options;
  options.tables = meta::catalog::kTables;
  options.optional_tables = meta::catalog::kTablesOptional;
  options.read_only = true;
  options.must_exist = true;
  options.without_keys = true;
  options.writer_lock = paths.lock();
  return meta::Env::open(files, paths.catalog(), options);
}

// Without a commit between the two looks at the catalog, there is no head in between either: a head
// that is created meanwhile may already be in the copy.
Result<std::optional<std::uint64_t>> differences_from_copy(io::FileSystem& files,
                                                           const std::string& root,
                                                           const ReplicaState& state) {
  const std::optional<std::uint64_t> unknown;
  VARVE_TRY_ASSIGN(const auto commit, commit_of_head(state));
  if (!commit) return unknown;
  VARVE_TRY_ASSIGN(const auto catalog, open_catalog_without_keys(files, root));
  VARVE_TRY_ASSIGN(const auto copy, open_copy(files, root, true));
  VARVE_TRY(meta::check_pages(catalog, meta::catalog::kTables));
  VARVE_TRY(meta::check_pages(copy, meta::catalog::kTables));
  ChangeWriter changes;
  {
    VARVE_TRY_ASSIGN(const auto here, meta::ReadTxn::begin(catalog));
    VARVE_TRY_ASSIGN(const auto there, meta::ReadTxn::begin(copy));
    const auto* const settings = meta::catalog::kTables[meta::catalog::kSettings];
    VARVE_TRY_ASSIGN(const auto id, meta::find_stored(here, settings, kIdKey));
    VARVE_TRY_ASSIGN(const auto id_there, meta::find_stored(there, settings, kIdKey));
    if (here.id() != *commit || id != id_there) return unknown;
    VARVE_TRY(compare_catalogs(there, here, changes));
  }
  std::uint64_t differences = 0;
  for (const auto& part : changes.finish()) {
    VARVE_TRY(for_each_change(part, [&](const Change&) -> Result<void> {
      ++differences;
      return {};
    }));
  }
  VARVE_TRY_ASSIGN(const auto after, meta::ReadTxn::begin(catalog));
  return after.id() == *commit ? std::optional(differences) : unknown;
}

}  // namespace varve::remote
