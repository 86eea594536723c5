// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/file_system.h"
#include "varve/result.h"

namespace varve::io {

/// A file system that remembers failures for lack of descriptors or memory of the process
/// (base::lacks_resources), and refused reads (EACCES, EPERM). These failures say nothing about the
/// bytes on disk. So a check or a repair ends without a verdict after a remembered failure.
/// Thread-safe if the file system below is. Lifetime: open files outlive neither this object nor
/// the file system below.
class WatchedFileSystem final : public FileSystem {
 public:
  /// Lifetime: `below` outlives the object.
  explicit WatchedFileSystem(FileSystem& below);
  explicit WatchedFileSystem(std::unique_ptr<FileSystem> below);
  ~WatchedFileSystem() override;

  /// Returns the first remembered failure as an error; success without a failure.
  [[nodiscard]] Result<void> conclusive() const;
  /// Remembers `error` if the process lacked resources or a right to read. For errors of libraries
  /// with their own reads.
  void note(const Error& error);

  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) override;
  Result<void> make_directory(const std::string& path) override;
  Result<void> remove(const std::string& path) override;
  Result<void> rename(const std::string& from, const std::string& to) override;
  Result<void> sync_directory(const std::string& path) override;
  Result<std::vector<std::string>> list(const std::string& path) override;
  Result<bool> exists(const std::string& path) override;
  Result<std::uint64_t> tree_bytes(const std::string& path) override;
  std::uint64_t stored_bytes(const std::string& path, std::uint64_t bytes) override;
  Result<SpaceInfo> space(const std::string& path) override;
  Result<std::unique_ptr<FileLock>> lock(const std::string& path) override;
  Result<std::unique_ptr<FileLock>> lock_shared(const std::string& path) override;
  Result<base::UniqueFd> descriptor(const std::string& path, OpenMode mode) override;
  std::optional<std::string> root_path() override;

 private:
  struct Memory;
  class WatchedFile;
  template <typename T>
  [[nodiscard]] Result<T> watched(Result<T> result, OpenMode mode = OpenMode::kReadWrite);

  const std::unique_ptr<FileSystem> owned_;  // Null if the caller owns the file system below.
  FileSystem& below_;
  const std::shared_ptr<Memory> memory_;
};

}  // namespace varve::io
