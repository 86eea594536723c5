// SPDX-License-Identifier: Apache-2.0
#include "bucket/s3_answers.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>
#include <utility>

#include "bucket/xml_reader.h"

namespace varve::bucket {
namespace {

constexpr std::size_t kShownBytesMax = 200;
constexpr std::size_t kEtagBytesMax = 128;

Error corrupt(std::string_view what) {
  return {ErrorCode::kCorrupt, fmt::format("the store's answer has {}", what)};
}

// Returns the whole text as a number.
std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc() || stop != end) return std::nullopt;
  return value;
}

// Returns the start of a text, without characters that could change a terminal.
std::string printable(std::string_view text) {
  std::string shown(text.substr(0, kShownBytesMax));
  for (auto& c : shown) {
    if (c < ' ' || c > '~') c = '?';
  }
  return shown;
}

std::optional<unsigned> digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

// Decodes a name of a list with encoding-type=url.
std::optional<std::string> url_decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+') {
      decoded += ' ';
    } else if (text[i] != '%') {
      decoded += text[i];
    } else {
      if (text.size() - i < 3) return std::nullopt;
      const auto high = digit(text[i + 1]);
      const auto low = digit(text[i + 2]);
      if (!high || !low) return std::nullopt;
      decoded += static_cast<char>(*high << 4U | *low);
      i += 2;
    }
  }
  return decoded;
}

// The values of one object of a list, as text.
struct ListedObject {
  std::string key{};
  std::string size{};
  std::string modified{};
  std::string storage_class{};
  std::string etag{};
};

// Collects the objects of a page.
struct ListReading {
  std::vector<ListedObject> objects{};
  ListedObject next{};
  std::string encoding{};
  std::string is_truncated{};

  Result<void> add(std::string_view path, const std::string& text, std::size_t objects_max) {
    constexpr std::string_view kRoot = "ListBucketResult";
    if (!path.starts_with(kRoot)) return corrupt("another root element");
    if (path == kRoot) return {};
    path.remove_prefix(kRoot.size() + 1);
    if (path == "EncodingType") encoding = text;
    if (path == "IsTruncated") is_truncated = text;
    if (path == "Contents/Key") next.key = text;
    if (path == "Contents/Size") next.size = text;
    if (path == "Contents/LastModified") next.modified = text;
    if (path == "Contents/StorageClass") next.storage_class = text;
    if (path == "Contents/ETag") next.etag = text;
    if (path != "Contents") return {};
    if (objects.size() == objects_max) return corrupt("more objects than requested");
    objects.push_back(std::exchange(next, {}));
    return {};
  }
};

}  // namespace

StoreError read_store_error(std::string_view document) {
  StoreError error;
  // A document with an early end, or anything else, leaves the values read so far.
  static_cast<void>(read_xml(document, [&](std::string_view path, const std::string& text) {
    if (path == "Error/Code") error.code = printable(text);
    if (path == "Error/Message") error.message = printable(text);
    if (path == "Error/Region") error.region = printable(text);
    return Result<void>();
  }));
  return error;
}

Result<ListPage> read_list_page(std::string_view document, const std::string& prefix,
                                const std::string& below, const std::string& after,
                                std::size_t objects_max) {
  ListReading reading;
  VARVE_TRY(read_xml(document, [&](std::string_view path, const std::string& text) {
    return reading.add(path, text, objects_max);
  }));
  if (reading.is_truncated != "true" && reading.is_truncated != "false") {
    return corrupt("no IsTruncated");
  }
  ListPage page{.is_last = reading.is_truncated == "false"};
  std::string last = after;
  for (auto& listed : reading.objects) {
    if (reading.encoding == "url") {
      auto decoded = url_decoded(listed.key);
      if (!decoded) return corrupt("a name with a wrong %");
      listed.key = *std::move(decoded);
    }
    const auto size = number(listed.size);
    const auto modified = parse_iso_time(listed.modified);
    if (!size || !modified) return corrupt("an object without size or time");
    if (!listed.key.starts_with(prefix + below)) return corrupt("a name outside of the prefix");
    auto name = listed.key.substr(prefix.size());
    if (name <= last) return corrupt("names out of order");
    last = name;
    page.objects.push_back({.name = std::move(name),
                            .bytes = *size,
                            .modified = *modified,
                            .storage_class = printable(listed.storage_class),
                            .etag = plain_etag(listed.etag)});
  }
  if (!page.is_last && page.objects.empty()) return corrupt("no objects, but more to come");
  return page;
}

Result<std::vector<UnfinishedUpload>> read_unfinished(std::string_view document) {
  std::vector<UnfinishedUpload> uploads;
  UnfinishedUpload next;
  std::string encoding;
  bool has_root = false;
  VARVE_TRY(read_xml(document, [&](std::string_view path, const std::string& text) -> Result<void> {
    constexpr std::string_view kRoot = "ListMultipartUploadsResult";
    has_root = has_root || path == kRoot;
    if (!path.starts_with(kRoot)) return corrupt("another root element");
    if (path.ends_with("Result/EncodingType")) encoding = text;
    if (path.ends_with("/Upload/Key")) next.key = text;
    if (path.ends_with("/Upload/UploadId")) next.upload_id = text;
    if (path.ends_with("Result/Upload")) uploads.push_back(std::exchange(next, {}));
    return {};
  }));
  if (!has_root) return corrupt("another root element");
  for (auto& upload : uploads) {
    if (encoding == "url") {
      auto decoded = url_decoded(upload.key);
      if (!decoded) return corrupt("a name with a wrong %");
      upload.key = *std::move(decoded);
    }
    if (upload.key.empty() || upload.upload_id.empty()) return corrupt("an upload without a name");
  }
  return uploads;
}

Result<std::string> read_value(std::string_view document, std::string_view root,
                               std::string_view name) {
  const auto wanted = fmt::format("{}/{}", root, name);
  std::string value;
  VARVE_TRY(read_xml(document, [&](std::string_view path, const std::string& text) {
    if (path == wanted) value = text;
    return Result<void>();
  }));
  if (value.empty()) return corrupt(fmt::format("no {}", wanted));
  return value;
}

std::string plain_etag(std::string_view text) {
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
    text = text.substr(1, text.size() - 2);
  }
  const bool is_plain = std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~'; });
  return text.size() <= kEtagBytesMax && is_plain ? std::string(text) : std::string();
}

std::optional<Timestamp> parse_iso_time(std::string_view text) {
  constexpr std::string_view kForm = "dddd-dd-ddTdd:dd:dd";
  if (text.size() < kForm.size() + 1 || !text.ends_with('Z')) return std::nullopt;
  std::array<int, 6> values{};
  std::size_t at = 0;
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    if (kForm[i] == 'd') {
      if (text[i] < '0' || text[i] > '9') return std::nullopt;
      values[at] = 10 * values[at] + (text[i] - '0');
    } else {
      if (text[i] != kForm[i]) return std::nullopt;
      ++at;
    }
  }
  const auto fraction = text.substr(kForm.size(), text.size() - kForm.size() - 1);
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (!fraction.empty() &&
      (fraction[0] != '.' || !std::ranges::all_of(fraction.substr(1), is_digit)))
    return std::nullopt;
  std::tm parts{};
  parts.tm_year = values[0] - 1900;
  parts.tm_mon = values[1] - 1;
  parts.tm_mday = values[2];
  parts.tm_hour = values[3];
  parts.tm_min = values[4];
  parts.tm_sec = values[5];
  const bool is_date = values[1] >= 1 && values[1] <= 12 && values[2] >= 1 && values[2] <= 31 &&
                       values[3] <= 23 && values[4] <= 59 && values[5] <= 60;
  if (!is_date) return std::nullopt;
  return Timestamp{.seconds = static_cast<std::int64_t>(::timegm(&parts))};
}

std::optional<ContentRange> parse_content_range(std::string_view text) {
  constexpr std::string_view kUnit = "bytes ";
  if (!text.starts_with(kUnit)) return std::nullopt;
  text.remove_prefix(kUnit.size());
  const auto dash = text.find('-');
  const auto slash = text.find('/');
  if (dash == std::string_view::npos || slash == std::string_view::npos || slash < dash) {
    return std::nullopt;
  }
  const auto first = number(text.substr(0, dash));
  const auto last = number(text.substr(dash + 1, slash - dash - 1));
  const auto total = number(text.substr(slash + 1));
  if (!first || !last || !total || *last < *first || *last >= *total) return std::nullopt;
  return ContentRange{.first = *first, .last = *last, .total = *total};
}

}  // namespace varve::bucket
