// SPDX-License-Identifier: Apache-2.0
// A file of fixed slots for the tails of long idle streams.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "io/file_system.h"
#include "varve/result.h"

namespace varve::ingest {

/// Nothing in the file survives the process: a checkpoint stores tails in the catalog. Not
/// thread-safe. The file is made at the first use.
class TailSpill {
 public:
  struct Slot {
    std::uint32_t number = 0;
    std::uint32_t bytes = 0;
    std::uint64_t checksum = 0;
  };
  TailSpill(io::FileSystem& files, std::string path, std::size_t slot_bytes)
      : files_(files), path_(std::move(path)), slot_bytes_(slot_bytes) {}
  ~TailSpill();
  TailSpill(const TailSpill&) = delete;
  TailSpill& operator=(const TailSpill&) = delete;

  [[nodiscard]] Result<Slot> put(std::span<const std::byte> tail);
  /// Fills `out`, which is slot.bytes long. Errors: kIo, also if the slot does not have the bytes
  /// written by put().
  [[nodiscard]] Result<void> read(const Slot& slot, std::span<std::byte> out);
  void free(const Slot& slot) { free_.push_back(slot.number); }

 private:
  io::FileSystem& files_;
  const std::string path_;
  const std::size_t slot_bytes_;
  std::unique_ptr<io::File> file_;
  std::vector<std::uint32_t> free_;
  std::uint32_t next_ = 0;
};

}  // namespace varve::ingest
