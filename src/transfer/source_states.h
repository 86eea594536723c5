// SPDX-License-Identifier: Apache-2.0
// The states of the files of a stored directory, for skipping unchanged files in the next `varve
// store`. Derived data: without the states, every file is read. docs/FORMAT.md describes the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/file_system.h"
#include "varve/browse.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::transfer {

/// The identity of a source file's state: a change of the file changes its ctime.
struct SourceState {
  std::uint64_t inode = 0;
  std::uint64_t device = 0;
  Timestamp ctime;
};

/// The first block of the file.
struct SourceStatesHeader {
  SeriesId series{};
  VersionNumber number{};        ///< The version of the states.
  VersionNumber base{};          ///< The base of the version; 0 for none.
  Timestamp base_sealed_at;      ///< Time of the base's seal.
  Timestamp sealed_at;           ///< Time of the version's seal; zero before the seal.
  Timestamp started_at;          ///< The source's clock when the first store began.
  std::uint64_t name = 0;        ///< Hash of the version's name at the opening of the version.
  std::uint64_t source = 0;      ///< Hash of the source directory's path.
  std::uint64_t root_inode = 0;  ///< Inode of the source directory.
  std::uint64_t lost = 0;  ///< Stamp of the series' lost chunks; see Series::lost_chunks_stamp().
  std::uint64_t user = 0;  ///< User of the store; the user's rights limit the readable files.
  std::uint64_t entries = 0;  ///< Number of entries, with the root.
};

/// Reads the states of a version. Not thread-safe.
class SourceStates {
 public:
  /// Errors: kNotFound; kCorrupt if the header is damaged; the errors of the file system.
  [[nodiscard]] static Result<std::unique_ptr<SourceStates>> open(io::FileSystem& files,
                                                                  const std::string& path);
  [[nodiscard]] const SourceStatesHeader& header() const { return header_; }
  /// Returns whether the file with the rank was stored from the given state of the source. Returns
  /// false if the recorded state is unknown or damaged.
  [[nodiscard]] bool matches(Rank rank, const SourceState& state);
  /// Reads all blocks. Errors: kCorrupt; the errors of reading.
  [[nodiscard]] Result<void> verify();

 private:
  SourceStates(std::unique_ptr<io::File> file, const SourceStatesHeader& header)
      : file_(std::move(file)), header_(header) {}
  [[nodiscard]] Result<void> read_block(std::uint64_t number);

  const std::unique_ptr<io::File> file_;
  const SourceStatesHeader header_;
  std::vector<std::byte> block_;
  std::uint64_t block_number_ = 0;  // Number of the block in block_; 0 for none.
};

/// Writes the states of a version in the order of ranks. Keeps a single block in memory. Not
/// thread-safe.
class SourceStatesWriter {
 public:
  /// Creates the file, or replaces the file. The header is on disk when the call returns, and
  /// announces that the version is to become equal to the source.
  [[nodiscard]] static Result<std::unique_ptr<SourceStatesWriter>> create(
      io::FileSystem& files, const std::string& directory, const std::string& name,
      const SourceStatesHeader& header);

  /// Appends the state of the entry with the next rank; nullopt if the entry must be read next
  /// time. A failure to write ends the writer: finish() then fails.
  void add(const std::optional<SourceState>& state);
  /// Completes the file for a sealed version with `entries` names, and renames it to `name`. Does
  /// not wait for the disk: checksums reveal a file left incomplete by a crash.
  /// Errors: kInvalid if the version has another number of entries; the errors of the file system.
  [[nodiscard]] Result<void> finish(const std::string& name, Timestamp sealed_at,
                                    std::uint64_t entries);
  /// Returns true before the first add().
  [[nodiscard]] bool is_empty() const { return header_.entries == 0; }
  [[nodiscard]] SeriesId series() const { return header_.series; }
  [[nodiscard]] VersionNumber version() const { return header_.number; }

 private:
  SourceStatesWriter(io::FileSystem& files, std::string directory, std::string name,
                     const SourceStatesHeader& header)
      : files_(files), directory_(std::move(directory)), name_(std::move(name)), header_(header) {}
  void write_block();

  io::FileSystem& files_;
  const std::string directory_;
  const std::string name_;
  SourceStatesHeader header_;
  std::unique_ptr<io::File> file_;
  std::vector<std::byte> block_;
  std::optional<Error> error_;
};

}  // namespace varve::transfer
