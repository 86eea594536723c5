// SPDX-License-Identifier: Apache-2.0
// The cost of a head in the object store follows the changes since the last head: in a
// repository with eight times the versions, series and files, a daily version visits as many
// records, reads as many bytes and sends as many requests. Uploads hold a bounded part of the data
// in memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <utility>

#include "../unit/remote/world.h"
#include "remote/replicator.h"

namespace varve::test {
namespace {

constexpr int kDays = 4;

struct Cost {
  std::uint64_t records = 0;
  std::uint64_t files_read = 0;
  std::uint64_t local_bytes = 0;
  std::uint64_t objects = 0;
  std::uint64_t bytes = 0;
  std::uint64_t requests = 0;  // Except reads of objects.
  std::uint64_t reads = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t full = 0;
  std::uint64_t locks = 0;  // Objects with checked locks.
};

std::uint64_t requests_of(const World& world, std::uint64_t& bytes_sent) {
  std::uint64_t requests = 0;
  bytes_sent = 0;
  for (std::size_t kind = 0; kind < std::tuple_size_v<bucket::Traffic>; ++kind) {
    const auto counts = world.counts(static_cast<bucket::RequestKind>(kind));
    if (static_cast<bucket::RequestKind>(kind) != bucket::RequestKind::kGet) {
      requests += counts.requests;
    }
    bytes_sent += counts.bytes_sent;
  }
  return requests;
}
std::uint64_t reads_of(const World& world) {
  return world.counts(bucket::RequestKind::kGet).requests;
}

// The parameter says whether the repository is encrypted. Then its objects are locked, too.
class HeadCostGate : public testing::TestWithParam<bool> {
 protected:
  // Fills a repository, and returns the greatest cost of each kind over some daily versions.
  static Cost daily_cost(std::uint64_t times) {
    // No mishap comes so late, and until then the world does not look into the store.
    World world(GetParam(), Mishap::kBefore, UINT64_MAX);
    world.hooks().delta_bytes_min = std::uint64_t{64} << 20;  // No new base in between.
    if (GetParam()) {
      world.objects().has_locks = true;
      world.object_lock.days = 30;
    }
    world.run([&] { return world.create(); });
    fill(world, times);
    for (std::uint64_t version = 0; version < 4 * times; ++version) {
      world.store("v" + std::to_string(version), tree_of(version));
    }
    Cost most;
    world.hooks().replicated = [&](const remote::ReplicateReport& done) {
      most.full += done.is_full;
      most.records = std::max(most.records, done.records);
      most.files_read = std::max(most.files_read, done.files_read);
      most.local_bytes = std::max(most.local_bytes, done.local_bytes);
      most.objects = std::max(most.objects, done.objects);
      most.bytes = std::max(most.bytes, done.bytes);
    };
    std::uint64_t extended = 0;
    world.hooks().locks_extended = [&](const remote::LockReport& done) {
      most.locks = std::max(most.locks, done.examined - done.extended);
      extended += done.extended;
    };
    for (int day = 0; day < kDays; ++day) {
      // A head reads files again that changed within 50 ms before it; a day is longer.
      std::this_thread::sleep_for(std::chrono::milliseconds(60));
      std::uint64_t sent_before = 0;
      const auto before = requests_of(world, sent_before);
      const auto reads_before = reads_of(world);
      world.store("day" + std::to_string(day), tree_of(1000 + static_cast<std::uint64_t>(day)));
      std::uint64_t sent = 0;
      most.requests = std::max(most.requests, requests_of(world, sent) - before);
      most.reads = std::max(most.reads, reads_of(world) - reads_before);
      most.bytes_sent = std::max(most.bytes_sent, sent - sent_before);
    }
    // The locks of all objects are due, and then the locks of few objects.
    world.hooks().replicated = nullptr;
    world.clock().seconds += std::int64_t{20} * 24 * 60 * 60;
    world.store("later", tree_of(2000));
    EXPECT_EQ(extended != 0, GetParam());
    extended = 0;
    world.clock().seconds += std::int64_t{24} * 60 * 60;
    world.store("last", tree_of(2001));
    EXPECT_EQ(extended, 0U);
    return most;
  }

 private:
  // Further series, with many files each.
  static void fill(World& world, std::uint64_t times) {
    must(world.with([&](Repository& repository) {
      for (std::uint64_t one = 0; one < 2 * times; ++one) {
        const auto id = must(repository.create_series("other" + std::to_string(one))).id;
        const auto number = must(repository.open_version(id, "v", folder())).number;
        const auto writer = must(repository.writer(id));
        for (std::uint64_t file = 0; file < 300; ++file) {
          write_file(*writer, kRootIno, "file" + std::to_string(file),
                     noise(5000, one * 1000 + file));
        }
        must(repository.seal(id, number, ""));
      }
    }));
  }
};

TEST_P(HeadCostGate, ADailyVersionCostsTheSameInALargeRepository) {
  const auto small = daily_cost(1);
  const auto large = daily_cost(8);
  RecordProperty("records_small", static_cast<int>(small.records));
  RecordProperty("records_large", static_cast<int>(large.records));
  RecordProperty("files_read_large", static_cast<int>(large.files_read));
  RecordProperty("local_bytes_large", static_cast<int>(large.local_bytes));
  RecordProperty("requests_large", static_cast<int>(large.requests));
  RecordProperty("reads_large", static_cast<int>(large.reads));
  RecordProperty("bytes_sent_large", static_cast<int>(large.bytes_sent));
  RecordProperty("locks_large", static_cast<int>(large.locks));
  EXPECT_EQ(small.locks != 0, GetParam());
  EXPECT_EQ(large.locks, small.locks);
  EXPECT_EQ(small.full, 0U);
  EXPECT_EQ(large.full, 0U);
  EXPECT_LE(large.records, small.records + 10);
  // The labels, the last two manifests, and new parity; the labels, in two files, again if the
  // repository commits in the meantime.
  EXPECT_LE(small.files_read, 8U);
  EXPECT_LE(large.files_read, 8U);
  EXPECT_EQ(large.objects, small.objects);
  EXPECT_EQ(large.requests, small.requests);
  // Four of the requests write copies: of the labels, the manifest, the catalog object, the head.
  EXPECT_LE(small.requests, 12U);
  // The head before, twice, and the new head (decisions/160). A head that merges also reads up to
  // 12 catalog objects, on average one (decisions/162).
  EXPECT_LE(small.reads, 3U + 12U);
  EXPECT_LE(large.reads, 3U + 12U);
  // The labels have a line for each version, and the head has a line for each head since the base.
  EXPECT_LE(large.local_bytes, small.local_bytes + (32U << 10));
  // A head may write all parts of the labels again, and has longer labels (decisions/170).
  EXPECT_LE(large.bytes, small.bytes + (20U << 10));
  EXPECT_LE(large.bytes_sent, small.bytes_sent + (32U << 10));
}

/// Counts the bytes of the objects in flight: the writer holds the bytes in memory.
class HeldBytes final : public LentBucket {
 public:
  struct Counts {
    std::atomic<std::uint64_t> now = 0;
    std::atomic<std::uint64_t> most = 0;
    std::atomic<std::uint64_t> sum = 0;
  };
  HeldBytes(std::shared_ptr<MemoryBucket> bucket, Counts& counts)
      : LentBucket(std::move(bucket)), counts_(counts) {}
  Result<void> put(const std::string& name, std::span<const std::span<const std::byte>> parts,
                   const bucket::PutOptions& options) override {
    std::uint64_t bytes = 0;
    for (const auto& part : parts) bytes += part.size();
    const auto now = counts_.now.fetch_add(bytes) + bytes;
    auto most = counts_.most.load();
    while (most < now && !counts_.most.compare_exchange_weak(most, now)) continue;
    counts_.sum += bytes;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // So that requests overlap.
    auto done = LentBucket::put(name, parts, options);
    counts_.now -= bytes;
    return done;
  }

 private:
  Counts& counts_;
};

TEST_P(HeadCostGate, UploadsHoldABoundedPartInMemory) {
  constexpr std::uint64_t kHeldMax = 10'000'000;  // Two containers.
  World world(GetParam(), Mishap::kNone, 0);
  must(world.create());
  HeldBytes::Counts counts;
  world.hooks().uploads = {.requests = 8, .bytes = kHeldMax};
  world.hooks().open = [&](const remote::BucketConfig&) -> Result<std::unique_ptr<bucket::Bucket>> {
    return std::unique_ptr<bucket::Bucket>(std::make_unique<HeldBytes>(
        std::make_shared<MemoryBucket>(world.shared_objects(), "p/", &world.clock()), counts));
  };
  must(world.with([&](Repository& repository) {
    const auto id = must(repository.create_series("s")).id;
    const auto number = must(repository.open_version(id, "v", folder())).number;
    const auto writer = must(repository.writer(id));
    for (std::uint64_t file = 0; file < 12; ++file) {
      write_file(*writer, kRootIno, "file" + std::to_string(file), noise(3'000'000, file));
    }
    must(repository.seal(id, number, ""));
  }));
  RecordProperty("bytes_held", static_cast<int>(counts.most));
  EXPECT_GT(counts.sum, 3 * kHeldMax);
  EXPECT_GT(counts.most, kHeldMax / 4);
  EXPECT_LE(counts.most, kHeldMax);
}

INSTANTIATE_TEST_SUITE_P(Plain, HeadCostGate, testing::Values(false));
INSTANTIATE_TEST_SUITE_P(Encrypted, HeadCostGate, testing::Values(true));

}  // namespace
}  // namespace varve::test
