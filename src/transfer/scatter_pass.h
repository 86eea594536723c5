// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "transfer/file_restorer.h"
#include "transfer/file_task.h"
#include "varve/browse.h"
#include "varve/result.h"

namespace varve::transfer {

/// Restores many files at once, in the order of the files' data on the repository's disk. add()
/// collects the places of a batch of files. run() sorts the places, reads the data from front to
/// back, and passes each piece to the piece's file. Not thread-safe.
///
/// Source: the restore of MFDedup (Zou et al., FAST 2021). We differ by batches instead of a whole
/// version, to bound the memory.
class ScatterPass {
 public:
  /// Maximum number of files in a batch. Each needs about 1 KiB.
  static constexpr std::size_t kFilesMax = std::size_t{1} << 15;

  /// Calls `advance` with the length of each piece passed on; `advance` returns false to stop
  /// (kInterrupted). A batch has at most `pieces_max` pieces.
  ScatterPass(VersionReader& version, FileRestorer& data, FileRestorer::Advance advance,
              std::size_t pieces_max);

  /// Adds a file with data. The next run() completes the file. If the file's places are not
  /// available, completes the file at once from `source`. Runs full batches within the call if the
  /// file has too many pieces.
  [[nodiscard]] Result<void> add(std::shared_ptr<FileTask> task, FileReader& source, Rank rank);
  /// Returns whether to call run() now: more files would take too much memory or too many
  /// descriptors.
  [[nodiscard]] bool is_full() const {
    return pieces_.size() >= pieces_max_ || files_.size() >= files_max_;
  }
  [[nodiscard]] bool is_empty() const { return files_.empty(); }
  [[nodiscard]] std::size_t files_max() const { return files_max_; }

  /// Reads the collected pieces and completes the files. An error ends the restore.
  [[nodiscard]] Result<void> run();

 private:
  struct File {
    std::shared_ptr<FileTask> task;
    Rank rank = 0;
    std::uint64_t left = 0;         // Bytes of collected pieces not yet read.
    bool is_collected = false;      // True if all pieces are collected or already read.
    std::vector<ByteRange> unread;  // Failed ranges, each read again at the end.
  };
  [[nodiscard]] Result<void> read_batch();
  [[nodiscard]] Result<void> take(const StoredPiece& piece, std::uint64_t offset, std::size_t bytes,
                                  const std::byte* data);
  [[nodiscard]] Result<void> complete(File& file);

  VersionReader& version_;
  FileRestorer& data_;
  const FileRestorer::Advance advance_;
  const std::size_t pieces_max_;
  const std::size_t files_max_;
  std::vector<StoredPiece> pieces_;  // StoredPiece::file is an index into files_.
  std::vector<File> files_;
};

}  // namespace varve::transfer
