// SPDX-License-Identifier: Apache-2.0
// Measures what it costs to know which containers of the pool can be freed, and to free them:
// the metadata, the time and the moved bytes of the product's users of containers, of the paper's
// container markers (Fu et al., ATC'14 §5), and of grouped mark-and-sweep (ATC'11).
//
//   bench-cma DIRECTORY [--kind NAME] [--rewrite NAME] [--versions N] [--chunks N] [--seed N]
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "avar/series_kinds.h"
#include "cma/container_markers.h"
#include "cma/grouped_marks.h"
#include "cma/mark_and_sweep.h"
#include "cma/pool_content.h"
#include "cma/stored_pool.h"
#include "must.h"
#include "options.h"
#include "varve/rewrite.h"

namespace {

using namespace varve;  // NOLINT(google-build-using-namespace)
using bench::must;

constexpr double kMib = 1 << 20;
constexpr std::size_t kGroup = 10;
/// So many versions the paper's Table 3 keeps.
constexpr std::size_t kPaperVersions = 20;
constexpr bench::ContainerMarkers::Dataset kDataset = 1;
/// A record of `pool_users`: the container, up to 127 users, a checksum.
constexpr std::uint64_t kUsersRecordBytes = 4 + 1 + 4;

struct Run {
  std::string directory;
  std::string kind;
  Rewrite rewrite = Rewrite::kNone;
  std::size_t versions = 100;
  std::size_t chunks = 8192;
  std::uint64_t seed = 1;
};

double mib(std::uint64_t bytes) { return static_cast<double>(bytes) / kMib; }

void fail_unless(bool holds, std::string_view what) {
  if (holds) return;
  fmt::print(stderr, "bench-cma: {}\n", what);
  std::exit(1);
}

bench::ContainerMarkers markers_of(const bench::PoolContent& content) {
  bench::ContainerMarkers markers;
  for (const auto& version : content.versions) markers.add_backup(kDataset, version);
  return markers;
}

/// Prints the sizes of the metadata while the last `count` versions are kept.
void print_metadata(const bench::PoolContent& content, std::size_t count) {
  const auto skipped = content.versions.size() - count;
  const auto kept = std::span(content.versions).subspan(skipped);
  auto markers = markers_of(content);
  static_cast<void>(markers.delete_oldest(kDataset, static_cast<std::uint32_t>(skipped)));
  bench::Marks all;
  for (const auto& version : kept) bench::unite(all, version);
  std::uint64_t chunks = 0;
  for (const auto& [container, bitmap] : all) chunks += bitmap.size();
  std::uint64_t users = all.size() * kUsersRecordBytes;
  for (std::size_t i = skipped; i < content.versions.size(); ++i) users += content.use_bytes[i];
  const double marks = static_cast<double>(bench::bitmap_bytes(kept, 1));
  const double ours = static_cast<double>(users);
  const auto encoded = markers.encode();
  fail_unless(bench::ContainerMarkers::decode(encoded) == markers, "the markers are not decoded");
  const double paper = static_cast<double>(markers.published_bytes());
  const double shorter = static_cast<double>(encoded.size());
  fmt::print(
      "{:>4} | {:>10} | {:>8} | {:>8} {:>7} {:>7} | {:>7} {:>6.1f} | {:>6} {:>6.1f} | {:>7} "
      "{:>6.1f}\n",
      count, all.size(), chunks, bench::bitmap_bytes(kept, 1), bench::bitmap_bytes(kept, kGroup),
      bench::bitmap_bytes(kept, count), markers.published_bytes(), marks / paper, encoded.size(),
      marks / shorter, users, marks / ours);
}

/// Returns the sets of versions to delete: the oldest ones, then random ones.
std::vector<std::vector<std::size_t>> sets_of(std::size_t versions) {
  std::vector<std::size_t> order(versions);
  std::iota(order.begin(), order.end(), std::size_t{0});
  const std::size_t counts[] = {1, versions / 10, versions / 2};
  std::vector<std::vector<std::size_t>> sets;
  for (const auto count : counts) sets.emplace_back(order.begin(), order.begin() + count);
  std::mt19937_64 random(11);
  for (const auto count : counts) {
    std::shuffle(order.begin(), order.end(), random);
    sets.emplace_back(order.begin(), order.begin() + count);
    std::sort(sets.back().begin(), sets.back().end());
  }
  return sets;
}

void print_line(std::string_view scheme, const bench::Cost& cost, std::uint64_t freed,
                std::uint64_t dead, std::uint64_t moved) {
  fmt::print("  {:<32} | {:>7.3f} | {:>7.1f} | {:>7.1f} | {:>7.1f} | {:>7.2f} | {:>7.2f}\n", scheme,
             cost.seconds, mib(freed), mib(dead), mib(moved), mib(cost.read), mib(cost.written));
  std::fflush(stdout);
}

/// Deletes a set of versions by the product, and compares the result with the marks.
void delete_by_product(bench::StoredPool& pool, const bench::PoolContent& content,
                       const std::vector<std::size_t>& gone) {
  const std::set<std::size_t> deleted(gone.begin(), gone.end());
  bench::Marks live;
  for (std::size_t i = 0; i < content.versions.size(); ++i) {
    if (!deleted.contains(i)) bench::unite(live, content.versions[i]);
  }
  std::set<bench::Container> wanted;
  std::uint64_t dead = 0;
  for (const auto& [container, used] : live) {
    wanted.insert(container);
    const auto& chunks = content.containers.at(container);
    for (std::size_t i = 0; i < chunks.size(); ++i) dead += used[i] ? 0 : chunks[i].bytes;
  }
  const auto cost = pool.remove(gone);
  pool.go_back();
  fail_unless(cost.left == wanted, "Varve left other containers than the marks say");
  fail_unless(cost.forecast == cost.freed, "the forecast was wrong");
  fail_unless(cost.moved == 0, "Varve moved chunks");
  print_line("Varve, delete_versions()", cost.call, cost.freed, dead, cost.moved);
  print_line("Varve, with opening and closing", cost.all, cost.disk_freed, dead, cost.moved);
  if (gone.back() != gone.size() - 1) return;  // The markers know only the oldest ones.
  auto markers = markers_of(content);
  const auto reclaimed = markers.delete_oldest(kDataset, static_cast<std::uint32_t>(gone.size()));
  for (const auto container : reclaimed) wanted.insert(container);
  fail_unless(
      wanted.size() == content.containers.size() && wanted.size() == live.size() + reclaimed.size(),
      "the container markers free other containers than Varve");
}

void measure(const bench::KindName& kind, const Run& run) {
  bench::StoredPool pool(run.directory + "/bench-cma", run.rewrite);
  bench::KindSource source(kind.kind, run.chunks, run.seed);
  pool.store(run.versions, source);
  const auto content = pool.content();
  std::uint64_t stored = 0;
  std::uint64_t chunks = 0;
  for (const auto& [container, all] : content.containers) {
    chunks += all.size();
    for (const auto& chunk : all) stored += chunk.bytes;
  }
  fmt::print(
      "{}, rewrite={}: {} versions of {:.1f} MiB, {:.1f} MiB stored, {:.0f} chunks in each "
      "container\n",
      kind.name, rewrite_name(run.rewrite), run.versions,
      mib(pool.logical_bytes()) / static_cast<double>(run.versions), mib(stored),
      static_cast<double>(chunks) / static_cast<double>(content.containers.size()));
  fmt::print(
      "metadata in bytes; marks of groups of 1, {} and all versions\n"
      "kept | containers | counters | {:>24} | {:>14} | {:>13} | {:>14}\n",
      kGroup, "marks", "paper, factor", "short, factor", "Varve, factor");
  print_metadata(content, std::min(run.versions, kPaperVersions));
  print_metadata(content, run.versions);
  fmt::print("Varve's two tables take {} bytes of pages; pool_users has {} bytes\n",
             content.page_bytes, content.users_bytes);
  fmt::print("deletions\n  {:<32} | {:>7} | {:>7} | {:>7} | {:>7} | {:>7} | {:>7}\n", "MiB", "s",
             "freed", "dead", "moved", "read", "written");
  bench::MarkAndSweep collector(run.directory + "/bench-cma-marks", content);
  pool.read_containers([&](bench::Container number, std::span<const std::byte> data) {
    collector.add_container(number, data);
  });
  pool.keep();
  for (const auto& gone : sets_of(run.versions)) {
    fmt::print("{} {}\n", gone.size(), gone.back() == gone.size() - 1 ? "oldest" : "random");
    delete_by_product(pool, content, gone);
    for (const double share : {0.0, 0.2, 0.5}) {
      const auto result = collector.remove(gone, share);
      print_line(fmt::format("mark-and-sweep, over {:.0f} % dead", 100 * share), result.cost,
                 result.freed, result.dead, result.moved);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  Run run;
  std::string rewrite = "none";
  const bool understood =
      argc > 1 && bench::read_options(argc, argv, 2,
                                      {{"--kind", bench::text_option(run.kind)},
                                       {"--rewrite", bench::text_option(rewrite)},
                                       {"--versions", bench::number_option(run.versions)},
                                       {"--chunks", bench::number_option(run.chunks)},
                                       {"--seed", bench::number_option(run.seed)}});
  if (!understood || run.versions < kGroup) {
    fmt::print(stderr,
               "usage: bench-cma DIRECTORY [--kind NAME] [--rewrite NAME] [--versions N] "
               "[--chunks N] [--seed N]\n");
    return 2;
  }
  run.directory = argv[1];
  run.rewrite = must(parse_rewrite(rewrite));
  for (const auto& kind : bench::kKinds) {
    if (run.kind.empty() || run.kind == kind.name) measure(kind, run);
  }
  return 0;
}
