// SPDX-License-Identifier: Apache-2.0
#include "transfer/pax_check.h"

#include <charconv>
#include <cstddef>

namespace varve::transfer {
namespace {

constexpr std::size_t kHeaderBytes = 512;

/// Returns the size in a header as read by libarchive: an octal number, or a binary number if the
/// first byte has the highest bit. Returns 0 for other texts.
std::size_t size_in(std::string_view header) {
  constexpr std::size_t kSizeAt = 124;
  constexpr std::size_t kSizeBytes = 12;
  constexpr std::size_t kSizeMax = std::size_t{1} << 40;  // No header is as long.
  std::string_view digits = header.substr(kSizeAt, kSizeBytes);
  std::size_t size = 0;
  if ((static_cast<unsigned char>(digits.front()) & 0x80) != 0) {
    size = static_cast<unsigned char>(digits.front()) & 0x7f;
    for (const char c : digits.substr(1)) {
      if (size >= kSizeMax) return kSizeMax;
      size = size << 8 | static_cast<unsigned char>(c);
    }
    return size;
  }
  while (digits.starts_with(' ') || digits.starts_with('\t')) digits.remove_prefix(1);
  std::from_chars(digits.data(), digits.data() + digits.size(), size, 8);
  return size;
}

/// Checks the complete records "LENGTH KEY=VALUE\n" of an extended header.
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
  constexpr std::string_view kOther = "LKA";  // Long names and the ACL of Solaris.
  constexpr char kVolume = 'V';               // libarchive skips only the header, not the data.
  while (headers.size() >= kHeaderBytes) {
    const std::string_view header = headers.substr(0, kHeaderBytes);
    headers.remove_prefix(kHeaderBytes);
    if (header.find_first_not_of('\0') == std::string_view::npos) continue;
    const char type = header[kTypeAt];
    if (type == kVolume) continue;
    const std::size_t bytes = size_in(header);
    if (kExtended.find(type) != std::string_view::npos) {
      VARVE_TRY(check_records(headers.substr(0, bytes)));
    } else if (kOther.find(type) == std::string_view::npos) {
      return {};
    }
    const std::size_t padded = (bytes + kHeaderBytes - 1) / kHeaderBytes * kHeaderBytes;
    if (padded > headers.size()) return {};
    headers.remove_prefix(padded);
  }
  return {};
}

}  // namespace varve::transfer
