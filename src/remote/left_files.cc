// SPDX-License-Identifier: Apache-2.0
#include "remote/left_files.h"

#include <fmt/core.h>

#include <cstddef>
#include <set>
#include <utility>
#include <vector>

#include "base/checksum.h"
#include "base/coding.h"
#include "base/log.h"
#include "remote/changes.h"
#include "remote/small_files.h"
#include "store/repository_names.h"

namespace varve::remote {

namespace {

// Returns whether the folder has a file with the content of the extents.
Result<bool> is_here(io::FileSystem& files, const std::string& path,
                     const std::vector<Extent>& extents) {
  const auto bytes = bytes_of(extents);
  const auto text = files.read_file(path, bytes);
  if (!text) {
    const auto code = text.error().code();
    if (code == ErrorCode::kNotFound || code == ErrorCode::kTooLarge) return false;
    return text.error();
  }
  if (text->size() != bytes) return false;
  std::size_t at = 0;
  for (const auto& extent : extents) {
    const auto part = std::string_view(*text).substr(at, extent.bytes);
    const bool is_whole = extent.bytes == extent.object_bytes && extent.checksum != 0;
    if (!is_whole || base::checksum64(base::as_bytes(part)) != extent.checksum) return false;
    at += extent.bytes;
  }
  return true;
}

// Removes the files of a folder that an interrupted attach to an older head left.
Result<void> remove_unknown(io::FileSystem& files, const std::string& root,
                            const std::string& folder, store::FolderKind kind,
                            const ObjectMap& map) {
  const auto names = files.list(root + "/" + folder);
  if (!names && names.error().code() == ErrorCode::kNotFound) return {};
  if (!names) return names.error();
  for (const auto& name : *names) {
    const auto path = folder + "/" + name;
    const bool is_known = map.contains(path) || !is_left_in_store(path);
    if (is_known || !store::known_name(kind, name)) continue;
    VARVE_TRY(remove_small(files, root, path));
  }
  return {};
}

Result<void> remove_all_unknown(io::FileSystem& files, const std::string& root,
                                const ObjectMap& map) {
  using store::FolderKind;
  const auto series = files.list(root + "/series");
  if (!series && series.error().code() != ErrorCode::kNotFound) return series.error();
  if (series) {
    for (const auto& name : *series) {
      const auto folder = "series/" + name;
      VARVE_TRY(remove_unknown(files, root, folder + "/manifests", FolderKind::kManifests, map));
      VARVE_TRY(remove_unknown(files, root, folder + "/parity", FolderKind::kParity, map));
    }
  }
  return remove_unknown(files, root, "pool/parity", FolderKind::kParity, map);
}

}  // namespace

bool is_left_in_store(std::string_view path) {
  return path.ends_with(".par") ||
         (path.ends_with(".man") && path.find("/manifests/") != std::string_view::npos);
}

Result<void> fetch_left_files(bucket::Bucket& bucket, io::FileSystem& files,
                              const std::string& root, const ReplicaState& state) {
  VARVE_TRY_ASSIGN(const auto map, state.objects());
  VARVE_TRY(remove_all_unknown(files, root, map));
  std::vector<MappedFile> wanted;
  for (const auto& [path, extents] : map) {
    if (!is_left_in_store(path)) continue;
    VARVE_TRY_ASSIGN(const bool here, is_here(files, root + "/" + path, extents));
    if (!here) wanted.emplace_back(path, extents);
  }
  VARVE_TRY_ASSIGN(const auto lost, download_small(bucket, files, root, wanted));
  if (lost.empty()) return {};
  const auto more =
      lost.size() > 1 ? fmt::format(" and {} more files", lost.size() - 1) : std::string();
  base::log(base::LogLevel::kWarning,
            fmt::format("{} has lost {}{}, with the copies. All versions stay: the catalog has all "
                        "that the files have",
                        bucket.describe(), *lost.begin(), more));
  return {};
}

}  // namespace varve::remote
