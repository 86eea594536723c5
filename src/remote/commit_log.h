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

namespace varve::remote {

/// A commit in the store.
struct Commit {
  std::uint64_t number = 0;
  std::string text{};

  bool operator==(const Commit&) const = default;
};

/// The numbered commits of a repository. Of several writers trying to create a commit, exactly one
/// succeeds, whatever the network, the store's lists and the writers' clocks do, if the store
/// honours PutCondition::kIfAbsent. The log knows the order and the names of commits, and nothing
/// of their content. Thread-safe if the bucket is.
class CommitLog {
 public:
  /// Lifetime: `bucket` outlives the log.
  CommitLog(bucket::Bucket& bucket, std::string repository_id);

  /// Creates a commit after `previous`; the number 0 stands for no commit. Returns nullopt
  /// if the log has the commit, from this call or an earlier call whose answer was lost, has
  /// `previous` unchanged, and has no later commit. Otherwise another writer was first, or the
  /// store let another writer replace `previous` or the commit: returns the other writer's commit,
  /// with the number of `previous` or a higher number. After any error, the caller may call again
  /// with the same text, and never with another text of the same number. Errors: errors of the
  /// bucket; kUnavailable if the store does not show an acknowledged commit; kNotFound without
  /// `previous`. After an error, the commit may exist now or later.
  [[nodiscard]] Result<std::optional<Commit>> create(const Commit& previous, const Commit& commit);

  /// Returns nullopt if the log has the commit `known`, and no later commit; otherwise the commit
  /// found instead. Does not rely on lists, in which a store may show an object late. Errors:
  /// kNotFound if the log has neither `known` nor a later commit; errors of the bucket.
  [[nodiscard]] Result<std::optional<Commit>> other_than(const Commit& known);

  /// Returns the text of a commit. Errors: kNotFound; errors of the bucket.
  [[nodiscard]] Result<std::string> read(std::uint64_t number);
  /// Returns the newest listed commit above a number; nullopt without one. Old commits are removed,
  /// so a free number may have been used long ago; but a later commit then exists. Errors: errors
  /// of the bucket.
  [[nodiscard]] Result<std::optional<Commit>> later_than(std::uint64_t number);
  /// Returns the highest listed number above `after`; nullopt without one.
  [[nodiscard]] Result<std::optional<std::uint64_t>> newest(std::uint64_t after = 0);
  /// Calls `found` for the commits above `after` in ascending order. `created` is the time of
  /// creation by the store's clock.
  using Found = std::function<void(std::uint64_t number, Timestamp created)>;
  [[nodiscard]] Result<void> list(std::uint64_t after, const Found& found);

  /// Writes the copy of a commit that create() has confirmed, unless there is a copy. Errors:
  /// errors of the bucket.
  [[nodiscard]] Result<void> write_copy(std::uint64_t number, std::string_view text);
  /// Returns the text of a commit's copy. A copy is no commit: only readers use copies.
  /// Errors: kNotFound; errors of the bucket.
  [[nodiscard]] Result<std::string> read_copy(std::uint64_t number);
  /// Calls `found` as list() does, and for the copies too: twice for the number of a commit with a
  /// copy. Also shows the copies of lost commits, and of the commit `after`.
  [[nodiscard]] Result<void> list_with_copies(
      std::uint64_t after, const std::function<void(std::uint64_t number, bool is_copy)>& found);

  /// Returns the name of a commit's object.
  [[nodiscard]] std::string name(std::uint64_t number) const;
  /// Describes a commit for messages; 0 describes the store.
  [[nodiscard]] std::string describe(std::uint64_t number = 0) const;

 private:
  /// Returns nullopt if the log has the commit `known`, and otherwise the commit of another writer.
  /// Errors: as other_than().
  [[nodiscard]] Result<std::optional<Commit>> instead_of(const Commit& known);

  bucket::Bucket& bucket_;
  const std::string repository_id_;
};

}  // namespace varve::remote
