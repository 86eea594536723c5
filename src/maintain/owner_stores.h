// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/ids.h"
#include "io/file_system.h"
#include "store/folder_store.h"
#include "store/repository_paths.h"

namespace varve::maintain {

/// The segment stores of all owners, each opened at the first use. Not thread-safe.
class OwnerStores {
 public:
  /// `open` is empty if all data is on the disk. Lifetime: `files` outlives the object.
  OwnerStores(store::StoreOpener open, io::FileSystem& files, std::string repository_path);

  /// Returns the store of a series or of the pool. Lifetime: the store lasts as long as the object.
  [[nodiscard]] store::SegmentStore& of(SeriesId owner);
  /// Returns the folder of the owner's store.
  [[nodiscard]] std::string folder_of(SeriesId owner) const;

 private:
  const store::StoreOpener open_;
  io::FileSystem& files_;
  const store::RepositoryPaths paths_;
  std::map<SeriesId, std::unique_ptr<store::SegmentStore>> stores_;
};

}  // namespace varve::maintain
