// SPDX-License-Identifier: Apache-2.0
// Files whose bytes are sealed block by block. Format: docs/FORMAT.md §14.4.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "crypto/key_ring.h"
#include "io/file_system.h"
#include "varve/result.h"

namespace varve::crypto {

/// The identity of a sealed file. A file with the bytes of another place does not open.
struct SealedPlace {
  std::uint32_t kind = 0;
  std::uint32_t store = 0;   ///< Series or pool.
  std::uint32_t number = 0;  ///< 0 if the place has only one file.
  /// Text of a full block, in bytes: a power of two. Small blocks waste less if each append begins
  /// a block.
  std::uint32_t block_bytes = 4096;
  /// True if writers append after a sync. A crash then leaves a damaged end.
  bool grows = false;
  bool operator==(const SealedPlace&) const = default;
};

/// Returns the size of a sealed file with `bytes` bytes of text without a gap.
[[nodiscard]] std::uint64_t sealed_bytes(const SealedPlace& place, std::uint64_t bytes);

/// Returns a file that seals data written to `file`, and opens data read from `file`. Thread-safe.
///
/// Reads of damaged, changed, moved or missing blocks return kCorrupt. A write inside a block
/// writes the whole block again. So a writer that must not endanger synced bytes begins at a
/// multiple of append_unit(); the skipped bytes read as zeros. A write or truncate() may leave a
/// gap of at most 1 MiB behind the end, which is filled with sealed zeros. Writes return kTooLarge
/// when the present blocks plus the blocks written by the object reach `texts_max`; only tests set
/// another limit. Otherwise as io::File.
[[nodiscard]] std::unique_ptr<io::File> make_sealed_file(std::unique_ptr<io::File> file,
                                                         std::string path,
                                                         std::shared_ptr<const KeyRing> keys,
                                                         const SealedPlace& place,
                                                         std::uint64_t texts_max = kTextsMax);

/// The damage found in a sealed file without the key, by checksums.
struct SealedFault {
  std::string what;          ///< Empty without damage.
  bool only_at_end = false;  ///< All blocks but the last blocks are sound, as after a crash.
  bool stopped = false;      ///< `goes_on` has ended the search.
};
/// Searches a sealed file for damage. Calls `goes_on`, if not empty, after each read with the
/// number of bytes read; `goes_on` returns false to stop. Errors: errors of reading.
[[nodiscard]] Result<SealedFault> find_sealed_fault(
    io::File& file, const std::function<bool(std::uint64_t bytes)>& goes_on = {});

}  // namespace varve::crypto
