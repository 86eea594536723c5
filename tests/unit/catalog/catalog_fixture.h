// SPDX-License-Identifier: Apache-2.0
// An empty catalog, for tests of its records.
#pragma once

#include <gtest/gtest.h>

#include "meta/lmdb.h"
#include "support/closed_catalog.h"
#include "support/temp_repository.h"

namespace varve::catalog {

class CatalogTest : public testing::Test {
 protected:
  template <typename Put>
  void commit(Put&& put) {
    auto txn = test::must(meta::WriteTxn::begin(catalog_));
    test::must(put(txn));
    test::must(txn.commit());
  }

  test::TempDirectory directory_;
  meta::Env catalog_ = test::open_catalog(directory_.path());
};

}  // namespace varve::catalog
