// SPDX-License-Identifier: Apache-2.0
#include "maintain/superblock_place.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "crypto/sealed_file.h"
#include "ingest/parameters.h"
#include "maintain/manifest_file.h"
#include "store/repository_paths.h"

namespace varve::maintain {
namespace {

/// Returns true if the first block of a sealed file opens in its place, or if the file has no
/// block. If true, the file is at most cut short or damaged.
bool is_of_its_place(io::FileSystem& files, const std::string& path) {
  const auto file = files.open(path, io::OpenMode::kRead);
  std::byte first{};
  return file && (*file)->read_at(0, {&first, 1});
}

/// Returns true if labels are whole, but not readable in their place. Foreign labels are labels of
/// another series, sealed in a plain repository, plain in an encrypted repository, or sealed with
/// other keys.
bool are_foreign(io::FileSystem& raw, io::FileSystem& files, bool encrypted,
                 const std::string& directory, const std::vector<SeriesId>& all) {
  if (encrypted && is_of_its_place(files, directory + "/" + kLabelsName)) return false;
  const auto file = raw.open(directory + "/" + kLabelsName, io::OpenMode::kRead);
  if (!file) return false;
  // find_sealed_fault() also reports an unsealed file.
  const auto fault = crypto::find_sealed_fault(**file);
  if (fault && fault->what.empty()) return true;
  const auto plain = format::make_plain_frame_codec({});
  return std::ranges::any_of(all, [&](SeriesId series) {
    return read_labels(raw, *plain, directory, series).has_value();
  });
}

}  // namespace

Result<SuperblockCopy> read_superblock_copy(io::FileSystem& files, const std::string& path) {
  const auto name = store::RepositoryPaths(path).keys();
  VARVE_TRY_ASSIGN(auto text, files.read_file(name, format::kSuperblockBytesMax));
  auto superblock = ingest::read_superblock(text);
  if (!superblock) return std::move(superblock).error().with_context(name);
  return SuperblockCopy{std::move(text), *std::move(superblock)};
}

bool are_of_one_repository(const format::Superblock& a, const format::Superblock& b) {
  return a.repository_id == b.repository_id && a.encryption.has_value() == b.encryption.has_value();
}

Result<void> check_superblock_place(io::FileSystem& raw, io::FileSystem& files,
                                    const format::FrameCodec& codec, const std::string& path,
                                    const format::Superblock& superblock) {
  const store::RepositoryPaths paths(path);
  VARVE_TRY_ASSIGN(const auto folders, series_folders(raw, path));
  bool any_readable = false;
  for (const auto series : folders) {
    const auto directory = paths.series(series);
    if (read_labels(files, codec, directory, series)) {
      any_readable = true;
    } else if (are_foreign(raw, files, superblock.encryption.has_value(), directory, folders)) {
      return Error(ErrorCode::kCorrupt,
                   directory + "/" + kLabelsName +
                       " is whole, but not of this place: varve.repo is that of another repository "
                       "(varve.keys is a copy of it), or the folder is that of another series. Put "
                       "the right one back, or move the labels away. Nothing was changed");
    }
  }
  const auto copy = read_superblock_copy(raw, path);
  const bool is_copy = !copy || are_of_one_repository(copy->superblock, superblock);
  if (any_readable || is_copy) return {};
  return Error(ErrorCode::kCorrupt,
               path +
                   "/varve.repo is that of another repository than its copy varve.keys. Put the "
                   "right one back, or remove varve.keys if varve.repo is right. Nothing was "
                   "changed");
}

}  // namespace varve::maintain
