// SPDX-License-Identifier: Apache-2.0
#include "fs/errno_map.h"

#include <fmt/core.h>

#include <cerrno>

#include "base/log.h"

namespace varve::fs {

int errno_of(const Error& error) {
  switch (error.code()) {
    case ErrorCode::kIo:
      return error.errno_value() > 0 ? error.errno_value() : EIO;
    case ErrorCode::kCorrupt:
      return EIO;
    case ErrorCode::kNotFound:
      return ENOENT;
    case ErrorCode::kExists:
      return EEXIST;
    case ErrorCode::kInvalid:
    case ErrorCode::kUsage:
      return EINVAL;
    case ErrorCode::kBusy:
      return EBUSY;
    case ErrorCode::kReadOnly:
      return EROFS;
    case ErrorCode::kNoSpace:
      return ENOSPC;
    case ErrorCode::kNotPermitted:
      return EPERM;
    case ErrorCode::kNotEmpty:
      return ENOTEMPTY;
    case ErrorCode::kNotDirectory:
      return ENOTDIR;
    case ErrorCode::kIsDirectory:
      return EISDIR;
    case ErrorCode::kNameTooLong:
      return ENAMETOOLONG;
    case ErrorCode::kOtherVersion:
      return EXDEV;
    case ErrorCode::kStale:
      return ESTALE;
    case ErrorCode::kTooLarge:
      return EFBIG;
    case ErrorCode::kAttributeTooLarge:
      return E2BIG;
    case ErrorCode::kPastEnd:
      return ENXIO;
    case ErrorCode::kBadHandle:
      return EBADF;
    case ErrorCode::kNoAttribute:
      return ENODATA;
    case ErrorCode::kUnsupported:
      return EOPNOTSUPP;
    case ErrorCode::kInterrupted:
      return EINTR;
    case ErrorCode::kWrongKey:
      return ENOKEY;
    case ErrorCode::kRefused:
      return EPERM;
    // After EAGAIN, programs would call again at once, as for a non-blocking descriptor.
    case ErrorCode::kUnavailable:
    case ErrorCode::kLocked:
    case ErrorCode::kNoRepository:
    case ErrorCode::kIncomplete:
      return EIO;
  }
  return EIO;
}

int report(std::string_view operation, const Error& error) {
  switch (error.code()) {
    case ErrorCode::kIo:
    case ErrorCode::kCorrupt:
    case ErrorCode::kUnavailable:
    case ErrorCode::kLocked:
    case ErrorCode::kNoRepository:
      base::log(base::LogLevel::kError, fmt::format("{}: {}", operation, error.message()));
      break;
    case ErrorCode::kNoSpace:
      base::log(base::LogLevel::kWarning, fmt::format("{}: {}", operation, error.message()));
      break;
    default:
      base::log(base::LogLevel::kDebug, fmt::format("{}: {}", operation, error.message()));
      break;
  }
  return errno_of(error);
}

}  // namespace varve::fs
