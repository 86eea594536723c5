// SPDX-License-Identifier: Apache-2.0
// The file that holds the staged bytes of one file of an open version.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "crypto/key_ring.h"
#include "io/file_system.h"
#include "varve/backup.h"
#include "varve/result.h"

namespace varve::version {

/// A staging file: plain, or encrypted as a growing log of sealed blocks (docs/FORMAT.md §14.3).
///
/// One thread at a time writes. Other threads may read meanwhile.
class StagingFile {
 public:
  virtual ~StagingFile() = default;
  /// Writes all of `data`, the bytes at `offset` of the content. Returns the offset of the bytes
  /// for read().
  [[nodiscard]] virtual Result<std::uint64_t> write(std::uint64_t offset,
                                                    std::span<const std::byte> data) = 0;
  /// Reads bytes from an offset returned by write(). Returns fewer bytes only at the file's end.
  /// Errors: kCorrupt for bytes not written by write().
  [[nodiscard]] virtual Result<std::size_t> read(std::uint64_t from, std::span<std::byte> out) = 0;
  /// Returns the bytes of all writes together on disk; 0 if a write overwrites the earlier bytes at
  /// the same offset.
  [[nodiscard]] virtual std::uint64_t log_bytes() const = 0;
};

/// Identity of a staging file in its repository.
struct StagingPlace {
  SeriesId series{};
  VersionNumber number{};
  Ino ino = 0;
  std::uint64_t generation = 0;
};

/// Returns the path of a staging file. `staging_directory` is REPO/staging/SERIES-NUMBER.
[[nodiscard]] std::string staging_file_path(const std::string& staging_directory, Ino ino,
                                            std::uint64_t generation);

/// Creates a staging file. `keys` is null for a plain file. An encrypted file takes at most
/// `texts_max` blocks, then write() returns kTooLarge; only tests set another number.
[[nodiscard]] Result<std::shared_ptr<StagingFile>> create_staging_file(
    io::FileSystem& files, const std::string& path, const crypto::KeyRing* keys,
    const StagingPlace& place, std::uint64_t texts_max = crypto::kTextsMax);
/// Opens a staging file. read() must find bytes up to the offset `needed`.
/// Errors: kCorrupt if an encrypted file is damaged, or was created for another StagingPlace.
[[nodiscard]] Result<std::shared_ptr<StagingFile>> open_staging_file(io::FileSystem& files,
                                                                     const std::string& path,
                                                                     const crypto::KeyRing* keys,
                                                                     const StagingPlace& place,
                                                                     std::uint64_t needed);

/// Returns the bytes on disk beyond `bytes` for a write of `bytes` to an encrypted staging file.
[[nodiscard]] std::uint64_t sealed_staging_overhead(std::uint64_t bytes);

}  // namespace varve::version
