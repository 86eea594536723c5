// SPDX-License-Identifier: Apache-2.0
// Measures the exact index of the pool at a number of chunks: lookups per second, memory and bytes.
// Usage: bench-pool-index DIRECTORY CHUNKS [MEMORY-MIB]
#include <fmt/format.h>
#include <malloc.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/coding.h"
#include "base/ids.h"
#include "index/exact_pool_index.h"
#include "io/posix_file_system.h"
#include "store/repository_names.h"
#include "support.h"

namespace {

using namespace varve;

constexpr std::uint32_t kContainerChunks = 512;
constexpr std::uint32_t kBatch = 512;
constexpr index::StreamNumber kStream{1};

Fingerprint fingerprint_of(std::uint64_t number) {
  Fingerprint out;
  bench::Random random(number * 0xd1342543de82ef95U);
  for (std::size_t i = 0; i < out.size(); i += sizeof(std::uint64_t)) {
    base::store_le(out.data() + i, random.next());
  }
  return out;
}

ChunkId id_of(std::uint64_t ordinal) {
  return kFirstPoolId.plus((std::uint64_t{1} << 32) + ordinal);
}

/// Computes the chunks of a container, without reading one.
class PoolContainers final : public index::StoredFingerprints {
 public:
  bool around(ChunkId id, const Visit& visit) override {
    ++read;
    const std::uint64_t first = id.value / kContainerChunks * kContainerChunks;
    for (std::uint64_t i = first; i < first + kContainerChunks; ++i) {
      visit(fingerprint_of(i), ChunkId{i});
    }
    return true;
  }
  std::atomic<std::uint64_t> read = 0;
};

double mib(std::uint64_t bytes) { return static_cast<double>(bytes) / (1U << 20); }

std::uint64_t heap() { return ::mallinfo2().uordblks + ::mallinfo2().hblkhd; }

std::uint64_t reads_of_process() {
  std::ifstream file("/proc/self/io");
  std::string key;
  std::uint64_t value = 0;
  while (file >> key >> value) {
    if (key == "syscr:") return value;
  }
  return 0;
}

/// Looks up `count` fingerprints in batches, and prints the speed. `number_of` maps 0, 1, … to the
/// number of a chunk. The fingerprints are computed before the clock starts.
template <typename NumberOf>
void look_up(index::PoolIndex& index, const std::string& name, std::uint32_t count,
             NumberOf&& number_of) {
  std::vector<Fingerprint> asked(count);
  for (std::uint32_t i = 0; i < count; ++i) asked[i] = fingerprint_of(number_of(i));
  std::vector<index::PoolHit> hits(count);
  const std::uint64_t reads = reads_of_process();
  const auto start = std::chrono::steady_clock::now();
  for (std::uint32_t i = 0; i < count; i += kBatch) {
    const std::uint32_t n = std::min(kBatch, count - i);
    index.lookup(kStream, std::span(asked).subspan(i, n), std::span(hits).subspan(i, n));
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  std::uint64_t found = 0;
  for (const auto& hit : hits) found += hit.id ? 1 : 0;
  fmt::print("{:28} {:12.0f} a second, {:8} of {:8} found, {:.2f} reads each\n", name,
             count / took.count(), found, count,
             static_cast<double>(reads_of_process() - reads) / count);
}

index::PoolIndexFolder folder_of(io::FileSystem& files, const std::string& directory) {
  return {{&files, directory, index::kPoolSeries, store::index_run_name},
          store::snapshot_name(VersionNumber{0}),
          [](std::string_view name) { return store::parse_index_run_name(name); }};
}

void fill(index::PoolIndex& index, std::uint32_t chunks) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<index::PlacedChunk> batch;
  for (std::uint32_t i = 0; i < chunks; ++i) {
    batch.push_back({fingerprint_of(id_of(i).value), id_of(i)});
    if (batch.size() < kContainerChunks && i + 1 != chunks) continue;
    index.placed(kStream, batch);
    batch.clear();
  }
  const auto saved = index.save(base::IdRuns::from({{id_of(0), chunks}}));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  fmt::print("{:28} {:12.0f} a second{}\n", "placed and saved", chunks / took.count(),
             saved ? "" : ": " + saved.error().message());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: bench-pool-index DIRECTORY CHUNKS [MEMORY-MIB]\n");
    return 2;
  }
  const std::string directory = argv[1];
  const auto chunks = static_cast<std::uint32_t>(std::strtoull(argv[2], nullptr, 10));
  const std::size_t memory = std::strtoull(argc > 3 ? argv[3] : "64", nullptr, 10) << 20;
  std::filesystem::create_directories(directory);
  const auto files = io::make_posix_file_system();
  PoolContainers containers;
  const auto open = [&] {
    return index::ExactPoolIndex::open(folder_of(*files, directory), containers, memory);
  };
  const std::uint64_t before = heap();
  fill(*open(), chunks);
  const auto start = std::chrono::steady_clock::now();
  const auto index = open();
  const std::chrono::duration<double> opened = std::chrono::steady_clock::now() - start;
  fmt::print("{:28} {:12.4f} s\n", "open", opened.count());

  const std::uint32_t count = 200'000;
  const auto unknown = [](std::uint64_t base) {
    return [base](std::uint64_t i) { return base + i; };
  };
  const auto in_order = [&](std::uint64_t i) { return id_of(i % chunks).value; };
  const auto at_random = [&](std::uint64_t i) { return id_of(i * 2654435761U % chunks).value; };
  look_up(*index, "unknown, first", count, unknown(std::uint64_t{99} << 32));
  look_up(*index, "unknown", count, unknown(std::uint64_t{98} << 32));
  look_up(*index, "known, in order", 5 * count, in_order);
  look_up(*index, "known, at random", count / 4, at_random);
  std::thread other([&] { look_up(*index, "unknown, two threads", count, unknown(1)); });
  look_up(*index, "unknown, two threads", count, unknown(std::uint64_t{97} << 32));
  other.join();

  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  std::uint64_t bytes = 0;
  std::size_t runs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    bytes += entry.file_size();
    runs += entry.path().extension() == ".run" ? 1 : 0;
  }
  fmt::print(
      "{} entries in {} runs, {:.1f} MiB on disk; {:.1f} MiB of memory by its own count, "
      "{:.1f} MiB heap; {} container tables read\n",
      index->size(), runs, mib(bytes), mib(index->memory_bytes()), mib(heap() - before),
      containers.read.load());
  return 0;
}
