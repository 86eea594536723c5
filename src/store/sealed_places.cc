// SPDX-License-Identifier: Apache-2.0
#include "store/sealed_places.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/coding.h"
#include "store/repository_names.h"

namespace varve::store {

namespace {

// The pool, in the numbering of SealedPlace. No series has the number.
constexpr std::uint32_t kPoolPlace = std::uint32_t{1} << 31;
constexpr std::uint32_t kSmallBlockBytes = 512;

using Parts = std::vector<std::string_view>;

// Returns the names of a path below `root`, or nullopt if the path is outside.
std::optional<Parts> parts_below(std::string_view root, std::string_view path) {
  while (root.ends_with('/')) root.remove_suffix(1);
  if (!path.starts_with(root)) return std::nullopt;
  path.remove_prefix(root.size());
  if (!path.empty() && path.front() != '/') return std::nullopt;
  Parts parts;
  while (!path.empty()) {
    const auto slash = std::min(path.find('/'), path.size());
    const auto part = path.substr(0, slash);
    if (!part.empty() && part != ".") parts.push_back(part);
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return parts;
}

std::string_view final_name(std::string_view name) {
  if (name.ends_with(kTemporarySuffix)) name.remove_suffix(kTemporarySuffix.size());
  return name;
}

crypto::SealedPlace place_of(SealedKind kind, std::uint32_t store, std::uint32_t number = 0) {
  crypto::SealedPlace place;
  place.kind = static_cast<std::uint32_t>(kind);
  place.store = store;
  place.number = number;
  place.grows =
      kind == SealedKind::kLabels || kind == SealedKind::kZeroLog || kind == SealedKind::kZeroBins;
  // Each append to labels or to the log of the Zero-Chunk index begins a block.
  if (kind == SealedKind::kLabels || kind == SealedKind::kZeroLog) {
    place.block_bytes = kSmallBlockBytes;
  }
  return place;
}

std::uint32_t bits_of(VersionNumber number) { return static_cast<std::uint32_t>(number); }

// Returns the number between a prefix and a suffix of a name.
std::optional<std::uint32_t> number_in(std::string_view name, std::string_view prefix,
                                       std::string_view suffix) {
  if (!name.starts_with(prefix) || !name.ends_with(suffix) ||
      name.size() < prefix.size() + suffix.size()) {
    return std::nullopt;
  }
  name.remove_prefix(prefix.size());
  name.remove_suffix(suffix.size());
  return base::parse_hex32(name);
}

// The files of series/ID/.
crypto::SealedPlace place_in_series(std::uint32_t series, std::string_view name) {
  const auto file = final_name(name);
  if (file == "labels" || file.starts_with("labels.damaged-")) {
    return place_of(SealedKind::kLabels, series);
  }
  if (file == kBesideName || file.starts_with("beside.damaged-")) {
    return place_of(SealedKind::kBeside, series);
  }
  if (const auto number = parse_snapshot_name(file)) {
    return place_of(SealedKind::kIndexSnapshot, series, bits_of(*number));
  }
  if (const auto number = parse_index_run_name(name)) {
    return place_of(SealedKind::kIndexRun, series, *number);
  }
  if (const auto number = parse_sources_name(file)) {
    return place_of(SealedKind::kSources, series, bits_of(*number));
  }
  return place_of(SealedKind::kOther, series);
}

// The files of pool/.
crypto::SealedPlace place_in_pool(std::string_view name) {
  const auto file = final_name(name);
  if (file == kPoolSnapshotName) return place_of(SealedKind::kIndexSnapshot, kPoolPlace);
  if (const auto number = parse_index_run_name(name)) {
    return place_of(SealedKind::kIndexRun, kPoolPlace, *number);
  }
  if (const auto number = parse_alias_file_name(file)) {
    return place_of(SealedKind::kAliases, kPoolPlace, *number);
  }
  if (const auto number = number_in(name, "sort-", kTemporarySuffix)) {
    return place_of(SealedKind::kSorting, kPoolPlace, *number);
  }
  if (const auto number = number_in(name, "index-zero-", ".bins")) {
    return place_of(SealedKind::kZeroBins, kPoolPlace, *number);
  }
  if (const auto number = number_in(name, "index-zero-", ".log")) {
    return place_of(SealedKind::kZeroLog, kPoolPlace, *number);
  }
  return place_of(SealedKind::kOther, kPoolPlace);
}

// Returns whether the segment store seals the files of the folder `name`.
bool is_store_folder(std::string_view name) {
  constexpr std::array kFolders{"active", "volumes", "parity"};
  return std::ranges::find(kFolders, name) != kFolders.end();
}

}  // namespace

std::optional<crypto::SealedPlace> sealed_place(std::string_view root, std::string_view path) {
  const auto parts = parts_below(root, path);
  if (!parts || parts->empty()) return std::nullopt;
  const Parts& names = *parts;
  if (names.size() == 1) {
    if (final_name(names[0]) == "scrub") return place_of(SealedKind::kScrub, 0);
    if (final_name(names[0]) == "checked") return place_of(SealedKind::kChecked, 0);
    return std::nullopt;
  }
  if (names[0] == "series" && names.size() > 2) {
    const auto series = base::parse_hex32(names[1]).value_or(0);
    if (is_store_folder(names[2])) return std::nullopt;
    if (names.size() == 3) return place_in_series(series, names[2]);
    if (names.size() == 4 && names[2] == "manifests") {
      // A manifest put away by a repair keeps its place.
      const std::string_view name = final_name(names[3]);
      if (const auto number = number_in(name.substr(0, name.find(".damaged-")), "", ".man")) {
        return place_of(SealedKind::kManifest, series, *number);
      }
    }
    return place_of(SealedKind::kOther, series);
  }
  if (names[0] == "pool") {
    if (is_store_folder(names[1])) return std::nullopt;
    return names.size() == 2 ? place_in_pool(names[1]) : place_of(SealedKind::kOther, kPoolPlace);
  }
  if (names[0] == "staging" && names.size() == 3 && names[2] == "tails") {
    const auto version = parse_staging_name(names[1]).value_or(StagingName{});
    return place_of(SealedKind::kTails, static_cast<std::uint32_t>(version.series),
                    bits_of(version.number));
  }
  return std::nullopt;
}

std::unique_ptr<io::FileSystem> seal_files(std::unique_ptr<io::FileSystem> files,
                                           std::shared_ptr<const crypto::KeyRing> keys,
                                           std::string root) {
  if (!keys) return files;
  return crypto::make_sealed_file_system(
      std::move(files), std::move(keys),
      [root = std::move(root)](const std::string& path) { return sealed_place(root, path); });
}

}  // namespace varve::store
