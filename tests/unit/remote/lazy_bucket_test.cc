// SPDX-License-Identifier: Apache-2.0
// Tests which requests a bucket makes that is opened when it is first needed.
#include "remote/lazy_bucket.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "remote/head.h"
#include "remote/head_objects.h"
#include "remote/readable_head.h"
#include "support/memory_bucket.h"
#include "support/temp_repository.h"

namespace varve::remote {
namespace {

using bucket::RequestKind;
using test::must;

class LazyBucketTest : public testing::Test {
 protected:
  LazyBucketTest()
      : lazy_(
            [this]() -> Result<std::unique_ptr<bucket::Bucket>> {
              auto made = std::make_unique<test::MemoryBucket>(objects_);
              made_ = made.get();
              made->set_faults([this](std::uint64_t, RequestKind kind, const std::string&) {
                asked_.push_back(kind);
                return fault_;
              });
              return std::unique_ptr<bucket::Bucket>(std::move(made));
            },
            "s3://memory") {}

  void put(const std::string& name, const std::string& text) {
    const std::array<std::span<const std::byte>, 1> parts{base::as_bytes(text)};
    must(test::MemoryBucket(objects_).put(name, parts, {}));
  }

  std::shared_ptr<test::MemoryObjects> objects_ = std::make_shared<test::MemoryObjects>();
  test::MemoryBucket* made_ = nullptr;
  test::Fault fault_ = test::Fault::kNone;
  std::vector<RequestKind> asked_;
  LazyBucket lazy_;
};

TEST_F(LazyBucketTest, AReadIsTheFirstRequest) {
  put("a", "text");
  EXPECT_EQ(made_, nullptr);
  EXPECT_EQ(must(lazy_.get_all("a", 10)).size(), 4U);
  EXPECT_EQ(asked_, std::vector{RequestKind::kGet});
}

TEST_F(LazyBucketTest, AListIsTheFirstRequest) {
  EXPECT_TRUE(must(lazy_.list("x", {}, 5)).objects.empty());
  EXPECT_EQ(asked_, std::vector{RequestKind::kList});
  EXPECT_TRUE(must(lazy_.list("x", {}, 5)).objects.empty());
  EXPECT_EQ(asked_.size(), 2U);
}

TEST_F(LazyBucketTest, AListSaysMoreAboutARefusal) {
  EXPECT_EQ(test::code_of(lazy_.head("a")), ErrorCode::kNotFound);
  EXPECT_EQ(asked_, (std::vector{RequestKind::kHead, RequestKind::kList}));
  EXPECT_EQ(test::code_of(lazy_.head("a")), ErrorCode::kNotFound);
  EXPECT_EQ(asked_.size(), 3U) << "the store has answered";
}

TEST_F(LazyBucketTest, AStoreThatDoesNotAnswerIsAskedOnce) {
  fault_ = test::Fault::kBefore;
  EXPECT_EQ(test::code_of(lazy_.get_all("a", 10)), ErrorCode::kUnavailable);
  EXPECT_EQ(asked_.size(), 1U);
}

TEST_F(LazyBucketTest, ReadsBesideAListNeedNoneOfTheirOwn) {
  put("a", "text");
  lazy_.assume_reached();
  std::vector<std::byte> out(4);
  Result<std::size_t> got(0);
  lazy_.read_many({{"a", 0, out}},
                  [&](std::size_t, Result<std::size_t> done) { got = std::move(done); });
  EXPECT_EQ(must(got), 4U);
  EXPECT_EQ(asked_, std::vector{RequestKind::kGet});
}

TEST_F(LazyBucketTest, AChangeWaitsForAnAnswer) {
  fault_ = test::Fault::kBefore;
  EXPECT_EQ(test::code_of(lazy_.remove("a")), ErrorCode::kUnavailable);
  EXPECT_EQ(asked_, std::vector{RequestKind::kList});
}

TEST_F(LazyBucketTest, TheKnownHeadIsNotReadAgain) {
  const std::string id(32, 'a');
  std::vector<std::string> texts;
  for (std::uint64_t number = 1; number <= 3; ++number) {
    Head head;
    head.repository_id = id;
    head.number = number;
    head.epoch = 1;
    head.holder = "0123456789abcdef";
    texts.push_back(encode_head(head, nullptr));
    put(head_name(id, number), texts.back());
  }
  CommitLog log(lazy_, id);
  EXPECT_EQ(must(newest_head(log, texts[2])), texts[2]);
  EXPECT_EQ(asked_, std::vector{RequestKind::kList});
  EXPECT_EQ(must(newest_head(log, texts[1])), texts[2]);
  EXPECT_EQ(asked_.size(), 3U);
  EXPECT_EQ(must(newest_head(log)), texts[2]);
}

TEST_F(LazyBucketTest, ObjectsWithNamesOfNoHeadAreNoHeads) {
  const std::string id(32, 'a');
  Head head;
  head.repository_id = id;
  head.number = 1;
  head.epoch = 1;
  head.holder = "0123456789abcdef";
  const auto first = encode_head(head, nullptr);
  put(head_name(id, 1), first);

  for (const auto* const name :
       {"-1", "0000000000", "0000000002.bak", "000000000x", "99999999999", "0000000001/x", "zzz"}) {
    put(head_prefix(id) + name, "junk");
  }

  CommitLog log(lazy_, id);
  EXPECT_EQ(must(newest_head(log)), first);
  EXPECT_EQ(must(newest_head(log, first)), first);
  EXPECT_EQ(must(log.later_than(1)), std::nullopt);
  head.number = 2;
  const auto second = encode_head(head, nullptr);
  put(head_name(id, 2), second);
  EXPECT_EQ(must(newest_head(log, first)), second);
  EXPECT_EQ(must(log.later_than(1)), (Commit{2, second}));
}

}  // namespace
}  // namespace varve::remote
