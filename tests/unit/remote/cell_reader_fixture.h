// SPDX-License-Identifier: Apache-2.0
// A reader of cells of an object in memory, for tests.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "io/memory_file_system.h"
#include "remote/cell_reader.h"
#include "support/memory_bucket.h"

namespace varve::remote {

/// An object in a bucket in memory, and a reader of it.
class CellReaderTest : public testing::Test {
 protected:
  using Bytes = std::vector<std::byte>;
  static constexpr std::uint64_t kMiB = 1U << 20;
  static constexpr std::uint64_t kObjectBytes = 10 * kMiB + 12345;
  inline static const std::string kObject = "id/seg/1-1";

  static Bytes noise(std::uint64_t bytes, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    Bytes out(bytes);
    for (auto& byte : out) byte = static_cast<std::byte>(random());
    return out;
  }

  // Made once: making it takes longer than most tests.
  static const Bytes& content() {
    static const Bytes made = noise(kObjectBytes, 1);
    return made;
  }

  CellReaderTest() {
    const std::array<std::span<const std::byte>, 1> parts{content_};
    EXPECT_TRUE(bucket_.put(kObject, parts, {}));
    EXPECT_TRUE(files_->make_directory("/r"));
    restart();
  }

  // Makes another reader with the same cache, as that of another process.
  void restart() {
    reader_.reset();
    reader_ = std::make_unique<CellReader>(bucket_, *files_, "/r/cache", cache_bytes_, limits_);
  }

  // Waits up to 20 seconds, because threads of the reader send the requests.
  static void wait_until(const std::function<bool()>& happened) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!happened() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  }

  static ObjectRange range(std::uint64_t offset, std::uint64_t bytes) {
    return {kObject, kObjectBytes, offset, bytes};
  }
  // Reads ranges at once. Returns the first error.
  std::optional<Error> read_all(const std::vector<std::pair<std::uint64_t, std::uint64_t>>& ranges,
                                bool compares = true, bool at_random = false) {
    std::vector<Bytes> out;
    std::vector<RangeToRead> reads;
    for (const auto& [offset, bytes] : ranges) out.emplace_back(bytes);
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      reads.push_back({range(ranges[i].first, ranges[i].second), out[i]});
    }
    std::mutex mutex;
    std::condition_variable ended;
    std::size_t left = reads.size();
    std::optional<Error> first;
    const auto done = [&](std::size_t, const std::optional<Error>& error) {
      const std::lock_guard lock(mutex);
      if (error && !first) first = error;
      if (--left == 0) ended.notify_all();
    };
    if (at_random) {
      reader_->read_at_random(std::move(reads), done);
    } else {
      reader_->read(std::move(reads), done);
    }
    std::unique_lock lock(mutex);
    ended.wait(lock, [&] { return left == 0; });
    for (std::size_t i = 0; i < ranges.size() && compares && !first; ++i) {
      const auto from = content_.begin() + static_cast<std::ptrdiff_t>(ranges[i].first);
      EXPECT_TRUE(std::equal(out[i].begin(), out[i].end(), from)) << ranges[i].first;
    }
    return first;
  }
  std::optional<Error> read(std::uint64_t offset, std::uint64_t bytes) {
    return read_all({{offset, bytes}});
  }
  // Reads a range that the reader may lend, and compares. Returns what is lent.
  store::LentBytes lend(std::uint64_t offset, std::uint64_t bytes) {
    Bytes out(bytes);
    store::LentBytes lent;
    std::mutex mutex;
    std::condition_variable ended;
    bool has_ended = false;
    reader_->read({{range(offset, bytes), out, &lent}},
                  [&](std::size_t, const std::optional<Error>& error) {
                    EXPECT_FALSE(error);
                    const std::lock_guard lock(mutex);
                    has_ended = true;
                    ended.notify_all();
                  });
    std::unique_lock lock(mutex);
    ended.wait(lock, [&] { return has_ended; });
    expect_content(offset, lent.holder ? lent.bytes : std::span<const std::byte>(out));
    return lent;
  }
  void expect_content(std::uint64_t offset, std::span<const std::byte> bytes) const {
    const auto from = content_.begin() + static_cast<std::ptrdiff_t>(offset);
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), from)) << offset;
  }
  std::optional<Error> read_at_random(std::uint64_t offset, std::uint64_t bytes) {
    return read_all({{offset, bytes}}, true, true);
  }
  [[nodiscard]] std::uint64_t gets() const {
    return bucket_.traffic()[static_cast<std::size_t>(bucket::RequestKind::kGet)].requests;
  }
  [[nodiscard]] std::uint64_t cached_bytes() const {
    const auto bytes = files_->tree_bytes("/r/cache");
    return bytes ? *bytes : 0;
  }
  [[nodiscard]] std::uint64_t received() const {
    return bucket_.traffic()[static_cast<std::size_t>(bucket::RequestKind::kGet)].bytes_received;
  }

  const Bytes& content_ = content();
  std::unique_ptr<io::FileSystem> files_ = io::make_memory_file_system();
  test::MemoryBucket bucket_;
  std::uint64_t cache_bytes_ = 64 * kMiB;
  CellReaderLimits limits_{};
  std::unique_ptr<CellReader> reader_;
};

}  // namespace varve::remote
