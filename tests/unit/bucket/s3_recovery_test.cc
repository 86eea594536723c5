// SPDX-License-Identifier: Apache-2.0
// Failures that the answer to one request cannot explain.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "support/s3_store_process.h"

namespace varve::bucket {
namespace {

Result<void> put_ten(Bucket& bucket, const std::string& name) {
  const std::vector<std::byte> body(10);
  const std::array<std::span<const std::byte>, 1> parts{body};
  return bucket.put(name, parts, {});
}

TEST(S3Recovery, AHeadFollowsTheClockAndTheRegion) {
  test::S3StoreProcess store;
  ASSERT_TRUE(store.is_running());
  ASSERT_TRUE(put_ten(*store.open("p/"), "x"));
  for (const auto* setting : {"clock_offset 7200", "region eu-test-1"}) {
    ASSERT_EQ(store.command(std::string("set ") + setting), "ok");
    const auto bucket = store.open("p/");
    const auto head = bucket->head("x");
    ASSERT_TRUE(head) << setting << ": " << head.error().message();
    EXPECT_EQ(head->bytes, 10);
    EXPECT_EQ(bucket->head("y").error().code(), ErrorCode::kNotFound);
  }
}

TEST(S3Recovery, AFailureToRenewCredentialsPasses) {
  test::S3StoreProcess store;
  ASSERT_TRUE(store.is_running());
  std::atomic<int> calls = 0;
  auto options = store.options();
  options.credentials = [&]() -> Result<StoreCredentials> {
    const int call = ++calls;
    if (call > 1 && call < 5) return Error(ErrorCode::kIo, "the service does not answer");
    return test::store_credentials("AKIDTEST", "secret/of+the=test", call == 1 ? "" : "new");
  };
  const auto bucket = test::S3StoreProcess::open("p/", options, test::quick_tuning());
  ASSERT_TRUE(put_ten(*bucket, "x"));
  ASSERT_EQ(store.command("set token new"), "ok");
  const auto made = put_ten(*bucket, "y");
  EXPECT_TRUE(made) << made.error().message();
  EXPECT_EQ(calls, 5);
}

}  // namespace
}  // namespace varve::bucket
