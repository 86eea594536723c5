// SPDX-License-Identifier: Apache-2.0
// Files in memory that can fail at any change, and then show the content that a disk would still
// have: synced bytes under synced names. Files and bytes that were removed or cut without a later
// sync are still there.
#pragma once

#include <cerrno>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "io/file_system.h"
#include "io/memory_file_system.h"

namespace varve::test {

class CrashFileSystem final : public io::FileSystem {
 public:
  CrashFileSystem() : state_(std::make_shared<State>()) {
    state_->files = io::make_memory_file_system();
  }

  /// Makes the n-th change from now on fail (1 = the next), and all after it; 0 = none.
  void break_after(std::uint64_t changes) {
    const std::lock_guard lock(state_->mutex);
    state_->left = changes;
    state_->broken = false;
  }
  [[nodiscard]] bool broken() const {
    const std::lock_guard lock(state_->mutex);
    return state_->broken;
  }
  /// Returns the number of changes since the last call.
  std::uint64_t take_changes() {
    const std::lock_guard lock(state_->mutex);
    return std::exchange(state_->changes, 0);
  }

  /// Restores the state that a power cut would leave. No file may be open.
  void crash() {
    const std::lock_guard lock(state_->mutex);
    auto after = io::make_memory_file_system();
    for (const auto& directory : state_->directories) {
      static_cast<void>(after->make_directory(directory));
    }
    for (const auto& path : state_->names) {
      auto file = after->open(path, io::OpenMode::kReadWrite);
      const auto synced = state_->synced.find(path);
      const std::string bytes = synced == state_->synced.end() ? "" : synced->second;
      static_cast<void>((*file)->write_at(0, std::as_bytes(std::span(bytes))));
    }
    state_->files = std::move(after);
    state_->left = 0;
    state_->broken = false;
  }

  Result<std::unique_ptr<io::File>> open(const std::string& path, io::OpenMode mode) override {
    VARVE_TRY_ASSIGN(const bool present, state_->files->exists(path));
    if (!present && !io::only_reads(mode)) {
      VARVE_TRY(state_->change());
      const std::lock_guard lock(state_->mutex);
      state_->synced.erase(path);
    }
    VARVE_TRY_ASSIGN(auto file, state_->files->open(path, mode));
    return std::unique_ptr<io::File>(std::make_unique<File>(std::move(file), state_, path));
  }
  Result<void> make_directory(const std::string& path) override {
    const std::lock_guard lock(state_->mutex);
    state_->directories.insert(path);
    return state_->files->make_directory(path);
  }
  Result<void> remove(const std::string& path) override {
    VARVE_TRY(state_->change());
    return state_->files->remove(path);
  }
  Result<void> rename(const std::string& from, const std::string& to) override {
    VARVE_TRY(state_->change());
    VARVE_TRY(state_->files->rename(from, to));
    const std::lock_guard lock(state_->mutex);
    const auto synced = state_->synced.find(from);
    if (synced == state_->synced.end()) return {};
    state_->synced[to] = std::move(synced->second);
    state_->synced.erase(from);
    return {};
  }
  Result<void> sync_directory(const std::string& path) override {
    VARVE_TRY(state_->change());
    VARVE_TRY_ASSIGN(const auto present, state_->files->list(path));
    const std::lock_guard lock(state_->mutex);
    std::erase_if(state_->names,
                  [&](const std::string& name) { return name.substr(0, name.rfind('/')) == path; });
    for (const auto& name : present) {
      const auto full = path + "/" + name;
      if (!state_->directories.contains(full)) state_->names.insert(full);
    }
    return {};
  }
  Result<std::vector<std::string>> list(const std::string& path) override {
    return state_->files->list(path);
  }
  Result<bool> exists(const std::string& path) override { return state_->files->exists(path); }
  Result<std::uint64_t> tree_bytes(const std::string& path) override {
    return state_->files->tree_bytes(path);
  }
  Result<SpaceInfo> space(const std::string& path) override { return state_->files->space(path); }
  Result<std::unique_ptr<io::FileLock>> lock(const std::string& path) override {
    return state_->files->lock(path);
  }

 private:
  struct State {
    Result<void> change() {
      const std::lock_guard lock(mutex);
      ++changes;
      if (left != 0 && --left == 0) broken = true;
      if (broken) return Error(ErrorCode::kIo, "the test's disk fails").with_errno(EIO);
      return {};
    }
    mutable std::mutex mutex;
    std::unique_ptr<io::FileSystem> files;
    std::set<std::string> directories;
    std::set<std::string> names;                // Names that a directory's sync made durable.
    std::map<std::string, std::string> synced;  // Bytes that a file's sync made durable.
    std::uint64_t left = 0;
    std::uint64_t changes = 0;
    bool broken = false;
  };

  class File final : public io::File {
   public:
    File(std::unique_ptr<io::File> file, std::shared_ptr<State> state, std::string path)
        : file_(std::move(file)), state_(std::move(state)), path_(std::move(path)) {}
    Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out) override {
      return file_->read_at(offset, out);
    }
    Result<void> write_at(std::uint64_t offset, std::span<const std::byte> data) override {
      VARVE_TRY(state_->change());
      return file_->write_at(offset, data);
    }
    Result<void> sync() override {
      VARVE_TRY(state_->change());
      VARVE_TRY_ASSIGN(const auto bytes, file_->size());
      std::string content(bytes, '\0');
      VARVE_TRY(file_->read_at(0, std::as_writable_bytes(std::span(content))));
      const std::lock_guard lock(state_->mutex);
      state_->synced[path_] = std::move(content);
      return {};
    }
    Result<std::uint64_t> size() override { return file_->size(); }
    Result<void> truncate(std::uint64_t bytes) override {
      VARVE_TRY(state_->change());
      return file_->truncate(bytes);
    }
    Result<std::uint64_t> seek_data(std::uint64_t offset) override {
      return file_->seek_data(offset);
    }
    Result<std::uint64_t> seek_hole(std::uint64_t offset) override {
      return file_->seek_hole(offset);
    }

   private:
    const std::unique_ptr<io::File> file_;
    const std::shared_ptr<State> state_;
    const std::string path_;
  };

  const std::shared_ptr<State> state_;
};

}  // namespace varve::test
