// SPDX-License-Identifier: Apache-2.0
// The staging of one file of an open version.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "version/staged_content.h"
#include "version/staging_file.h"

namespace varve::version {

/// The staging of one file: the file's ranges, and the staging file with a part of the bytes.
/// StagingArea creates and removes the staging files. Guarded by OpenState::mutex.
///
/// Invariant: `ranges` is set if and only if `generation` is not 0.
struct InodeStaging {
  std::uint64_t generation = 0;           ///< Generation of the staging file; 0 if not staged.
  std::unique_ptr<StagedContent> ranges;  ///< The whole content.
  std::shared_ptr<StagingFile> file;      ///< Opened when first needed.
  /// True if the disk failed to keep data of the staging file; a later sync would not report the
  /// failure again.
  bool lost = false;
  std::uint64_t counted = 0;  ///< Part of the file in StagingArea::bytes().
  std::uint64_t writes = 0;   ///< Number of changes to `ranges`, to detect a change.
  /// True while a thread cuts the open file: the content must not change.
  bool consolidating = false;
  /// Threshold of staged bytes for cutting the open file; 0 for the usual threshold.
  std::uint64_t consolidate_at = 0;

  [[nodiscard]] bool is_staged() const { return generation != 0; }
  /// Starts the staging. `generation` is not 0, and the content was not staged.
  void begin(std::uint64_t generation, std::unique_ptr<StagedContent> ranges,
             std::shared_ptr<StagingFile> file);
  /// Ends the staging. The staging file stays on the disk.
  void end();
  /// Returns the bytes of the file in the staging folder. The content is staged.
  [[nodiscard]] std::uint64_t bytes_on_disk() const;
};

}  // namespace varve::version
