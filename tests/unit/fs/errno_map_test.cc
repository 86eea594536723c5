// SPDX-License-Identifier: Apache-2.0
#include "fs/errno_map.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <utility>

namespace varve::fs {
namespace {

TEST(ErrnoMap, CodeHasTheErrnoOfPosix) {
  const std::pair<ErrorCode, int> all[] = {
      {ErrorCode::kIo, EIO},
      {ErrorCode::kCorrupt, EIO},
      {ErrorCode::kNotFound, ENOENT},
      {ErrorCode::kExists, EEXIST},
      {ErrorCode::kInvalid, EINVAL},
      {ErrorCode::kBusy, EBUSY},
      {ErrorCode::kReadOnly, EROFS},
      {ErrorCode::kNoSpace, ENOSPC},
      {ErrorCode::kNotPermitted, EPERM},
      {ErrorCode::kNotEmpty, ENOTEMPTY},
      {ErrorCode::kNotDirectory, ENOTDIR},
      {ErrorCode::kIsDirectory, EISDIR},
      {ErrorCode::kNameTooLong, ENAMETOOLONG},
      {ErrorCode::kOtherVersion, EXDEV},
      {ErrorCode::kLocked, EIO},
      {ErrorCode::kNoRepository, EIO},
      {ErrorCode::kUnsupported, EOPNOTSUPP},
      {ErrorCode::kTooLarge, EFBIG},
      {ErrorCode::kAttributeTooLarge, E2BIG},
      {ErrorCode::kStale, ESTALE},
      {ErrorCode::kNoAttribute, ENODATA},
      {ErrorCode::kPastEnd, ENXIO},
      {ErrorCode::kBadHandle, EBADF},
      {ErrorCode::kInterrupted, EINTR},
      {ErrorCode::kUnavailable, EIO},
  };
  for (const auto& [code, errno_value] : all) {
    EXPECT_EQ(errno_of(Error(code, "why")), errno_value) << static_cast<int>(code);
  }
}

TEST(ErrnoMap, ErrnoOfAFailedSystemCallIsPassedOn) {
  EXPECT_EQ(errno_of(Error(ErrorCode::kIo, "why").with_errno(EMFILE)), EMFILE);
  EXPECT_EQ(errno_of(Error(ErrorCode::kNotFound, "why").with_errno(ENOTDIR)), ENOENT);
}

}  // namespace
}  // namespace varve::fs
