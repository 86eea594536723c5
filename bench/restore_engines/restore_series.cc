// SPDX-License-Identifier: Apache-2.0
// Measures the disk reads of restoring the versions of a real repository.
//
//   bench-restore-series REPO SERIES [--engine NAME] [--cache MIB] [--all]
//
// Reads every file of the newest, a middle and the oldest version (or of all) in tree order,
// without holes, with only the catalog in the page cache. "Read" is the kernel's count of bytes
// that this process read from disk: frames, container headers, and bytes read beside them. "Factor"
// is restored MiB per 4 MiB read. REPO must be on a disk, not in memory.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "must.h"
#include "varve/browse.h"
#include "varve/repository.h"

namespace {

using namespace varve;  // NOLINT(google-build-using-namespace)
using bench::must;

constexpr double kMiB = 1U << 20;

/// Removes a file from the page cache, or reads it into it.
void set_cached(const std::filesystem::path& path, bool cached) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  if (cached) {
    std::vector<char> buffer(1U << 20);
    while (::read(fd, buffer.data(), buffer.size()) > 0) {
    }
  } else {
    ::fdatasync(fd);
    ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  }
  ::close(fd);
}

void cache_catalog_only(const std::string& repository) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(repository)) {
    if (!entry.is_regular_file()) continue;
    set_cached(entry.path(), entry.path().string().find("/catalog/") != std::string::npos);
  }
}

std::uint64_t bytes_read_from_disk() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_inblock) * 512;
}

/// Returns the value of "VmHWM" or "RssAnon", in MiB.
double memory_mib(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name + ":")) return std::atof(line.c_str() + name.size() + 1) / 1024;
  }
  return 0;
}

void restore(const std::string& path, const OpenOptions& options, const VersionInfo& version) {
  cache_catalog_only(path);
  const auto repository = must(Repository::open(path, options));
  const auto reader = must(repository->reader(version.series, version.number));
  std::vector<std::byte> buffer(1U << 20);
  std::set<std::uint64_t> linked;
  std::uint64_t restored = 0;
  std::size_t files = 0;
  double anonymous = 0;
  const std::uint64_t before = bytes_read_from_disk();
  const auto begin = std::chrono::steady_clock::now();
  for (Rank rank = 0;; ++rank) {
    const auto entry = reader->get(rank);
    if (!entry) break;
    if ((entry->attributes.mode & S_IFMT) != S_IFREG || entry->attributes.size == 0) continue;
    if (entry->link_group != 0 && !linked.insert(entry->link_group).second) continue;
    const auto file = must(reader->open(rank));
    // Reads only the data; holes do not count.
    for (auto data = file->seek_data(0); data; data = file->seek_data(*data)) {
      const std::uint64_t end = must(file->seek_hole(*data));
      while (*data < end) {
        const auto wanted = std::min<std::uint64_t>(buffer.size(), end - *data);
        const std::size_t n = must(file->read(*data, std::span(buffer).first(wanted)));
        *data += n;
        restored += n;
      }
    }
    if (++files % 64 == 0) anonymous = std::max(anonymous, memory_mib("RssAnon"));
  }
  anonymous = std::max(anonymous, memory_mib("RssAnon"));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  const std::uint64_t read = bytes_read_from_disk() - before;
  fmt::print(
      "{:<14} {:>7} files {:>8.1f} MiB, read {:>8.1f} MiB: factor {:>6.2f}; {:>6.1f} MiB/s; "
      "anonymous memory {:.0f} MiB, peak {:.0f} MiB\n",
      version.name, files, static_cast<double>(restored) / kMiB, static_cast<double>(read) / kMiB,
      4 * static_cast<double>(restored) / static_cast<double>(std::max<std::uint64_t>(read, 1)),
      static_cast<double>(restored) / kMiB / seconds.count(), anonymous, memory_mib("VmHWM"));
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr,
               "usage: bench-restore-series REPO SERIES [--engine NAME] [--cache MIB] [--all]\n");
    return 2;
  }
  const std::string path = argv[1];
  OpenOptions options;
  options.read_only = true;
  bool all = false;
  for (int i = 3; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--all") all = true;
    if (name == "--engine" && i + 1 < argc) options.engine = argv[++i];
    if (name == "--cache" && i + 1 < argc)
      options.cache_bytes = std::strtoull(argv[++i], nullptr, 10) << 20;
  }
  std::vector<VersionInfo> versions;
  {
    const auto repository = must(Repository::open(path, options));
    const auto series = must(repository->find_series(argv[2]));
    for (const VersionInfo& version : must(repository->versions(series.id))) {
      if (version.state == VersionState::kSealed) versions.push_back(version);
    }
  }
  if (versions.empty()) return 1;
  fmt::print("engine {}, {} MiB\n", options.engine, options.cache_bytes >> 20);
  std::vector<std::size_t> picked = {versions.size() - 1, versions.size() / 2, 0};
  if (all) {
    picked.clear();
    for (std::size_t i = versions.size(); i-- > 0;) picked.push_back(i);
  }
  for (const std::size_t i : picked) restore(path, options, versions[i]);
  return 0;
}
