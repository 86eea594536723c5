// SPDX-License-Identifier: Apache-2.0
// A store, or an attacker between it and Varve, may answer with anything.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "bucket/open_bucket.h"
#include "support/raw_http_server.h"
#include "support/s3_store_process.h"

namespace varve::bucket {
namespace {

using test::http_answer;
using test::RawHttpServer;

std::unique_ptr<S3Bucket> bucket_of(const RawHttpServer& server) {
  return test::S3StoreProcess::open(
      "p/",
      {.endpoint = server.endpoint(),
       .credentials = [] { return test::store_credentials("AKIDTEST", "the-secret"); }},
      test::quick_tuning());
}

// Reads 10 bytes at an offset of 5. Returns the error; kNoSpace if there was none.
ErrorCode read_error(const RawHttpServer::Answer& answer, std::size_t tries = 4) {
  RawHttpServer server([&](const std::string&) { return answer; });
  std::array<std::byte, 10> out{};
  const auto got = bucket_of(server)->get("x", 5, out);
  EXPECT_EQ(server.requests().size(), tries);
  return got ? ErrorCode::kNoSpace : got.error().code();
}

TEST(HostileStore, CannotExhaustMemoryWithHeaders) {
  const std::string header = "x-a: " + std::string(1000, 'a') + "\r\n";
  EXPECT_EQ(read_error({"HTTP/1.1 200 x\r\n", header}), ErrorCode::kCorrupt);
  EXPECT_EQ(read_error({"HTTP/1.1 200 x\r\nx-a: ", std::string(1000, 'a')}), ErrorCode::kCorrupt);
}

TEST(HostileStore, CannotExhaustMemoryWithABody) {
  const std::string much(10000, 'x');
  EXPECT_EQ(read_error({"HTTP/1.1 206 x\r\nContent-Range: bytes 5-14/99\r\n\r\n", much}),
            ErrorCode::kCorrupt);
  EXPECT_EQ(read_error({"HTTP/1.1 404 x\r\n\r\n<Error>", much}), ErrorCode::kCorrupt);
  const RawHttpServer::Answer page{"HTTP/1.1 200 x\r\n\r\n<ListBucketResult>", much};
  RawHttpServer server([&](const std::string&) { return page; });
  EXPECT_EQ(bucket_of(server)->list("", "", 10).error().code(), ErrorCode::kCorrupt);
  RawHttpServer other([&](const std::string&) { return page; });
  EXPECT_EQ(bucket_of(other)->get_all("x", 100000).error().code(), ErrorCode::kTooLarge);
}

TEST(HostileStore, CannotAnswerWithAnotherRange) {
  const std::string ten(10, 'x');
  const auto part = [&](const std::string& range, const std::string& body) {
    return http_answer(206, body, range.empty() ? "" : "Content-Range: " + range + "\r\n");
  };
  EXPECT_EQ(read_error({part("bytes 5-14/99", ten), {}}, 1), ErrorCode::kNoSpace) << "a right one";
  EXPECT_EQ(read_error({part("bytes 5-9/10", "12345"), {}}, 1), ErrorCode::kNoSpace)
      << "a right end";
  EXPECT_EQ(read_error({part("bytes 6-15/99", ten), {}}), ErrorCode::kCorrupt);
  EXPECT_EQ(read_error({part("bytes 5-14/14", ten), {}}), ErrorCode::kCorrupt);
  EXPECT_EQ(read_error({part("bytes 5-15/99", ten), {}}), ErrorCode::kCorrupt);
  EXPECT_EQ(read_error({part("bytes 5-9/99", "12345"), {}}), ErrorCode::kCorrupt) << "shortened";
  EXPECT_EQ(read_error({part("bytes 5-14/99", "12345"), {}}), ErrorCode::kCorrupt);
  EXPECT_EQ(read_error({part("", ten), {}}), ErrorCode::kCorrupt);
  EXPECT_EQ(read_error({part("x", ten), {}}), ErrorCode::kCorrupt);
  EXPECT_EQ(read_error({http_answer(200, ten), {}}), ErrorCode::kCorrupt) << "from the start";
  EXPECT_EQ(read_error({http_answer(204, ""), {}}), ErrorCode::kCorrupt);
  EXPECT_EQ(read_error({http_answer(416, "", "Content-Range: bytes */99\r\n"), {}}),
            ErrorCode::kCorrupt)
      << "the object has the range";
}

TEST(HostileStore, CannotAnswerWithoutHttp) {
  EXPECT_EQ(read_error({"hello\r\n\r\n", {}}), ErrorCode::kCorrupt);
  EXPECT_EQ(read_error({"HTTP/1.1 999 x\r\nContent-Length: 0\r\n\r\n", {}}), ErrorCode::kCorrupt);
}

TEST(HostileStore, CannotChangeTheBytesOfAWholeObject) {
  const auto sha256 = std::string("x-amz-meta-varve-sha256: ") +
                      "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\r\n";
  RawHttpServer right([&](const std::string&) -> RawHttpServer::Answer {
    return {http_answer(200, "abc", sha256), {}};
  });
  EXPECT_EQ(bucket_of(right)->get_all("x", 10)->size(), 3);
  RawHttpServer wrong([&](const std::string&) -> RawHttpServer::Answer {
    return {http_answer(200, "abd", sha256), {}};
  });
  EXPECT_EQ(bucket_of(wrong)->get_all("x", 10).error().code(), ErrorCode::kCorrupt);
}

TEST(HostileStore, CannotSendRequestsToAnotherHost) {
  RawHttpServer other([](const std::string&) { return RawHttpServer::Answer{}; });
  for (const int status : {301, 302, 303, 307, 308}) {
    const auto headers = "Location: " + other.endpoint() +
                         "/varve-test/p/x\r\nx-amz-bucket-region: evil.example/\r\n";
    RawHttpServer server([&](const std::string&) -> RawHttpServer::Answer {
      return {
          http_answer(status, "<Error><Code>PermanentRedirect</Code><Region>a.b</Region></Error>",
                      headers),
          {}};
    });
    std::array<std::byte, 10> out{};
    const auto got = bucket_of(server)->get("x", 0, out);
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code(), ErrorCode::kInvalid) << got.error().message();
    EXPECT_EQ(server.requests().size(), 1);
  }
  EXPECT_TRUE(other.requests().empty());
}

TEST(HostileStore, MayOnlyNameAnotherRegion) {
  RawHttpServer server([](const std::string& request) -> RawHttpServer::Answer {
    if (request.find("/eu-9/s3/aws4_request") != std::string::npos) {
      return {http_answer(200, "abc"), {}};
    }
    return {http_answer(301, "", "x-amz-bucket-region: eu-9\r\n"), {}};
  });
  EXPECT_EQ(bucket_of(server)->get_all("x", 10)->size(), 3);
  EXPECT_EQ(server.requests().size(), 2);
}

TEST(HostileStore, CannotMoveTheBucketWithoutEnd) {
  int answers = 0;
  RawHttpServer server([&](const std::string&) -> RawHttpServer::Answer {
    return {http_answer(301, "", "x-amz-bucket-region: r-" + std::to_string(++answers) + "\r\n"),
            {}};
  });
  EXPECT_EQ(bucket_of(server)->get_all("x", 10).error().code(), ErrorCode::kInvalid);
  EXPECT_EQ(server.requests().size(), 5);
}

// A page that names more to come. Its names follow `start-after` of the request in some way.
std::string page_of(const std::vector<std::string>& names, bool is_last = false) {
  std::string page = "<ListBucketResult><IsTruncated>" + std::string(is_last ? "false" : "true") +
                     "</IsTruncated>";
  for (const auto& name : names) {
    page += "<Contents><Key>p/" + name +
            "</Key><Size>1</Size><LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>";
  }
  return page + "</ListBucketResult>";
}

Result<void> list_100(Bucket& bucket) {
  return list_all(
      bucket, "", "", [](const ObjectInfo&) { return Result<void>(); }, 100);
}

TEST(HostileStore, CannotListNewNamesWithoutEnd) {
  int pages = 0;
  RawHttpServer server([&](const std::string&) -> RawHttpServer::Answer {
    const auto name = std::to_string(10000 + ++pages);
    return {http_answer(200, page_of({name + "a", name + "b"}, pages == 1000)), {}};
  });
  const auto bucket = bucket_of(server);
  const auto listed = list_100(*bucket);
  ASSERT_FALSE(listed);
  EXPECT_EQ(listed.error().code(), ErrorCode::kCorrupt);
  EXPECT_EQ(server.requests().size(), 50U);
}

TEST(HostileStore, CannotListTheSameNamesWithoutEnd) {
  for (const auto& names :
       std::vector<std::vector<std::string>>{{"a"}, {"a", "a"}, {"b", "a"}, {}}) {
    RawHttpServer server([&](const std::string&) -> RawHttpServer::Answer {
      return {http_answer(200, page_of(names)), {}};
    });
    const auto bucket = bucket_of(server);
    const auto listed = list_100(*bucket);
    ASSERT_FALSE(listed);
    EXPECT_EQ(listed.error().code(), ErrorCode::kCorrupt);
    EXPECT_LE(server.requests().size(), 5U);  // A wrong answer is asked for four times.
  }
}

TEST(HostileStore, CannotHaveUploadsAbortedWithoutEnd) {
  int lists = 0;
  RawHttpServer server([&](const std::string& request) -> RawHttpServer::Answer {
    if (request.starts_with("DELETE")) return {http_answer(204, ""), {}};
    const auto upload =
        ++lists == 20 ? std::string() : "<Upload><Key>p/a</Key><UploadId>1</UploadId></Upload>";
    return {
        http_answer(200, "<ListMultipartUploadsResult>" + upload + "</ListMultipartUploadsResult>"),
        {}};
  });
  EXPECT_TRUE(bucket_of(server)->remove_unfinished(""));
  EXPECT_EQ(server.requests().size(), 3U);  // A list, the removal, and a list with nothing new.
}

TEST(HostileStore, CannotExpandEntities) {
  RawHttpServer server([](const std::string&) -> RawHttpServer::Answer {
    return {http_answer(200,
                        "<!DOCTYPE l [<!ENTITY a \"aaaaaaaaaa\">]><ListBucketResult>"
                        "<IsTruncated>false</IsTruncated>&a;</ListBucketResult>"),
            {}};
  });
  EXPECT_EQ(bucket_of(server)->list("", "", 10).error().code(), ErrorCode::kCorrupt);
}

TEST(HostileStore, CannotEndTheDocumentOfAnUpload) {
  RawHttpServer server([](const std::string& request) -> RawHttpServer::Answer {
    if (request.starts_with("HEAD")) {
      return {
          "HTTP/1.1 200 x\r\nConnection: close\r\nContent-Length: 9\r\n"
          "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n",
          {}};
    }
    if (request.find("uploads=") != std::string::npos) {
      return {http_answer(200,
                          "<InitiateMultipartUploadResult><UploadId>&lt;\"&amp;&#10;/../?x"
                          "</UploadId></InitiateMultipartUploadResult>"),
              {}};
    }
    if (request.starts_with("PUT")) {
      return {http_answer(200, "<CopyPartResult><ETag>&lt;/ETag&gt;</ETag></CopyPartResult>"), {}};
    }
    return {http_answer(204, ""), {}};
  });
  EXPECT_EQ(bucket_of(server)->copy_prefix("x", 1, "y", {}).error().code(), ErrorCode::kCorrupt);
  const auto requests = server.requests();
  ASSERT_EQ(requests.size(), 4);
  EXPECT_TRUE(requests[3].starts_with(
      "DELETE /varve-test/p/y?uploadId=%3C%22%26%0A%2F..%2F%3Fx HTTP/1.1\r\n"))
      << requests[3];
}

TEST(HostileStore, ALateErrorIsNoSuccess) {
  int completions = 0;
  RawHttpServer server([&](const std::string& request) -> RawHttpServer::Answer {
    if (request.starts_with("HEAD")) {
      return {
          "HTTP/1.1 200 x\r\nConnection: close\r\nContent-Length: 9\r\n"
          "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n",
          {}};
    }
    if (request.find("uploads=") != std::string::npos) {
      return {http_answer(200,
                          "<InitiateMultipartUploadResult><UploadId>1</UploadId>"
                          "</InitiateMultipartUploadResult>"),
              {}};
    }
    if (request.starts_with("PUT")) {
      return {http_answer(200, "<CopyPartResult><ETag>\"1\"</ETag></CopyPartResult>"), {}};
    }
    if (++completions < 3) {
      return {
          http_answer(200, "  <?xml version=\"1.0\"?><Error><Code>InternalError</Code></Error>"),
          {}};
    }
    return {http_answer(200, "<CompleteMultipartUploadResult/>"), {}};
  });
  const auto copied = bucket_of(server)->copy_prefix("x", 1, "y", {});
  EXPECT_TRUE(copied) << copied.error().message();
  EXPECT_EQ(completions, 3);
}

TEST(HostileStore, ItsMessagesCannotControlATerminal) {
  RawHttpServer server([](const std::string&) -> RawHttpServer::Answer {
    return {http_answer(403,
                        "<Error><Code>AccessDenied</Code><Message>a\x9b\x7f&#13;b"
                        "</Message></Error>"),
            {}};
  });
  const auto got = bucket_of(server)->get_all("x", 10);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code(), ErrorCode::kNotPermitted);
  for (const char c : got.error().message()) EXPECT_TRUE(c >= ' ' && c <= '~') << int(c);
  EXPECT_EQ(got.error().message().find("the-secret"), std::string::npos);
}

TEST(HostileStore, NeverReceivesTheSecret) {
  RawHttpServer server([](const std::string&) -> RawHttpServer::Answer {
    return {
        http_answer(200, "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>"),
        {}};
  });
  EXPECT_TRUE(bucket_of(server)->list("", "", 10));
  ASSERT_EQ(server.requests().size(), 1);
  EXPECT_EQ(server.requests()[0].find("the-secret"), std::string::npos);
}

}  // namespace
}  // namespace varve::bucket
