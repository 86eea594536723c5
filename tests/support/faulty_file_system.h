// SPDX-License-Identifier: Apache-2.0
// A file system whose disk fills up, or fails, at the test's request.
#pragma once

#include <atomic>
#include <cerrno>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "io/file_system.h"

namespace varve::test {

struct Faults {
  std::atomic<bool> disk_full{false};    ///< write_at() fails, space() returns zero.
  std::atomic<bool> reads_fail{false};   ///< read_at() fails with kIo.
  std::atomic<bool> writes_fail{false};  ///< write_at() fails with kIo.
  std::atomic<int> writes{0};
  std::atomic<std::uint64_t> bytes_read{0};
  std::atomic<std::uint64_t> bytes_written{0};
  /// Number of calls of write_at() that still succeed before one fails halfway with kIo; negative:
  /// none fails.
  std::atomic<int> writes_until_fault{-1};
};

class FaultyFile final : public io::File {
 public:
  FaultyFile(std::unique_ptr<io::File> file, Faults& faults)
      : file_(std::move(file)), faults_(faults) {}

  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out) override {
    if (faults_.reads_fail) return Error(ErrorCode::kIo, "the test's disk fails").with_errno(EIO);
    faults_.bytes_read += out.size();
    return file_->read_at(offset, out);
  }
  Result<void> write_at(std::uint64_t offset, std::span<const std::byte> data) override {
    if (faults_.disk_full) {
      // Like a real disk: a part of the bytes may be written.
      const auto part = data.first(data.size() / 8192 * 4096);
      VARVE_TRY(file_->write_at(offset, part));
      return Error(ErrorCode::kNoSpace, "the test's disk is full");
    }
    if (faults_.writes_fail) return Error(ErrorCode::kIo, "the test's disk fails").with_errno(EIO);
    if (faults_.writes_until_fault >= 0 && faults_.writes_until_fault-- == 0) {
      VARVE_TRY(file_->write_at(offset, data.first(data.size() / 8192 * 4096)));
      return Error(ErrorCode::kIo, "the test's disk fails").with_errno(EIO);
    }
    ++faults_.writes;
    faults_.bytes_written += data.size();
    return file_->write_at(offset, data);
  }
  Result<void> sync() override { return file_->sync(); }
  Result<std::uint64_t> size() override { return file_->size(); }
  Result<void> truncate(std::uint64_t bytes) override { return file_->truncate(bytes); }
  Result<std::uint64_t> seek_data(std::uint64_t offset) override {
    return file_->seek_data(offset);
  }
  Result<std::uint64_t> seek_hole(std::uint64_t offset) override {
    return file_->seek_hole(offset);
  }

 private:
  const std::unique_ptr<io::File> file_;
  Faults& faults_;
};

class FaultyFileSystem final : public io::FileSystem {
 public:
  explicit FaultyFileSystem(std::unique_ptr<io::FileSystem> below) : below_(std::move(below)) {}

  Result<std::unique_ptr<io::File>> open(const std::string& path, io::OpenMode mode) override {
    VARVE_TRY_ASSIGN(auto file, below_->open(path, mode));
    return std::unique_ptr<io::File>(std::make_unique<FaultyFile>(std::move(file), faults));
  }
  Result<void> make_directory(const std::string& path) override {
    return below_->make_directory(path);
  }
  Result<void> remove(const std::string& path) override { return below_->remove(path); }
  Result<base::UniqueFd> descriptor(const std::string& path, io::OpenMode mode) override {
    if (before_descriptor) before_descriptor(path);
    return below_->descriptor(path, mode);
  }
  Result<void> rename(const std::string& from, const std::string& to) override {
    return below_->rename(from, to);
  }
  Result<void> sync_directory(const std::string& path) override {
    return below_->sync_directory(path);
  }
  Result<std::vector<std::string>> list(const std::string& path) override {
    return below_->list(path);
  }
  Result<bool> exists(const std::string& path) override { return below_->exists(path); }
  Result<std::uint64_t> tree_bytes(const std::string& path) override {
    return below_->tree_bytes(path);
  }
  Result<SpaceInfo> space(const std::string& path) override {
    if (told_space) return *told_space;
    VARVE_TRY_ASSIGN(auto info, below_->space(path));
    if (faults.disk_full) info.blocks_available = info.blocks_free = 0;
    return info;
  }
  Result<std::unique_ptr<io::FileLock>> lock(const std::string& path) override {
    return below_->lock(path);
  }

  Faults faults;
  std::function<void(const std::string& path)> before_descriptor;  ///< Called if set.
  std::optional<SpaceInfo> told_space;  ///< The answer of space(), if set.

 private:
  const std::unique_ptr<io::FileSystem> below_;
};

}  // namespace varve::test
