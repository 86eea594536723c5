// SPDX-License-Identifier: Apache-2.0
#include "base/system_error.h"

#include <cerrno>
#include <system_error>

namespace varve::base {

namespace {

ErrorCode code_of(int errno_value) {
  switch (errno_value) {
    case ENOSPC:
    case EDQUOT:
      return ErrorCode::kNoSpace;
    case ENOENT:
      return ErrorCode::kNotFound;
    case EEXIST:
      return ErrorCode::kExists;
    case EBUSY:
    case ETXTBSY:
      return ErrorCode::kBusy;
    case EROFS:
      return ErrorCode::kReadOnly;
    case ENOTEMPTY:
      return ErrorCode::kNotEmpty;
    case ENOTDIR:
      return ErrorCode::kNotDirectory;
    case EISDIR:
      return ErrorCode::kIsDirectory;
    case ENAMETOOLONG:
      return ErrorCode::kNameTooLong;
    case EFBIG:
      return ErrorCode::kTooLarge;
    case EBADF:
      return ErrorCode::kBadHandle;
    case EINVAL:
      return ErrorCode::kInvalid;
    default:
      return ErrorCode::kIo;
  }
}

Error error_of(ErrorCode code, const std::string& what, int errno_value) {
  return Error(code, what + ": " + std::generic_category().message(errno_value))
      .with_errno(errno_value);
}

}  // namespace

Error system_error(const std::string& what, int errno_value) {
  return error_of(code_of(errno_value), what, errno_value);
}

Error io_error(const std::string& what, int errno_value) {
  return error_of(ErrorCode::kIo, what, errno_value);
}

bool is_device_failure(const Error& error) { return error.errno_value() == EIO; }

bool lacks_resources(const Error& error) {
  switch (error.errno_value()) {
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EAGAIN:
    case EINTR:
      return true;
    default:
      return false;
  }
}

bool is_damage(const Error& error) {
  return error.code() == ErrorCode::kCorrupt || error.code() == ErrorCode::kTooLarge ||
         is_device_failure(error);
}

bool refuses_writing(const Error& error) {
  return error.errno_value() == EROFS || error.errno_value() == EACCES;
}

}  // namespace varve::base
