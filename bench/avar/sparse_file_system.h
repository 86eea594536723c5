// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "io/posix_file_system.h"

namespace varve::bench {

/// The files of the machine, but without blocks for zeros: a block of zeros in a write becomes a
/// hole. So a series of chunks that are zero takes the space of the headers alone, at any size.
/// Thread-safe.
class SparseFileSystem final : public io::FileSystem {
 public:
  /// A read goes on if it begins less than this before or behind the end of the last read, in the
  /// same file.
  static constexpr std::uint64_t kNearBytes = 1U << 20;

  /// Returns the number of reads so far that did not go on: a disk with heads had to move them.
  [[nodiscard]] std::uint64_t jumps() const {
    const std::lock_guard lock(head_->mutex);
    return head_->jumps;
  }

  Result<std::unique_ptr<io::File>> open(const std::string& path, io::OpenMode mode) override {
    VARVE_TRY_ASSIGN(auto file, below_->open(path, mode));
    return std::unique_ptr<io::File>(std::make_unique<SparseFile>(std::move(file), path, head_));
  }
  Result<void> make_directory(const std::string& path) override {
    return below_->make_directory(path);
  }
  Result<void> remove(const std::string& path) override { return below_->remove(path); }
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
  Result<SpaceInfo> space(const std::string& path) override { return below_->space(path); }
  Result<std::unique_ptr<io::FileLock>> lock(const std::string& path) override {
    return below_->lock(path);
  }

 private:
  /// The place where the last read ended.
  struct Head {
    void read(const std::string& path, std::uint64_t begin, std::uint64_t end) {
      const std::lock_guard lock(mutex);
      const std::uint64_t distance = begin > last ? begin - last : last - begin;
      if (path != file || distance >= kNearBytes) ++jumps;
      file = path;
      last = end;
    }

    std::mutex mutex;
    std::string file;
    std::uint64_t last = 0;
    std::uint64_t jumps = 0;
  };

  class SparseFile final : public io::File {
   public:
    SparseFile(std::unique_ptr<io::File> below, std::string path, std::shared_ptr<Head> head)
        : below_(std::move(below)), path_(std::move(path)), head_(std::move(head)) {}
    Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out) override {
      VARVE_TRY_ASSIGN(const auto bytes, below_->read_at(offset, out));
      head_->read(path_, offset, offset + bytes);
      return bytes;
    }
    Result<void> write_at(std::uint64_t offset, std::span<const std::byte> data) override {
      const std::lock_guard lock(mutex_);  // The size is read and set.
      VARVE_TRY_ASSIGN(const auto size, below_->size());
      const auto hole_after = [&](std::size_t at) {
        std::size_t end = at;
        // Bytes of the file may not be zero: only what lies behind its end may stay a hole.
        while (offset + end >= size && end < data.size() && is_zero(block(data, offset, end))) {
          end += block(data, offset, end).size();
        }
        return end;
      };
      for (std::size_t at = 0; at < data.size();) {
        at = hole_after(at);
        std::size_t end = at;
        while (end < data.size() && hole_after(end) == end) end += block(data, offset, end).size();
        if (end > at) VARVE_TRY(below_->write_at(offset + at, data.subspan(at, end - at)));
        at = end;
      }
      VARVE_TRY_ASSIGN(const auto written, below_->size());
      if (written < offset + data.size()) VARVE_TRY(below_->truncate(offset + data.size()));
      return {};
    }
    Result<void> sync() override { return below_->sync(); }
    Result<std::uint64_t> size() override { return below_->size(); }
    Result<void> truncate(std::uint64_t bytes) override { return below_->truncate(bytes); }
    Result<std::uint64_t> seek_data(std::uint64_t offset) override {
      return below_->seek_data(offset);
    }
    Result<std::uint64_t> seek_hole(std::uint64_t offset) override {
      return below_->seek_hole(offset);
    }
    void will_read(std::uint64_t offset, std::uint64_t bytes) override {
      below_->will_read(offset, bytes);
    }
    bool is_cached(std::uint64_t offset, std::uint64_t bytes) override {
      return below_->is_cached(offset, bytes);
    }

   private:
    // Returns the bytes of `data` from `at` to the end of the file's block.
    static std::span<const std::byte> block(std::span<const std::byte> data, std::uint64_t offset,
                                            std::size_t at) {
      const std::size_t rest = io::kDirectAlignment - (offset + at) % io::kDirectAlignment;
      return data.subspan(at, std::min(rest, data.size() - at));
    }
    static bool is_zero(std::span<const std::byte> bytes) {
      return bytes[0] == std::byte{0} &&
             std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;
    }

    std::mutex mutex_;
    const std::unique_ptr<io::File> below_;
    const std::string path_;
    const std::shared_ptr<Head> head_;
  };

  const std::unique_ptr<io::FileSystem> below_ = io::make_posix_file_system();
  const std::shared_ptr<Head> head_ = std::make_shared<Head>();
};

}  // namespace varve::bench
