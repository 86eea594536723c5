// SPDX-License-Identifier: Apache-2.0
#include "maintain/check_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>

#include "base/checksum.h"
#include "base/coding.h"
#include "base/log.h"

namespace varve {

namespace {

constexpr std::array<std::string_view, 3> kDepthNames{"structure", "data", "chunks"};

}  // namespace

std::string_view name_of(CheckDepth depth) {
  return kDepthNames[static_cast<std::size_t>(depth) - 1];
}

}  // namespace varve

namespace varve::maintain {

namespace {

constexpr const char* kRecordName = "checked";
constexpr std::size_t kCheckRecordBytesMax = 4096;
constexpr const char* kCheckRecordHead =
    "# When checks ended (Unix seconds), and damages that they found.\n";

}  // namespace

std::string encode_earlier_checks(const std::vector<EarlierCheck>& checks) {
  std::string text = kCheckRecordHead;
  for (const EarlierCheck& check : checks) {
    text += fmt::format("{} = {} {}\n", name_of(check.depth), check.ended_at, check.damages);
  }
  return text + fmt::format("checksum = {:016x}\n", base::checksum64(base::as_bytes(text)));
}

std::vector<EarlierCheck> decode_earlier_checks(const std::string& text) {
  std::vector<EarlierCheck> checks;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string key;
    std::string equals;
    EarlierCheck check;
    words >> key >> equals >> check.ended_at >> check.damages;
    const auto* const name = std::ranges::find(kDepthNames, key);
    if (!words || name == kDepthNames.end()) continue;
    check.depth = static_cast<CheckDepth>(name - kDepthNames.begin() + 1);
    if (!checks.empty() && checks.back().depth >= check.depth) return {};
    checks.push_back(check);
  }
  return encode_earlier_checks(checks) == text ? checks : std::vector<EarlierCheck>();
}

std::vector<EarlierCheck> read_earlier_checks(io::FileSystem& files,
                                              const std::string& repository_path) {
  const auto text = files.read_file(repository_path + "/" + kRecordName, kCheckRecordBytesMax);
  const auto code = text ? ErrorCode::kTooLarge : text.error().code();
  if (code != ErrorCode::kTooLarge && code != ErrorCode::kCorrupt) return {};
  auto checks = text ? decode_earlier_checks(*text) : std::vector<EarlierCheck>();
  const bool is_sound = text && encode_earlier_checks(checks) == *text;
  // The damage that the record told of may still be there.
  if (!is_sound) checks = {{CheckDepth::kStructure, 0, 1}};
  return checks;
}

void record_check(io::FileSystem& files, const std::string& repository_path,
                  const base::Clock& clock, const CheckEnd& end) {
  auto checks = read_earlier_checks(files, repository_path);
  std::erase_if(checks, [&](const EarlierCheck& check) { return check.depth <= end.whole; });
  const CheckDepth depth = end.damages == 0 ? end.whole : std::max(end.whole, end.reached);
  std::erase_if(checks, [&](const EarlierCheck& check) { return check.depth == depth; });
  checks.push_back({depth, clock.now().seconds, end.damages});
  std::ranges::sort(checks, {}, &EarlierCheck::depth);
  const auto written = files.write_file_atomically(repository_path, kRecordName,
                                                   base::as_bytes(encode_earlier_checks(checks)));
  if (!written) {
    base::log(base::LogLevel::kInfo,
              "the result of the check is not recorded: " + written.error().message());
  }
}

}  // namespace varve::maintain
