// SPDX-License-Identifier: Apache-2.0
// The order of the commits of a repository in an object store. docs/decisions/126.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "bucket/bucket.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::replica {

/// A commit as the store has it.
struct Commit {
  std::uint64_t number = 0;
  std::string text{};

  bool operator==(const Commit&) const = default;
};

/// The numbered commits of a repository. Many writers may try to create a commit, and one of them
/// does, whatever the network, the store's lists and the writers' clocks do. The log knows the
/// order of commits and their names, and nothing of what is in them. Thread-safe if the bucket is.
class CommitLog {
 public:
  /// Lifetime: `bucket` outlives the log.
  CommitLog(bucket::Bucket& bucket, std::string repository_id);

  /// Creates a commit. Returns nullopt if the log has it, from this call or an earlier one whose
  /// answer was lost, and no later one. Otherwise another writer was first: returns its commit,
  /// which has this number or a higher one. The caller may call again with the same text after
  /// any error, and never with another text of the same number.
  /// Errors: those of the bucket; the commit may exist then, or come to exist later.
  [[nodiscard]] Result<std::optional<Commit>> create(std::uint64_t number, std::string_view text);

  /// Returns nullopt if the log has the commit `known`, and none after it; otherwise the commit
  /// that is there. Does not rely on lists, in which a store may show an object late. Errors:
  /// kNotFound if the log has neither `known` nor a later commit; those of the bucket.
  [[nodiscard]] Result<std::optional<Commit>> other_than(const Commit& known);

  /// Returns the text of a commit. Errors: kNotFound; those of the bucket.
  [[nodiscard]] Result<std::string> read(std::uint64_t number);
  /// Returns the newest commit above a number that a list shows; nullopt without one. Old commits
  /// are removed, so a number that is free may have been taken long ago; but a later commit stays.
  /// Errors: those of the bucket.
  [[nodiscard]] Result<std::optional<Commit>> later_than(std::uint64_t number);
  /// Returns the highest number above `after` that a list shows; nullopt without one.
  [[nodiscard]] Result<std::optional<std::uint64_t>> newest(std::uint64_t after = 0);
  /// Calls `found` with the commits above `after` in their order, and when each was created by the
  /// store's clock.
  [[nodiscard]] Result<void> list(
      std::uint64_t after,
      const std::function<void(std::uint64_t number, Timestamp created)>& found);

  /// Returns the name of a commit's object.
  [[nodiscard]] std::string name(std::uint64_t number) const;
  /// Describes a commit, or with 0 the store, for messages.
  [[nodiscard]] std::string describe(std::uint64_t number = 0) const;

 private:
  bucket::Bucket& bucket_;
  const std::string repository_id_;
};

}  // namespace varve::replica
