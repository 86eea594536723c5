// SPDX-License-Identifier: Apache-2.0
// The known answers are the examples of "Signature Calculations for the Authorization Header" in
// the Amazon S3 API Reference.
#include "bucket/signer.h"

#include <gtest/gtest.h>

#include <array>
#include <span>
#include <string>

namespace varve::bucket {
namespace {

constexpr Timestamp kTime{.seconds = 1369353600};  // 2013-05-24, 00:00:00 UTC.
const std::string kEmptySha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

StoreCredentials credentials() {
  constexpr std::string_view kSecret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
  return {.access_key_id = "AKIAIOSFODNN7EXAMPLE",
          .secret_access_key = *Secret::copy_of(std::as_bytes(std::span(kSecret)))};
}

std::string signature(const SignedParts& request) {
  const auto header = authorization(request, credentials(), "us-east-1", kTime);
  EXPECT_TRUE(header);
  EXPECT_TRUE(
      header->starts_with("AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/"
                          "us-east-1/s3/aws4_request,SignedHeaders=host;"))
      << *header;
  return header->substr(header->find("Signature=") + 10);
}

SignedParts request(std::string path, Fields query, Fields more) {
  SignedParts parts{.method = "GET",
                    .path = std::move(path),
                    .query = std::move(query),
                    .headers = {{"x-amz-date", "20130524T000000Z"},
                                {"x-amz-content-sha256", kEmptySha256},
                                {"host", "examplebucket.s3.amazonaws.com"}},
                    .payload_sha256 = kEmptySha256};
  parts.headers.insert(parts.headers.end(), more.begin(), more.end());
  return parts;
}

TEST(Signer, SignsTheExampleOfGetObject) {
  EXPECT_EQ(signature(request("/test.txt", {}, {{"range", "bytes=0-9"}})),
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

TEST(Signer, SignsTheExampleOfGetLifecycle) {
  EXPECT_EQ(signature(request("/", {{"lifecycle", ""}}, {})),
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
}

TEST(Signer, SignsTheExampleOfListObjects) {
  EXPECT_EQ(signature(request("/", {{"prefix", "J"}, {"max-keys", "2"}}, {})),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

TEST(Signer, SignsAHeaderBeforeHost) {
  const std::string body = "Welcome to Amazon S3.";
  const std::array<std::span<const std::byte>, 2> parts{std::as_bytes(std::span(body).first(7)),
                                                        std::as_bytes(std::span(body).subspan(7))};
  auto put = request(
      "/test$file.text", {},
      {{"date", "Fri, 24 May 2013 00:00:00 GMT"}, {"x-amz-storage-class", "REDUCED_REDUNDANCY"}});
  put.method = "PUT";
  put.payload_sha256 = *sha256_hex(parts);
  EXPECT_EQ(put.payload_sha256, "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072");
  put.headers[1].second = put.payload_sha256;
  const auto header = authorization(put, credentials(), "us-east-1", kTime);
  ASSERT_TRUE(header);
  EXPECT_EQ(header->substr(header->find("Signature=") + 10),
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
}

TEST(Signer, BlanksOfAHeaderDoNotCount) {
  EXPECT_EQ(signature(request("/", {}, {{"x-amz-meta-a", "  a   b "}})),
            signature(request("/", {}, {{"x-amz-meta-a", "a b"}})));
}

TEST(Signer, EncodesAllButUnreservedCharacters) {
  EXPECT_EQ(uri_encode("AZaz09-._~", false), "AZaz09-._~");
  EXPECT_EQ(uri_encode("a b+=:%\xC3\xA9//&?*'()", true),
            "a%20b%2B%3D%3A%25%C3%A9//%26%3F%2A%27%28%29");
  EXPECT_EQ(uri_encode("a/b", false), "a%2Fb");
}

TEST(Signer, SortsAQueryByItsEncodedNames) {
  EXPECT_EQ(query_text({{"b", "2"}, {"a-b", "1"}, {"a", "x=y&z"}, {"uploads", ""}}),
            "a=x%3Dy%26z&a-b=1&b=2&uploads=");
}

TEST(Signer, HashesAreThoseOfTheStandards) {
  const std::string text = "abc";
  const std::array<std::span<const std::byte>, 1> parts{std::as_bytes(std::span(text))};
  EXPECT_EQ(*sha256_hex(parts), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(md5_base64(parts), "kAFQmDzST7DWlj99KOF/cg==");
  EXPECT_EQ(*sha256_hex({}), kEmptySha256);
}

}  // namespace
}  // namespace varve::bucket
