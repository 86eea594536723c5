// SPDX-License-Identifier: Apache-2.0
// Measures the cost of searching a catalog for damage at its opening. Compares the page check with
// reading the whole catalog with LMDB in a child process, as Varve does for damaged pages.
//
//   bench-catalog-probe REPOSITORY/catalog [ROUNDS]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "io/posix_file_system.h"
#include "meta/page_check.h"
#include "meta/probe.h"
#include "meta/schema.h"

namespace {

template <typename Work>
double milliseconds(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

double median(std::vector<double> of) {
  std::sort(of.begin(), of.end());
  return of[of.size() / 2];
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    std::fprintf(stderr, "usage: bench-catalog-probe CATALOG|OVERLAY [ROUNDS]\n");
    return 2;
  }
  const std::string directory = arguments[1];
  const int rounds = count > 2 ? std::stoi(arguments[2]) : 15;
  varve::meta::EnvOptions options;
  if (directory.ends_with("overlay")) {
    options.tables = varve::meta::overlay::kTables;
  } else {
    options.tables = varve::meta::catalog::kTables;
  }
  options.read_only = true;
  const auto files = varve::io::make_posix_file_system();
  std::vector<double> checking;
  std::vector<double> reading;
  std::vector<double> opening;
  bool good = true;
  for (int round = -1; round < rounds; ++round) {
    const auto check = milliseconds(
        [&] { good = good && varve::meta::check_pages(directory, options.tables).has_value(); });
    const auto read = milliseconds([&] {
      const auto opened = varve::meta::EnvFiles::open(*files, directory, options);
      const auto survived = varve::meta::survives_reading(*opened, options);
      good = good && survived && *survived;
    });
    const auto open = milliseconds(
        [&] { good = good && varve::meta::Env::open(directory, options).has_value(); });
    if (round < 0) continue;  // The first round fills the page cache.
    checking.push_back(check);
    reading.push_back(read);
    opening.push_back(open);
  }
  if (!good) {
    std::fprintf(stderr, "the catalog is damaged\n");
    return 1;
  }
  fmt::print("opening {:.2f} ms, checking pages {:.2f} ms, reading in a child {:.2f} ms\n",
             median(opening), median(checking), median(reading));
  fmt::print("checking / reading: {:.2f}\n", median(checking) / median(reading));
  return 0;
}
