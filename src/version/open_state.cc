// SPDX-License-Identifier: Apache-2.0
#include "version/open_state.h"

#include <utility>

#include "meta/page_check.h"
#include "meta/schema.h"
#include "store/repository_names.h"

namespace varve::version {

namespace {
constexpr std::size_t kNewMapBytes = std::size_t{1} << 30;  // Map of an overlay without records.
constexpr std::size_t kSpillSlotBytes = 128U << 10;
constexpr std::uint64_t kLookBytes = 16U << 20;
constexpr std::uint64_t kRecordBytes = 1024;  // A usual inode and name, with LMDB's slack.
}  // namespace

OpenState::OpenState(const OpenVersionParts& version_parts, VersionInfo version_info)
    : parts(version_parts),
      spill(*parts.files, parts.staging_directory + "/tails", kSpillSlotBytes),
      pipeline({*parts.chunker, *parts.fingerprinter, *parts.index, *parts.dedup_policy,
                *parts.layout, *parts.fingerprint_pool, spill, *parts.ingest_metrics}),
      reader(*parts.layout, *parts.read_service,
             (std::uint64_t{1} << 63) | (static_cast<std::uint64_t>(version_info.series) << 32) |
                 static_cast<std::uint64_t>(version_info.number)),
      info(std::move(version_info)),
      tree(parts.base.get()) {}

Result<void> OpenState::open_overlay() {
  VARVE_TRY(parts.files->make_directory(parts.staging_directory + "/files"));
  overlay.emplace(Overlay::Parts{parts.files, parts.staging_directory + "/overlay",
                                 meta::overlay_keys(parts.keys, info.series, info.number),
                                 parts.overlays});
  if (auto used = overlay->use(); !used) {
    overlay.reset();
    return std::move(used).error();
  }
  tree.attach(*overlay);
  return {};
}

Result<void> OpenState::make_overlay() {
  auto& files = *parts.files;
  const std::string directory = parts.staging_directory + "/overlay";
  // LMDB writes the first pages one by one; the rename makes the environment appear as a whole.
  const std::string fresh = directory + ".new";
  VARVE_TRY(files.make_durable_directory(parts.staging_directory));
  VARVE_TRY(files.make_directory(parts.staging_directory + "/files"));
  VARVE_TRY(store::remove_folder(files, fresh, store::FolderKind::kEnvironment));
  VARVE_TRY(files.make_directory(fresh));
  meta::EnvOptions options;
  options.tables = meta::overlay::kTables;
  options.keys = meta::overlay_keys(parts.keys, info.series, info.number);
  options.map_bytes = kNewMapBytes;
  VARVE_TRY(meta::Env::open(files, fresh, options));
  VARVE_TRY(files.sync_directory(fresh));
  VARVE_TRY(files.rename(fresh, directory));
  VARVE_TRY(files.sync_directory(parts.staging_directory));
  return open_overlay();
}

Result<void> OpenState::check_not_frozen() const {
  if (frozen) return Error(ErrorCode::kReadOnly, "the version is being sealed");
  return {};
}

Result<void> OpenState::admit(std::uint64_t bytes) const {
  return parts.space != nullptr ? parts.space->admit(bytes) : Result<void>();
}

Result<void> OpenState::has_room(std::uint64_t bytes) const {
  return parts.space != nullptr ? parts.space->has_room(bytes) : Result<void>();
}

bool OpenState::count_written(std::uint64_t bytes) {
  const auto looks = written_bytes / kLookBytes;
  written_bytes += bytes;
  return parts.checkpoint_bytes != 0 && written_bytes / kLookBytes != looks;
}

void OpenState::wake_background() {
  if (background) parts.checkpoint_tasks->wake(*background);
}

Result<void> OpenState::admit_record(std::uint64_t bytes) {
  VARVE_TRY(admit(kRecordBytes + bytes));
  record_bytes += kRecordBytes + bytes;
  return {};
}

std::optional<std::uint64_t> stored_entries(io::FileSystem& files,
                                            const std::string& staging_directory,
                                            const meta::EnvKeys& keys) {
  // LMDB trusts the pages of an environment, so check the pages first.
  constexpr std::uint64_t kCheckedBytesMax = 64U << 20;
  const std::string overlay = staging_directory + "/overlay";
  const auto bytes = files.tree_bytes(overlay + "/data.mdb");
  if (!bytes || *bytes > kCheckedBytesMax) return std::nullopt;
  if (!meta::check_pages(files, overlay, meta::overlay::kTables)) return std::nullopt;
  meta::EnvOptions options;
  options.tables = meta::overlay::kTables;
  options.map_bytes = Overlay::kMapBytes;
  options.read_only = true;
  options.must_exist = true;
  options.keys = keys;
  const auto env = meta::Env::open(files, overlay, options);
  if (!env) return std::nullopt;
  return recorded_entries(*env);
}

}  // namespace varve::version
