// SPDX-License-Identifier: Apache-2.0
// The file `places` is text: lines "PLACE<TAB>FOLDER", the newest first. docs/decisions/097 gives
// the rules: `places` only proposes folders, and the file `bucket` of a folder decides.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/coding.h"
#include "base/log.h"
#include "bucket/location.h"
#include "io/memory_folder.h"
#include "io/posix_file_system.h"
#include "remote/bucket_config.h"
#include "store/superblock_text.h"
#include "varve/remote_folder.h"

namespace varve {

namespace {

constexpr const char* kPlacesName = "places";
constexpr std::size_t kPlacesBytesMax = 1U << 20;
constexpr std::size_t kPlacesMax = 1000;

struct Line {
  std::string place;
  std::string folder;

  bool operator==(const Line&) const = default;
};

// Skips foreign lines.
std::vector<Line> parse_places(std::string_view text) {
  std::vector<Line> lines;
  while (!text.empty() && lines.size() < kPlacesMax) {
    const auto end = std::min(text.find('\n'), text.size());
    const auto line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto tab = line.find('\t');
    if (tab == std::string_view::npos) continue;
    const auto place = normalized_place(line.substr(0, tab));
    const auto folder = line.substr(tab + 1);
    const bool is_path = folder.starts_with('/') && folder.find('\t') == std::string_view::npos;
    if (place && is_path) lines.push_back({*place, std::string(folder)});
  }
  return lines;
}

// Returns no lines if the file cannot be read, or if another user may write the file.
std::vector<Line> read_lines(const std::string& memory_folder) {
  if (memory_folder.empty()) return {};
  const auto text = [&]() -> Result<std::string> {
    VARVE_TRY_ASSIGN(const auto files, io::open_root(memory_folder, {}));
    return files->read_file(memory_folder + "/" + kPlacesName, kPlacesBytesMax);
  }();
  if (text) return parse_places(*text);
  if (text.error().code() != ErrorCode::kNotFound) {
    base::log(base::LogLevel::kWarning,
              "the folders of object stores are not known: " + text.error().message());
  }
  return {};
}

Result<void> write_line(const std::string& memory_folder, Line line) {
  if (line.folder.find_first_of("\n\t") != std::string::npos) {
    return Error(ErrorCode::kInvalid, "its name has a line break or a tab");
  }
  VARVE_TRY_ASSIGN(const auto memory, io::lock_memory(memory_folder));
  auto lines = read_lines(memory_folder);
  if (!lines.empty() && lines.front() == line) return {};
  std::erase(lines, line);
  lines.insert(lines.begin(), std::move(line));
  if (lines.size() > kPlacesMax) lines.resize(kPlacesMax);
  std::string text;
  for (const auto& one : lines) text += one.place + "\t" + one.folder + "\n";
  return memory.files->write_file_atomically(memory_folder, kPlacesName, base::as_bytes(text));
}

}  // namespace

bool is_store_place(std::string_view text) { return bucket::is_location(text); }

Result<std::string> normalized_place(std::string_view text) {
  VARVE_TRY_ASSIGN(const auto location, bucket::parse_location(text));
  return bucket::text_of(location);
}

Result<std::optional<StoreFolder>> RemoteFolder::place() const {
  const auto files = store::open_folder(path_, trust_owner_);
  if (!files && files.error().code() == ErrorCode::kNoRepository) {
    return std::optional<StoreFolder>();
  }
  if (!files) return files.error();
  VARVE_TRY_ASSIGN(const bool exists, (*files)->exists(path_ + "/varve.repo"));
  VARVE_TRY_ASSIGN(const bool connecting, remote::is_connecting(**files, path_));
  if (connecting) return std::optional<StoreFolder>();
  VARVE_TRY_ASSIGN(auto config, remote::read_config(**files, path_));
  if (!exists || !config) return std::optional<StoreFolder>();
  StoreFolder found;
  found.folder = path_;
  found.reads_only = config->reads_only;
  found.place = {std::move(config->place), std::move(config->endpoint), std::move(config->region)};
  return std::optional(std::move(found));
}

void remember_store_folder(const std::string& memory_folder, const std::string& place,
                           const std::string& folder) {
  if (memory_folder.empty()) return;
  std::error_code failed;
  const auto absolute = std::filesystem::canonical(folder, failed).string();
  const auto known = normalized_place(place);
  if (failed || !known) return;
  const auto written = write_line(memory_folder, {*known, absolute});
  if (written) return;
  base::log(base::LogLevel::kWarning,
            fmt::format("that {} belongs to {} is not remembered, so commands must name the "
                        "folder: {}",
                        absolute, *known, written.error().message()));
}

std::vector<StoreFolder> known_store_folders(
    const std::string& memory_folder, std::string_view place,
    const std::function<bool(const std::string& folder)>& trusts) {
  std::vector<StoreFolder> found;
  const auto wanted = normalized_place(place);
  if (!wanted) return found;
  for (const auto& line : read_lines(memory_folder)) {
    if (line.place != *wanted) continue;
    auto folder = RemoteFolder(line.folder, trusts(line.folder)).place();
    if (!folder) {
      base::log(base::LogLevel::kWarning,
                line.folder + " is not used: " + folder.error().message());
      continue;
    }
    if (!*folder) continue;  // The folder was removed, or has no object store any more.
    const auto is = normalized_place((*folder)->place.place);
    if (is && *is == *wanted) found.push_back(*std::move(*folder));
  }
  std::stable_partition(found.begin(), found.end(),
                        [](const StoreFolder& one) { return !one.reads_only; });
  return found;
}

std::vector<std::string> remembered_folders(const std::string& memory_folder,
                                            std::string_view place) {
  std::vector<std::string> folders;
  const auto wanted = normalized_place(place);
  if (!wanted) return folders;
  for (auto& line : read_lines(memory_folder)) {
    if (line.place == *wanted) folders.push_back(std::move(line.folder));
  }
  return folders;
}

std::vector<std::string> known_places(const std::string& memory_folder) {
  std::vector<std::string> places;
  for (auto& line : read_lines(memory_folder)) places.push_back(std::move(line.place));
  return places;
}

}  // namespace varve
