// SPDX-License-Identifier: Apache-2.0
#include "remote/damage_notes.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <sstream>

#include "base/checksum.h"
#include "base/coding.h"
#include "base/log.h"
#include "maintain/check_record.h"
#include "remote/replica_state.h"

namespace varve::remote {

namespace {

constexpr const char* kDamagedName = "damaged";
constexpr const char* kDamagedHead = "# Damaged objects that the last check of the store named.\n";
// Limit of the noted names. After the repair of the named objects, the next check notes the rest.
constexpr std::size_t kNamesMax = 10000;
constexpr std::size_t kDamagedBytesMax = std::size_t{4} << 20;

std::string encode(const std::set<std::string>& names) {
  std::string text = kDamagedHead;
  std::size_t count = 0;
  for (const auto& name : names) {
    if (++count > kNamesMax) break;
    text += name + "\n";
  }
  return text + fmt::format("checksum = {:016x}\n", base::checksum64(base::as_bytes(text)));
}

std::uint64_t recorded_damages(io::FileSystem& files, const std::string& root) {
  std::uint64_t damages = 0;
  for (const auto& check : maintain::read_earlier_checks(files, replica_folder(root))) {
    if (check.depth == CheckDepth::kData) damages = check.damages;
  }
  return damages;
}

}  // namespace

std::set<std::string> read_damage_notes(io::FileSystem& files, const std::string& root) {
  const auto text = files.read_file(replica_folder(root) + "/" + kDamagedName, kDamagedBytesMax);
  if (!text) return {};
  std::set<std::string> names;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with('#') && line.find(" = ") == std::string::npos) names.insert(line);
  }
  return encode(names) == *text ? names : std::set<std::string>();
}

bool has_unnamed_damage(io::FileSystem& files, const std::string& root) {
  return recorded_damages(files, root) != 0 && read_damage_notes(files, root).empty();
}

void record_store_check(io::FileSystem& files, const std::string& root, const base::Clock& clock,
                        const StoreCheckEnd& end) {
  maintain::CheckEnd whole;
  whole.whole = end.has_read_all ? CheckDepth::kData : CheckDepth::kStructure;
  whole.damages = end.damages;
  maintain::record_check(files, replica_folder(root), clock, whole);
  // Only the count changes: the last check of all objects has its own time.
  if (!end.has_read_all && !end.noted.empty()) {
    const auto left = std::ranges::count_if(
        end.noted, [&](const std::string& name) { return end.damaged.contains(name); });
    maintain::set_recorded_damages(files, replica_folder(root), CheckDepth::kData,
                                   static_cast<std::uint64_t>(left));
  }
  if (end.damaged == end.noted) return;
  const auto written = files.write_file_atomically(replica_folder(root), kDamagedName,
                                                   base::as_bytes(encode(end.damaged)));
  if (!written) base::log(base::LogLevel::kInfo, written.error().message());
}

}  // namespace varve::remote
