// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "base/metrics.h"
#include "restore/header_announcer.h"
#include "restore/random_reader.h"
#include "restore/read_service.h"
#include "restore/recipe_index.h"
#include "restore/run_locator.h"
#include "restore/session_manager.h"

namespace varve::restore {

/// The parts of a service that its handles share.
/// Lifetime: must outlive the handles.
struct ReadContext {
  SessionManager* sessions = nullptr;
  RandomReader* random = nullptr;
  base::ThreadPool* prefetchers = nullptr;
  base::Counter* bytes_delivered = nullptr;
};

/// An open file. Serves reads from a session if a session has the bytes, otherwise frame by frame
/// (RandomReader). Starts a session when the reads become sequential.
class FileHandle final : public ReadHandle {
 public:
  FileHandle(const ReadContext& context, ReadableFile file);

  [[nodiscard]] Result<ReadBytes> read_as(const ReadRequest& request) override;

 private:
  // A stretch of data without holes.
  struct Stretch {
    FilePosition at;
    std::span<std::byte> out;
    void advance(const format::Recipe& recipe, std::size_t bytes);
  };
  [[nodiscard]] SharedBytes lend(std::uint64_t offset, std::size_t bytes);
  [[nodiscard]] SharedBytes lend_whole(std::uint64_t offset, std::size_t bytes);
  [[nodiscard]] Result<void> copy(std::uint64_t offset, std::span<std::byte> out);
  [[nodiscard]] bool copy_from_memory(std::uint64_t offset, std::span<std::byte> out);
  /// Zeroes the holes in `out` and calls `read_stretch` for the rest. Stops and returns false when
  /// `read_stretch` returns false.
  template <typename ReadStretch>
  [[nodiscard]] bool for_each_stretch(std::uint64_t offset, std::span<std::byte> out,
                                      const ReadStretch& read_stretch);
  [[nodiscard]] Result<void> read_stretch(Stretch stretch,
                                          std::optional<std::uint64_t>& start_session_at);
  [[nodiscard]] bool await_session(std::uint64_t data_offset);
  [[nodiscard]] std::uint64_t bytes_to_hole(const FilePosition& at, std::uint64_t bytes_max) const;
  [[nodiscard]] SharedBytes lend_from_session(std::uint64_t offset, std::uint64_t data_offset,
                                              std::size_t bytes, TakeFor purpose);
  void note_from_session();
  [[nodiscard]] RandomRead random_read(const FilePosition& at);
  [[nodiscard]] bool has_jumped();
  [[nodiscard]] std::span<std::byte> first_run(const Stretch& stretch) const;
  [[nodiscard]] Result<void> try_random(Stretch stretch, FileFrame& last);
  [[nodiscard]] Result<void> read_random(const Stretch& stretch);
  [[nodiscard]] std::size_t copy_from_session(std::uint64_t data_offset, std::span<std::byte> out);
  [[nodiscard]] std::size_t copy_from_last_frame(std::uint64_t data_offset,
                                                 std::span<std::byte> out);
  [[nodiscard]] std::optional<std::uint64_t> note_read(std::uint64_t offset, std::size_t bytes);
  [[nodiscard]] bool was_read_whole();
  void start_session(std::uint64_t offset);
  [[nodiscard]] Result<StreamStart> locate_start(const FilePosition& at);

  const ReadContext context_;
  const ReadableFile file_;
  RecipeIndex index_;
  RunLocator locator_;

  const std::shared_ptr<HeaderAnnouncer> headers_;  // nullptr for a small file.

  std::mutex mutex_;  // Guards the members below. Innermost; never held during I/O.
  FileFrame last_frame_;
  unsigned streak_ = 0;  // Number of consecutive sequential reads.
  std::uint64_t streak_begin_ = 0;
  std::uint64_t streak_end_ = 0;
  std::uint64_t streak_bytes_ = 0;  // Bytes read between `streak_begin_` and `streak_end_`.
  std::uint64_t last_offset_ = 0;
  bool from_session_ = false;
};

}  // namespace varve::restore
