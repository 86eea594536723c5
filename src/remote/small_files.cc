// SPDX-License-Identifier: Apache-2.0
#include "remote/small_files.h"

#include <utility>

#include "base/coding.h"
#include "remote/catalog_reads.h"

namespace varve::remote {

namespace {

Result<void> write_file(io::FileSystem& files, const std::string& root, const std::string& path,
                        const std::string& text) {
  for (auto slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    VARVE_TRY(files.make_durable_directory(root + "/" + path.substr(0, slash)));
  }
  const auto slash = path.rfind('/');
  return files.write_file_atomically(root + "/" + path.substr(0, slash), path.substr(slash + 1),
                                     base::as_bytes(text));
}

}  // namespace

// Holds one file in memory at a time: parity files may be long.
Result<std::set<std::string>> fetch_small_files(bucket::Bucket& bucket, io::FileSystem& files,
                                                const std::string& root, const ObjectMap& map,
                                                const WantedPath& is_wanted) {
  std::set<std::string> lost;
  for (const auto& [path, extents] : map) {
    if (extents.empty() || extents.front().mark == 0) continue;
    VARVE_TRY_ASSIGN(const bool wanted, is_wanted(path));
    if (!wanted) continue;
    std::string whole;
    for (auto& text : read_extents_or_copies(bucket, extents)) {
      if (!text && !is_loss(text.error())) return std::move(text).error();
      if (!text) lost.insert(path);
      if (text) whole += *text;
    }
    if (!lost.contains(path)) VARVE_TRY(write_file(files, root, path, whole));
  }
  return lost;
}

Result<std::set<std::string>> fetch_missing_files(bucket::Bucket& bucket, io::FileSystem& files,
                                                  const std::string& root, const ObjectMap& map) {
  return fetch_small_files(bucket, files, root, map, [&](const std::string& path) -> Result<bool> {
    VARVE_TRY_ASSIGN(const bool exists, files.exists(root + "/" + path));
    return !exists;
  });
}

}  // namespace varve::remote
