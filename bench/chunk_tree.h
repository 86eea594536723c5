// SPDX-License-Identifier: Apache-2.0
// Cuts the files of a tree into chunks, as Varve does.
#pragma once

#include <openssl/evp.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "ingest/chunker.h"
#include "support.h"
#include "varve/types.h"

namespace varve::bench {

/// The numbers of files, bytes and chunks of a tree.
struct TreeCounts {
  std::uint64_t files = 0;
  std::uint64_t files_unreadable = 0;
  std::uint64_t bytes = 0;
  std::uint64_t chunks = 0;
};

/// Returns the SHA-256 of a chunk.
inline Fingerprint fingerprint_of_chunk(std::span<const std::byte> chunk) {
  Fingerprint fingerprint{};
  unsigned size = 0;
  EVP_Digest(chunk.data(), chunk.size(), reinterpret_cast<unsigned char*>(fingerprint.data()),
             &size, EVP_sha256(), nullptr);
  return fingerprint;
}

/// Passes each chunk of a file to `visit`.
template <typename Visit>
void cut_file(ingest::Chunker& chunker, const std::filesystem::path& path, TreeCounts& counts,
              Visit&& visit) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    ++counts.files_unreadable;
    return;
  }
  ++counts.files;
  const std::size_t max = chunker.sizes().max;
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
    const std::size_t length = chunker.next(rest);
    visit(rest.first(length));
    counts.bytes += length;
    ++counts.chunks;
    begin += length;
  }
}

/// Passes each chunk of a tree's files to `visit`, in the order of names. A file with several names
/// counts once.
template <typename Visit>
TreeCounts cut_tree(ingest::Chunker& chunker, const std::filesystem::path& root, Visit&& visit) {
  TreeCounts counts;
  std::set<std::pair<dev_t, ino_t>> linked;
  for (const auto& path : regular_files(root)) {
    struct stat st {};
    if (lstat(path.c_str(), &st) != 0) continue;
    if (st.st_nlink > 1 && !linked.emplace(st.st_dev, st.st_ino).second) continue;
    cut_file(chunker, path, counts, visit);
  }
  return counts;
}

}  // namespace varve::bench
