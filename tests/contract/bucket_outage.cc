// SPDX-License-Identifier: Apache-2.0
// A bucket of a real store whose processes are killed meanwhile.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "bucket_subject.h"

namespace varve::bucket {
namespace {

constexpr unsigned kWriters = 4;
constexpr std::size_t kBytes = 300000;

std::vector<std::byte> content(unsigned writer, unsigned number) {
  return std::vector(kBytes, static_cast<std::byte>(writer * 60 + number));
}
std::string name(unsigned writer, unsigned number) {
  return "w" + std::to_string(writer) + "/" + std::to_string(number);
}

// VARVE_TEST_S3_OUTAGE is a command that kills processes of the store, and starts them again.
TEST(RealStoreOutage, LosesNoObjectAndCreatesNoneTwice) {
  const char* const outage = std::getenv("VARVE_TEST_S3_OUTAGE");
  if (std::getenv("VARVE_TEST_S3") == nullptr || outage == nullptr) GTEST_SKIP();
  test::RealStoreSubject subject;
  const auto bucket = subject.open("");
  ASSERT_NE(bucket, nullptr);
  std::atomic<bool> is_over = false;
  std::array<unsigned, kWriters> written{};
  std::vector<std::thread> writers;
  for (unsigned writer = 0; writer < kWriters; ++writer) {
    writers.emplace_back([&, writer] {
      auto& count = written.at(writer);
      // Some objects before the outage, during it, and after it.
      for (unsigned after = 0; after < 3; ++count) {
        if (is_over) ++after;
        const auto body = content(writer, count);
        const std::array<std::span<const std::byte>, 1> parts{body};
        const auto made =
            bucket->put(name(writer, count), parts, {.condition = PutCondition::kIfAbsent});
        ASSERT_TRUE(made) << name(writer, count) << ": " << made.error().message();
      }
    });
  }
  const int status = std::system(outage);
  is_over = true;
  for (auto& writer : writers) writer.join();
  ASSERT_EQ(status, 0);
  std::size_t expected = 0;
  for (unsigned writer = 0; writer < kWriters; ++writer) {
    for (unsigned number = 0; number < written.at(writer); ++number, ++expected) {
      const auto got = bucket->get_all(name(writer, number), kBytes);
      ASSERT_TRUE(got) << name(writer, number) << ": " << got.error().message();
      EXPECT_EQ(*got, content(writer, number)) << name(writer, number);
    }
  }
  std::size_t listed = 0;
  EXPECT_TRUE(list_all(*bucket, "", "", [&](const ObjectInfo&) {
    ++listed;
    return Result<void>();
  }));
  EXPECT_EQ(listed, expected);
  std::uint64_t repeated = 0;
  for (const auto& counts : bucket->traffic()) repeated += counts.repeated;
  EXPECT_GT(repeated, 0) << "the outage was not seen";
  std::printf("%zu objects, %llu requests repeated\n", expected,
              static_cast<unsigned long long>(repeated));
}

}  // namespace
}  // namespace varve::bucket
