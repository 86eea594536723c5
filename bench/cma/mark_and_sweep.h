// SPDX-License-Identifier: Apache-2.0
// Grouped mark-and-sweep with a group for each version, over containers that the product wrote. It
// reads the marks of the versions that stay, frees containers without a mark, copies the live
// chunks out of containers with many dead ones, and writes the marks of the copied chunks again.
//
// Simulated are the chunk tables, the fingerprint index and the recipes: they are in memory, and
// looking up and changing them costs nothing. The copies keep no header.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/coding.h"
#include "base/unique_fd.h"
#include "cma/grouped_marks.h"
#include "cma/pool_content.h"
#include "cma/process_io.h"
#include "must.h"

namespace varve::bench {

class MarkAndSweep {
 public:
  struct Collection {
    Cost cost;
    std::uint64_t freed = 0;
    std::uint64_t moved = 0;
    std::uint64_t dead = 0;  ///< Bytes of unused chunks that stay.
  };

  /// Creates the directory again. The destructor removes it.
  MarkAndSweep(std::string directory, const PoolContent& content)
      : directory_(std::move(directory)), kept_containers_(content.containers) {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(kept());
    for (std::size_t i = 0; i < content.versions.size(); ++i) {
      write_file(kept() + marks_name(i), base::as_bytes(encode_marks(content.versions[i])));
    }
    versions_ = content.versions.size();
  }
  ~MarkAndSweep() { std::filesystem::remove_all(directory_); }
  MarkAndSweep(const MarkAndSweep&) = delete;
  MarkAndSweep& operator=(const MarkAndSweep&) = delete;

  void add_container(Container number, std::span<const std::byte> data) {
    write_file(kept() + container_name(number), data);
  }

  /// Deletes versions of the series as it was at first. Copies the live chunks of containers whose
  /// share of dead bytes is larger than `dead_share`.
  Collection remove(const std::vector<std::size_t>& versions, double dead_share) {
    go_back();
    Collection result;
    const CostMeter meter;
    const std::set<std::size_t> gone(versions.begin(), versions.end());
    std::map<std::size_t, Marks> marks;
    Marks live;
    for (std::size_t i = 0; i < versions_; ++i) {
      if (gone.contains(i)) continue;
      marks[i] = decode_marks(base::as_text(read_file(present() + marks_name(i))));
      unite(live, marks[i]);
    }
    const auto dead = sweep(live, dead_share, result);
    write_container();
    rewrite(marks, dead);
    for (const auto container : dead) remove_file(container_name(container));
    for (const auto version : gone) remove_file(marks_name(version));
    result.freed -= result.moved;
    result.cost = meter.cost();
    return result;
  }

 private:
  static constexpr std::size_t kContainerBytes = 4U << 20;
  struct Place {
    Container container = 0;
    std::size_t index = 0;
  };

  [[nodiscard]] std::string kept() const { return directory_ + "/kept"; }
  [[nodiscard]] std::string present() const { return directory_ + "/present"; }
  static std::string container_name(Container number) { return "/c" + std::to_string(number); }
  static std::string marks_name(std::size_t version) { return "/m" + std::to_string(version); }

  static void write_file(const std::string& path, std::span<const std::byte> data) {
    const base::UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    const bool written =
        ::write(fd.get(), data.data(), data.size()) == static_cast<ssize_t>(data.size()) &&
        ::fdatasync(fd.get()) == 0;
    if (!written) must(Result<void>(Error(ErrorCode::kIo, "a file cannot be written")));
  }
  static std::vector<std::byte> read_file(const std::string& path) {
    std::vector<std::byte> data(std::filesystem::file_size(path));
    const base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (::read(fd.get(), data.data(), data.size()) != static_cast<ssize_t>(data.size())) {
      must(Result<void>(Error(ErrorCode::kIo, "a file cannot be read")));
    }
    return data;
  }
  void remove_file(const std::string& name) const { std::filesystem::remove(present() + name); }

  /// Links the files of the beginning. No file is changed, but replaced.
  void go_back() {
    std::filesystem::remove_all(present());
    std::filesystem::create_directory(present());
    for (const auto& entry : std::filesystem::directory_iterator(kept())) {
      std::filesystem::create_hard_link(entry.path(),
                                        present() + "/" + entry.path().filename().string());
    }
    containers_ = kept_containers_;
    next_ = containers_.rbegin()->first + 1;
    moved_.clear();
    drop_cached(kept());
  }

  /// Copies live chunks. Returns the containers to remove.
  std::vector<Container> sweep(const Marks& live, double dead_share, Collection& result) {
    std::vector<Container> dead;
    for (const auto& [number, chunks] : kept_containers_) {
      const auto found = live.find(number);
      std::uint64_t all = 0;
      std::uint64_t used = 0;
      for (std::size_t i = 0; i < chunks.size(); ++i) {
        all += chunks[i].bytes;
        if (found != live.end() && found->second[i]) used += chunks[i].bytes;
      }
      if (static_cast<double>(all - used) <= dead_share * static_cast<double>(all)) {
        result.dead += all - used;
        continue;
      }
      dead.push_back(number);
      result.freed += all;
      if (used == 0) continue;
      const auto data = read_file(present() + container_name(number));
      for (std::size_t i = 0; i < chunks.size(); ++i) {
        if (found->second[i]) append(chunks[i], data);
      }
      result.moved += used;
    }
    return dead;
  }
  void append(const PoolChunk& chunk, std::span<const std::byte> data) {
    if (filling_.size() + chunk.bytes > kContainerBytes) write_container();
    moved_[chunk.id.value] = {next_, table_.size()};
    table_.push_back({chunk.id, static_cast<std::uint32_t>(filling_.size()), chunk.bytes});
    const auto bytes = data.subspan(chunk.offset, chunk.bytes);
    filling_.insert(filling_.end(), bytes.begin(), bytes.end());
  }
  void write_container() {
    if (table_.empty()) return;
    write_file(present() + container_name(next_), filling_);
    containers_[next_++] = std::move(table_);
    table_.clear();
    filling_.clear();
  }
  /// Replaces the marks that refer to removed containers.
  void rewrite(std::map<std::size_t, Marks>& marks, const std::vector<Container>& dead) {
    for (auto& [version, used] : marks) {
      bool changed = false;
      for (const auto container : dead) {
        const auto old = used.extract(container);
        if (old.empty()) continue;
        changed = true;
        const auto& chunks = containers_.at(container);
        for (std::size_t i = 0; i < chunks.size(); ++i) {
          if (!old.mapped()[i]) continue;
          const auto place = moved_.at(chunks[i].id.value);
          auto& bitmap = used[place.container];
          bitmap.resize(containers_.at(place.container).size());
          bitmap[place.index] = true;
        }
      }
      if (!changed) continue;
      remove_file(marks_name(version));
      write_file(present() + marks_name(version), base::as_bytes(encode_marks(used)));
    }
  }

  const std::string directory_;
  const Containers kept_containers_;
  std::size_t versions_ = 0;
  Containers containers_;
  Container next_ = 0;
  std::unordered_map<std::uint64_t, Place> moved_;
  std::vector<PoolChunk> table_;
  std::vector<std::byte> filling_;
};

}  // namespace varve::bench
