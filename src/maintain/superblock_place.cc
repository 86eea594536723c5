// SPDX-License-Identifier: Apache-2.0
#include "maintain/superblock_place.h"

#include "crypto/sealed_file.h"
#include "ingest/parameters.h"
#include "maintain/manifest_file.h"
#include "store/repository_paths.h"

namespace varve::maintain {
namespace {

/// Returns true if labels are whole, but sealed in a plain repository, plain in an encrypted one,
/// or sealed with other keys.
bool are_foreign(io::FileSystem& raw, const std::string& directory, SeriesId series,
                 bool encrypted) {
  const auto file = raw.open(directory + "/" + kLabelsName, io::OpenMode::kRead);
  if (!file) return false;
  // A file that is not sealed has a fault, too.
  const auto fault = crypto::find_sealed_fault(**file);
  if (fault && fault->what.empty()) return true;
  const auto plain = format::make_plain_frame_codec({});
  return encrypted && read_labels(raw, *plain, directory, series);
}

Error misplaced(const std::string& path, const std::string& what) {
  return {ErrorCode::kCorrupt,
          path + "/varve.repo is that of another repository: " + what +
              ". Put the right varve.repo back, for example a copy of varve.keys beside it. "
              "Nothing was changed"};
}

}  // namespace

Result<void> check_superblock_place(io::FileSystem& raw, io::FileSystem& files,
                                    const format::FrameCodec& codec, const std::string& path,
                                    const format::Superblock& superblock) {
  const store::RepositoryPaths paths(path);
  VARVE_TRY_ASSIGN(const auto folders, series_folders(raw, path));
  std::string foreign;
  for (const auto series : folders) {
    const auto directory = paths.series(series);
    if (read_labels(files, codec, directory, series)) return {};
    if (are_foreign(raw, directory, series, superblock.encryption.has_value())) {
      foreign = directory + "/" + kLabelsName;
    }
  }
  if (!foreign.empty()) return misplaced(path, foreign + " is whole, but its keys do not open it");
  constexpr std::size_t kSuperblockBytesMax = 64U << 10;
  const auto text = raw.read_file(paths.keys(), kSuperblockBytesMax);
  const auto copy = text ? ingest::read_superblock(*text) : text.error();
  if (copy && (copy->repository_id != superblock.repository_id ||
               copy->encryption.has_value() != superblock.encryption.has_value())) {
    return misplaced(path, "its copy varve.keys has another identity");
  }
  return {};
}

}  // namespace varve::maintain
