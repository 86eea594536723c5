// SPDX-License-Identifier: Apache-2.0
#include "transfer/pax_check.h"

#include <charconv>
#include <cstddef>

namespace varve::transfer {
namespace {

constexpr std::size_t kHeaderBytes = 512;

/// Returns the size in a header; 0 if it is no octal number.
std::size_t size_in(std::string_view header) {
  constexpr std::size_t kSizeAt = 124;
  constexpr std::size_t kSizeBytes = 12;
  std::string_view digits = header.substr(kSizeAt, kSizeBytes);
  while (digits.starts_with(' ')) digits.remove_prefix(1);
  std::size_t size = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), size, 8);
  return size;
}

/// Checks the records "LENGTH KEY=VALUE\n" of an extended header, as far as they are whole.
Result<void> check_records(std::string_view records) {
  while (!records.empty()) {
    std::size_t length = 0;
    const auto parsed = std::from_chars(records.data(), records.data() + records.size(), length);
    const auto digits = static_cast<std::size_t>(parsed.ptr - records.data());
    if (digits == 0 || length <= digits + 1 || length > records.size()) return {};
    const std::string_view record = records.substr(digits + 1, length - digits - 1);
    records.remove_prefix(length);
    const std::size_t equals = record.find('=');
    if (equals == std::string_view::npos) return {};
    const std::string_view key = record.substr(0, equals);
    const bool is_name = key == "path" || key == "linkpath" || key == "GNU.sparse.name";
    if (is_name && record.find('\0') != std::string_view::npos) {
      return Error(ErrorCode::kInvalid, "the archive has a name with a zero byte");
    }
  }
  return {};
}

}  // namespace

Result<void> check_pax_names(std::string_view headers) {
  constexpr std::size_t kTypeAt = 156;
  constexpr std::string_view kExtended = "xXg";
  constexpr std::string_view kLong = "LK";
  while (headers.size() >= kHeaderBytes) {
    const std::string_view header = headers.substr(0, kHeaderBytes);
    headers.remove_prefix(kHeaderBytes);
    if (header.find_first_not_of('\0') == std::string_view::npos) continue;
    const char type = header[kTypeAt];
    const std::size_t bytes = size_in(header);
    if (kExtended.find(type) != std::string_view::npos) {
      VARVE_TRY(check_records(headers.substr(0, bytes)));
    } else if (kLong.find(type) == std::string_view::npos) {
      return {};
    }
    const std::size_t padded = (bytes + kHeaderBytes - 1) / kHeaderBytes * kHeaderBytes;
    if (padded > headers.size()) return {};
    headers.remove_prefix(padded);
  }
  return {};
}

}  // namespace varve::transfer
