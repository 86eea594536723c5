// SPDX-License-Identifier: Apache-2.0
// The difference of a file between two versions, for the page of `varve web`.
#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "cli/output.h"
#include "cli/text_diff.h"
#include "cli/web_answers.h"
#include "cli/web_values.h"

namespace varve::cli {
namespace {

constexpr std::uint64_t kTextBytesMax = std::uint64_t{1} << 20;
constexpr std::size_t kLinesMax = 5000;
constexpr std::size_t kLineBytesMax = 1000;

/// The file on one side of a comparison.
struct TextSide {
  std::string version;  ///< Name of the version.
  bool exists = false;
  std::string text;
  std::string reason;  ///< Reason for a missing text; "" for none.
};

Result<TextSide> read_side(Repository& repository, web::Request request, const std::string& name) {
  const std::string* const number = request.find(name);
  if (number == nullptr) return Error(ErrorCode::kInvalid, "the query needs a number: " + name);
  request.query["version"] = *number;
  TextSide side;
  web::Request root = request;
  root.query["path"].clear();
  VARVE_TRY_ASSIGN(const WebPlace top, find_web_place(repository, root));
  side.version = printable(top.reader->info().name);
  const auto place = find_web_place(repository, request);
  if (!place && place.error().code() == ErrorCode::kNotFound) return side;
  if (!place) return place.error();
  side.exists = true;
  const Attributes& attributes = place->entry.attributes;
  if (!S_ISREG(attributes.mode)) {
    side.reason = std::string("it is a ") + type_text(attributes.mode);
  } else if (attributes.size > kTextBytesMax) {
    side.reason = "it has more than " + size_text(kTextBytesMax, false);
  } else {
    VARVE_TRY_ASSIGN(const auto file, place->reader->open(place->entry.rank));
    side.text.resize(static_cast<std::size_t>(file->size()));
    VARVE_TRY_ASSIGN(const std::size_t got,
                     file->read(0, std::as_writable_bytes(std::span(side.text))));
    if (got != side.text.size()) return Error(ErrorCode::kCorrupt, "it ends before its size");
    if (is_binary(side.text)) side.reason = "it is binary";
  }
  return side;
}

/// Returns a line for the page: at most the first kLineBytesMax bytes. Bytes that are no text
/// become \xNN; a backslash stays single.
std::string line_text(std::string_view line) {
  const bool is_long = line.size() > kLineBytesMax;
  line = line.substr(0, kLineBytesMax);
  std::string text;
  while (!line.empty()) {
    const std::string_view part = line.substr(0, line.find_first_of("\t\\"));
    text += printable(part);
    if (part.size() < line.size()) text += line[part.size()];
    line.remove_prefix(std::min(part.size() + 1, line.size()));
  }
  return is_long ? text + " …" : text;
}

}  // namespace

Result<Json> web_diff(Repository& repository, const web::Request& request) {
  VARVE_TRY_ASSIGN(const TextSide before, read_side(repository, request, "before"));
  VARVE_TRY_ASSIGN(const TextSide after, read_side(repository, request, "after"));
  if (!before.exists && !after.exists) {
    return Error(ErrorCode::kNotFound, "neither version has this file");
  }
  Json object{{"before", before.version}, {"after", after.version}, {"more", false}};
  const std::string& reason = before.reason.empty() ? after.reason : before.reason;
  if (!reason.empty()) {
    object["reason"] = reason;
    return object;
  }
  const TextDiff diff = diff_texts(before.text, after.text);
  object["coarse"] = diff.is_coarse;
  auto& lines = object["lines"] = Json::array();
  for (std::size_t i = 0; i < diff.lines.size(); ++i) {
    if (i == kLinesMax) {
      object["more"] = true;
      break;
    }
    const DiffLine& line = diff.lines[i];
    lines.push_back({{"kind", std::string(1, static_cast<char>(line.kind))},
                     {"before", line.before},
                     {"after", line.after},
                     {"text", line_text(line.text)}});
  }
  return object;
}

}  // namespace varve::cli
