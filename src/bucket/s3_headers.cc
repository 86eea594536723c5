// SPDX-License-Identifier: Apache-2.0
#include "bucket/s3_headers.h"

#include <fmt/chrono.h>
#include <fmt/core.h>
#include <openssl/evp.h>

#include <array>
#include <charconv>
#include <ctime>
#include <utility>

#include "base/coding.h"
#include "base/random_bytes.h"
#include "bucket/locking_bucket.h"
#include "bucket/s3_answers.h"
#include "bucket/xml_reader.h"

namespace varve::bucket {

Result<std::string> new_mark(std::string_view call) {
  constexpr std::size_t kDigits = 32;
  VARVE_TRY_ASSIGN(const auto random, base::random_bytes<16>());
  const std::array<std::span<const std::byte>, 2> parts{random, base::as_bytes(call)};
  VARVE_TRY_ASSIGN(const auto digest, sha256_hex(parts));
  return digest.substr(0, kDigits);
}

std::string_view lock_mode_text(LockMode mode) {
  return mode == LockMode::kGovernance ? "GOVERNANCE" : "COMPLIANCE";
}

std::string lock_end_text(const ObjectLock& lock, std::int64_t store_seconds) {
  const auto end = static_cast<std::time_t>(store_seconds + seconds_of(lock));
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(end));
}

void add_checksum(std::span<const std::span<const std::byte>> parts, std::string_view sha256,
                  Fields& headers) {
  auto md5 = md5_base64(parts);
  if (!md5.empty()) {
    headers.emplace_back("content-md5", std::move(md5));
    return;
  }
  // A system that follows FIPS has no MD5.
  std::array<unsigned char, 32> bytes{};
  for (std::size_t i = 0; i < bytes.size() && 2 * i + 2 <= sha256.size(); ++i) {
    std::from_chars(sha256.data() + 2 * i, sha256.data() + 2 * i + 2, bytes[i], 16);
  }
  std::array<unsigned char, 48> text{};
  const int length = EVP_EncodeBlock(text.data(), bytes.data(), static_cast<int>(bytes.size()));
  headers.emplace_back("x-amz-checksum-sha256", std::string(text.begin(), text.begin() + length));
}

Error wrong_answer(std::string_view what) {
  return {ErrorCode::kCorrupt, fmt::format("the store answered with {}", what)};
}

std::string_view header(const S3Answer& answer, std::string_view name) {
  for (const auto& [key, value] : answer.headers) {
    if (key == name) return value;
  }
  return {};
}

Result<void> drop_answer(const Result<S3Answer>& answer) {
  if (answer) return {};
  return answer.error();
}

Result<void> check_document(const S3Answer& answer, std::string_view root) {
  const auto error = read_store_error(answer.body);
  if (!error.code.empty()) {
    return Error(ErrorCode::kUnavailable, fmt::format("{}: {}", error.code, error.message));
  }
  bool has_root = false;
  VARVE_TRY(read_xml(answer.body, [&](std::string_view path, const std::string& /*text*/) {
    has_root = has_root || path == root;
    return Result<void>();
  }));
  if (!has_root) return wrong_answer("another document");
  return {};
}

}  // namespace varve::bucket
