// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "transfer/file_restorer.h"
#include "transfer/file_task.h"
#include "varve/result.h"
#include "varve/version_reader.h"

namespace varve::transfer {

/// Fills many files at once, in the order in which their data lies on the disk of the repository.
/// First the places of a batch of files are collected; run() sorts them, reads them from front to
/// back, and has each piece written to its offset. Not synchronised.
///
/// After the restore of MFDedup (Zou et al., FAST 2021), with batches in the place of a whole
/// version, so that the memory is bounded.
class ScatterPass {
 public:
  /// Of a batch; they need about 1 KiB each.
  static constexpr std::size_t kFilesMax = std::size_t{1} << 15;

  /// `advance` is told of pieces written; it returns false to stop (kInterrupted). A batch has
  /// at most `pieces_max` pieces.
  ScatterPass(VersionReader& version, FileRestorer& data, FileRestorer::Advance advance,
              std::size_t pieces_max);

  /// Takes a file with data; it is complete after the next run(), or soon after this call if
  /// it cannot be read in this way. Runs what is collected first where one file is too much.
  [[nodiscard]] Result<void> add(std::shared_ptr<FileTask> task, FileReader& source, Rank rank);
  /// It is time to run(): any more would cost too much memory, or too many descriptors.
  [[nodiscard]] bool is_full() const {
    return pieces_.size() >= pieces_max_ || files_.size() >= files_max_;
  }
  [[nodiscard]] bool is_empty() const { return files_.empty(); }
  [[nodiscard]] std::size_t files_max() const { return files_max_; }

  /// Reads what was collected and completes the files. An error ends the restore.
  [[nodiscard]] Result<void> run();

 private:
  struct File {
    std::shared_ptr<FileTask> task;
    Rank rank = 0;
    std::uint64_t left = 0;         // Bytes of collected pieces that were not taken.
    bool is_collected = false;      // All pieces are, or were.
    std::vector<ByteRange> unread;  // Tried again, one by one, at the end.
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
