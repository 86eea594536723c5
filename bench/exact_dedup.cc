// SPDX-License-Identifier: Apache-2.0
// Computes what an exact index would store: chunks trees as Varve does and counts each SHA-256
// once.
//
// usage: exact-dedup [--chunker ID] [--sizes MIN:AVG:MAX] TREE...
// Prints a line of JSON for each tree, in order. The unique numbers cover all trees so far. A file
// with several names counts once per tree, as in a version.
#include <fmt/core.h>
#include <openssl/evp.h>
#include <sys/stat.h>

#include <array>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

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

struct Counts {
  std::uint64_t files = 0;
  std::uint64_t files_unreadable = 0;
  std::uint64_t bytes = 0;
  std::uint64_t chunks = 0;
};

class ExactIndex {
 public:
  explicit ExactIndex(std::unique_ptr<ingest::Chunker> chunker) : chunker_(std::move(chunker)) {}

  Counts add_tree(const std::filesystem::path& root) {
    Counts counts;
    std::set<std::pair<dev_t, ino_t>> linked;
    for (const auto& path : regular_files(root)) {
      struct stat st {};
      if (lstat(path.c_str(), &st) != 0) continue;
      if (st.st_nlink > 1 && !linked.emplace(st.st_dev, st.st_ino).second) continue;
      add_file(path, counts);
    }
    return counts;
  }

  [[nodiscard]] std::uint64_t unique_bytes() const { return unique_bytes_; }
  [[nodiscard]] std::size_t unique_chunks() const { return seen_.size(); }

 private:
  void add_file(const std::filesystem::path& path, Counts& counts) {
    std::ifstream in(path, std::ios::binary);
    if (!in) {
      ++counts.files_unreadable;
      return;
    }
    ++counts.files;
    const std::size_t max = chunker_->sizes().max;
    std::vector<std::byte> window(8U << 20);
    std::size_t begin = 0;
    std::size_t end = 0;
    for (bool eof = false;;) {
      if (end - begin < max && !eof) {
        std::memmove(window.data(), window.data() + begin, end - begin);
        end -= begin;
        begin = 0;
        in.read(reinterpret_cast<char*>(window.data() + end),
                static_cast<std::streamsize>(window.size() - end));
        end += static_cast<std::size_t>(in.gcount());
        eof = end < window.size();
      }
      if (begin == end) return;
      const auto rest = std::span<const std::byte>(window).subspan(begin, end - begin);
      const std::size_t length = chunker_->next(rest);
      add_chunk(rest.first(length));
      counts.bytes += length;
      ++counts.chunks;
      begin += length;
    }
  }

  void add_chunk(std::span<const std::byte> chunk) {
    Fingerprint fingerprint{};
    unsigned size = 0;
    EVP_Digest(chunk.data(), chunk.size(), reinterpret_cast<unsigned char*>(fingerprint.data()),
               &size, EVP_sha256(), nullptr);
    if (seen_.insert(fingerprint).second) unique_bytes_ += chunk.size();
  }

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
    const Counts counts = index.add_tree(tree);
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
