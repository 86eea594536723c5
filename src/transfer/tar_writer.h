// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "transfer/file_sink.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::transfer {

/// An entry of an archive.
struct TarEntry {
  std::string path;
  Attributes attributes;
  Xattrs xattrs;
  std::string target;  ///< Target of a symlink; for a hard link, the path of its first name.
  bool is_hard_link = false;
  /// The data ranges of a file with holes.
  std::optional<std::vector<ByteRange>> data;
};

/// Writes an archive in the pax format (POSIX.1-2008, pax, "pax Interchange Format"). Uses the
/// extensions of GNU tar and star for holes (GNU.sparse 1.0), extended attributes (SCHILY.xattr)
/// and ACLs (SCHILY.acl). Not thread-safe.
class TarWriter {
 public:
  /// Writes to `fd`, which may be a pipe and must stay open.
  explicit TarWriter(int fd) : fd_(fd) {}

  /// Writes the headers of an entry and, for a sparse file, its map.
  [[nodiscard]] Result<void> begin(const TarEntry& entry);
  /// Writes data of the current file. The data ranges follow each other.
  [[nodiscard]] Result<void> write(std::span<const std::byte> bytes);
  [[nodiscard]] Result<void> write_zeros(std::uint64_t bytes);
  /// Pads the last block of the file.
  [[nodiscard]] Result<void> end();
  /// Writes the end of the archive.
  [[nodiscard]] Result<void> finish();

 private:
  [[nodiscard]] Result<void> flush();

  const int fd_;
  std::string buffer_;
  std::uint64_t written_ = 0;
};

/// Returns the text form of an ACL from the value of its extended attribute; nullopt if the value
/// is invalid.
[[nodiscard]] std::optional<std::string> acl_text(std::string_view value);

}  // namespace varve::transfer
