// SPDX-License-Identifier: Apache-2.0
// The buckets that the contract is checked with, and the end of a batch of reads.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "bucket/open_bucket.h"
#include "bucket/s3_headers.h"
#include "support/memory_bucket.h"
#include "support/s3_store_process.h"

namespace varve::test {

/// A store without objects.
class BucketSubject {
 public:
  virtual ~BucketSubject() = default;
  /// Returns a bucket with this prefix; nullptr if that fails.
  virtual std::unique_ptr<bucket::Bucket> open(const std::string& prefix) = 0;
};

class MemorySubject final : public BucketSubject {
 public:
  std::unique_ptr<bucket::Bucket> open(const std::string& prefix) override {
    return std::make_unique<MemoryBucket>(objects_, prefix);
  }

 private:
  std::shared_ptr<MemoryObjects> objects_ = std::make_shared<MemoryObjects>();
};

/// The store of tests/s3/store.py, which checks signatures by its own means.
class StoreProcessSubject final : public BucketSubject {
 public:
  std::unique_ptr<bucket::Bucket> open(const std::string& prefix) override {
    return store_.is_running() ? store_.open(prefix) : nullptr;
  }

 private:
  S3StoreProcess store_;
};

/// A real store, named by VARVE_TEST_S3: "ENDPOINT REGION BUCKET ACCESS-KEY-ID SECRET". Each
/// subject has a prefix of its own.
class RealStoreSubject final : public BucketSubject {
 public:
  RealStoreSubject() {
    std::istringstream words(std::getenv("VARVE_TEST_S3"));
    words >> options_.endpoint >> options_.region >> bucket_ >> id_ >> secret_;
    options_.credentials = [id = id_, secret = secret_] { return store_credentials(id, secret); };
    const auto mark = bucket::new_mark("prefix");
    if (mark) own_prefix_ = *mark + "/";
  }
  std::unique_ptr<bucket::Bucket> open(const std::string& prefix) override {
    const bucket::Location location{.bucket = bucket_, .prefix = own_prefix_ + prefix};
    auto bucket = bucket::open_bucket(location, options_, {});
    return bucket ? *std::move(bucket) : nullptr;
  }

 private:
  ObjectStoreOptions options_{};
  std::string bucket_, id_, secret_, own_prefix_;
};

struct BucketSubjectMaker {
  std::string name;
  std::function<std::unique_ptr<BucketSubject>()> make;
};
inline void PrintTo(const BucketSubjectMaker& maker, std::ostream* out) { *out << maker.name; }

inline std::vector<BucketSubjectMaker> bucket_subjects() {
  std::vector<BucketSubjectMaker> subjects = {
      {"Memory", [] { return std::make_unique<MemorySubject>(); }},
      {"StoreProcess", [] { return std::make_unique<StoreProcessSubject>(); }}};
  if (std::getenv("VARVE_TEST_S3") != nullptr) {
    subjects.push_back({"RealStore", [] { return std::make_unique<RealStoreSubject>(); }});
  }
  return subjects;
}

/// Collects the completions of one batch. Thread-safe.
class Completions {
 public:
  using Results = std::vector<std::vector<Result<std::size_t>>>;

  explicit Completions(std::size_t reads) : left_(reads), results_(reads) {}
  [[nodiscard]] bucket::ReadCompletion receiver() {
    return [this](std::size_t position, Result<std::size_t> got) {
      const std::lock_guard lock(mutex_);
      results_.at(position).push_back(std::move(got));
      if (left_ > 0 && --left_ == 0) ended_.notify_all();
    };
  }
  /// Waits for as many completions as there are reads. Returns those of each read.
  [[nodiscard]] Results wait() {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this] { return left_ == 0; });
    return results_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  std::size_t left_;
  Results results_;
};

}  // namespace varve::test
