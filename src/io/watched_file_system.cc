// SPDX-License-Identifier: Apache-2.0
#include "io/watched_file_system.h"

#include <cerrno>
#include <mutex>
#include <utility>

#include "base/system_error.h"

namespace varve::io {

namespace {

/// Returns true if the system refused an access to the user.
bool is_refused(const Error& error) {
  return error.errno_value() == EACCES || error.errno_value() == EPERM;
}

}  // namespace

struct WatchedFileSystem::Memory {
  void note(const Error& error) {
    const std::lock_guard lock(mutex);
    if (!first) first = error;
  }
  template <typename T>
  Result<T> watched(Result<T> result) {
    if (!result && base::lacks_resources(result.error())) note(result.error());
    return result;
  }
  /// As watched(), for a call that reads. A refused write says nothing about a check.
  template <typename T>
  Result<T> watched_read(Result<T> result) {
    if (!result && is_refused(result.error())) note(result.error());
    return watched(std::move(result));
  }

  std::mutex mutex;  // Innermost.
  std::optional<Error> first;
};

class WatchedFileSystem::WatchedFile final : public File {
 public:
  WatchedFile(std::unique_ptr<File> below, std::shared_ptr<Memory> memory)
      : below_(std::move(below)), memory_(std::move(memory)) {}

  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out) override {
    return memory_->watched_read(below_->read_at(offset, out));
  }
  Result<void> write_at(std::uint64_t offset, std::span<const std::byte> data) override {
    return memory_->watched(below_->write_at(offset, data));
  }
  Result<void> sync() override { return memory_->watched(below_->sync()); }
  Result<std::uint64_t> size() override { return memory_->watched(below_->size()); }
  Result<void> truncate(std::uint64_t bytes) override {
    return memory_->watched(below_->truncate(bytes));
  }
  Result<std::uint64_t> seek_data(std::uint64_t offset) override {
    return memory_->watched(below_->seek_data(offset));
  }
  Result<std::uint64_t> seek_hole(std::uint64_t offset) override {
    return memory_->watched(below_->seek_hole(offset));
  }
  void will_read(std::uint64_t offset, std::uint64_t bytes) override {
    below_->will_read(offset, bytes);
  }
  bool is_cached(std::uint64_t offset, std::uint64_t bytes) override {
    return below_->is_cached(offset, bytes);
  }
  std::uint64_t append_unit() override { return below_->append_unit(); }

 private:
  const std::unique_ptr<File> below_;
  const std::shared_ptr<Memory> memory_;
};

WatchedFileSystem::WatchedFileSystem(FileSystem& below)
    : below_(below), memory_(std::make_shared<Memory>()) {}

WatchedFileSystem::WatchedFileSystem(std::unique_ptr<FileSystem> below)
    : owned_(std::move(below)), below_(*owned_), memory_(std::make_shared<Memory>()) {}

WatchedFileSystem::~WatchedFileSystem() = default;

Result<void> WatchedFileSystem::conclusive() const {
  const std::lock_guard lock(memory_->mutex);
  if (!memory_->first) return {};
  const char* const advice = is_refused(*memory_->first)
                                 ? "Run the command as root, or give the files back to their owner"
                                 : "Give the process more (`ulimit -n` shows the limit of open "
                                   "files), and run the command "
                                   "again";
  return Error(*memory_->first)
      .with_more(std::string("; nothing is known of the rest, and nothing was called damaged for "
                             "this. ") +
                 advice);
}

void WatchedFileSystem::note(const Error& error) {
  if (base::lacks_resources(error) || is_refused(error)) memory_->note(error);
}

template <typename T>
Result<T> WatchedFileSystem::watched(Result<T> result, OpenMode mode) {
  return mode == OpenMode::kReadWrite ? memory_->watched(std::move(result))
                                      : memory_->watched_read(std::move(result));
}

Result<std::unique_ptr<File>> WatchedFileSystem::open(const std::string& path, OpenMode mode) {
  VARVE_TRY_ASSIGN(auto file, watched(below_.open(path, mode), mode));
  return std::unique_ptr<File>(std::make_unique<WatchedFile>(std::move(file), memory_));
}

Result<void> WatchedFileSystem::make_directory(const std::string& path) {
  return watched(below_.make_directory(path));
}

Result<void> WatchedFileSystem::remove(const std::string& path) {
  return watched(below_.remove(path));
}

Result<void> WatchedFileSystem::rename(const std::string& from, const std::string& to) {
  return watched(below_.rename(from, to));
}

Result<void> WatchedFileSystem::sync_directory(const std::string& path) {
  return watched(below_.sync_directory(path));
}

Result<std::vector<std::string>> WatchedFileSystem::list(const std::string& path) {
  return watched(below_.list(path), OpenMode::kRead);
}

Result<bool> WatchedFileSystem::exists(const std::string& path) {
  return watched(below_.exists(path), OpenMode::kRead);
}

Result<std::uint64_t> WatchedFileSystem::tree_bytes(const std::string& path) {
  return watched(below_.tree_bytes(path), OpenMode::kRead);
}

std::uint64_t WatchedFileSystem::stored_bytes(const std::string& path, std::uint64_t bytes) {
  return below_.stored_bytes(path, bytes);
}

Result<SpaceInfo> WatchedFileSystem::space(const std::string& path) {
  return watched(below_.space(path));
}

Result<std::unique_ptr<FileLock>> WatchedFileSystem::lock(const std::string& path) {
  return watched(below_.lock(path));
}

Result<std::unique_ptr<FileLock>> WatchedFileSystem::lock_shared(const std::string& path) {
  return watched(below_.lock_shared(path));
}

Result<base::UniqueFd> WatchedFileSystem::descriptor(const std::string& path, OpenMode mode) {
  return watched(below_.descriptor(path, mode), mode);
}

std::optional<std::string> WatchedFileSystem::root_path() { return below_.root_path(); }

}  // namespace varve::io
