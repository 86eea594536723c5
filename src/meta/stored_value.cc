// SPDX-License-Identifier: Apache-2.0
#include "meta/stored_value.h"

#include <lmdb.h>
#include <xxhash.h>

#include <cerrno>
#include <string>

#include "base/coding.h"
#include "base/system_error.h"

namespace varve::meta {

std::uint32_t value_checksum(std::string_view key, std::string_view value) {
  const auto seed = XXH3_64bits(key.data(), key.size());
  return static_cast<std::uint32_t>(XXH3_64bits_withSeed(value.data(), value.size(), seed));
}

Result<std::string_view> verified_value(std::string_view key, std::string_view stored) {
  if (stored.size() >= kValueChecksumBytes) {
    const auto value = stored.substr(0, stored.size() - kValueChecksumBytes);
    const auto sum = base::load_le<std::uint32_t>(base::as_bytes(stored).data() + value.size());
    if (sum == value_checksum(key, value)) return value;
  }
  return Error(ErrorCode::kCorrupt, "catalog: a record's checksum is wrong; run `varve check`");
}

Error error_from_lmdb(int rc, const char* what) {
  const std::string failed = std::string("catalog: ") + what;
  const std::string message = failed + ": " + mdb_strerror(rc);
  switch (rc) {
    case ENOSPC:
    case EDQUOT:
    case MDB_MAP_FULL:
      return {ErrorCode::kNoSpace, message + "; free some space on the repository's disk"};
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
    case MDB_INVALID:
    case MDB_VERSION_MISMATCH:
    case MDB_INCOMPATIBLE:  // A forged flag of a table.
    case MDB_PAGE_FULL:
    case MDB_CURSOR_FULL:
      return {ErrorCode::kCorrupt, message};
    default:
      return rc > 0 ? base::io_error(failed, rc) : Error(ErrorCode::kIo, message);
  }
}

}  // namespace varve::meta
