// SPDX-License-Identifier: Apache-2.0
// A layout without arranging: it counts the versions that use each container, and frees a container
// with its last user.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/checksum.h"
#include "base/id_runs.h"
#include "format/frame_codec.h"
#include "layout/layout.h"

namespace varve::test {

/// The containers of a CountingLayout. They outlive it, as a disk does.
struct CountedContainers {
  struct Container {
    std::shared_ptr<const format::ContainerHeader> header;
    std::vector<std::byte> data;
    std::uint32_t users = 0;  ///< Versions that refer to it; the open version that wrote it.
  };
  std::map<ContainerNumber, Container> containers;
  std::map<VersionNumber, base::IdRuns> sealed;
  std::map<VersionNumber, std::uint32_t> next_ordinal;
  ContainerNumber next{1};

  [[nodiscard]] std::uint64_t bytes() const {
    std::uint64_t sum = 0;
    for (const auto& entry : containers) sum += entry.second.data.size();
    return sum;
  }
};

/// Writes a container at each flush(), with a frame for each chunk. Thread-safe.
class CountingLayout final : public layout::Layout {
 public:
  /// Lifetime: `disk` outlives the layout.
  explicit CountingLayout(CountedContainers& disk) : disk_(disk) {}

  Result<void> begin_version(VersionNumber number) override {
    const std::lock_guard lock(mutex_);
    open_ = number;
    placed_ = {};
    return {};
  }
  Result<ChunkId> place(const Fingerprint& fingerprint, std::span<const std::byte> raw) override {
    const std::lock_guard lock(mutex_);
    if (!open_) return Error(ErrorCode::kInvalid, "no version is begun");
    const auto id = ChunkId::make(*open_, disk_.next_ordinal[*open_]++);
    waiting_.push_back({id, fingerprint, {raw.begin(), raw.end()}});
    placed_.raw += raw.size();
    return id;
  }
  std::optional<std::vector<std::byte>> read_unwritten(ChunkId id) override {
    const std::lock_guard lock(mutex_);
    const auto chunk = std::ranges::find(waiting_, id, &Waiting::id);
    if (chunk == waiting_.end()) return std::nullopt;
    return chunk->raw;
  }
  Result<void> flush() override {
    const std::lock_guard lock(mutex_);
    write();
    return {};
  }
  Result<void> sync() override { return flush(); }
  Result<void> on_seal(VersionNumber number, const base::IdRuns& live) override {
    const std::lock_guard lock(mutex_);
    write();
    for (auto& [of, container] : disk_.containers) {
      if (uses(live, container)) ++container.users;
    }
    disk_.sealed[number] = live;
    release_written(number);
    return {};
  }
  Result<void> on_delete(VersionNumber number) override {
    const std::lock_guard lock(mutex_);
    const auto sealed = disk_.sealed.find(number);
    if (sealed == disk_.sealed.end()) {
      waiting_.clear();
      release_written(number);
      return {};
    }
    for (auto& [of, container] : disk_.containers) {
      if (uses(sealed->second, container)) --container.users;
    }
    disk_.sealed.erase(sealed);
    free_unused();
    return {};
  }
  layout::PlacedBytes placed() const override {
    const std::lock_guard lock(mutex_);
    return placed_;
  }
  std::uint64_t unwritten_bytes() const override {
    const std::lock_guard lock(mutex_);
    std::uint64_t sum = 0;
    for (const auto& chunk : waiting_) sum += chunk.raw.size();
    return sum;
  }

  const format::FrameCodec& codec() const override { return *codec_; }
  Result<layout::LocationRun> locate(ChunkId id) override {
    const std::lock_guard lock(mutex_);
    for (const auto& [number, container] : disk_.containers) {
      const auto& chunks = container.header->chunks;
      if (id < chunks.front().id || chunks.back().id < id) continue;
      return layout::LocationRun{chunks.front().id, static_cast<std::uint32_t>(chunks.size()),
                                 container.data.size(), number, 0};
    }
    return Error(ErrorCode::kCorrupt, "the chunk is not stored");
  }
  Result<std::shared_ptr<const format::ContainerHeader>> header(ContainerNumber number) override {
    const std::lock_guard lock(mutex_);
    const auto found = disk_.containers.find(number);
    if (found == disk_.containers.end()) return gone();
    return found->second.header;
  }
  Result<void> read_data(ContainerNumber number, std::uint32_t offset,
                         std::span<std::byte> out) override {
    const std::lock_guard lock(mutex_);
    const auto found = disk_.containers.find(number);
    if (found == disk_.containers.end()) return gone();
    const auto& data = found->second.data;
    if (offset > data.size() || out.size() > data.size() - offset) {
      return Error(ErrorCode::kCorrupt, "the container ends before");
    }
    std::memcpy(out.data(), data.data() + offset, out.size());
    return {};
  }
  Result<std::uint64_t> place_of(ContainerNumber number) override {
    const std::lock_guard lock(mutex_);
    if (!disk_.containers.contains(number)) return gone();
    return static_cast<std::uint32_t>(number);
  }

 private:
  struct Waiting {
    ChunkId id;
    Fingerprint fingerprint{};
    std::vector<std::byte> raw;
  };

  static Error gone() { return {ErrorCode::kStale, "there is no such container"}; }
  static bool uses(const base::IdRuns& live, const CountedContainers::Container& container) {
    return std::ranges::any_of(container.header->chunks,
                               [&](const auto& chunk) { return live.contains(chunk.id); });
  }
  void write() {
    if (waiting_.empty()) return;
    format::ContainerHeader header;
    header.number = disk_.next;
    CountedContainers::Container container;
    for (const auto& chunk : waiting_) {
      format::FrameEntry frame;
      frame.chunk_count = 1;
      frame.raw_bytes = frame.stored_bytes = static_cast<std::uint32_t>(chunk.raw.size());
      frame.checksum = base::checksum64(chunk.raw);
      header.frames.push_back(frame);
      header.chunks.push_back({chunk.id, chunk.fingerprint, frame.raw_bytes, 0, 0});
      container.data.insert(container.data.end(), chunk.raw.begin(), chunk.raw.end());
    }
    static_cast<void>(format::encode_container_header(header));  // Sets the derived members.
    placed_.stored += container.data.size();
    container.header = std::make_shared<const format::ContainerHeader>(std::move(header));
    container.users = 1;
    disk_.containers.emplace(disk_.next, std::move(container));
    disk_.next = number_after(disk_.next);
    waiting_.clear();
  }
  // Takes the open version from the users of the containers that it wrote.
  void release_written(VersionNumber number) {
    for (auto& [of, container] : disk_.containers) {
      if (container.header->chunks.front().id.birth() == number) --container.users;
    }
    open_.reset();
    free_unused();
  }
  void free_unused() {
    std::erase_if(disk_.containers, [](const auto& entry) { return entry.second.users == 0; });
  }

  const std::unique_ptr<const format::FrameCodec> codec_ =
      format::make_plain_frame_codec({Codec::kNone, 1});
  CountedContainers& disk_;
  mutable std::mutex mutex_;
  std::optional<VersionNumber> open_;
  std::vector<Waiting> waiting_;
  layout::PlacedBytes placed_;
};

}  // namespace varve::test
