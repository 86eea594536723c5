// SPDX-License-Identifier: Apache-2.0
#include "transfer/transfer_error.h"

#include <cerrno>
#include <system_error>
#include <utility>

namespace varve::transfer {

std::string errno_text(int errno_value) { return std::generic_category().message(errno_value); }

Error system_error(const std::string& where, int errno_value) {
  const ErrorCode code = errno_value == ENOSPC || errno_value == EDQUOT ? ErrorCode::kNoSpace
                         : errno_value == EROFS                         ? ErrorCode::kReadOnly
                                                                        : ErrorCode::kIo;
  return Error(code, where + ": " + errno_text(errno_value)).with_errno(errno_value);
}

Error creation_error(const std::string& where, int errno_value) {
  Error error = system_error(where, errno_value);
  if (errno_value != EEXIST) return error;
  return std::move(error).with_more(
      "; the target has an entry of this name, perhaps of a name that differs in upper and lower "
      "case only");
}

bool ends_transfer(const Error& error) {
  switch (error.code()) {
    case ErrorCode::kNoSpace:
    case ErrorCode::kReadOnly:
    case ErrorCode::kBusy:
    case ErrorCode::kLocked:
    case ErrorCode::kStale:
    case ErrorCode::kInterrupted:
      return true;
    default:
      return error.errno_value() == EMFILE || error.errno_value() == ENFILE;
  }
}

}  // namespace varve::transfer
