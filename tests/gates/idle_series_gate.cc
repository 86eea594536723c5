// SPDX-License-Identifier: Apache-2.0
// A repository that stays open keeps little for a series that it has written: no thread, no file,
// and at most 16 KiB.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "support/temp_repository.h"

namespace varve {
namespace {

using test::must;

constexpr int kFirst = 40;  // Caches and pools reach their size meanwhile.
constexpr int kSeries = 100;
constexpr std::size_t kBytesPerSeries = 16U << 10;

std::size_t entries_of(const char* directory) {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator(directory), {}));
}

struct Held {
  std::size_t files = entries_of("/proc/self/fd");
  std::size_t threads = entries_of("/proc/self/task");
  std::size_t bytes = ::mallinfo2().uordblks + ::mallinfo2().hblkhd;
};

// test::noise() keeps short texts.
std::string content(int number) {
  return test::noise(20000, static_cast<std::uint64_t>(number) + 1);
}

void back_up(Repository& repository, int number) {
  const auto series = must(repository.create_series("s" + std::to_string(number)));
  const auto version = must(repository.open_version(series.id, "v1", test::folder())).number;
  test::write_file(*must(repository.writer(series.id)), kRootIno, "file", content(number));
  must(repository.seal(series.id, version, ""));
}

TEST(IdleSeriesGate, AWrittenSeriesHoldsNoThreadNoFileAndLittleMemory) {
  const test::TempDirectory directory;
  const std::string path = directory.path() + "/repo";
  must(Repository::create(path, test::small_chunks(Codec::kNone)));
  const auto repository = must(Repository::open(path, test::quiet_options()));
  for (int i = 0; i < kFirst + kSeries; ++i) static_cast<void>(content(i));
  for (int i = 0; i < kFirst; ++i) back_up(*repository, i);
  const Held before;
  for (int i = 0; i < kSeries; ++i) back_up(*repository, kFirst + i);
  const Held after;
  EXPECT_EQ(after.threads, before.threads);
  EXPECT_LE(after.files, before.files + 2);  // The cache of open files may still fill.
  EXPECT_LE((after.bytes - std::min(before.bytes, after.bytes)) / kSeries, kBytesPerSeries);
}

}  // namespace
}  // namespace varve
