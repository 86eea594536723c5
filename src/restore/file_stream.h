// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "restore/read_service.h"
#include "restore/restore_engine.h"

namespace varve::restore {

/// The place of a file in the stream.
struct StreamFile {
  std::uint64_t ordinal = 0;
  std::uint64_t number = 0;    ///< Number of the file within the stream.
  std::uint64_t position = 0;  ///< Stream position of the first data byte.
  std::uint64_t bytes = 0;     ///< Length of the data, without holes.
};

/// A start of a stream inside a file, at a chunk's first byte.
struct StreamStart {
  FileContent content;
  std::size_t run_number = 0;
  format::RecipeRun run;          ///< The rest of the run from the start on.
  std::uint64_t data_offset = 0;  ///< Offset of run.first in the file's data.
};

/// Joins the data of a version's files into one stream and records the place of each file in the
/// stream. Leaves out files without data. One thread at a time may call next() and look_ahead().
/// Concurrent calls of find() and forget_before() are allowed.
class FileStream final : public RunStream {
 public:
  /// Creates a stream from `start` on. Without `start`, the stream begins with the first of the
  /// future files.
  FileStream(std::optional<StreamStart> start, std::unique_ptr<FutureFiles> future);

  [[nodiscard]] Result<std::optional<StreamRun>> next() override;

  /// Extends the known files until find() knows at least `files` files after the stream position,
  /// or all files starting within `bytes` after the position.
  void look_ahead(std::uint64_t position, std::size_t files, std::uint64_t bytes);

  [[nodiscard]] std::optional<StreamFile> find(std::uint64_t ordinal) const;
  /// Forgets the files ending at or before the stream position.
  void forget_before(std::uint64_t position);

 private:
  // Takes one more of the future files. Returns false at the end.
  bool pull();
  void add(FileContent content, std::uint64_t position);

  std::unique_ptr<FutureFiles> future_;
  std::optional<Error> error_;
  std::deque<FileContent> pending_;  // Files with runs that next() has not returned yet.
  std::size_t run_number_ = 0;       // Number of the next run in pending_.front().
  std::optional<format::RecipeRun> first_run_;
  std::uint64_t run_position_ = 0;
  std::uint64_t end_ = 0;  // Stream position after the last known file.
  std::uint64_t files_ = 0;

  mutable std::mutex mutex_;  // Guards known_; innermost, never held during I/O.
  std::deque<StreamFile> known_;
};

}  // namespace varve::restore
