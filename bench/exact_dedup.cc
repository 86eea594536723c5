// SPDX-License-Identifier: Apache-2.0
// Computes what an exact index would store: chunks trees as Varve does and counts each SHA-256
// once.
//
// usage: exact-dedup [--chunker ID] [--sizes MIN:AVG:MAX] TREE...
// Prints a line of JSON for each tree, in order. The unique numbers cover all trees so far. A file
// with several names counts once per tree, as in a version.
#include <fmt/core.h>

#include <cstring>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "chunk_tree.h"
#include "support.h"
#include "varve/types.h"

namespace varve::bench {
namespace {

struct FingerprintHash {
  std::size_t operator()(const Fingerprint& f) const {
    std::size_t h = 0;
    std::memcpy(&h, f.data(), sizeof h);
    return h;
  }
};

class ExactIndex {
 public:
  explicit ExactIndex(std::unique_ptr<ingest::Chunker> chunker) : chunker_(std::move(chunker)) {}

  TreeCounts add_tree(const std::filesystem::path& root) {
    return cut_tree(*chunker_, root, [this](std::span<const std::byte> chunk) {
      if (seen_.insert(fingerprint_of_chunk(chunk)).second) unique_bytes_ += chunk.size();
    });
  }

  [[nodiscard]] std::uint64_t unique_bytes() const { return unique_bytes_; }
  [[nodiscard]] std::size_t unique_chunks() const { return seen_.size(); }

 private:
  std::unique_ptr<ingest::Chunker> chunker_;
  std::unordered_set<Fingerprint, FingerprintHash> seen_;
  std::uint64_t unique_bytes_ = 0;
};

int main_of(const std::vector<std::string>& args) {
  std::string id = "gear16";
  std::optional<ingest::ChunkSizes> sizes = ingest::ChunkSizes{};
  std::vector<std::string> trees;
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (args[i] == "--chunker" && i + 1 < args.size()) {
      id = args[++i];
    } else if (args[i] == "--sizes" && i + 1 < args.size()) {
      sizes = parse_sizes(args[++i]);
    } else {
      trees.push_back(args[i]);
    }
  }
  if (trees.empty() || !sizes || trees.front().starts_with('-')) {
    fmt::print(stderr, "usage: exact-dedup [--chunker ID] [--sizes MIN:AVG:MAX] TREE...\n");
    return 1;
  }
  auto chunker = ingest::make_chunker(id, *sizes);
  if (!chunker) {
    fmt::print(stderr, "exact-dedup: {}\n", chunker.error().message());
    return 1;
  }
  ExactIndex index(std::move(chunker).value());
  for (const auto& tree : trees) {
    const TreeCounts counts = index.add_tree(tree);
    fmt::print(
        "{{\"files\":{},\"files_unreadable\":{},\"bytes\":{},\"chunks\":{},"
        "\"unique_bytes\":{},\"unique_chunks\":{}}}\n",
        counts.files, counts.files_unreadable, counts.bytes, counts.chunks, index.unique_bytes(),
        index.unique_chunks());
  }
  return 0;
}

}  // namespace
}  // namespace varve::bench

int main(int argc, char** argv) { return varve::bench::main_of({argv + 1, argv + argc}); }
