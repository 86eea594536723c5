// SPDX-License-Identifier: Apache-2.0
// The ETags of the store's objects, as noted in the folder. docs/decisions/166.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "meta/lmdb.h"
#include "varve/result.h"

namespace varve::remote {

/// ETags by the names of objects.
using Etags = std::map<std::string, std::string>;

/// Prefix of the keys of ETags in the folder's state; the name of the object follows.
inline constexpr std::string_view kEtagPrefix = "etag ";
/// Returns the key of an object's ETag.
[[nodiscard]] std::string etag_key(std::string_view object);

/// The notes of one folder. Thread-safe: each call is one transaction of the folder's state.
class EtagNotes {
 public:
  /// Lifetime: `state` outlives the notes.
  explicit EtagNotes(const meta::Env& state) : state_(state) {}

  [[nodiscard]] Result<Etags> all() const;
  /// Adds and replaces ETags, and forgets the ETags of the objects `gone`. Needs no lock of the
  /// repository.
  [[nodiscard]] Result<void> update(const Etags& etags, const std::set<std::string>& gone);

 private:
  const meta::Env& state_;
};

}  // namespace varve::remote
