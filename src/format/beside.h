// SPDX-License-Identifier: Apache-2.0
// The codec of a series' files beside its versions: docs/FORMAT.md §12.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "varve/backup.h"
#include "varve/beside.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::format {

/// Upper bound of all inode numbers.
inline constexpr Ino kBesideInoEnd = Ino{1} << 32;
/// Limit of the encoded size.
inline constexpr std::size_t kBesideImageBytesMax =
    kBesideBytesMax + kBesideNamesMax * (kNameBytesMax + 128) + 64;

/// A file, link or folder.
struct BesideRecord {
  Ino ino = 0;
  Ino parent = kRootIno;  ///< kRootIno, or the number of a folder.
  std::string name;
  std::uint32_t mode = 0;  ///< With the type.
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  Timestamp mtime;
  Timestamp ctime;
  Timestamp atime;
  std::string content;  ///< The bytes of a file, the target of a link.
};

/// All records of a series.
struct BesideImage {
  Ino next = kRootIno + 1;            ///< The number of the next entry. No number is used twice.
  std::vector<BesideRecord> records;  ///< Ascending by number.
};

[[nodiscard]] std::string encode_beside(SeriesId series, const BesideImage& image);
/// Errors: kCorrupt; kUnsupported for a newer format.
[[nodiscard]] Result<BesideImage> decode_beside(SeriesId series, std::string_view bytes);

}  // namespace varve::format
