// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/unique_fd.h"
#include "transfer/directory_stack.h"
#include "transfer/file_metadata.h"
#include "transfer/file_restorer.h"
#include "transfer/file_sink.h"
#include "transfer/problem_list.h"
#include "transfer/writer_crew.h"
#include "varve/version_reader.h"

namespace varve::transfer {

/// What the threads of one restore share. Thread-safe.
struct RestoreShared {
  explicit RestoreShared(VersionReader& its_version) : version(its_version) {}

  VersionReader& version;
  ProblemList problems;
  std::atomic<std::uint64_t> entries = 0;  ///< Made or kept.

  /// Ends the whole restore; the first error stays.
  void fail(const Error& error);
  /// One entry's error: a problem, or the end of all.
  void add_error(const std::string& path, const Error& error);
  [[nodiscard]] bool failed() const { return failed_.load(std::memory_order_relaxed); }
  [[nodiscard]] Result<void> outcome();
  /// Sets the metadata of an entry. `clean`: it may have attributes that it shall not have.
  void finish(const FileRef& file, const SealedEntry& entry, const std::string& path,
              bool clean = false);

 private:
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;
  std::optional<Error> error_;
};

/// Runs `finish` when nobody holds it any more: a directory's metadata comes after all that is
/// made in it.
struct DirectoryEnd {
  DirectoryEnd() = default;
  DirectoryEnd(const DirectoryEnd&) = delete;
  DirectoryEnd& operator=(const DirectoryEnd&) = delete;
  ~DirectoryEnd() {
    if (finish) finish();
  }
  std::function<void()> finish;
};

/// A regular file that is to be made.
struct FilePlan {
  SharedFd directory;
  std::shared_ptr<DirectoryEnd> end;
  std::string name;
  std::string temporary;  ///< Its name until it is whole; "" = it is made under its own.
  std::string path;       ///< For messages.
  SealedEntry entry;
  bool replaces = false;            ///< Something stands under the name.
  bool inherits = false;            ///< The directory may have a default ACL, which stays.
  std::uint64_t resume_offset = 0;  ///< The temporary file is there, and good up to here.
};

/// Makes one file, piece by piece in any order, on the crew's threads. A file that does not become
/// whole is removed again, and what stood under its name is kept. The sink's calls and finish() are
/// for one thread.
class FileTask final : public FileSink, public std::enable_shared_from_this<FileTask> {
 public:
  FileTask(FilePlan plan, RestoreShared& shared, WriterCrew& crew);
  ~FileTask() override;

  [[nodiscard]] Result<void> put(ByteRange range, SharedBytes data) override;
  [[nodiscard]] Result<void> skip(ByteRange range) override;

  /// Has the last piece written, which otherwise waits for the next call.
  void release_held();
  /// The file cannot be made; in the place of finish().
  void fail(const Error& error);
  /// All pieces were given. `lost` are the ranges that could not be read.
  void finish(const UnreadableData& lost);
  /// The restore ends; what is on the disk of the temporary file is wanted by the next one.
  void keep_partial() { keep_partial_ = true; }
  /// Waits until the file is made, or is known not to be.
  [[nodiscard]] bool wait();
  /// What of the content could not be read; "" if nothing. Only after wait() returned true.
  [[nodiscard]] std::string damage() const;
  /// It is not yet known whether the file is made.
  [[nodiscard]] bool is_pending() const { return state_ == kPending; }

 private:
  enum State : int { kPending, kMade, kFailed };
  struct Piece {
    ByteRange range;
    SharedBytes data;
  };
  void submit(Piece piece);
  void write(const Piece& piece);
  void release();
  [[nodiscard]] Result<void> open();
  [[nodiscard]] Result<void> complete();
  void end(State state);

  const FilePlan plan_;
  RestoreShared& shared_;
  WriterCrew& crew_;
  std::optional<Piece> held_;  // Submitted with the next one, or with the end.
  UnreadableData lost_;
  std::atomic<bool> keep_partial_ = false;
  std::atomic<int> pending_ = 1;  // Pieces not yet written, and one for the reader.
  std::atomic<int> state_ = kPending;

  // Held while a piece is written: the kernel lets only one in at a time, and others would spin.
  std::mutex writing_;
  std::mutex mutex_;  // Guards what follows. Neither is taken under the other.
  base::UniqueFd fd_;
  bool opened_ = false;
  bool made_ = false;  // There is a file of ours under the (temporary) name.
  std::uint64_t written_end_ = 0;
  std::optional<Error> error_;
};

/// Passes a large file's pieces on, and tells how far they came.
class LargeFileSink final : public FileSink {
 public:
  using Reached = std::function<Result<void>(std::uint64_t offset)>;
  LargeFileSink(FileTask& task, std::uint64_t begin, Reached reached)
      : task_(task), reached_(std::move(reached)), end_(begin) {}

  [[nodiscard]] Result<void> put(ByteRange range, SharedBytes data) override {
    VARVE_TRY(task_.put(range, std::move(data)));
    // The task still holds this piece back, and all before it is written.
    return reached_(std::exchange(end_, range.end));
  }
  [[nodiscard]] Result<void> skip(ByteRange range) override { return task_.skip(range); }

 private:
  FileTask& task_;
  const Reached reached_;
  std::uint64_t end_;  // Of what was given.
};

}  // namespace varve::transfer
