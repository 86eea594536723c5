// SPDX-License-Identifier: Apache-2.0
#include "bucket/s3_headers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/rand.h>

#include <array>

#include "bucket/s3_answers.h"
#include "bucket/xml_reader.h"

namespace varve::bucket {

Result<std::string> new_mark() {
  std::array<unsigned char, 16> random{};
  if (RAND_bytes(random.data(), static_cast<int>(random.size())) != 1) {
    return Error(ErrorCode::kIo, "no random bytes from OpenSSL");
  }
  return fmt::format("{:02x}", fmt::join(random, ""));
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
