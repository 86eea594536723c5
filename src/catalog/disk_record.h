// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "meta/lmdb.h"
#include "varve/result.h"

namespace varve::catalog {

/// The measured speed of the repository's disk. Only a hint: the record may be lost.
struct DiskRecord {
  std::uint64_t request_nanoseconds = 0;
  std::uint64_t bytes_per_second = 0;
  std::uint64_t disk_bytes = 0;       ///< Size of the whole file system: the identity of the disk.
  std::int64_t measured_seconds = 0;  ///< Time of the measurement, in seconds since 1970.
  bool operator==(const DiskRecord&) const = default;
};

/// The key of the record among the settings.
inline constexpr std::string_view kDiskSetting = "disk";

/// Returns the record, or nullopt for a missing or malformed record.
[[nodiscard]] Result<std::optional<DiskRecord>> find_disk_record(const meta::Txn& txn);
[[nodiscard]] Result<void> put_disk_record(meta::WriteTxn& txn, const DiskRecord& record);

}  // namespace varve::catalog
