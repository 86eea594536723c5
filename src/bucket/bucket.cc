// SPDX-License-Identifier: Apache-2.0
#include "bucket/bucket.h"

#include <fmt/core.h>

#include <algorithm>

namespace varve::bucket {
namespace {

// Returns the length of the UTF-8 character at the start of `text`, or 0 if there is none.
std::size_t character_bytes(std::string_view text) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = at(0);
  if (first < 0x80) return 1;
  const std::size_t bytes = first >= 0xF5 ? 0 : first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || bytes == 0 || bytes > text.size()) return 0;
  unsigned code = first & (0x7FU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((at(i) & 0xC0U) != 0x80) return 0;
    code = code << 6U | (at(i) & 0x3FU);
  }
  const bool is_overlong = (bytes == 3 && code < 0x800) || (bytes == 4 && code < 0x10000);
  const bool is_surrogate = code >= 0xD800 && code <= 0xDFFF;
  return is_overlong || is_surrogate || code > 0x10FFFF ? 0 : bytes;
}

}  // namespace

std::string_view name_of(RequestKind kind) {
  switch (kind) {
    case RequestKind::kPut:
      return "put";
    case RequestKind::kGet:
      return "get";
    case RequestKind::kList:
      return "list";
    case RequestKind::kRemove:
      return "remove";
    case RequestKind::kHead:
      return "head";
    case RequestKind::kCopy:
      return "copy";
  }
  return "";
}

Traffic difference(const Traffic& now, const Traffic& before) {
  Traffic more{};
  for (std::size_t kind = 0; kind < more.size(); ++kind) {
    more[kind].requests = now[kind].requests - before[kind].requests;
    more[kind].repeated = now[kind].repeated - before[kind].repeated;
    more[kind].bytes_sent = now[kind].bytes_sent - before[kind].bytes_sent;
    more[kind].bytes_received = now[kind].bytes_received - before[kind].bytes_received;
  }
  return more;
}

Result<void> Bucket::remove_version(const std::string& name, const std::string& /*version*/) {
  return Error(ErrorCode::kUnsupported, describe() + "/" + name + ": the store has no versions");
}

Result<void> Bucket::lock(const std::string& name, const ObjectLock& /*lock*/) {
  return Error(ErrorCode::kUnsupported, describe() + "/" + name + ": the store has no locks");
}

bool is_valid_name(std::string_view name, std::size_t prefix_bytes) {
  if (name.empty() || prefix_bytes > kNameBytesMax || name.size() > kNameBytesMax - prefix_bytes) {
    return false;
  }
  for (auto left = name; !left.empty();) {
    const auto bytes = character_bytes(left);
    if (bytes == 0) return false;
    const auto first = static_cast<unsigned char>(left[0]);
    const bool is_control = first < 0x20 || first == 0x7F || (first == 0xC2 && left[1] < '\xA0');
    if (is_control) return false;
    left.remove_prefix(bytes);
  }
  for (std::size_t start = 0; start <= name.size();) {
    const auto end = std::min(name.find('/', start), name.size());
    const auto part = name.substr(start, end - start);
    if (part.empty() || part == "." || part == "..") return false;
    start = end + 1;
  }
  return true;
}

Result<void> check_copied_name(std::string_view prefix, std::string_view name) {
  if (prefix.find('%') == std::string_view::npos && name.find('%') == std::string_view::npos) {
    return {};
  }
  return Error(ErrorCode::kUnsupported, std::string(prefix) + std::string(name) +
                                            ": stores copy no objects with a % in their names");
}

Result<void> list_all(Bucket& bucket, const std::string& prefix, const std::string& after,
                      const std::function<Result<void>(const ObjectInfo&)>& found,
                      std::uint64_t objects_max) {
  std::string last = after;
  std::uint64_t objects = 0;
  while (true) {
    VARVE_TRY_ASSIGN(const auto page, bucket.list(prefix, last, kListMax));
    for (const auto& object : page.objects) VARVE_TRY(found(object));
    if (page.is_last) return {};
    objects += page.objects.size();
    if (objects >= objects_max) {
      return Error(ErrorCode::kCorrupt,
                   fmt::format("{} lists more than {} objects below {}, and does not end",
                               bucket.describe(), objects_max, prefix));
    }
    if (page.objects.empty()) {
      return Error(ErrorCode::kCorrupt, bucket.describe() + " lists an empty page before the last");
    }
    last = page.objects.back().name;
  }
}

}  // namespace varve::bucket
