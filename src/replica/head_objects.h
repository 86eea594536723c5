// SPDX-License-Identifier: Apache-2.0
// The objects of a head: reading them, and applying them to a copy of the catalog.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bucket/bucket.h"
#include "meta/lmdb.h"
#include "replica/commit_log.h"
#include "replica/head.h"
#include "varve/result.h"

namespace varve::replica {

/// Limit for one catalog object, in bytes.
inline constexpr std::size_t kCatalogObjectBytesMax = std::size_t{300} << 20;

/// Applies the parts of a head's catalog objects to a copy of the catalog, in one transaction.
[[nodiscard]] Result<void> apply_to_catalog(const meta::Env& copy,
                                            const std::vector<std::string>& parts, bool replaces);
/// Reads an object that a head names. Errors: kCorrupt for other bytes; those of the bucket.
[[nodiscard]] Result<std::string> read_catalog_object(bucket::Bucket& bucket,
                                                      const CatalogObject& object);
/// Says in an error about a head with wrong bytes what to do. Returns other errors as they are.
[[nodiscard]] Error with_advice(const Error& error);
/// Decodes a commit. Errors: kCorrupt, also for a head of another repository or number, and
/// kUnsupported for a newer format; both name the object.
[[nodiscard]] Result<Head> decode_commit(const CommitLog& log, const Commit& commit);
/// Reads and checks a head. Errors: kNotFound; those of decode_commit().
[[nodiscard]] Result<std::string> read_head(CommitLog& log, std::uint64_t number);
/// Returns how many objects at the front of the first list are the second list.
[[nodiscard]] std::size_t common_front(const std::vector<CatalogObject>& a,
                                       const std::vector<CatalogObject>& b);

}  // namespace varve::replica
