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

/// A file of the stream.
struct StreamFile {
  std::uint64_t ordinal = 0;
  std::uint64_t number = 0;    ///< Counts the files of the stream.
  std::uint64_t position = 0;  ///< Stream position of its first data byte.
  std::uint64_t bytes = 0;     ///< Of data.
};

/// Where a stream starts inside a file: at a chunk's first byte.
struct StreamStart {
  FileContent content;
  std::size_t run_number = 0;
  format::RecipeRun run;          ///< What is left of that run.
  std::uint64_t data_offset = 0;  ///< Of run.first, in the file's data.
};

/// The files of a version as one stream, and which file lies where in it. Files without
/// data are left out. next() and look_ahead() are for one thread at a time; find() and
/// forget_before() may be called beside them.
class FileStream final : public RunStream {
 public:
  /// Without `start`, the stream begins with the first of the future files.
  FileStream(std::optional<StreamStart> start, std::unique_ptr<FutureFiles> future);

  [[nodiscard]] Result<std::optional<StreamRun>> next() override;

  /// Sees to it that find() knows at least `files` files, or all that start within `bytes`,
  /// after the stream position.
  void look_ahead(std::uint64_t position, std::size_t files, std::uint64_t bytes);

  [[nodiscard]] std::optional<StreamFile> find(std::uint64_t ordinal) const;
  /// Files that end at or before the stream position are not asked for any more.
  void forget_before(std::uint64_t position);

 private:
  // Takes one more file from the future; false at the end.
  bool pull();
  void add(FileContent content, std::uint64_t position);

  std::unique_ptr<FutureFiles> future_;
  std::optional<Error> error_;
  std::deque<FileContent> pending_;  // Files whose runs have not all been given out.
  std::size_t run_number_ = 0;       // In pending_.front().
  std::optional<format::RecipeRun> first_run_;
  std::uint64_t run_position_ = 0;
  std::uint64_t end_ = 0;  // Stream position after the last file that is known.
  std::uint64_t files_ = 0;

  mutable std::mutex mutex_;  // Guards known_; innermost, never held during I/O.
  std::deque<StreamFile> known_;
};

}  // namespace varve::restore
