// SPDX-License-Identifier: Apache-2.0
#include "remote/small_pairs.h"

#include <algorithm>
#include <map>
#include <utility>

#include "remote/head.h"

namespace varve::remote {

std::vector<SmallPair> pairs_of(const std::vector<bucket::ObjectInfo>& objects) {
  std::map<std::string, SmallPair> by_name;
  for (const auto& object : objects) {
    const auto original = copied_name(object.name);
    auto& pair = by_name[original ? *original : object.name];
    pair.seconds = std::max(pair.seconds, object.modified.seconds);
    pair.bytes = std::max(pair.bytes, object.bytes);
    pair.names.insert(original ? pair.names.end() : pair.names.begin(), object.name);
  }
  std::vector<SmallPair> pairs;
  for (auto& [name, pair] : by_name) pairs.push_back(std::move(pair));
  std::ranges::stable_sort(pairs,
                           [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  return pairs;
}

}  // namespace varve::remote
