// SPDX-License-Identifier: Apache-2.0
#include "remote/bucket_folder.h"

#include <utility>

#include "remote/lazy_bucket.h"

namespace varve::remote {

BucketFolder::BucketFolder(FolderToOpen folder)
    : path_(std::move(folder.path)),
      config_(std::move(folder.config)),
      use_(std::move(folder.use)),
      hooks_(std::move(folder.hooks)),
      clock_(hooks_.clock != nullptr ? *hooks_.clock : system_clock_),
      files_(std::move(folder.files)),
      bucket_([this] {
        auto lazy = std::make_unique<LazyBucket>(
            [open = bucket_opener(hooks_, use_.access), config = config_] { return open(config); },
            config_.place);
        lazy_ = lazy.get();
        return std::make_unique<bucket::LockingBucket>(std::move(lazy), clock_);
      }()),
      state_(*files_, path_),
      data_(*bucket_, *files_, path_ + "/cache", cached_block_bytes_of(config_),
            [this] { return state_.objects(); }) {}

void BucketFolder::assume_reached() { lazy_->assume_reached(); }

bool BucketFolder::drop_cached() {
  data_.drop_cached();
  return true;
}

void BucketFolder::end_reads() {
  data_.end_reads();
  bucket_->interrupt_reads();
}

}  // namespace varve::remote
