// SPDX-License-Identifier: Apache-2.0
// What a disk holds when the power goes: synced bytes under synced names for certain, and any
// part of what came after.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "disk_call.h"

namespace varve::test {

/// How much of what was not synced has reached the disk.
enum class Survives : std::uint8_t {
  kNothing,
  kEverything,  ///< The program was killed, and the disk goes on.
  kSome,  ///< Names up to some change, any pages of any writes, the last one torn at a sector.
};

class DiskModel {
 public:
  /// What is below `root` now is on disk for certain.
  explicit DiskModel(const std::string& root);

  void apply(const DiskCall& call);
  /// Makes the folder `directory` as it would be found. `seed` is for kSome.
  void write_image(const std::string& directory, Survives survives, std::uint64_t seed) const;

 private:
  struct Change {
    bool truncates = false;
    std::uint64_t offset = 0;
    std::string bytes;
  };
  struct File {
    std::string durable;
    std::vector<Change> pending;
  };
  using Names = std::map<std::string, std::uint32_t>;  // 0 for a directory.

  static void change(std::string& content, const Change& change);
  static void change_name(Names& names, const DiskCall& call);
  [[nodiscard]] static std::string content_of(const File& file, Survives survives,
                                              std::mt19937_64& random);

  Names names_;
  std::vector<DiskCall> pending_names_;
  std::map<std::uint32_t, File> files_;
};

}  // namespace varve::test
