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
#include "transfer/writer_pool.h"
#include "varve/browse.h"

namespace varve::transfer {

/// The state shared by the threads of a restore. Thread-safe.
struct RestoreShared {
  RestoreShared(VersionReader& its_version, bool restores_owners)
      : version(its_version), owners(restores_owners) {}

  VersionReader& version;
  const bool owners;  ///< RestoreOptions::owners.
  ProblemList problems;
  std::atomic<std::uint64_t> entries = 0;  ///< Entries made or kept.
  /// Directories of files not yet made. Each directory takes up to two descriptors.
  std::atomic<std::size_t> held_directories = 0;

  /// Ends the whole restore. The first error is kept.
  void fail(const Error& error);
  /// Reports an entry's error as a problem, or ends the restore if ends_transfer() says so.
  void add_error(const std::string& path, const Error& error);
  [[nodiscard]] bool failed() const { return failed_.load(std::memory_order_relaxed); }
  [[nodiscard]] Result<void> outcome();
  /// Sets the metadata of an entry. `clean`: also removes extended attributes that the entry must
  /// not have.
  void finish(const FileRef& file, const SealedEntry& entry, const std::string& path,
              bool clean = false);

 private:
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;
  std::optional<Error> error_;
};

/// Runs `finish` once the last holder has released the object, so a directory gets its metadata
/// after all entries of the directory.
struct DirectoryEnd {
  DirectoryEnd() = default;
  DirectoryEnd(const DirectoryEnd&) = delete;
  DirectoryEnd& operator=(const DirectoryEnd&) = delete;
  ~DirectoryEnd() {
    if (finish) finish();
  }
  std::function<void()> finish;
};

/// A regular file to be made.
struct FilePlan {
  SharedFd directory;
  std::shared_ptr<DirectoryEnd> end;
  std::string name;
  /// Name of the file until complete; "" = the file is made under the final name.
  std::string temporary;
  std::string path;  ///< For messages.
  SealedEntry entry;
  bool replaces = false;            ///< The target has an entry with the name.
  bool inherits = false;            ///< The directory may have a default ACL, kept by the restore.
  std::uint64_t resume_offset = 0;  ///< Bytes of an existing temporary file that are correct.
};

/// Makes a file on the pool's threads, from pieces in any order. Removes an incomplete file again
/// and keeps the old entry with the name. A single thread must make all calls of the sink and
/// finish().
class FileTask final : public FileSink, public std::enable_shared_from_this<FileTask> {
 public:
  FileTask(FilePlan plan, RestoreShared& shared, WriterPool& pool);
  ~FileTask() override;

  [[nodiscard]] Result<void> put(ByteRange range, SharedBytes data) override;
  [[nodiscard]] Result<void> skip(ByteRange range) override;

  /// Submits the last piece. Otherwise the piece waits for the next call.
  void release_held();
  /// Ends the file with an error. Must be called instead of finish().
  void fail(const Error& error);
  /// Ends the file after the last piece. `lost` are the unreadable ranges.
  void finish(const UnreadableData& lost);
  /// Writes the data of all finished pieces to the disk.
  [[nodiscard]] Result<void> sync();
  /// Keeps the temporary file for the next restore if the file remains incomplete.
  void keep_partial() { keep_partial_ = true; }
  /// Waits until the file is made or has failed. Returns true if the file is made.
  [[nodiscard]] bool wait();
  /// Returns a description of the unreadable content; "" if all was read. Only after wait()
  /// returned true.
  [[nodiscard]] std::string damage() const;
  /// Returns true while the file is neither made nor failed.
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
  [[nodiscard]] Result<void> give_name();
  void end(State state);
  void remove_incomplete();

  FilePlan plan_;  // Changes only in end(), when no thread uses the file any more.
  RestoreShared& shared_;
  WriterPool& pool_;
  std::optional<Piece> held_;  // Submitted with the next piece, or at the end.
  UnreadableData lost_;
  std::atomic<bool> keep_partial_ = false;
  std::atomic<int> pending_ = 1;  // Pieces not yet written, plus 1 for the reader.
  std::atomic<int> state_ = kPending;

  // Held while a piece is written: the kernel admits one writer at a time, and more writers would
  // spin.
  std::mutex writing_;
  std::mutex mutex_;  // Guards the members below. Neither mutex is taken under the other.
  base::UniqueFd fd_;
  bool opened_ = false;
  bool made_ = false;  // True if the task made a file under the (temporary) name.
  std::uint64_t written_end_ = 0;
  std::optional<Error> error_;
};

/// Passes on a large file's pieces. Reports the end of the submitted pieces, and the bytes of the
/// next piece.
class LargeFileSink final : public FileSink {
 public:
  using Reached = std::function<Result<void>(std::uint64_t offset, std::uint64_t next_bytes)>;
  LargeFileSink(FileTask& task, std::uint64_t begin, Reached reached)
      : task_(task), reached_(std::move(reached)), end_(begin) {}

  [[nodiscard]] Result<void> put(ByteRange range, SharedBytes data) override {
    VARVE_TRY(task_.put(range, std::move(data)));
    // The task holds back the present piece, but has submitted all earlier pieces.
    return reached_(std::exchange(end_, range.end), range.end - range.begin);
  }
  [[nodiscard]] Result<void> skip(ByteRange range) override { return task_.skip(range); }

 private:
  FileTask& task_;
  const Reached reached_;
  std::uint64_t end_;  // End of the pieces passed on.
};

}  // namespace varve::transfer
