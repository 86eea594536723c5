// SPDX-License-Identifier: Apache-2.0
// Measures the cost of parity, and the speed of restoring from it. usage: bench-parity DIR [MIB]
//
// Makes files of random bytes in DIR, and for several percentages their parity. Then damages a
// part of the files, as large as the parity allows, and restores it. Every step bypasses the page
// cache. The ratios compare with a plain read of the same files, which also bypasses it.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "base/aligned_buffer.h"
#include "io/posix_file_system.h"
#include "parity/group_restorer.h"
#include "parity/upkeep.h"
#include "store/folder_store.h"
#include "store/segment_files.h"

namespace varve::parity {
namespace {

constexpr StoreId kStore{1};
constexpr std::size_t kMiB = 1U << 20;
constexpr std::size_t kFileBytes = 32 * kMiB;

template <typename Value>
Value need(Result<Value> result) {
  if (!result) {
    fmt::print(stderr, "failed: {}\n", result.error().message());
    std::exit(1);
  }
  if constexpr (!std::is_void_v<Value>) return std::move(*result);
}

class Timer {
 public:
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

std::vector<DataFile> make_files(io::FileSystem& files, const std::string& directory,
                                 std::size_t count) {
  need(files.make_directory(directory + "/active"));
  std::mt19937_64 random(1);
  base::AlignedBuffer buffer(kFileBytes);
  std::vector<DataFile> present;
  for (std::uint32_t i = 1; i <= count; ++i) {
    for (std::size_t at = 0; at < buffer.size(); at += sizeof(std::uint64_t)) {
      const std::uint64_t value = random();
      std::memcpy(buffer.data() + at, &value, sizeof value);
    }
    const auto file = need(files.open(directory + "/" + store::segment_path(SegmentNumber{i}),
                                      io::OpenMode::kWriteDirect));
    need(file->write_at(0, buffer.span()));
    need(file->sync());
    present.push_back({SegmentNumber{i}, kFileBytes, false, 1});
  }
  return present;
}

double read_all(io::FileSystem& files, const std::string& directory,
                const std::vector<DataFile>& present) {
  const Timer timer;
  base::AlignedBuffer buffer(kMiB);
  for (const auto& one : present) {
    const auto file = need(
        files.open(directory + "/" + store::segment_path(one.segment), io::OpenMode::kReadDirect));
    for (std::uint64_t at = 0; at < one.bytes; at += buffer.size()) {
      need(file->read_at(at, buffer.span()));
    }
  }
  return timer.seconds();
}

// Zeros as much of the first file as its group's parity can restore. Returns the zeroed bytes.
std::uint64_t damage(io::FileSystem& files, const std::string& directory, const Group& group) {
  const auto shape = group.index.shape();
  const auto bytes =
      std::min<std::uint64_t>(std::uint64_t{shape.parity_total()} * format::kParityBlockBytes,
                              group.index.members.front().bytes);
  const auto file =
      need(files.open(directory + "/" + store::segment_path(group.index.members.front().segment),
                      io::OpenMode::kReadWrite));
  need(file->write_at(0, std::vector<std::byte>(bytes)));
  need(file->sync());
  return bytes;
}

double restore(io::FileSystem& files, const std::string& directory, const Group& group,
               std::size_t wanted_bytes) {
  const Timer timer;
  store::FolderStore store(files, directory);
  const auto restorer = need(GroupRestorer::open(store, group));
  restorer->scan([](std::uint64_t) {});
  std::set<std::uint32_t> wanted;
  for (std::uint32_t i = 0; i < group.index.blocks; ++i) {
    if (restorer->is_bad(i)) wanted.insert(i);
  }
  const auto restored = restorer->restore(wanted);
  if (restored.size() * format::kParityBlockBytes != wanted_bytes) {
    fmt::print(stderr, "failed: {} blocks came back\n", restored.size());
    std::exit(1);
  }
  const auto file =
      need(files.open(directory + "/" + store::segment_path(group.index.members.front().segment),
                      io::OpenMode::kReadWrite));
  for (const auto& [block, bytes] : restored) {
    need(file->write_at(std::uint64_t{block} * format::kParityBlockBytes, bytes));
  }
  need(file->sync());
  return timer.seconds();
}

void measure(const std::string& directory, std::size_t bytes) {
  const auto files = io::make_posix_file_system();
  need(files->make_directory(directory));
  store::FolderStore store(*files, directory);
  const auto present = make_files(*files, directory, bytes / kFileBytes);
  const double size = static_cast<double>(present.size() * kFileBytes) / kMiB;
  fmt::print("{:.0f} MiB\n", size);
  fmt::print("  %  overhead  read MiB/s  make MiB/s  of reading  restore: MiB  group MiB/s\n");
  for (const std::uint32_t percent : {1U, 2U, 5U, 10U, 25U}) {
    KeepOptions options;
    options.percent = percent;
    const double reading = read_all(*files, directory, present);
    const Timer timer;
    const auto report = need(keep_parity(store, kStore, present, options));
    const double making = timer.seconds();
    const auto groups = need(list_groups(store, kStore)).groups;
    const auto& group = groups.front();
    std::uint64_t group_bytes = 0;
    for (const auto& member : group.index.members) group_bytes += member.bytes;
    const auto damaged = damage(*files, directory, group);
    const double restoring = restore(*files, directory, group, damaged);
    fmt::print("{:3}  {:7.2f} %  {:10.0f}  {:10.0f}  {:10.2f}  {:12.1f}  {:11.0f}\n", percent,
               100 * static_cast<double>(report.bytes_written) / (size * kMiB), size / reading,
               size / making, reading / making, static_cast<double>(damaged) / kMiB,
               static_cast<double>(group_bytes) / kMiB / restoring);
  }
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace varve::parity

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    fmt::print(stderr, "usage: bench-parity DIR [MIB]\n");
    return 2;
  }
  const auto size = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 512;
  varve::parity::measure(std::string(argv[1]) + "/varve-bench-parity",
                         static_cast<std::size_t>(size) << 20);
  return 0;
}
