// SPDX-License-Identifier: Apache-2.0
// Compares the indexes of the pool on trees that are stored one after the other: what each stores
// of what an exact index would, its memory, and the bytes that it reads and writes.
//
// usage: bench-zerochunk [--sizes MIN:AVG:MAX] TREE...
// The trees have no bytes in the pool: a container is the list of its chunks.
#include <fmt/format.h>

#include <atomic>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "chunk_tree.h"
#include "index/exact_pool_index.h"
#include "index/zero_chunk_index.h"
#include "io/memory_file_system.h"
#include "store/repository_names.h"
#include "support.h"
#include "zerochunk/sparse_index.h"

namespace varve::bench {
namespace {

struct Chunk {
  Fingerprint fingerprint{};
  std::uint32_t bytes = 0;
};
using Trees = std::vector<std::vector<Chunk>>;

constexpr std::size_t kBatch = 512;
// A version tells its chunks to the index when they are on disk.
constexpr std::size_t kPublished = 4096;

/// Containers of 4 MiB, filled in the order of the streams.
class Containers final : public index::StoredFingerprints {
 public:
  ChunkId add(const Chunk& chunk) {
    if (containers_.empty() || bytes_ + chunk.bytes > (4U << 20)) {
      containers_.emplace_back(next_);
      bytes_ = 0;
    }
    bytes_ += chunk.bytes;
    stored_bytes += chunk.bytes;
    const ChunkId id = kFirstPoolId.plus((std::uint64_t{1} << 32) + next_++);
    fingerprints_.push_back(chunk.fingerprint);
    of_.push_back(static_cast<std::uint32_t>(containers_.size() - 1));
    return id;
  }
  bool around(ChunkId id, const Visit& visit) override {
    ++tables_read;
    const auto at = id.value - kFirstPoolId.value - (std::uint64_t{1} << 32);
    const auto container = of_.at(at);
    const auto end =
        container + 1 < containers_.size() ? containers_[container + 1] : fingerprints_.size();
    for (auto i = containers_[container]; i < end; ++i) {
      visit(fingerprints_[i], kFirstPoolId.plus((std::uint64_t{1} << 32) + i));
    }
    return true;
  }
  [[nodiscard]] base::IdRuns live() const {
    return base::IdRuns::from(
        {{kFirstPoolId.plus(std::uint64_t{1} << 32), static_cast<std::uint32_t>(next_)}});
  }
  std::uint64_t stored_bytes = 0;
  std::uint64_t tables_read = 0;

 private:
  std::vector<std::uint64_t> containers_;  // First chunk of each.
  std::vector<Fingerprint> fingerprints_;
  std::vector<std::uint32_t> of_;
  std::uint64_t next_ = 0;
  std::uint64_t bytes_ = 0;
};

struct KeyHash {
  std::size_t operator()(const Fingerprint& f) const {
    return base::load_le<std::size_t>(f.data() + 16);
  }
};

/// Stores one tree as an open version does.
void store_tree(index::PoolIndex& index, Containers& containers, std::uint32_t number,
                const std::vector<Chunk>& chunks) {
  const index::StreamNumber stream{number};
  std::unordered_map<Fingerprint, ChunkId, KeyHash> own;
  std::vector<index::PlacedChunk> waiting;
  const auto publish = [&] {
    index.placed(stream, waiting);
    waiting.clear();
    own.clear();
  };
  for (std::size_t at = 0; at < chunks.size(); at += kBatch) {
    const auto end = std::min(at + kBatch, chunks.size());
    std::vector<Fingerprint> asked;
    std::vector<std::size_t> places;
    for (auto i = at; i < end; ++i) {
      if (own.contains(chunks[i].fingerprint)) continue;
      asked.push_back(chunks[i].fingerprint);
      places.push_back(i);
    }
    std::vector<index::PoolHit> hits(asked.size());
    index.lookup(stream, asked, hits);
    for (std::size_t i = 0; i < asked.size(); ++i) {
      if (hits[i].id || own.contains(asked[i])) continue;
      const auto id = containers.add(chunks[places[i]]);
      own.emplace(asked[i], id);
      waiting.push_back({asked[i], id});
    }
    if (waiting.size() >= kPublished) publish();
  }
  publish();
  index.close_stream(stream);
  static_cast<void>(index.save(containers.live()));
}

void print_row(const std::string& name, std::uint64_t stored, std::uint64_t exact,
               std::uint64_t table, std::uint64_t memory, std::uint64_t read, std::uint64_t written,
               std::uint64_t requests) {
  const auto mib = [](std::uint64_t bytes) { return static_cast<double>(bytes) / (1U << 20); };
  fmt::print("| {} | {:.4f} | {:.2f} | {:.2f} | {:.1f} | {:.1f} | {} |\n", name,
             static_cast<double>(stored) / static_cast<double>(exact), mib(table), mib(memory),
             mib(read), mib(written), requests);
}

index::PoolIndexFolder folder_in(io::FileSystem& files) {
  static_cast<void>(files.make_directory("/p"));
  return {{&files, "/p", index::kPoolSeries, store::index_run_name},
          store::snapshot_name(VersionNumber{0}),
          [](std::string_view name) { return store::parse_index_run_name(name); }};
}

std::uint64_t run_exact(const Trees& trees) {
  const auto files = io::make_memory_file_system();
  Containers containers;
  const auto index = index::ExactPoolIndex::open(folder_in(*files), containers);
  std::uint32_t number = 0;
  for (const auto& tree : trees) store_tree(*index, containers, ++number, tree);
  print_row("exact", containers.stored_bytes, containers.stored_bytes, index->memory_bytes(),
            index->memory_bytes(), 0, 0, containers.tables_read);
  return containers.stored_bytes;
}

void run_zero(const Trees& trees, std::uint64_t exact, std::uint32_t bits, bool as_published) {
  const auto files = io::make_memory_file_system();
  Containers containers;
  index::ZeroChunkOptions options;
  options.hook_bits = bits;
  options.rules.heat_step = 0;
  if (as_published) options.rules.entries_kept = 0;
  const auto index = index::ZeroChunkIndex::open(folder_in(*files), containers, options);
  std::uint32_t number = 0;
  for (const auto& tree : trees) store_tree(*index, containers, ++number, tree);
  const auto counts = index->counts();
  print_row(fmt::format("zero-chunk, 1/{}{}", 1U << bits, as_published ? ", as published" : ""),
            containers.stored_bytes, exact, index->table_bytes(), index->memory_bytes(),
            counts.bytes_read, counts.bytes_written,
            counts.bins_read + counts.bins_written + containers.tables_read);
}

void run_sparse(const Trees& trees, std::uint64_t exact, std::uint32_t bits) {
  SparseIndex index(bits);
  std::uint64_t stored = 0;
  for (const auto& tree : trees) {
    std::vector<Fingerprint> segment;
    std::vector<std::uint32_t> sizes;
    std::uint64_t bytes = 0;
    const auto end = [&] {
      const auto known = index.store(segment);
      for (std::size_t i = 0; i < known.size(); ++i) stored += known[i] ? 0 : sizes[i];
      segment.clear();
      sizes.clear();
      bytes = 0;
    };
    for (const auto& chunk : tree) {
      segment.push_back(chunk.fingerprint);
      sizes.push_back(chunk.bytes);
      if ((bytes += chunk.bytes) >= SparseIndex::kSegmentBytes) end();
    }
    end();
  }
  print_row(fmt::format("sparse indexing, 1/{}", 1U << bits), stored, exact, index.table_bytes(),
            index.table_bytes() + index.cached_bytes_max, index.bytes_read, index.bytes_written,
            index.manifests_read + index.manifests_written);
}

int main_of(const std::vector<std::string>& args) {
  std::optional<ingest::ChunkSizes> sizes = ingest::ChunkSizes{};
  std::vector<std::string> names;
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (args[i] == "--sizes" && i + 1 < args.size()) {
      sizes = parse_sizes(args[++i]);
    } else {
      names.push_back(args[i]);
    }
  }
  if (names.empty() || !sizes || names.front().starts_with('-')) {
    fmt::print(stderr, "usage: bench-zerochunk [--sizes MIN:AVG:MAX] TREE...\n");
    return 1;
  }
  const auto chunker = ingest::make_chunker("gear16", *sizes);
  if (!chunker) {
    fmt::print(stderr, "bench-zerochunk: {}\n", chunker.error().message());
    return 1;
  }
  Trees trees;
  std::uint64_t bytes = 0;
  std::uint64_t chunks = 0;
  for (const auto& name : names) {
    auto& tree = trees.emplace_back();
    bytes +=
        cut_tree(**chunker, name, [&](std::span<const std::byte> chunk) {
          tree.push_back({fingerprint_of_chunk(chunk), static_cast<std::uint32_t>(chunk.size())});
        }).bytes;
    chunks += tree.size();
  }
  fmt::print("{} trees, {} MiB, {} chunks\n\n", trees.size(), bytes >> 20, chunks);
  fmt::print(
      "| index | stored, of exact | table, MiB | memory, MiB | read, MiB | written, MiB | "
      "requests |\n|---|---|---|---|---|---|---|\n");
  const auto exact = run_exact(trees);
  for (std::uint32_t bits = 6; bits <= 10; ++bits) {
    run_zero(trees, exact, bits, false);
    if (bits == 8) run_zero(trees, exact, bits, true);
    run_sparse(trees, exact, bits);
  }
  return 0;
}

}  // namespace
}  // namespace varve::bench

int main(int argc, char** argv) { return varve::bench::main_of({argv + 1, argv + argc}); }
