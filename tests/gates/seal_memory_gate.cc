// SPDX-License-Identifier: Apache-2.0
// A daemon seals on whichever thread got the request. After seals on many threads, the process
// holds no more memory than after one. A seal of a clone leaves only what has changed in memory.
#include <gtest/gtest.h>
#include <malloc.h>

#include <condition_variable>
#include <cstdint>
#include <fstream>
#include <memory>
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

/// Returns the bytes of the memory that the process has allocated and not freed.
std::uint64_t allocated_bytes() { return ::mallinfo2().uordblks; }

/// Clones the version, and changes files that are far from each other, in place.
VersionNumber clone_and_change(Repository& repository, SeriesId series, VersionNumber source,
                               const std::string& name) {
  constexpr int kChanged = 10;
  const auto version = must(repository.clone_version(series, source, name)).number;
  const auto writer = must(repository.writer(series));
  for (int i = 0; i < kChanged; ++i) {
    const int changed = i * (kEntries / kChanged);
    const auto entry = must(writer->lookup(kRootIno, "entry-" + std::to_string(changed)));
    must(must(writer->open(entry.ino, true))->write(0, base::as_bytes(name)));
  }
  return version;
}

TEST(SealMemoryGate, SealOfCloneKeepsLittle) {
  constexpr int kSeals = 20;
  constexpr std::uint64_t kBytesPerSeal = 1024;  // Pages of 64 ranks took 5,900.
  if constexpr (test::kSanitized) GTEST_SKIP() << "a sanitizer has another allocator";
  const test::TempDirectory directory;
  const std::string path = directory.path() + "/repo";
  must(Repository::create(path, test::small_chunks(Codec::kNone)));
  const auto repository = must(Repository::open(path, test::quiet_options()));
  back_up(*repository, "s");
  const SeriesId series = must(repository->find_series("s")).id;
  VersionNumber newest = must(repository->find_version(series, "latest")).number;
  // A mount keeps these two until it ends.
  struct Kept {
    SealOutcome outcome;
    std::shared_ptr<VersionReader> reader;
  };
  std::vector<Kept> kept;
  for (int i = 0; i < kSeals; ++i) {
    newest = clone_and_change(*repository, series, newest, "clone-" + std::to_string(i));
    auto outcome = must(repository->seal(series, newest, ""));
    kept.push_back({std::move(outcome), must(repository->reader(series, newest))});
  }
  const std::uint64_t before = allocated_bytes();
  kept.clear();
  const std::uint64_t freed = before - allocated_bytes();
  RecordProperty("bytes_per_seal", static_cast<int>(freed / kSeals));
  EXPECT_LE(freed, kSeals * kBytesPerSeal) << freed / kSeals << " bytes of each seal";
}

}  // namespace
}  // namespace varve
