// SPDX-License-Identifier: Apache-2.0
#include "control/protocol.h"

#include <gtest/gtest.h>

namespace varve::control {
namespace {

TEST(ControlProtocol, SealRequestRoundTripsWithAnyBytesInNames) {
  Request request;
  request.operation = Operation::kSeal;
  request.seal = {.version = "a\xff\"\n/b", .new_name = "new", .wait = true, .keep = true};
  const std::string line = encode(request);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto decoded = decode_request(line);
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->operation, Operation::kSeal);
  EXPECT_EQ(decoded->seal.version, request.seal.version);
  EXPECT_EQ(decoded->seal.new_name, "new");
  EXPECT_TRUE(decoded->seal.wait);
  EXPECT_TRUE(decoded->seal.keep);
}

TEST(ControlProtocol, ErrorRoundTripsWithCodeAndErrno) {
  Reply reply;
  reply.error = Error(ErrorCode::kBusy, "files are open", 16);
  const std::string line = encode(reply);
  EXPECT_NE(line.find("\"exit\":1"), std::string::npos) << line;
  const auto decoded = decode_reply(line);
  ASSERT_TRUE(decoded);
  ASSERT_TRUE(decoded->error);
  EXPECT_EQ(decoded->error->code(), ErrorCode::kBusy);
  EXPECT_EQ(decoded->error->message(), "files are open");
  EXPECT_EQ(decoded->error->errno_value(), 16);
}

TEST(ControlProtocol, VersionAndStatsRoundTrip) {
  Reply reply;
  reply.version = VersionInfo{.series = SeriesId{4},
                              .number = VersionNumber{5},
                              .series_name = "laptop",
                              .name = "mon\xc3\xa9",
                              .state = VersionState::kSealed,
                              .opened_at = {-5, 1},
                              .sealed_at = {1700000000, 999999999},
                              .entries = 6,
                              .logical_bytes = 1ULL << 63,
                              .unique_bytes = 8,
                              .stored_bytes = 9};
  reply.stats.emplace();
  reply.stats->chunks = 11;
  reply.stats->staging_bytes = 12;
  const auto decoded = decode_reply(encode(reply));
  ASSERT_TRUE(decoded);
  ASSERT_TRUE(decoded->version);
  EXPECT_EQ(decoded->version->series, SeriesId{4});
  EXPECT_EQ(decoded->version->name, "mon\xc3\xa9");
  EXPECT_EQ(decoded->version->state, VersionState::kSealed);
  EXPECT_EQ(decoded->version->opened_at, (Timestamp{-5, 1}));
  EXPECT_EQ(decoded->version->logical_bytes, 1ULL << 63);
  ASSERT_TRUE(decoded->stats);
  EXPECT_EQ(decoded->stats->chunks, 11U);
  EXPECT_EQ(decoded->stats->staging_bytes, 12U);
}

TEST(ControlProtocol, WrongInputReturnsInvalid) {
  for (const char* line : {"", "{", "[]", "null", "{}", "{\"op\":1}", "{\"op\":\"format\"}",
                           "{\"op\":\"seal\"}", "{\"op\":\"seal\",\"version\":[256]}",
                           "{\"op\":\"seal\",\"version\":\"a/b\",\"wait\":\"yes\"}",
                           "{\"op\":\"clone\",\"version\":\"a/b\"}"}) {
    const auto request = decode_request(line);
    ASSERT_FALSE(request) << line;
    EXPECT_EQ(request.error().code(), ErrorCode::kInvalid) << line;
    EXPECT_FALSE(decode_reply(line)) << line;
  }
}

}  // namespace
}  // namespace varve::control
