// SPDX-License-Identifier: Apache-2.0
// A store in which any version may refer to any chunk, to compare the cost of deletions. An exact
// index finds duplicates, and containers follow the order of storing. A collector marks the live
// chunks and copies them out of containers that have dead ones.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "avar/stored_series.h"
#include "avar/version_source.h"
#include "base/unique_fd.h"

namespace varve::bench {

class MarkAndCopy {
 public:
  /// Creates the directory again. The destructor removes it.
  explicit MarkAndCopy(std::string directory) : directory_(std::move(directory)) {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
  }
  ~MarkAndCopy() {
    std::filesystem::remove_all(directory_);
    std::filesystem::remove_all(directory_ + ".kept");
  }
  MarkAndCopy(const MarkAndCopy&) = delete;
  MarkAndCopy& operator=(const MarkAndCopy&) = delete;

  void store(const std::vector<Content>& stream, const VersionSource& source) {
    for (const auto content : stream) {
      if (!stored_.insert(content).second) continue;
      append(content, source.data_of(content));
    }
    write_container();
    streams_.push_back(stream);
  }

  void keep() {
    kept_ = containers_;
    std::filesystem::copy(directory_, directory_ + ".kept",
                          std::filesystem::copy_options::recursive);
    ::sync();
  }
  void go_back() {
    containers_ = kept_;
    std::filesystem::remove_all(directory_);
    std::filesystem::copy(directory_ + ".kept", directory_,
                          std::filesystem::copy_options::recursive);
    ::sync();
  }

  /// Deletes versions. Copies the live chunks of containers whose share of dead bytes is larger
  /// than `dead_share`.
  Deletion remove(const std::vector<std::size_t>& versions, double dead_share) {
    const std::set<std::size_t> gone(versions.begin(), versions.end());
    const auto start = std::chrono::steady_clock::now();
    std::unordered_set<Content> live;
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      if (!gone.contains(i)) live.insert(streams_[i].begin(), streams_[i].end());
    }
    Deletion deletion;
    std::vector<std::uint32_t> dead;
    const auto old = containers_;
    std::vector<std::byte> bytes;
    for (const auto& [number, chunks] : old) {
      std::uint64_t all = 0;
      std::uint64_t wanted = 0;
      for (const auto& chunk : chunks) {
        all += chunk.bytes;
        if (live.contains(chunk.content)) wanted += chunk.bytes;
      }
      if (static_cast<double>(all - wanted) <= dead_share * static_cast<double>(all)) continue;
      dead.push_back(number);
      deletion.freed += all;
      if (wanted == 0) continue;
      bytes.resize(all);
      read_container(number, bytes);
      for (const auto& chunk : chunks) {
        if (!live.contains(chunk.content)) continue;
        append(chunk.content, std::span(bytes).subspan(chunk.offset, chunk.bytes));
        deletion.moved += chunk.bytes;
      }
    }
    write_container();
    for (const auto number : dead) {
      containers_.erase(number);
      std::filesystem::remove(path_of(number));
    }
    deletion.freed -= deletion.moved;
    deletion.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return deletion;
  }

 private:
  static constexpr std::size_t kContainerBytes = 4U << 20;
  struct Chunk {
    Content content = 0;
    std::uint32_t offset = 0;
    std::uint32_t bytes = 0;
  };

  [[nodiscard]] std::string path_of(std::uint32_t number) const {
    return directory_ + "/" + std::to_string(number);
  }
  void append(Content content, std::span<const std::byte> data) {
    if (filling_.size() + data.size() > kContainerBytes) write_container();
    table_.push_back({content, static_cast<std::uint32_t>(filling_.size()),
                      static_cast<std::uint32_t>(data.size())});
    filling_.insert(filling_.end(), data.begin(), data.end());
  }
  void write_container() {
    if (table_.empty()) return;
    const auto number = next_++;
    const base::UniqueFd fd(
        ::open(path_of(number).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    const bool written = ::write(fd.get(), filling_.data(), filling_.size()) ==
                             static_cast<ssize_t>(filling_.size()) &&
                         ::fdatasync(fd.get()) == 0;
    if (!written) must(Result<void>(Error(ErrorCode::kIo, "a container cannot be written")));
    containers_[number] = std::move(table_);
    table_.clear();
    filling_.clear();
  }
  void read_container(std::uint32_t number, std::span<std::byte> out) const {
    const base::UniqueFd fd(::open(path_of(number).c_str(), O_RDONLY | O_CLOEXEC));
    if (::read(fd.get(), out.data(), out.size()) != static_cast<ssize_t>(out.size())) {
      must(Result<void>(Error(ErrorCode::kIo, "a container cannot be read")));
    }
  }

  const std::string directory_;
  std::unordered_set<Content> stored_;
  std::vector<std::vector<Content>> streams_;
  std::map<std::uint32_t, std::vector<Chunk>> containers_;
  std::map<std::uint32_t, std::vector<Chunk>> kept_;
  std::uint32_t next_ = 0;
  std::vector<Chunk> table_;
  std::vector<std::byte> filling_;
};

}  // namespace varve::bench
