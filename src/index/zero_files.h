// SPDX-License-Identifier: Apache-2.0
// The files of the Zero-Chunk index: a file of bins, and a log of the places of bins.
// Format: docs/FORMAT.md §8.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/id_runs.h"
#include "index/bin_table.h"
#include "index/index_fault.h"
#include "io/file_system.h"
#include "varve/result.h"

namespace varve::index {

/// Stores bins. Rewriting a bin leaves the old copy as garbage until compact().
/// Not thread-safe.
///
/// Nothing counts before commit(): after a crash, the files hold the state of the last commit(). A
/// damaged part of the log is left out, with all later parts.
class ZeroFiles {
 public:
  /// Opens the files in `directory`. Begins with empty files if there are none, if the files are
  /// damaged, or if they have a different `parameter`.
  /// Lifetime: the file system must outlive the object.
  [[nodiscard]] static std::unique_ptr<ZeroFiles> open(io::FileSystem& files,
                                                       const std::string& directory,
                                                       std::uint32_t parameter);
  /// Opens the files in `directory` with any parameter. Returns null if there are none.
  [[nodiscard]] static std::unique_ptr<ZeroFiles> open_present(io::FileSystem& files,
                                                               const std::string& directory);
  /// Removes the files. Errors do not matter: other indexes ignore the files.
  static void remove_all(io::FileSystem& files, const std::string& directory);
  /// Reads the files without changes. Returns the damaged files. The incomplete end of a log after
  /// a crash is no fault. A writer may be active.
  [[nodiscard]] static std::vector<IndexFault> find_faults(io::FileSystem& files,
                                                           const std::string& directory);

  [[nodiscard]] std::uint32_t parameter() const { return parameter_; }
  [[nodiscard]] const BinTable& bins() const { return table_; }
  /// Returns the ids added by commits.
  [[nodiscard]] const base::IdRuns& told() const { return told_; }

  /// Adds a bin without content.
  BinNumber add(std::uint64_t hook);
  /// Reads the content of a bin.
  /// Errors: kCorrupt; the errors of reading.
  [[nodiscard]] Result<std::string> read(BinNumber bin);
  /// Writes a bin.
  /// Errors: the errors of writing; kTooLarge.
  [[nodiscard]] Result<void> write(BinNumber bin, std::string_view content);
  /// Makes the writes durable, adds `told` to told(), and records `complete_below` for the caller.
  /// Errors: the errors of writing.
  [[nodiscard]] Result<void> commit(const base::IdRuns& told, VersionNumber complete_below = {});
  /// Returns `complete_below` of the last commit.
  [[nodiscard]] VersionNumber complete_below() const { return complete_below_; }

  /// Returns whether most of the file is garbage.
  [[nodiscard]] bool wants_compaction() const;
  /// Copies all bins to new files, each as returned by `change`, and replaces told().
  /// Errors: the errors of reading and writing. The former files then stay in use.
  [[nodiscard]] Result<void> compact(const base::IdRuns& told,
                                     const std::function<std::string(std::string)>& change);

  [[nodiscard]] std::uint64_t bytes_read() const { return bytes_read_; }
  [[nodiscard]] std::uint64_t bytes_written() const { return bytes_written_; }
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  ZeroFiles(io::FileSystem& files, std::string directory, std::uint32_t parameter)
      : files_(files), directory_(std::move(directory)), parameter_(parameter) {}
  /// Returns the numbers of the generations with a log, the highest first.
  [[nodiscard]] static std::vector<std::uint32_t> generations(io::FileSystem& files,
                                                              const std::string& directory);
  [[nodiscard]] std::string path_of(std::uint32_t generation, std::string_view kind) const;
  [[nodiscard]] Result<void> create(std::uint32_t generation);
  [[nodiscard]] Result<void> load(std::uint32_t generation);
  /// Returns the text of a log, with zeros for parts that do not open.
  /// Errors: kCorrupt for a damaged header; kTooLarge.
  [[nodiscard]] static Result<std::string> read_log(io::File& file, const std::string& path);
  void take_batches(io::File& file, std::string_view log);
  /// Returns whether a sound batch follows the first damaged batch.
  [[nodiscard]] bool has_damaged_batch(io::File& file, std::string_view log) const;
  [[nodiscard]] Result<bool> look_at(std::uint32_t generation, std::vector<IndexFault>& faults);
  [[nodiscard]] bool take_batch(std::string_view log, std::size_t& at);
  [[nodiscard]] std::string encode_batch(const base::IdRuns& told,
                                         VersionNumber complete_below) const;
  void remove_others() const;

  io::FileSystem& files_;
  const std::string directory_;
  const std::uint32_t parameter_;
  std::uint32_t generation_ = 0;
  std::unique_ptr<io::File> bins_;
  std::unique_ptr<io::File> log_;
  std::uint64_t bins_end_ = 0;
  std::uint64_t log_end_ = 0;
  BinTable table_;
  std::vector<BinNumber> changed_;  // Bins changed since the last commit.
  base::IdRuns told_;
  VersionNumber complete_below_{};
  std::uint64_t bytes_read_ = 0;
  std::uint64_t bytes_written_ = 0;
};

}  // namespace varve::index
