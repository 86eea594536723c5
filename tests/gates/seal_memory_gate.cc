// SPDX-License-Identifier: Apache-2.0
// A daemon seals on whichever thread got the request. After seals on many threads, the process
// holds no more memory than after one.
#include <gtest/gtest.h>

#include <condition_variable>
#include <cstdint>
#include <fstream>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/free_memory.h"
#include "support/sanitized.h"
#include "support/temp_repository.h"

namespace varve {
namespace {

using test::must;

constexpr int kEntries = 20000;
constexpr int kThreads = 8;
// Each thread that compresses keeps a context of zstd, and has a stack.
constexpr std::uint64_t kBytesPerThread = 2U << 20;

/// Returns the resident memory without mapped files, such as the catalog.
std::uint64_t resident_bytes() {
  std::ifstream status("/proc/self/status");
  std::string word;
  std::uint64_t kib = 0;
  while (status >> word) {
    if (word == "RssAnon:" && status >> kib) return kib << 10;
  }
  throw std::runtime_error("/proc/self/status has no RssAnon");
}

void back_up(Repository& repository, const std::string& name) {
  const auto series = must(repository.create_series(name));
  const auto version = must(repository.open_version(series.id, "v1", test::folder())).number;
  {
    const auto writer = must(repository.writer(series.id));
    for (int i = 0; i < kEntries; ++i) {
      must(writer->create(kRootIno, "entry-" + std::to_string(i), test::regular_file()));
    }
  }
  must(repository.seal(series.id, version, ""));
}

TEST(SealMemoryGate, SealsOnManyThreadsHoldNoMoreThanOne) {
  if constexpr (test::kSanitized) GTEST_SKIP() << "a sanitizer has another allocator";
  base::bound_free_memory();  // As the program does.
  const test::TempDirectory directory;
  const std::string path = directory.path() + "/repo";
  must(Repository::create(path, test::small_chunks(Codec::kNone)));
  const auto repository = must(Repository::open(path, test::quiet_options()));
  std::mutex mutex;
  std::condition_variable next;
  int turn = 0;
  std::vector<std::uint64_t> resident(kThreads);
  std::vector<std::jthread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      std::unique_lock lock(mutex);
      next.wait(lock, [&] { return turn == i; });
      back_up(*repository, "s" + std::to_string(i));
      resident[static_cast<std::size_t>(i)] = resident_bytes();
      ++turn;
      next.notify_all();
      next.wait(lock, [&] { return turn == kThreads; });  // The thread keeps its arena.
    });
  }
  threads.clear();
  EXPECT_LE(resident.back(), resident.front() * 110 / 100 + kThreads * kBytesPerThread)
      << "after the first seal " << resident.front() << ", after " << kThreads << " "
      << resident.back();
}

}  // namespace
}  // namespace varve
