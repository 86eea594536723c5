// SPDX-License-Identifier: Apache-2.0
// Sorts more records than fit into memory: first into buckets, then bucket by bucket.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "store/alias_files.h"
#include "varve/result.h"

namespace varve::store {

/// A record to sort, by its fields in order.
struct SortRecord {
  std::uint64_t a = 0;
  std::uint64_t b = 0;
  std::uint64_t c = 0;
  auto operator<=>(const SortRecord&) const = default;
};

/// Records in buckets. A single bucket stays in memory; each of several buckets has a temporary
/// file of the pool. The destructor removes the files. Not thread-safe.
class RecordBuckets {
 public:
  /// Intended maximum number of records in a bucket.
  static constexpr std::uint64_t kRecordsMax = 1U << 20;
  /// Returns the number of buckets for `records` records, at most kBucketsMax.
  [[nodiscard]] static std::uint32_t buckets_for(std::uint64_t records);
  static constexpr std::uint32_t kBucketsMax = 1024;

  /// The files get the numbers from `first_file` on.
  RecordBuckets(FolderPath folder, std::uint32_t buckets, std::uint32_t first_file);
  RecordBuckets(const RecordBuckets&) = delete;
  RecordBuckets& operator=(const RecordBuckets&) = delete;
  ~RecordBuckets();

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(buckets_.size()); }
  [[nodiscard]] Result<void> add(std::uint32_t bucket, const SortRecord& record);
  /// Returns the records of a bucket, sorted, and empties the bucket.
  [[nodiscard]] Result<std::vector<SortRecord>> take(std::uint32_t bucket);
  /// Returns the bytes written to and read from files.
  [[nodiscard]] std::uint64_t bytes_passed() const { return bytes_passed_; }

 private:
  struct Bucket {
    std::vector<SortRecord> buffer;
    std::uint64_t file_bytes = 0;
  };
  [[nodiscard]] std::string path_of(std::uint32_t bucket) const;
  [[nodiscard]] Result<void> write(std::uint32_t bucket);

  const FolderPath folder_;
  const std::uint32_t first_file_;
  std::vector<Bucket> buckets_;
  std::uint64_t bytes_passed_ = 0;
};

/// Removes files for sorting left by an earlier process, and unfinished files of aliases.
[[nodiscard]] Result<void> remove_sorting_files(const FolderPath& folder);

}  // namespace varve::store
