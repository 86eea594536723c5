// SPDX-License-Identifier: Apache-2.0
// The newest state of a store that can be read. docs/decisions/158.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "bucket/bucket.h"
#include "remote/commit_log.h"
#include "varve/result.h"

namespace varve::remote {

/// Returns the text of the newest head of a repository. `known`: the text of a head that the caller
/// has, or empty. If `known` is the newest head, the call takes one request: a head never changes.
/// Errors: kNoRepository without a head; kCorrupt, also if only the copy of a newer head is left;
/// errors of the bucket.
[[nodiscard]] Result<std::string> newest_head(CommitLog& log, const std::string& known = {});

/// Returns the text of a head, or of the copy if the head is missing or damaged; logs the use of
/// the copy. Errors: kNotFound or kCorrupt without both; errors of the bucket.
[[nodiscard]] Result<std::string> read_head_or_copy(CommitLog& log, std::uint64_t number);

/// A head for a reader.
struct ReadableHead {
  std::string text{};
  std::uint64_t number = 0;
  std::uint64_t newest = 0;      ///< Number of the newest head or copy in the store.
  std::optional<Error> fault{};  ///< Why the newest head is not used, if `number` is lower.
};

/// Returns the newest head, or its copy. If both are lost, returns and logs the newest older head
/// with a readable text, but no head older than `known`. Only for reading: a writer uses
/// newest_head(). Errors: as newest_head().
[[nodiscard]] Result<ReadableHead> readable_head(CommitLog& log, const std::string& known = {});

/// Returns the text of readable_head().
[[nodiscard]] Result<std::string> readable_text(CommitLog& log, const std::string& known);

/// Returns the newest head below `lost` whose catalog objects can be read, and whose segments and
/// volumes the store lists; without such a head, the newest head whose catalog objects can be read.
/// `fault`: the error of the catalog of `lost`. Logs the choice.
/// Errors: `fault` without such a head; errors of the bucket.
[[nodiscard]] Result<ReadableHead> older_whole_head(bucket::Bucket& bucket, CommitLog& log,
                                                    const ReadableHead& lost, const Error& fault);

}  // namespace varve::remote
