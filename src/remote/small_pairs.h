// SPDX-License-Identifier: Apache-2.0
// Listed small objects with their copies.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bucket/bucket.h"

namespace varve::remote {

/// A small object with its copy.
struct SmallPair {
  std::int64_t seconds = 0;
  std::uint64_t bytes = 0;
  std::vector<std::string> names{};  // The object before the copy.
  std::string front{};               // The first bytes; empty if the object is lost.
};

/// Returns the objects with the copies, the newest first.
[[nodiscard]] std::vector<SmallPair> pairs_of(const std::vector<bucket::ObjectInfo>& objects);

}  // namespace varve::remote
