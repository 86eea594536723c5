// SPDX-License-Identifier: Apache-2.0
#include "maintain/owner_stores.h"

#include <utility>

#include "maintain/owners.h"

namespace varve::maintain {

OwnerStores::OwnerStores(store::StoreOpener open, io::FileSystem& files,
                         std::string repository_path)
    : open_(std::move(open)), files_(files), paths_(std::move(repository_path)) {}

store::SegmentStore& OwnerStores::of(SeriesId owner) {
  auto& store = stores_[owner];
  if (!store) store = store::open_store(open_, files_, folder_of(owner));
  return *store;
}

std::string OwnerStores::folder_of(SeriesId owner) const { return owner_folder(paths_, owner); }

}  // namespace varve::maintain
