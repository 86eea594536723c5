// SPDX-License-Identifier: Apache-2.0
#include "fs/reply.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

namespace varve::fs {
namespace {

template <typename Kind>
const Kind& as(const Reply& reply) {
  return std::get<Kind>(reply.content);
}

TEST(ValueReply, NoRoomAsksForTheSize) {
  EXPECT_EQ(as<ValueSizeReply>(value_reply("value", 0)).bytes, 5U);
  EXPECT_EQ(as<ValueSizeReply>(value_reply("", 0)).bytes, 0U);
}

TEST(ValueReply, ValueThatFitsExactlyIsReturned) {
  EXPECT_EQ(as<ValueReply>(value_reply("value", 5)).value, "value");
  EXPECT_EQ(as<ValueReply>(value_reply("", 1)).value, "");
}

TEST(ValueReply, ValueThatDoesNotFitIsERANGE) {
  EXPECT_EQ(as<Refusal>(value_reply("value", 4)).errno_value, ERANGE);
}

TEST(Reply, ErrorsOfAnOperationStayErrors) {
  const auto done = done_or(Error(ErrorCode::kBusy, "in use"));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), ErrorCode::kBusy);
  const auto entry = entry_or(Error(ErrorCode::kStale, "gone"));
  ASSERT_FALSE(entry);
  EXPECT_EQ(entry.error().code(), ErrorCode::kStale);
}

TEST(Reply, DoneOrReturnsDone) {
  const auto done = done_or(Result<void>());
  ASSERT_TRUE(done);
  EXPECT_TRUE(std::holds_alternative<Done>(done->content));
}

TEST(GatheredReply, LentBytesLiveAsLongAsTheReply) {
  const auto bytes = std::make_shared<std::string>("lent");
  {
    GatheredReply gathered;
    gathered.lent.push_back({bytes, std::as_bytes(std::span(*bytes))});
    const Result<Reply> reply = Reply(std::move(gathered));
    EXPECT_EQ(bytes.use_count(), 2);
  }
  EXPECT_EQ(bytes.use_count(), 1);
}

TEST(BufferReply, BufferGoesBackToThePoolAfterTheReply) {
  BufferPool pool;
  const std::byte* first = nullptr;
  {
    auto buffer = pool.take();
    first = buffer.data();
    const Result<Reply> reply = Reply(BufferReply{std::move(buffer), 1});
    EXPECT_NE(pool.take().data(), first);
  }
  EXPECT_EQ(pool.take().data(), first);
}

}  // namespace
}  // namespace varve::fs
