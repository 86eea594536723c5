// SPDX-License-Identifier: Apache-2.0
// Models the content of a disk after a power cut: all synced bytes and names, and any part of the
// later changes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "disk_call.h"

namespace varve::test {

/// The part of the unsynced changes that has reached the disk.
enum class Survives : std::uint8_t {
  kNothing,
  kEverything,  ///< All of them: only the program was killed.
  /// Changes of names up to some point, and any pages of any writes. The last page is torn at a
  /// sector.
  kSome,
};

class DiskModel {
 public:
  /// Treats the present content of `root` as durable.
  explicit DiskModel(const std::string& root);

  void apply(const DiskCall& call);
  /// Creates the folder `directory` as a restarted program would find it. kSome uses `seed`.
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
  // Number of the file by path; 0 for a directory.
  using Names = std::map<std::string, std::uint32_t>;

  static void change(std::string& content, const Change& change);
  static void change_name(Names& names, const DiskCall& call);
  [[nodiscard]] static std::string content_of(const File& file, Survives survives,
                                              std::mt19937_64& random);
  /// Returns the size of a file after a power cut.
  [[nodiscard]] static std::size_t size_of(const File& file, Survives survives,
                                           std::mt19937_64& random);

  Names names_;
  std::vector<DiskCall> pending_names_;
  std::map<std::uint32_t, File> files_;
};

}  // namespace varve::test
