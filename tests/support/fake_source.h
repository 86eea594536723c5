// SPDX-License-Identifier: Apache-2.0
// A layout in memory, and versions of files stored in the layout.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/checksum.h"
#include "format/container.h"
#include "restore/read_service.h"
#include "support/noise.h"
#include "support/same_bytes.h"

namespace varve::restore {

using Bytes = std::vector<std::byte>;

inline constexpr std::size_t kMiB = 1U << 20;

/// Containers in memory. One thread fills them, then several may read.
class FakeSource final : public layout::ChunkSource {
 public:
  explicit FakeSource(Codec codec = Codec::kNone, std::size_t container_bytes = 4000U << 10)
      : codec_(format::make_plain_frame_codec({codec, 1})), container_bytes_(container_bytes) {}

  const format::FrameCodec& codec() const override { return *codec_; }

  void place(ChunkId id, std::span<const std::byte> raw) {
    if (frame_.size() + raw.size() > format::kFrameRawBytesMax) end_frame();
    if (data_.size() + frame_.size() + raw.size() > container_bytes_) end_container();
    format::ChunkEntry chunk;
    chunk.id = id;
    chunk.raw_bytes = static_cast<std::uint32_t>(raw.size());
    chunks_.push_back(chunk);
    ++frame_chunks_;
    frame_.insert(frame_.end(), raw.begin(), raw.end());
  }

  void end_container() {
    end_frame();
    if (chunks_.empty()) return;
    format::ContainerHeader header;
    header.number = static_cast<ContainerNumber>(headers_.size());
    header.chunks = std::move(chunks_);
    header.frames = std::move(frames_);
    static_cast<void>(format::encode_container_header(header));
    for (std::uint32_t i = 0; i < header.chunks.size(); ++i) {
      const format::ChunkEntry& chunk = header.chunks[i];
      auto last = locations_.empty() || i == 0 ? locations_.end() : locations_.find(run_first_);
      if (last != locations_.end() && last->second.first.plus(last->second.count) == chunk.id) {
        ++last->second.count;
        last->second.raw_bytes += chunk.raw_bytes;
      } else {
        run_first_ = chunk.id;
        locations_[chunk.id] = {chunk.id, 1, chunk.raw_bytes, header.number, i};
      }
    }
    stored_total_ += data_.size();
    headers_.push_back(std::make_shared<const format::ContainerHeader>(std::move(header)));
    datas_.push_back(std::move(data_));
    chunks_.clear();
    frames_.clear();
    data_.clear();
  }

  Result<layout::LocationRun> locate(ChunkId id) override {
    auto it = locations_.upper_bound(id);
    if (it == locations_.begin()) return Error(ErrorCode::kCorrupt, "no such chunk");
    --it;
    if (id.value - it->first.value >= it->second.count) {
      return Error(ErrorCode::kCorrupt, "no such chunk");
    }
    return it->second;
  }
  Result<std::shared_ptr<const format::ContainerHeader>> header(ContainerNumber number) override {
    const auto container = static_cast<std::uint32_t>(number);
    if (damaged_headers_.contains(container))
      return Error(ErrorCode::kCorrupt, "header is damaged");
    if (gone_.contains(container)) {
      ++stale_answers;
      return Error(ErrorCode::kStale, "the container is gone");
    }
    return headers_.at(container);
  }
  Result<void> read_data(ContainerNumber number, std::uint32_t offset,
                         std::span<std::byte> out) override {
    const auto container = static_cast<std::uint32_t>(number);
    if (before_read) before_read(container);
    if (gone_.contains(container)) return Error(ErrorCode::kStale, "the container is gone");
    const Bytes& data = datas_.at(container);
    if (offset + out.size() > data.size()) return Error(ErrorCode::kIo, "past the end");
    std::memcpy(out.data(), data.data() + offset, out.size());
    {
      const std::lock_guard lock(mutex_);
      if (wrong_once.erase(container) > 0) out[out.size() / 2] ^= std::byte{1};
    }
    if (recorded != nullptr) recorded->push_back({container, offset, out.size()});
    return {};
  }
  /// The fake disk has the containers in descending order of their numbers.
  Result<std::uint64_t> place_of(ContainerNumber number) override {
    return 1'000'000 - static_cast<std::uint32_t>(number);
  }

  bool is_distant = false;
  bool answers_later() const override { return is_distant; }
  void will_read_all(ContainerNumber number) override {
    const std::lock_guard lock(mutex_);
    announced_whole.push_back(static_cast<std::uint32_t>(number));
  }
  std::vector<std::uint32_t> announced_whole;

  void will_read_header(ContainerNumber number) override {
    const auto container = static_cast<std::uint32_t>(number);
    const std::lock_guard lock(mutex_);
    announced.push_back(container);
  }
  std::vector<std::uint32_t> announced;

  struct Read {
    std::uint32_t container = 0;
    std::uint32_t offset = 0;
    std::size_t bytes = 0;
    bool operator==(const Read&) const = default;
  };
  void will_read_data(ContainerNumber number, std::uint32_t offset, std::size_t bytes) override {
    const auto container = static_cast<std::uint32_t>(number);
    const std::lock_guard lock(mutex_);
    announced_data.push_back({container, offset, bytes});
  }
  std::vector<Read> announced_data;
  /// List of all reads, for tests with one thread.
  std::vector<Read>* recorded = nullptr;

  /// Containers whose next read returns a wrong byte.
  std::set<std::uint32_t> wrong_once;

  void flip_byte(std::uint32_t container, std::uint32_t frame) {
    datas_.at(container).at(headers_.at(container)->frames.at(frame).offset) ^= std::byte{0x40};
  }
  void damage_header(std::uint32_t container) { damaged_headers_.insert(container); }
  /// Stores a container's chunks under another number, and forgets the old number.
  void move_container(std::uint32_t container) {
    format::ContainerHeader header = *headers_.at(container);
    header.number = static_cast<ContainerNumber>(headers_.size());
    for (auto& [id, run] : locations_) {
      if (static_cast<std::uint32_t>(run.container) == container) run.container = header.number;
    }
    headers_.push_back(std::make_shared<const format::ContainerHeader>(std::move(header)));
    datas_.push_back(datas_.at(container));
    gone_.insert(container);
  }
  /// Forgets a container, although chunks are still located there.
  void lose_container(std::uint32_t container) { gone_.insert(container); }
  /// Number of requested headers of removed containers.
  std::uint64_t stale_answers = 0;
  [[nodiscard]] bool is_gone(std::uint32_t container) const { return gone_.contains(container); }
  /// Called at the start of every read_data().
  std::function<void(std::uint32_t container)> before_read;

  [[nodiscard]] std::size_t containers() const { return headers_.size(); }
  [[nodiscard]] std::uint64_t stored_bytes() const { return stored_total_; }

 private:
  std::mutex mutex_;  // The engines announce and read on several threads.
  void end_frame() {
    if (frame_chunks_ == 0) return;
    auto encoded = codec_->compress(frame_);
    const Bytes& stored = encoded.codec == Codec::kNone ? frame_ : encoded.stored;
    format::FrameEntry entry;
    entry.chunk_count = frame_chunks_;
    entry.raw_bytes = static_cast<std::uint32_t>(frame_.size());
    entry.stored_bytes = static_cast<std::uint32_t>(stored.size());
    entry.codec = encoded.codec;
    entry.checksum = base::checksum64(stored);
    frames_.push_back(entry);
    data_.insert(data_.end(), stored.begin(), stored.end());
    frame_.clear();
    frame_chunks_ = 0;
  }

  const std::unique_ptr<const format::FrameCodec> codec_;
  const std::size_t container_bytes_;
  std::vector<format::ChunkEntry> chunks_;
  std::vector<format::FrameEntry> frames_;
  Bytes data_;
  Bytes frame_;
  std::uint32_t frame_chunks_ = 0;
  ChunkId run_first_;
  std::map<ChunkId, layout::LocationRun> locations_;
  std::vector<std::shared_ptr<const format::ContainerHeader>> headers_;
  std::vector<Bytes> datas_;
  std::set<std::uint32_t> damaged_headers_;
  std::set<std::uint32_t> gone_;
  std::uint64_t stored_total_ = 0;
};

/// A version in a FakeSource, with the expected content of its files.
class World {
 public:
  explicit World(unsigned seed, Codec codec = Codec::kNone) : source(codec), random(seed) {}

  struct File {
    std::uint64_t ordinal = 0;
    std::shared_ptr<format::Recipe> recipe = std::make_shared<format::Recipe>();
    Bytes content;  // Without holes; empty for a file with only holes.
  };

  /// Creates a chunk with unique bytes, and stores it at once, in order.
  ChunkId new_chunk(std::size_t bytes) {
    Bytes raw = random_bytes(bytes);
    const ChunkId id = next_id_;
    next_id_ = next_id_.plus(1);
    source.place(id, raw);
    chunks_.emplace(id, std::move(raw));
    return id;
  }
  /// Creates a chunk for place_shuffled(), which stores the chunks later, not in the order of ids.
  ChunkId new_unplaced_chunk(std::size_t bytes) {
    const ChunkId id = next_id_;
    next_id_ = next_id_.plus(1);
    chunks_.emplace(id, random_bytes(bytes));
    unplaced_.push_back(id);
    return id;
  }
  void place_shuffled() {
    std::shuffle(unplaced_.begin(), unplaced_.end(), random);
    for (const ChunkId id : unplaced_) source.place(id, chunks_.at(id));
    unplaced_.clear();
  }

  std::size_t chunk_size() { return 2048 + random() % 12000; }

  File& add_file(std::uint64_t ordinal_gap = 1) {
    File& file = files.emplace_back();
    ordinal_ += ordinal_gap;
    file.ordinal = ordinal_;
    return file;
  }
  void append(File& file, ChunkId id) {
    const Bytes& raw = chunks_.at(id);
    file.recipe->append_chunk(id, static_cast<std::uint32_t>(raw.size()));
    file.content.insert(file.content.end(), raw.begin(), raw.end());
  }
  void append_new(File& file, std::size_t bytes) {
    while (bytes > 0) {
      const std::size_t n = std::min(bytes, chunk_size());
      append(file, new_chunk(n));
      bytes -= n;
    }
  }
  void append_hole(File& file, std::size_t bytes) {
    file.recipe->append_hole(bytes);
    file.content.resize(file.content.size() + bytes);
  }
  void finish() { source.end_container(); }
  /// Returns the bytes of every chunk.
  [[nodiscard]] const std::map<ChunkId, Bytes>& chunks() const { return chunks_; }

  ReadableFile readable(std::size_t index);

  FakeSource source;
  std::mt19937 random;
  std::vector<File> files;

 private:
  Bytes random_bytes(std::size_t bytes) {
    Bytes raw(bytes);
    test::fill_compressible(raw, random);
    return raw;
  }

  ChunkId next_id_ = ChunkId::make(VersionNumber{1}, 0);
  std::map<ChunkId, Bytes> chunks_;
  std::vector<ChunkId> unplaced_;
  std::uint64_t ordinal_ = 0;
};

class WorldFutureFiles final : public FutureFiles {
 public:
  WorldFutureFiles(const World& world, std::size_t next) : world_(world), next_(next) {}
  Result<std::optional<FileContent>> next() override {
    if (next_ >= world_.files.size()) return std::optional<FileContent>();
    const World::File& file = world_.files[next_++];
    return std::optional<FileContent>(FileContent{file.ordinal, file.recipe});
  }

 private:
  const World& world_;
  std::size_t next_;
};

inline ReadableFile World::readable(std::size_t index) {
  ReadableFile file;
  file.version_key = 1;
  file.content = {files[index].ordinal, files[index].recipe};
  file.source = &source;
  file.future = [this, index] { return std::make_unique<WorldFutureFiles>(*this, index + 1); };
  return file;
}

/// Fills `world` with files of all kinds: tiny, empty and big files, with holes, duplicates and
/// scattered chunks.
inline void fill_random(World& world, std::size_t files) {
  std::vector<ChunkId> old;
  for (int i = 0; i < 300; ++i) old.push_back(world.new_unplaced_chunk(world.chunk_size()));
  world.place_shuffled();
  for (std::size_t i = 0; i < files; ++i) {
    World::File& file = world.add_file(1 + world.random() % 3);
    const auto kind = world.random() % 10;
    std::size_t chunks = 1;
    if (kind == 0) chunks = 0;
    if (kind >= 7) chunks = world.random() % 60;
    if (kind == 9) chunks = 300 + world.random() % 300;
    for (std::size_t c = 0; c < chunks; ++c) {
      const auto what = world.random() % 20;
      if (what == 0) world.append_hole(file, 1 + world.random() % 300000);
      if (what < 4) {
        world.append(file, old[world.random() % old.size()]);
      } else {
        world.append(file, world.new_chunk(world.chunk_size()));
      }
    }
    if (kind == 5) world.append_hole(file, 5000);
  }
  world.finish();
}

/// A service with a private registry.
class CountedService final : public ReadService {
 public:
  explicit CountedService(std::uint64_t cache_bytes)
      : service_(std::move(*make_read_service({cache_bytes, "alacc"}, registry_))) {}
  [[nodiscard]] Result<std::unique_ptr<ReadHandle>> open(ReadableFile file) override {
    return service_->open(std::move(file));
  }
  void set_costs(const ReadCosts& costs) override { service_->set_costs(costs); }
  [[nodiscard]] const ReadMetrics& metrics() const override { return service_->metrics(); }

 private:
  base::Metrics registry_;
  const std::unique_ptr<ReadService> service_;
};

inline std::unique_ptr<ReadService> make_service(std::uint64_t cache_bytes = 64U << 20) {
  return std::make_unique<CountedService>(cache_bytes);
}

inline std::unique_ptr<ReadHandle> open_file(ReadService& service, World& world,
                                             std::size_t index) {
  auto handle = service.open(world.readable(index));
  EXPECT_TRUE(handle.has_value());
  return std::move(*handle);
}

/// Reads a whole file in requests of `request_bytes`, and compares the bytes.
inline void expect_whole(ReadService& service, World& world, std::size_t index,
                         std::size_t request_bytes) {
  const auto handle = open_file(service, world, index);
  const Bytes& wanted = world.files[index].content;
  Bytes got;
  Bytes buffer(request_bytes);
  while (true) {
    const auto n = handle->read(got.size(), buffer);
    ASSERT_TRUE(n.has_value()) << "file " << index << ": " << n.error().message();
    if (*n == 0) break;
    got.insert(got.end(), buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(*n));
    ASSERT_LE(got.size(), wanted.size()) << "file " << index;
  }
  // A plain EXPECT_EQ would print megabytes.
  EXPECT_TRUE(test::same_bytes(got, wanted)) << "file " << index << " differs";
}

}  // namespace varve::restore
