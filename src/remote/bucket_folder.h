// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "bucket/bucket.h"
#include "bucket/locking_bucket.h"
#include "crypto/key_ring.h"
#include "io/file_system.h"
#include "remote/bucket_config.h"
#include "remote/bucket_hooks.h"
#include "remote/distant_data.h"
#include "remote/folder_state.h"
#include "remote/folder_storage.h"
#include "varve/options.h"
#include "varve/result.h"

namespace varve::remote {

class LazyBucket;

/// A folder to open, whose file `bucket` was read.
struct FolderToOpen {
  std::string path{};
  std::unique_ptr<io::FileSystem> files{};  ///< The folder on disk.
  BucketConfig config{};
  StoreUse use{};
  bool read_only = false;
  BucketHooks hooks{};
};

/// The parts that both folders of a repository in an object store have: the bucket, the folder's
/// state, and the data read from the bucket. Thread-safe.
class BucketFolder : public FolderStorage {
 public:
  bool drop_cached() override;
  void will_read_once() override { data_.will_read_once(); }
  void end_reads() override;
  [[nodiscard]] bucket::Traffic traffic() const override { return bucket_->traffic(); }
  [[nodiscard]] Result<std::optional<Lease>> lease(const crypto::KeyRing* keys) override {
    return state_.lease(keys);
  }

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const BucketConfig& config() const { return config_; }
  [[nodiscard]] const StoreUse& use() const { return use_; }
  [[nodiscard]] const BucketHooks& hooks() const { return hooks_; }
  [[nodiscard]] const base::Clock& clock() const { return clock_; }
  [[nodiscard]] io::FileSystem& files() { return *files_; }
  [[nodiscard]] bucket::LockingBucket& bucket() { return *bucket_; }
  [[nodiscard]] FolderState& state() { return state_; }
  [[nodiscard]] DistantData& data() { return data_; }
  /// Adds the new requests to the counts in the folder's state. Logs errors.
  void note_traffic() { state_.note_traffic(traffic()); }

 protected:
  /// Sends no request: the first use opens the bucket.
  explicit BucketFolder(FolderToOpen folder);
  /// Makes reads go to the store without a preceding list, as LazyBucket::assume_reached().
  void assume_reached();

 private:
  const std::string path_;
  const BucketConfig config_;
  const StoreUse use_;
  const BucketHooks hooks_;
  const base::SystemClock system_clock_;
  const base::Clock& clock_;
  const std::unique_ptr<io::FileSystem> files_;
  LazyBucket* lazy_ = nullptr;  // In bucket_.
  const std::unique_ptr<bucket::LockingBucket> bucket_;
  FolderState state_;
  DistantData data_;
};

}  // namespace varve::remote
