// SPDX-License-Identifier: Apache-2.0
// Counts what this process reads and writes, and removes files from the page cache before.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/unique_fd.h"

namespace varve::bench {

/// The cost of a piece of work.
struct Cost {
  double seconds = 0;
  std::uint64_t read = 0;     ///< Bytes that came from the disk, those of mapped files too.
  std::uint64_t written = 0;  ///< Bytes that were passed to write(2) and its kin.
};

/// Measures from its construction on.
class CostMeter {
 public:
  CostMeter() : before_(now()), start_(Clock::now()) {}
  [[nodiscard]] Cost cost() const {
    const std::chrono::duration<double> seconds = Clock::now() - start_;
    const auto after = now();
    return {seconds.count(), after.read - before_.read, after.written - before_.written};
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Counts {
    std::uint64_t read = 0;
    std::uint64_t written = 0;
  };
  static Counts now() {
    std::ifstream in("/proc/self/io");
    std::string key;
    std::uint64_t value = 0;
    Counts counts;
    while (in >> key >> value) {
      if (key == "read_bytes:") counts.read = value;
      if (key == "wchar:") counts.written = value;
    }
    return counts;
  }

  const Counts before_;
  const Clock::time_point start_;
};

/// Writes every file below the directory to disk and removes it from the page cache.
inline void drop_cached(const std::string& directory) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (!entry.is_regular_file()) continue;
    const base::UniqueFd fd(::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd.valid()) continue;
    ::fdatasync(fd.get());
    ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
  }
}

}  // namespace varve::bench
