// SPDX-License-Identifier: Apache-2.0
// Measures the cost of deleting 1, 10 and 50 of 100 versions, and the older 50: time and moved
// bytes. Compares the tiered policy, the original policy, and a mark-and-copy collector.
//
//   bench-deletion DIRECTORY [--versions N] [--chunks N] [--change PERCENT]
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "avar/mark_and_copy.h"
#include "avar/stored_series.h"

namespace {

using namespace varve;  // NOLINT(google-build-using-namespace)

constexpr double kMib = 1 << 20;

// Returns the sets of versions to delete, equal for all series: random ones first, and finally the
// older half.
std::vector<std::vector<std::size_t>> sets_of(std::size_t versions) {
  std::vector<std::size_t> order(versions);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937_64 random(11);
  std::vector<std::vector<std::size_t>> sets{{versions / 2}};
  for (const std::size_t share : {10, 2}) {
    std::shuffle(order.begin(), order.end(), random);
    std::vector<std::size_t> some(order.begin(),
                                  order.begin() + static_cast<std::ptrdiff_t>(versions / share));
    std::sort(some.begin(), some.end());
    sets.push_back(std::move(some));
  }
  std::sort(order.begin(), order.end());
  order.resize(versions / 2);
  sets.push_back(std::move(order));
  return sets;
}

void print_line(const std::string& name, std::size_t count, const bench::Deletion& deletion) {
  fmt::print("{:<28} {:>4} {:>9.3f} {:>11.1f} {:>11.1f}\n", name, count, deletion.seconds,
             static_cast<double>(deletion.freed) / kMib,
             static_cast<double>(deletion.moved) / kMib);
  std::fflush(stdout);
}

template <typename Store, typename Remove>
void measure(const std::string& name, Store& store, std::size_t versions, const Remove& remove) {
  for (const auto& set : sets_of(versions)) {
    print_line(name, set.size(), remove(set));
    store.go_back();
  }
}

void measure_policy(const std::string& name, const std::string& directory,
                    const ArrangeSettings& settings, const bench::SourceOptions& options,
                    std::size_t versions) {
  bench::StoredSeries series(directory, settings);
  bench::VersionSource source(options);
  std::uint64_t written = 0;
  for (std::size_t i = 0; i < versions; ++i) {
    series.store(source.stream(), source);
    written += series.arrange().bytes_written;
    if (i + 1 < versions) source.next_version();
  }
  fmt::print("{}: arranging wrote {:.1f} MiB while storing\n", name,
             static_cast<double>(written) / kMib);
  series.keep();
  measure(name, series, versions, [&](const auto& set) { return series.remove(set); });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr,
               "usage: bench-deletion DIRECTORY [--versions N] [--chunks N] [--change PERCENT]\n");
    return 2;
  }
  bench::SourceOptions options;
  options.chunks = 10000;
  std::size_t versions = 100;
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    const double value = std::atof(argv[i + 1]);
    if (name == "--versions") versions = static_cast<std::size_t>(value);
    if (name == "--chunks") options.chunks = static_cast<std::size_t>(value);
    if (name == "--change") options.change = value / 100;
  }
  fmt::print("{} versions of about {} chunks, {:.1f} % change\n{:<28} {:>4} {:>9} {:>11} {:>11}\n",
             versions, options.chunks, 100 * options.change, "", "gone", "seconds", "freed MiB",
             "moved MiB");
  const std::string directory = std::string(argv[1]) + "/bench-deletion";
  measure_policy("tiered", directory, {}, options, versions);
  ArrangeSettings original;
  original.policy = ArrangePolicyKind::kOriginal;
  measure_policy("original", directory, original, options, versions);
  bench::MarkAndCopy collector(directory);
  bench::VersionSource source(options);
  for (std::size_t i = 0; i < versions; ++i) {
    collector.store(source.stream(), source);
    if (i + 1 < versions) source.next_version();
  }
  collector.keep();
  measure("mark and copy, any dead", collector, versions,
          [&](const auto& set) { return collector.remove(set, 0); });
  measure("mark and copy, over 20 %", collector, versions,
          [&](const auto& set) { return collector.remove(set, 0.2); });
  return 0;
}
