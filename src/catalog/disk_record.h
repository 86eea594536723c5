// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "meta/lmdb.h"
#include "varve/result.h"

namespace varve::catalog {

/// How fast the repository's disk was when it was measured. A hint: it may be lost.
struct DiskRecord {
  std::uint64_t request_nanoseconds = 0;
  std::uint64_t bytes_per_second = 0;
  std::uint64_t disk_bytes = 0;       ///< Of the whole file system, to tell another one by.
  std::int64_t measured_seconds = 0;  ///< Since 1970.
  bool operator==(const DiskRecord&) const = default;
};

/// Its key among the settings.
inline constexpr std::string_view kDiskSetting = "disk";

/// nullopt if it was not measured, or if the record makes no sense.
[[nodiscard]] Result<std::optional<DiskRecord>> find_disk_record(const meta::Txn& txn);
[[nodiscard]] Result<void> put_disk_record(meta::WriteTxn& txn, const DiskRecord& record);

}  // namespace varve::catalog
