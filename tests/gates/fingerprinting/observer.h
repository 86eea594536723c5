// SPDX-License-Identifier: Apache-2.0
// The sight of a storage: names, sizes, times and ranges that are read.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace varve::fingerprinting {

/// Numbers that an observer saw, by what they say.
using Observation = std::map<std::string, double>;

/// A part of a file that Varve read.
struct ReadRange {
  std::string path;  ///< Below the repository.
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  auto operator<=>(const ReadRange&) const = default;
};

/// Watches the reads below a folder while it exists. Only one watch exists at a time.
class ReadWatch {
 public:
  explicit ReadWatch(std::string folder);
  ReadWatch(const ReadWatch&) = delete;
  ReadWatch& operator=(const ReadWatch&) = delete;
  ~ReadWatch();

  /// Returns the reads so far, ascending: their order depends on threads.
  [[nodiscard]] std::vector<ReadRange> ranges() const;
};

/// Adds the names, the sizes and the order of the times of all files below a folder.
void add_listing(const std::string& folder, const std::string& stage, Observation& seen);

/// Adds reads.
void add_reads(const std::vector<ReadRange>& ranges, Observation& seen);

/// Adds what the catalog's file tells without a key: the tables, their keys, and the lengths of
/// their values.
void add_catalog(const std::string& folder, Observation& seen);

}  // namespace varve::fingerprinting
