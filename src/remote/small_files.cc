// SPDX-License-Identifier: Apache-2.0
#include "remote/small_files.h"

#include <cstddef>
#include <cstdint>

#include "base/coding.h"
#include "remote/catalog_reads.h"
#include "remote/local_object.h"

namespace varve::remote {

namespace {

// Limit of bytes held in memory at the same time.
constexpr std::uint64_t kBytesAtOnce = std::uint64_t{64} << 20;

Result<void> write_small(io::FileSystem& files, const std::string& root, const std::string& path,
                         const std::string& text) {
  VARVE_TRY(make_folders(files, root, path));
  const auto slash = path.rfind('/');
  return files.write_file_atomically(root + "/" + path.substr(0, slash), path.substr(slash + 1),
                                     base::as_bytes(text));
}

// Returns the bytes of a part of labels if the folder's file has these bytes: the other parts of
// the file are the folder's from an earlier head.
std::string part_here(io::FileSystem& files, const std::string& file, std::uint64_t offset,
                      const Extent& part) {
  if (part.lead.empty()) return {};
  const auto object = object_in_file(files, file, offset, part);
  return object ? object->substr(part.lead.size()) : std::string();
}

}  // namespace

bool is_small(const std::vector<Extent>& extents) {
  return !extents.empty() && extents.front().mark != 0;
}

Result<void> make_folders(io::FileSystem& files, const std::string& root, const std::string& path) {
  for (auto slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    VARVE_TRY(files.make_durable_directory(root + "/" + path.substr(0, slash)));
  }
  return {};
}

Result<void> remove_small(io::FileSystem& files, const std::string& root, const std::string& path) {
  const auto removed = files.remove(root + "/" + path);
  return !removed && removed.error().code() == ErrorCode::kNotFound ? Result<void>() : removed;
}

Result<std::set<std::string>> download_small(bucket::Bucket& bucket, io::FileSystem& files,
                                             const std::string& root,
                                             const std::vector<MappedFile>& wanted) {
  std::set<std::string> lost;
  for (std::size_t i = 0; i < wanted.size();) {
    std::vector<Extent> together;
    std::vector<std::string> here;  // Of each extent, the bytes in the folder; empty if missing.
    std::uint64_t bytes = 0;
    const auto begin = i;
    for (; i < wanted.size() && (i == begin || bytes < kBytesAtOnce); ++i) {
      std::uint64_t offset = 0;
      for (const auto& extent : wanted[i].second) {
        here.push_back(part_here(files, root + "/" + wanted[i].first, offset, extent));
        offset += extent.bytes;
        if (!here.back().empty()) continue;
        together.push_back(extent);
        bytes += extent.bytes;
      }
    }
    auto texts = read_extents_or_copies(bucket, together);
    std::size_t next = 0;
    auto known = here.begin();
    for (auto at = begin; at < i; ++at) {
      const auto& [path, extents] = wanted[at];
      std::string whole;
      for (std::size_t part = 0; part < extents.size(); ++part, ++known) {
        if (!known->empty()) {
          whole += *known;
          continue;
        }
        auto& text = texts[next++];
        if (!text && !is_loss(text.error())) return std::move(text).error();
        if (!text) lost.insert(path);
        if (text) whole += *text;
      }
      VARVE_TRY(lost.contains(path) ? remove_small(files, root, path)
                                    : write_small(files, root, path, whole));
    }
  }
  return lost;
}

Result<std::set<std::string>> fetch_missing_files(bucket::Bucket& bucket, io::FileSystem& files,
                                                  const std::string& root, const ObjectMap& map) {
  std::vector<MappedFile> missing;
  for (const auto& [path, extents] : map) {
    if (!is_small(extents)) continue;
    VARVE_TRY_ASSIGN(const bool exists, files.exists(root + "/" + path));
    if (!exists) missing.emplace_back(path, extents);
  }
  return download_small(bucket, files, root, missing);
}

}  // namespace varve::remote
