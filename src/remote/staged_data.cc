// SPDX-License-Identifier: Apache-2.0
#include "remote/staged_data.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "store/repository_names.h"
#include "store/repository_paths.h"

namespace varve::remote {

namespace {

// Returns the names in a folder; none if the folder does not exist.
Result<std::vector<std::string>> names_in(io::FileSystem& files, const std::string& folder) {
  auto names = files.list(folder);
  if (names || names.error().code() != ErrorCode::kNotFound) return names;
  return std::vector<std::string>();
}

// Returns the length of a file without its holes; 0 if the file cannot be read.
std::uint64_t bytes_on_disk(io::FileSystem& files, const std::string& path) {
  const auto file = files.open(path, io::OpenMode::kRead);
  if (!file) return 0;
  std::uint64_t bytes = 0;
  for (std::uint64_t at = 0;;) {
    const auto begin = (*file)->seek_data(at);
    const auto end = begin ? (*file)->seek_hole(*begin) : begin;
    if (!end || *end <= *begin) return bytes;
    bytes += *end - *begin;
    at = *end;
  }
}

}  // namespace

Result<std::vector<LocalFile>> list_local_files(io::FileSystem& files, const std::string& root) {
  std::vector<std::string> folders{"pool"};
  VARVE_TRY_ASSIGN(const auto series, names_in(files, root + "/series"));
  for (const auto& name : series) folders.push_back("series/" + name);
  std::vector<LocalFile> found;
  for (const auto& folder : folders) {
    for (const std::string_view kind : {"/active", "/volumes"}) {
      const auto inside = folder + std::string(kind);
      const auto names = files.list(root + "/" + inside);
      if (!names) continue;  // The folder does not exist, or is a user's file.
      for (const auto& name : *names) {
        auto path = inside + "/" + name;
        const auto bytes = files.tree_bytes(root + "/" + path);
        if (bytes) found.push_back({std::move(path), *bytes, kind == "/active"});
      }
    }
  }
  return found;
}

Result<std::uint64_t> uncut_bytes(io::FileSystem& files, const std::string& root) {
  const auto all = store::RepositoryPaths(root).all_staging();
  VARVE_TRY_ASSIGN(const auto versions, names_in(files, all));
  std::uint64_t bytes = 0;
  for (const auto& name : versions) {
    if (!store::parse_staging_name(name)) continue;
    const auto folder = all + "/" + name + "/files";
    const auto staged = files.list(folder);
    if (!staged) continue;  // The version has no staging files, or was sealed meanwhile.
    for (const auto& file : *staged) bytes += bytes_on_disk(files, folder + "/" + file);
  }
  return bytes;
}

Result<std::uint64_t> staged_bytes(io::FileSystem& files, const std::string& root,
                                   const ObjectMap& objects) {
  VARVE_TRY_ASSIGN(const auto found, list_local_files(files, root));
  VARVE_TRY_ASSIGN(std::uint64_t bytes, uncut_bytes(files, root));
  for (const auto& file : found) {
    const auto known = objects.find(file.path);
    const auto covered = known == objects.end() ? 0 : bytes_of(known->second);
    bytes += file.bytes - std::min(file.bytes, covered);
  }
  return bytes;
}

}  // namespace varve::remote
