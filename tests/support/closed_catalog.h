// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "meta/lmdb.h"
#include "meta/schema.h"
#include "support/temp_repository.h"

namespace varve::test {

/// Opens the catalog in a folder, with all its tables. `keys` are null for a plain repository. No
/// process may have it open.
inline meta::Env open_catalog(const std::string& folder,
                              std::shared_ptr<const crypto::KeyRing> keys = nullptr) {
  meta::EnvOptions options;
  options.keys.ring = std::move(keys);
  options.tables = meta::catalog::kTables;
  return must(meta::Env::open(folder, options));
}

/// Commits a change to the catalog of a repository that no process has open.
template <typename Change>
void change_closed_catalog(const std::string& repository, const Change& change) {
  const auto catalog = open_catalog(repository + "/catalog");
  auto txn = must(meta::WriteTxn::begin(catalog));
  change(txn);
  must(txn.commit());
}

}  // namespace varve::test
