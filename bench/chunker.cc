// SPDX-License-Identifier: Apache-2.0
// Compares the chunkers on real files: speed on one core, and deduplication.
//
// usage: bench-chunker [--max-bytes 512M] [--sizes MIN:AVG:MAX]... [--keys N] PATH...
// Reads the files below the paths into memory, back to back, and times a pass over them in thread
// CPU time (median of 5 rounds; the chunkers take turns). The deduplication ratio is that of this
// input together with a copy edited about every 128 KiB. --keys adds the keyed gear16 with the keys
// 1 to N.
#include <fmt/core.h>
#include <xxhash.h>

#include <array>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "crypto/key_ring.h"
#include "crypto/secret_key.h"
#include "ingest/chunker.h"
#include "ingest/gear_chunker.h"
#include "support.h"

namespace varve::bench {
namespace {

using Bytes = std::vector<std::byte>;

constexpr int kRounds = 5;
constexpr std::uint64_t kEditGapBytes = 128U << 10;

struct Contestant {
  std::string name;
  std::unique_ptr<ingest::Chunker> chunker;
  std::vector<double> gb_per_second;
};

struct Dedup {
  std::uint64_t total_bytes = 0;
  std::uint64_t unique_bytes = 0;
  std::uint64_t chunks = 0;
};

/// Replaces, inserts or deletes up to 200 bytes at gaps of kEditGapBytes on average.
Bytes edit(const Bytes& data, std::uint64_t seed) {
  Random random(seed);
  Bytes out;
  out.reserve(data.size() + data.size() / 64);
  for (std::size_t at = 0; at < data.size();) {
    const auto gap = std::min<std::uint64_t>(random.below(2 * kEditGapBytes), data.size() - at);
    const auto from = data.begin() + static_cast<std::ptrdiff_t>(at);
    out.insert(out.end(), from, from + static_cast<std::ptrdiff_t>(gap));
    at += gap;
    const std::uint64_t length = 1 + random.below(200);
    const std::uint64_t kind = random.below(3);
    if (kind != 0) at += length;  // Not an insertion, so the old bytes are dropped.
    for (std::uint64_t i = 0; kind != 1 && i < length; ++i) {
      out.push_back(static_cast<std::byte>(random.next()));
    }
  }
  return out;
}

double time_pass(const ingest::Chunker& chunker, const Bytes& data) {
  const double start = thread_cpu_seconds();
  for (std::span<const std::byte> rest(data); !rest.empty();) {
    rest = rest.subspan(chunker.next(rest));
  }
  return static_cast<double>(data.size()) / (thread_cpu_seconds() - start) / 1e9;
}

Dedup deduplicate(const ingest::Chunker& chunker, std::initializer_list<const Bytes*> inputs) {
  Dedup result;
  std::unordered_set<std::uint64_t> seen;
  for (const Bytes* input : inputs) {
    for (std::span<const std::byte> rest(*input); !rest.empty();) {
      const std::size_t length = chunker.next(rest);
      // A hash of 64 bits distinguishes some million chunks well enough for a ratio.
      if (seen.insert(XXH3_64bits(rest.data(), length)).second) result.unique_bytes += length;
      result.total_bytes += length;
      ++result.chunks;
      rest = rest.subspan(length);
    }
  }
  return result;
}

Result<std::shared_ptr<const crypto::KeyRing>> numbered_keys(std::uint8_t number) {
  std::array<std::byte, crypto::kKeyBytes> master{};
  master.front() = std::byte{number};
  VARVE_TRY_ASSIGN(auto key, crypto::SecretKey::copy_of(master));
  return crypto::KeyRing::make(std::move(key), std::string(32, '0'), crypto::Cipher::kAes256Gcm);
}

Result<std::vector<Contestant>> make_contestants(ingest::ChunkSizes sizes, unsigned keys) {
  std::vector<Contestant> all;
  VARVE_TRY_ASSIGN(auto scalar, ingest::make_gear16(sizes, ingest::Gear16Form::kScalar));
  all.push_back({"gear16 scalar", std::move(scalar), {}});
  if (ingest::gear16_avx512_scan() != nullptr) {
    VARVE_TRY_ASSIGN(auto simd, ingest::make_gear16(sizes, ingest::Gear16Form::kFastest));
    all.push_back({"gear16 AVX-512", std::move(simd), {}});
  }
  VARVE_TRY_ASSIGN(auto fastcdc, ingest::make_chunker("fastcdc2020", sizes));
  all.push_back({"fastcdc2020", std::move(fastcdc), {}});
  for (unsigned number = 1; number <= keys; ++number) {
    VARVE_TRY_ASSIGN(const auto ring, numbered_keys(static_cast<std::uint8_t>(number)));
    VARVE_TRY_ASSIGN(auto keyed, ingest::make_chunker("gear16-keyed", sizes, ring.get()));
    all.push_back({fmt::format("keyed {}", number), std::move(keyed), {}});
  }
  return all;
}

Result<void> run(ingest::ChunkSizes sizes, unsigned keys, const Bytes& data, const Bytes& edited) {
  VARVE_TRY_ASSIGN(auto contestants, make_contestants(sizes, keys));
  for (int round = 0; round < kRounds; ++round) {
    for (auto& c : contestants) c.gb_per_second.push_back(time_pass(*c.chunker, data));
  }
  fmt::print("\n{}:{}:{}\n{:<16} {:>9} {:>9} {:>9} {:>10} {:>10}\n", sizes.min, sizes.avg,
             sizes.max, "chunker", "GB/s", "lowest", "highest", "dedup", "mean bytes");
  for (const auto& c : contestants) {
    const auto dedup = deduplicate(*c.chunker, {&data, &edited});
    const auto [low, high] = std::minmax_element(c.gb_per_second.begin(), c.gb_per_second.end());
    fmt::print("{:<16} {:>9.2f} {:>9.2f} {:>9.2f} {:>10.4f} {:>10.0f}\n", c.name,
               median(c.gb_per_second), *low, *high,
               static_cast<double>(dedup.total_bytes) / static_cast<double>(dedup.unique_bytes),
               static_cast<double>(dedup.total_bytes) / static_cast<double>(dedup.chunks));
  }
  return {};
}

int usage() {
  fmt::print(stderr,
             "usage: bench-chunker [--max-bytes N] [--sizes MIN:AVG:MAX]... [--keys N] PATH...\n");
  return 1;
}

int main_of(const std::vector<std::string>& args) {
  std::uint64_t bytes_max = 512U << 20;
  unsigned keys = 0;
  std::vector<ingest::ChunkSizes> sizes;
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const bool more = i + 1 < args.size();
    if (args[i] == "--max-bytes" && more) {
      const auto bytes = parse_bytes(args[++i]);
      if (!bytes) return usage();
      bytes_max = *bytes;
    } else if (args[i] == "--sizes" && more) {
      const auto given = parse_sizes(args[++i]);
      if (!given) return usage();
      sizes.push_back(*given);
    } else if (args[i] == "--keys" && more) {
      const auto given = parse_bytes(args[++i]);
      if (!given || *given > 255) return usage();
      keys = static_cast<unsigned>(*given);
    } else if (args[i].starts_with('-')) {
      return usage();
    } else {
      paths.push_back(args[i]);
    }
  }
  if (paths.empty()) return usage();
  if (sizes.empty()) sizes = {{1024, 4096, 32768}, {2048, 8192, 65536}, {4096, 16384, 131072}};

  Bytes data;
  for (const auto& path : paths) {
    for (const auto& file : regular_files(path)) {
      if (data.size() < bytes_max) append_file(file, bytes_max - data.size(), data);
    }
  }
  if (data.empty()) {
    fmt::print(stderr, "bench-chunker: nothing to read\n");
    return 1;
  }
  const Bytes edited = edit(data, 7);
  fmt::print("{} MiB, then {} MiB edited about every {} KiB\n", data.size() >> 20,
             edited.size() >> 20, kEditGapBytes >> 10);
  for (const auto s : sizes) {
    if (const auto done = run(s, keys, data, edited); !done) {
      fmt::print(stderr, "bench-chunker: {}\n", done.error().message());
      return 1;
    }
  }
  return 0;
}

}  // namespace
}  // namespace varve::bench

int main(int argc, char** argv) { return varve::bench::main_of({argv + 1, argv + argc}); }
