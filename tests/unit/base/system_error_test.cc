// SPDX-License-Identifier: Apache-2.0
#include "base/system_error.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <utility>

namespace varve::base {
namespace {

TEST(SystemError, ErrnoHasItsCode) {
  const std::pair<int, ErrorCode> all[] = {
      {ENOSPC, ErrorCode::kNoSpace},
      {EDQUOT, ErrorCode::kNoSpace},
      {ENOENT, ErrorCode::kNotFound},
      {EEXIST, ErrorCode::kExists},
      {EBUSY, ErrorCode::kBusy},
      {ETXTBSY, ErrorCode::kBusy},
      {EROFS, ErrorCode::kReadOnly},
      {ENOTEMPTY, ErrorCode::kNotEmpty},
      {ENOTDIR, ErrorCode::kNotDirectory},
      {EISDIR, ErrorCode::kIsDirectory},
      {ENAMETOOLONG, ErrorCode::kNameTooLong},
      {EFBIG, ErrorCode::kTooLarge},
      {EBADF, ErrorCode::kBadHandle},
      {EINVAL, ErrorCode::kInvalid},
      {EIO, ErrorCode::kIo},
      {EMFILE, ErrorCode::kIo},
  };
  for (const auto& [errno_value, code] : all) {
    const Error error = system_error("open /a", errno_value);
    EXPECT_EQ(error.code(), code) << error.message();
    EXPECT_EQ(error.errno_value(), errno_value);
    EXPECT_EQ(io_error("open /a", errno_value).code(), ErrorCode::kIo);
    EXPECT_EQ(io_error("open /a", errno_value).errno_value(), errno_value);
  }
  EXPECT_EQ(system_error("open /a", ENOENT).message(), "open /a: No such file or directory");
}

TEST(SystemError, OnlyTheDeviceFailsWithADeviceFailure) {
  EXPECT_TRUE(is_device_failure(system_error("read", EIO)));
  EXPECT_FALSE(is_device_failure(system_error("read", EMFILE)));
  EXPECT_FALSE(is_device_failure(Error(ErrorCode::kIo, "read")));
}

TEST(SystemError, PermissionsAndReadOnlyMediaRefuseWriting) {
  EXPECT_TRUE(refuses_writing(system_error("open", EACCES)));
  EXPECT_TRUE(refuses_writing(system_error("open", EROFS)));
  EXPECT_FALSE(refuses_writing(system_error("open", ENOENT)));
  EXPECT_FALSE(refuses_writing(Error(ErrorCode::kReadOnly, "sealed")));
}

}  // namespace
}  // namespace varve::base
