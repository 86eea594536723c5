// SPDX-License-Identifier: Apache-2.0
// Reads a container and verifies every byte against the header.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/id_runs.h"
#include "format/container.h"
#include "format/data_codecs.h"
#include "store/segment_files.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::maintain {

enum class VerifyLevel : std::uint8_t {
  kHeader,  ///< Verifies only the header.
  kFrames,  ///< Also verifies the checksum of every frame, and the padding.
  kChunks,  ///< Also verifies the SHA-256 of every chunk.
};

/// The result of verifying a container.
struct ContainerVerdict {
  /// Set if a distant store did not answer: the verdict tells nothing then.
  std::optional<Error> unavailable;
  /// nullopt if the header is unreadable: all chunks of the container are then unreadable, and
  /// `error` has the reason.
  std::optional<format::ContainerHeader> header;
  std::optional<Error> error;
  struct Fault {
    std::string what;
    /// Chunks that are unreadable or do not match their fingerprint.
    std::vector<base::IdRun> chunks;
    /// True if the error shows no damage: a newer format, or a temporary failure.
    bool may_pass = false;
    /// True if the fault is in the padding, which has no data and follows from the header.
    bool is_padding = false;
  };
  std::vector<Fault> faults;
  std::uint64_t bytes_read = 0;
};

/// Buffers of one verifying thread: up to a container and a frame.
struct VerifyMemory {
  std::optional<base::AlignedBuffer> stored;
  std::vector<std::byte> raw;
};

/// Verifies a container. Reads the data and the padding from the disk past the page cache. The
/// header may come from the cache. A
/// container moved in the meantime looks damaged, so the caller must check the catalog afterwards.
/// Thread-safe if each thread passes its own memory.
[[nodiscard]] ContainerVerdict verify_container(const format::DataCodecs& codecs,
                                                store::SegmentReader& reader, StoreId store_id,
                                                const format::ContainerRecord& record,
                                                VerifyLevel level, VerifyMemory& memory);
[[nodiscard]] ContainerVerdict verify_container(const format::DataCodecs& codecs,
                                                store::SegmentReader& reader, StoreId store_id,
                                                const format::ContainerRecord& record,
                                                VerifyLevel level);

}  // namespace varve::maintain
