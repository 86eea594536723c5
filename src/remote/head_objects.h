// SPDX-License-Identifier: Apache-2.0
// The objects of a head: reading the objects, and applying changes to a copy of the catalog.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bucket/bucket.h"
#include "meta/lmdb.h"
#include "remote/commit_log.h"
#include "remote/head.h"
#include "varve/result.h"

namespace varve::remote {

/// Limit for one catalog object, in bytes.
inline constexpr std::size_t kCatalogObjectBytesMax = std::size_t{300} << 20;

/// Applies the parts of a head's catalog objects to a copy of the catalog, in one transaction.
[[nodiscard]] Result<void> apply_to_catalog(const meta::Env& copy,
                                            const std::vector<std::string>& parts, bool replaces);
/// Reads an object named by a head. Errors: kCorrupt for other bytes; errors of the bucket.
[[nodiscard]] Result<std::string> read_catalog_object(bucket::Bucket& bucket,
                                                      const CatalogObject& object);
/// Adds advice to an error about a head with wrong bytes. Returns any different error unchanged.
[[nodiscard]] Error with_advice(const Error& error);
/// Decodes a commit. Errors: kCorrupt, also for a head of another repository or number;
/// kUnsupported for a newer format. Both errors name the object.
[[nodiscard]] Result<Head> decode_commit(const CommitLog& log, const Commit& commit);
/// Reads and checks a head. Of a damaged head, reads the copy, and logs the damage.
/// Errors: kNotFound without the head, even if the copy exists; errors of decode_commit().
[[nodiscard]] Result<std::string> read_head(CommitLog& log, std::uint64_t number);
/// Reads and checks the copy of a head. Errors: as read_head().
[[nodiscard]] Result<std::string> read_head_copy(CommitLog& log, std::uint64_t number);
/// Returns the length of the common front of `a` and `b`.
[[nodiscard]] std::size_t common_front(const std::vector<CatalogObject>& a,
                                       const std::vector<CatalogObject>& b);

}  // namespace varve::remote
