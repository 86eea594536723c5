// SPDX-License-Identifier: Apache-2.0
// Helpers that several programs of bench/ share.
#pragma once

#include <time.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "ingest/chunker.h"

namespace varve::bench {

/// A small fast generator (SplitMix64), the same on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  /// Returns a number that is uniform in [0, bound). `bound` must not be 0.
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }
  /// Returns a number that is uniform in [0, 1).
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

/// Returns the CPU seconds of this thread, so that other work on the machine does not count.
inline double thread_cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/// Returns the regular files of a tree, or the file itself, in name order. Leaves out symbolic
/// links.
inline std::vector<std::filesystem::path> regular_files(const std::filesystem::path& root) {
  namespace fs = std::filesystem;
  std::vector<fs::path> files;
  std::error_code error;
  if (fs::is_regular_file(fs::symlink_status(root, error))) return {root};
  for (fs::recursive_directory_iterator
           it(root, fs::directory_options::skip_permission_denied, error),
       end;
       !error && it != end; it.increment(error)) {
    if (it->symlink_status(error).type() == fs::file_type::regular) files.push_back(it->path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// Appends at most `bytes_max` of a file. Returns false if the file is unreadable.
inline bool append_file(const std::filesystem::path& path, std::size_t bytes_max,
                        std::vector<std::byte>& out) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return false;
  while (bytes_max > 0) {
    const std::size_t piece = std::min<std::size_t>(bytes_max, 1U << 20);
    const std::size_t before = out.size();
    out.resize(before + piece);
    in.read(reinterpret_cast<char*>(out.data() + before), static_cast<std::streamsize>(piece));
    const auto got = static_cast<std::size_t>(in.gcount());
    out.resize(before + got);
    bytes_max -= got;
    if (got < piece) break;
  }
  return true;
}

/// Parses "4096", "64K", "1M" or "2G".
inline std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (unit.empty()) return value;
  if (unit == "K") return value << 10;
  if (unit == "M") return value << 20;
  if (unit == "G") return value << 30;
  return std::nullopt;
}

/// Parses "MIN:AVG:MAX".
inline std::optional<ingest::ChunkSizes> parse_sizes(std::string_view text) {
  std::uint32_t numbers[3] = {};
  for (int i = 0; i < 3; ++i) {
    const auto colon = text.find(':');
    const auto number = parse_bytes(text.substr(0, colon));
    if (!number || *number > UINT32_MAX || (colon == text.npos) != (i == 2)) return std::nullopt;
    numbers[i] = static_cast<std::uint32_t>(*number);
    text = colon == text.npos ? std::string_view() : text.substr(colon + 1);
  }
  return ingest::ChunkSizes{numbers[0], numbers[1], numbers[2]};
}

}  // namespace varve::bench
