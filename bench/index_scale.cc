// SPDX-License-Identifier: Apache-2.0
// Measures the neighbour index at a number of chunks: memory, bytes and time for filling, opening,
// lookups and a small seal. Usage: bench-index DIRECTORY CHUNKS [MEMORY-MIB [sealed]]
#include <fmt/format.h>
#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>

#include "base/coding.h"
#include "index/neighbour_index.h"
#include "io/posix_file_system.h"
#include "store/repository_names.h"
#include "store/sealed_places.h"
#include "support.h"

namespace {

using namespace varve;

constexpr std::uint32_t kContainerChunks = 512;
constexpr VersionNumber kFirst{1};

Fingerprint fingerprint_of(std::uint64_t number) {
  Fingerprint out;
  bench::Random random(number * 0xd1342543de82ef95U);
  for (std::size_t i = 0; i < out.size(); i += sizeof(std::uint64_t)) {
    base::store_le(out.data() + i, random.next());
  }
  return out;
}

/// Computes the chunks of a container, without reading one.
class Containers final : public index::StoredFingerprints {
 public:
  bool around(ChunkId id, const Visit& visit) override {
    ++read;
    const std::uint64_t first = id.value / kContainerChunks * kContainerChunks;
    for (std::uint64_t i = first; i < first + kContainerChunks; ++i) {
      visit(fingerprint_of(i), ChunkId{i});
    }
    return true;
  }
  std::uint64_t read = 0;
};

std::uint64_t io_count(const std::string& wanted) {
  std::ifstream file("/proc/self/io");
  std::string key;
  std::uint64_t value = 0;
  while (file >> key >> value) {
    if (key == wanted + ":") return value;
  }
  return 0;
}

/// Prints what a step took when it ends.
class Step {
 public:
  Step(std::string name, std::uint64_t count) : name_(std::move(name)), count_(count) {}
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;
  ~Step() {
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start_;
    fmt::print(
        "{:28} {:12} times {:9.2f} s {:10.1f} MiB read {:10.1f} MiB written {:8.1f} MiB heap\n",
        name_, count_, took.count(), mib(io_count("rchar") - read_),
        mib(io_count("wchar") - written_), mib(::mallinfo2().uordblks + ::mallinfo2().hblkhd));
  }

 private:
  static double mib(std::uint64_t bytes) { return static_cast<double>(bytes) / (1U << 20); }
  const std::string name_;
  const std::uint64_t count_;
  const std::uint64_t read_ = io_count("rchar");
  const std::uint64_t written_ = io_count("wchar");
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: bench-index DIRECTORY CHUNKS [MEMORY-MIB [sealed]]\n");
    return 2;
  }
  const std::string root = argv[1];
  const auto directory = root + "/series/00000001";
  const auto chunks = static_cast<std::uint32_t>(std::strtoull(argv[2], nullptr, 10));
  const std::size_t memory = std::strtoull(argc > 3 ? argv[3] : "256", nullptr, 10) << 20;
  std::filesystem::create_directories(directory);
  std::shared_ptr<const crypto::KeyRing> keys;
  if (argc > 4) {
    keys = *crypto::KeyRing::make(*crypto::SecretKey::random(), "a bench", crypto::faster_cipher());
  }
  const auto files = store::seal_files(io::make_posix_file_system(), keys, root);
  Containers containers;
  const index::IndexStorage storage{
      {files.get(), directory, SeriesId{1}, store::index_run_name}, &containers, memory};
  auto live = base::IdRuns::from({{ChunkId::make(kFirst, 0), chunks}});
  const auto id_of = [](std::uint64_t ordinal) {
    return ChunkId::make(kFirst, static_cast<std::uint32_t>(ordinal));
  };
  std::vector<index::RunRef> runs;
  {
    index::NeighbourIndex index({}, kFirst, storage);
    {
      const Step step("insert", chunks);
      for (std::uint32_t i = 0; i < chunks; ++i) {
        index.insert(fingerprint_of(id_of(i).value), id_of(i));
      }
    }
    const Step step("seal", 1);
    runs = *index.save(live);
  }
  const VersionNumber own{2};
  std::optional<index::NeighbourIndex> index;
  {
    const Step step("open", 1);
    index.emplace(live, own, storage);
    index->open_runs(runs);
  }
  constexpr std::uint64_t kLookups = 200000;
  {
    const Step step("find chunks in order", 10 * kLookups);
    std::uint64_t hits = 0;
    for (std::uint64_t i = 0; i < 10 * kLookups; ++i) {
      hits += index->find_one(fingerprint_of(id_of(i % chunks).value)) ? 1 : 0;
    }
    fmt::print("{:28} {:12} of {}\n", "  found", hits, 10 * kLookups);
  }
  {
    const Step step("find chunks at random", kLookups);
    for (std::uint64_t i = 0; i < kLookups; ++i) {
      static_cast<void>(index->find_one(fingerprint_of(id_of(i * 2654435761U % chunks).value)));
    }
  }
  {
    const Step step("find no chunk", kLookups);
    for (std::uint64_t i = 0; i < kLookups; ++i) {
      static_cast<void>(index->find_one(fingerprint_of((std::uint64_t{99} << 32) + i)));
    }
  }
  {
    constexpr std::uint32_t kNew = 1000;
    const Step step("seal 1000 new chunks", 1);
    for (std::uint32_t i = 0; i < kNew; ++i) {
      const auto id = ChunkId::make(own, i);
      index->insert(fingerprint_of(id.value), id);
    }
    live = live.unite(base::IdRuns::from({{ChunkId::make(own, 0), kNew}}));
    runs = *index->save(live);
  }
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  std::uint64_t bytes = 0;
  for (const auto& run : runs)
    bytes += std::filesystem::file_size(storage.folder.path_of(run.number));
  fmt::print("{} runs, {} bytes; highest resident memory {} KiB; {} containers read\n", runs.size(),
             bytes, usage.ru_maxrss, containers.read);
  return 0;
}
