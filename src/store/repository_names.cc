// SPDX-License-Identifier: Apache-2.0
#include "store/repository_names.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "base/coding.h"

namespace varve::store {

namespace {

bool is_number(std::string_view text) {
  return !text.empty() && text.front() != '0' && text.size() <= 9 &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// Returns whether `text` is a 64-bit number in the form of "{:x}".
bool is_hex(std::string_view text) {
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return !text.empty() && text.size() <= 16 && std::ranges::all_of(text, is_digit) &&
         (text.front() != '0' || text.size() == 1);
}

std::string_view without(std::string_view name, std::string_view suffix) {
  return name.ends_with(suffix) ? name.substr(0, name.size() - suffix.size()) : name;
}

// Returns the number of a name of the form NNNNNNNN and `suffix`.
std::optional<std::uint32_t> numbered(std::string_view name, std::string_view suffix) {
  if (!name.ends_with(suffix)) return std::nullopt;
  return base::parse_hex32(without(name, suffix));
}

// Returns the number of a name of the form index-NNNNNNNN and `suffix`.
std::optional<std::uint32_t> of_index(std::string_view name, std::string_view suffix) {
  constexpr std::string_view kPrefix = "index-";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  return numbered(name.substr(kPrefix.size()), suffix);
}

// Returns whether a name is of the form index-zero-NNNNNNNN.bins or index-zero-NNNNNNNN.log.
bool is_zero_chunk_file(std::string_view name) {
  constexpr std::string_view kPrefix = "index-zero-";
  if (!name.starts_with(kPrefix)) return false;
  name.remove_prefix(kPrefix.size());
  return numbered(name, ".bins").has_value() || numbered(name, ".log").has_value();
}

std::optional<KnownName> file_if(bool is_known) {
  return is_known ? std::optional(KnownName{}) : std::nullopt;
}

std::optional<KnownName> in_repository(std::string_view name) {
  constexpr std::array kFiles{"varve.repo",   "varve.repo.tmp", "varve.keys",    "varve.keys.tmp",
                              "lock",         "reserve",        "scrub",         "scrub.tmp",
                              "control.sock", "settled",        "checked",       "checked.tmp",
                              "bucket",       "bucket.tmp",     "attaching.tmp", "connecting.tmp"};
  if (name == "catalog" || name == "catalog.new") return KnownName{FolderKind::kEnvironment};
  if (name == "series") return KnownName{FolderKind::kAllSeries};
  if (name == "pool") return KnownName{FolderKind::kPool};
  if (name == "staging") return KnownName{FolderKind::kStaging};
  for (const std::string_view old : {"catalog.damaged-", "catalog.mixed-"}) {
    if (name.starts_with(old) && is_number(name.substr(old.size()))) {
      return KnownName{FolderKind::kEnvironment};
    }
  }
  // Folders of a repository in an object store. No walk over the folders enters them.
  if (name == "replica" || name == "cache") return KnownName{};
  return file_if(std::ranges::find(kFiles, name) != kFiles.end());
}

std::optional<KnownName> in_series(std::string_view name) {
  if (name == "active") return KnownName{FolderKind::kActive};
  if (name == "volumes") return KnownName{FolderKind::kVolumes};
  if (name == "manifests") return KnownName{FolderKind::kManifests};
  if (name == "parity") return KnownName{FolderKind::kParity};
  for (const std::string_view old : {"beside.damaged-", "labels.damaged-"}) {
    if (name.starts_with(old) && is_number(name.substr(old.size()))) return KnownName{};
  }
  const auto file = without(name, kTemporarySuffix);
  return file_if(file == "labels" || file == kBesideName || parse_snapshot_name(file).has_value() ||
                 parse_index_run_name(name).has_value() || parse_sources_name(file).has_value());
}

std::optional<KnownName> in_pool(std::string_view name) {
  if (name == "active") return KnownName{FolderKind::kActive};
  if (name == "volumes") return KnownName{FolderKind::kVolumes};
  if (name == "parity") return KnownName{FolderKind::kParity};
  return file_if(without(name, kTemporarySuffix) == kPoolSnapshotName ||
                 parse_index_run_name(name).has_value() || is_zero_chunk_file(name) ||
                 parse_alias_file_name(without(name, kTemporarySuffix)).has_value() ||
                 is_sorting_name(name));
}

std::optional<KnownName> in_open_version(std::string_view name) {
  if (name == "overlay" || name == "overlay.new") return KnownName{FolderKind::kEnvironment};
  if (name == "files") return KnownName{FolderKind::kStagedFiles};
  return file_if(name == "tails");
}

bool is_staged_file(std::string_view name) {
  const auto dash = name.find('-');
  return dash != std::string_view::npos && is_hex(name.substr(0, dash)) &&
         is_hex(name.substr(dash + 1));
}

// Returns whether a repair put the manifest away (docs/FORMAT.md §1).
bool is_left_out_manifest(std::string_view name) {
  constexpr std::string_view kSuffix = ".man.damaged-";
  const auto at = name.find(kSuffix);
  return at != std::string_view::npos && numbered(name.substr(0, at + 4), ".man").has_value() &&
         is_number(name.substr(at + kSuffix.size()));
}

// Names of segments and volumes omit the highest bit of the number.
bool is_segment(std::string_view name, std::string_view suffix) {
  const auto number = numbered(name, suffix);
  return number && *number < (1U << 31);
}

}  // namespace

std::optional<KnownName> known_name(FolderKind folder, std::string_view name) {
  switch (folder) {
    case FolderKind::kRepository:
      return in_repository(name);
    case FolderKind::kEnvironment:
      return file_if(without(name, kTemporarySuffix) == "data.mdb" || name == "lock.mdb");
    case FolderKind::kAllSeries:
      return base::parse_hex32(name) ? std::optional(KnownName{FolderKind::kSeries}) : std::nullopt;
    case FolderKind::kSeries:
      return in_series(name);
    case FolderKind::kPool:
      return in_pool(name);
    case FolderKind::kActive:
      return file_if(is_segment(without(name, kTemporarySuffix), ".seg"));
    case FolderKind::kVolumes:
      return file_if(is_segment(without(name, kTemporarySuffix), ".vol"));
    case FolderKind::kManifests:
      return file_if(numbered(without(name, kTemporarySuffix), ".man").has_value() ||
                     is_left_out_manifest(name));
    case FolderKind::kParity:
      return file_if(numbered(without(name, kTemporarySuffix), ".par").has_value());
    case FolderKind::kStaging:
      return parse_staging_name(name) ? std::optional(KnownName{FolderKind::kOpenVersion})
                                      : std::nullopt;
    case FolderKind::kOpenVersion:
      return in_open_version(name);
    case FolderKind::kStagedFiles:
      return file_if(is_staged_file(name));
  }
  return std::nullopt;
}

std::string staging_name(SeriesId series, VersionNumber number) {
  return fmt::format("{:08x}-{:08x}", static_cast<std::uint32_t>(series),
                     static_cast<std::uint32_t>(number));
}

std::optional<StagingName> parse_staging_name(std::string_view name) {
  const auto dash = name.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto series = base::parse_hex32(name.substr(0, dash));
  const auto number = base::parse_hex32(name.substr(dash + 1));
  if (!series || !number) return std::nullopt;
  return StagingName{static_cast<SeriesId>(*series), static_cast<VersionNumber>(*number)};
}

std::string snapshot_name(VersionNumber number) {
  return fmt::format("index-{:08x}.snap", static_cast<std::uint32_t>(number));
}

std::optional<VersionNumber> parse_snapshot_name(std::string_view name) {
  const auto number = of_index(name, ".snap");
  if (!number) return std::nullopt;
  return static_cast<VersionNumber>(*number);
}

std::string index_run_name(std::uint32_t number) { return fmt::format("index-{:08x}.run", number); }

std::optional<std::uint32_t> parse_index_run_name(std::string_view name) {
  return of_index(name, ".run");
}

std::string sources_name(VersionNumber number) {
  return fmt::format("sources-{:08x}.dat", static_cast<std::uint32_t>(number));
}

std::string unfinished_sources_name(VersionNumber number) {
  return sources_name(number).append(kTemporarySuffix);
}

std::optional<VersionNumber> parse_sources_name(std::string_view name) {
  constexpr std::string_view kPrefix = "sources-";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const auto number = numbered(name.substr(kPrefix.size()), ".dat");
  if (!number) return std::nullopt;
  return static_cast<VersionNumber>(*number);
}

std::string alias_file_name(std::uint32_t number) {
  return fmt::format("aliases-{:08x}.als", number);
}

std::optional<std::uint32_t> parse_alias_file_name(std::string_view name) {
  constexpr std::string_view kPrefix = "aliases-";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  return numbered(name.substr(kPrefix.size()), ".als");
}

std::string sorting_name(std::uint32_t number) { return fmt::format("sort-{:08x}.tmp", number); }

bool is_sorting_name(std::string_view name) {
  constexpr std::string_view kPrefix = "sort-";
  if (!name.starts_with(kPrefix)) return false;
  return numbered(name.substr(kPrefix.size()), kTemporarySuffix).has_value();
}

Result<void> check_folders(io::FileSystem& files, const std::string& repository) {
  for (const char* name : {"/catalog", "/series", "/staging"}) {
    const auto listed = files.list(repository + name);
    if (listed) continue;
    const auto code = listed.error().code();
    if (code != ErrorCode::kNotFound && code != ErrorCode::kNotDirectory) return listed.error();
  }
  return {};
}

Result<void> remove_folder(io::FileSystem& files, const std::string& path, FolderKind kind) {
  auto names = files.list(path);
  if (!names) {
    // An entry other than a folder is not Varve's.
    const auto code = names.error().code();
    if (code == ErrorCode::kNotFound || code == ErrorCode::kNotDirectory) return {};
    return std::move(names).error();
  }
  const auto is_kept = [](const Result<void>& removed) {
    const auto code = removed.error().code();
    return code == ErrorCode::kNotFound || code == ErrorCode::kNotEmpty;
  };
  for (const auto& name : *names) {
    const auto known = known_name(kind, name);
    if (!known) continue;
    const std::string inner = std::string(path).append("/" + name);
    if (known->folder) {
      VARVE_TRY(remove_folder(files, inner, *known->folder));
    } else if (auto removed = files.remove(inner); !removed && !is_kept(removed)) {
      return removed;
    }
  }
  if (auto removed = files.remove(path); !removed && !is_kept(removed)) return removed;
  return {};
}

}  // namespace varve::store
