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
  std::string target;  ///< Of a symlink; of a hard link the path of its first name.
  bool is_hard_link = false;
  /// The ranges of a file with holes that are data.
  std::optional<std::vector<ByteRange>> data;
};

/// Writes an archive in the pax format (POSIX.1-2008, pax, "pax Interchange Format"), with the
/// extensions of GNU tar and of star for holes (GNU.sparse 1.0), extended attributes
/// (SCHILY.xattr) and ACLs (SCHILY.acl). Not synchronised.
class TarWriter {
 public:
  /// The descriptor, which may be a pipe, must stay open.
  explicit TarWriter(int fd) : fd_(fd) {}

  /// The headers of an entry, and the map of a sparse file.
  [[nodiscard]] Result<void> begin(const TarEntry& entry);
  /// The data of the file that was begun: its ranges one after the other.
  [[nodiscard]] Result<void> write(std::span<const std::byte> bytes);
  [[nodiscard]] Result<void> write_zeros(std::uint64_t bytes);
  /// Fills the last block of the file up.
  [[nodiscard]] Result<void> end();
  /// The end of the archive.
  [[nodiscard]] Result<void> finish();

 private:
  [[nodiscard]] Result<void> flush();

  const int fd_;
  std::string buffer_;
  std::uint64_t written_ = 0;
};

/// The text form of an ACL, from the value of its extended attribute; nullopt if it is none.
[[nodiscard]] std::optional<std::string> acl_text(std::string_view value);

}  // namespace varve::transfer
