// SPDX-License-Identifier: Apache-2.0
#include "maintain/superblock_place.h"

#include <algorithm>
#include <vector>

#include "crypto/sealed_file.h"
#include "ingest/parameters.h"
#include "maintain/manifest_file.h"
#include "store/repository_paths.h"

namespace varve::maintain {
namespace {

/// Returns true if labels are whole, but not readable in their place: they are those of another
/// series, sealed in a plain repository, plain in an encrypted one, or sealed with other keys.
bool are_foreign(io::FileSystem& raw, const std::string& directory,
                 const std::vector<SeriesId>& all) {
  const auto file = raw.open(directory + "/" + kLabelsName, io::OpenMode::kRead);
  if (!file) return false;
  // A file that is not sealed has a fault, too.
  const auto fault = crypto::find_sealed_fault(**file);
  if (fault && fault->what.empty()) return true;
  const auto plain = format::make_plain_frame_codec({});
  return std::ranges::any_of(all, [&](SeriesId series) {
    return read_labels(raw, *plain, directory, series).has_value();
  });
}

}  // namespace

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
    } else if (are_foreign(raw, directory, folders)) {
      return Error(ErrorCode::kCorrupt,
                   directory + "/" + kLabelsName +
                       " is whole, but not of this place: varve.repo is that of another repository "
                       "(varve.keys is a copy of it), or the folder is that of another series. Put "
                       "the right one back, or move the labels away. Nothing was changed");
    }
  }
  const auto text = raw.read_file(paths.keys(), kSuperblockBytesMax);
  const auto copy = text ? ingest::read_superblock(*text) : text.error();
  const bool is_copy = !copy || (copy->repository_id == superblock.repository_id &&
                                 copy->encryption.has_value() == superblock.encryption.has_value());
  if (any_readable || is_copy) return {};
  return Error(ErrorCode::kCorrupt,
               path +
                   "/varve.repo is that of another repository than its copy varve.keys. Put the "
                   "right one back, or remove varve.keys if varve.repo is right. Nothing was "
                   "changed");
}

}  // namespace varve::maintain
