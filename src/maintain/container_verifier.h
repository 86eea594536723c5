// SPDX-License-Identifier: Apache-2.0
// Reads a container and compares every byte of it with what its header says.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/id_runs.h"
#include "format/container.h"
#include "store/segment_files.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::maintain {

enum class VerifyLevel : std::uint8_t {
  kHeader,  ///< The header only.
  kFrames,  ///< Also the checksum of every frame, and the padding.
  kChunks,  ///< Also the SHA-256 of every chunk.
};

/// What is wrong with a container.
struct ContainerVerdict {
  /// nullopt if it cannot be read: then `error` says why, and nothing in it can.
  std::optional<format::ContainerHeader> header;
  std::optional<Error> error;
  struct Fault {
    std::string what;
    std::vector<base::IdRun> chunks;  ///< That cannot be read, or are not what was stored.
  };
  std::vector<Fault> faults;
  std::uint64_t bytes_read = 0;
};

/// Memory for one thread that verifies, of up to a container and a frame.
struct VerifyMemory {
  std::optional<base::AlignedBuffer> stored;
  std::vector<std::byte> raw;
};

/// Reads the data as the disk has it, past the page cache, from which header and padding may come.
/// Thread-safe as the reader is, with memory of its own for each thread. A container that is moved
/// away meanwhile looks damaged: ask the catalog afterwards.
[[nodiscard]] ContainerVerdict verify_container(store::SegmentReader& reader, SeriesId series,
                                                const store::ContainerRecord& record,
                                                VerifyLevel level, VerifyMemory& memory);
[[nodiscard]] ContainerVerdict verify_container(store::SegmentReader& reader, SeriesId series,
                                                const store::ContainerRecord& record,
                                                VerifyLevel level);

}  // namespace varve::maintain
