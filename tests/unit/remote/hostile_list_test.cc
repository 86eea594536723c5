// SPDX-License-Identifier: Apache-2.0
// A store whose lists name heads that it does not have.
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "remote/commit_log.h"
#include "remote/head.h"
#include "world.h"

namespace varve::test {
namespace {

/// Lists a newer head each time, and has none of them.
class PromisedHeads final : public LentBucket {
 public:
  explicit PromisedHeads(std::string id)
      : LentBucket(std::make_shared<MemoryBucket>(std::make_shared<MemoryObjects>(), "p/")),
        id_(std::move(id)) {}

  Result<bucket::ListPage> list(const std::string& /*prefix*/, const std::string& /*after*/,
                                std::size_t /*max*/) override {
    if (++lists_ == 10000) return Error(ErrorCode::kInterrupted, "the test ends");
    return bucket::ListPage{.objects = {{.name = remote::head_name(id_, lists_)}}};
  }
  [[nodiscard]] std::size_t lists() const { return lists_; }

 private:
  const std::string id_;
  std::size_t lists_ = 0;
};

TEST(HostileList, ThatPromisesHeadsWithoutEndReturnsCorrupt) {
  const std::string id(32, 'a');
  PromisedHeads bucket(id);
  remote::CommitLog log(bucket, id);
  EXPECT_EQ(code_of(log.later_than(0)), ErrorCode::kCorrupt);
  EXPECT_EQ(bucket.lists(), 64U);
}

}  // namespace
}  // namespace varve::test
