// SPDX-License-Identifier: Apache-2.0
// Lists versions or a directory of a version, or writes a file of a version to standard output.
#include <sys/stat.h>
#include <varve/browse.h>
#include <varve/repository.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <string>
#include <utility>

namespace {

varve::Result<void> list_versions(varve::Repository& repository) {
  VARVE_TRY_ASSIGN(const auto all, repository.series());
  for (const varve::SeriesInfo& series : all) {
    VARVE_TRY_ASSIGN(const auto versions, repository.versions(series.id));
    for (const varve::VersionInfo& version : versions) {
      std::printf("%s/%s\n", series.name.c_str(), version.name.c_str());
    }
  }
  return {};
}

/// Finds the entry at a path below the version's root. Follows no symlinks.
varve::Result<varve::SealedEntry> find_entry(varve::VersionReader& version, std::string_view path) {
  VARVE_TRY_ASSIGN(auto entry, version.get(varve::Rank{0}));
  while (!path.empty()) {
    const std::string_view name = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(path.size(), name.size() + 1));
    if (name.empty()) continue;
    VARVE_TRY_ASSIGN(entry, version.lookup(entry.rank, name));
  }
  return entry;
}

varve::Result<void> write_file(varve::VersionReader& version, varve::Rank rank) {
  VARVE_TRY_ASSIGN(const auto file, version.open(rank));
  std::array<std::byte, 1U << 16> buffer{};
  for (std::uint64_t offset = 0; offset < file->size();) {
    VARVE_TRY_ASSIGN(const std::size_t bytes, file->read(offset, buffer));  // Verified bytes only.
    if (std::fwrite(buffer.data(), 1, bytes, stdout) < bytes) break;        // main() reports it.
    offset += bytes;
  }
  return {};
}

varve::Result<void> browse(int argc, char** argv) {
  varve::OpenOptions options;
  options.read_only = true;  // Works beside a writing process.
  VARVE_TRY_ASSIGN(const auto repository, varve::Repository::open(argv[1], options));
  if (argc == 2) return list_versions(*repository);
  VARVE_TRY_ASSIGN(const auto series, repository->find_series(argv[2]));
  VARVE_TRY_ASSIGN(const auto info, repository->find_version(series.id, argv[3]));
  VARVE_TRY_ASSIGN(const auto version, repository->reader(info.series, info.number));
  const std::string path = argc > 4 ? argv[4] : "";
  auto entry = find_entry(*version, path);
  if (!entry) return std::move(entry).error().with_context(path);
  if (!S_ISDIR(entry->attributes.mode)) return write_file(*version, entry->rank);
  return version->list(entry->rank, 0, [](auto, std::string_view name, const auto& found) {
    std::printf("%12" PRIu64 " %.*s\n", found.attributes.size, int(name.size()), name.data());
    return true;
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 4 && argc != 5) {
    std::fprintf(stderr, "usage: browse REPOSITORY [SERIES VERSION [PATH]]\n");
    return 2;
  }
  const auto done = browse(argc, argv);
  if (!done) std::fprintf(stderr, "browse: %s\n", done.error().message().c_str());
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (!written) std::fprintf(stderr, "browse: cannot write to standard output\n");
  return done && written ? 0 : 1;
}
