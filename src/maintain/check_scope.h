// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "format/data_codecs.h"
#include "io/file_system.h"
#include "maintain/check_helpers.h"
#include "maintain/owner_stores.h"
#include "meta/lmdb.h"
#include "varve/check.h"

namespace varve::maintain {

/// A repository under check, and the options of the check. Lifetime: the referenced objects outlive
/// the scope.
struct CheckScope {
  const format::DataCodecs& codecs;
  const meta::Env& catalog;
  io::FileSystem& files;
  const std::string path;
  const CheckOptions& options;
  const CheckHelpers& helpers;
  OwnerStores& stores;

  [[nodiscard]] std::string catalog_path() const { return path + "/catalog"; }
};

}  // namespace varve::maintain
