// SPDX-License-Identifier: Apache-2.0
// A repository for tests that mix its files with those of another history.
#pragma once

#include <algorithm>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "repair_fixture.h"
#include "support/file_content.h"

namespace varve::test {

class HistoryRepairTest : public RepairTest {
 protected:
  // Returns the path of a copy of the repository, which goes on in another way.
  std::string fork() {
    repository_.reset();
    auto other = directory_.path() + "/other" + std::to_string(++forks_);
    fs::copy(path_, other, fs::copy_options::recursive);
    return other;
  }
  // Adds a version with one new file to a series of a repository.
  static void add_small(const std::string& path, const std::string& name, std::uint64_t seed,
                        const std::string& of = "s") {
    const auto repository = reopen(path);
    const auto series = must(repository->find_series(of)).id;
    const auto number = must(repository->open_version(series, name, folder())).number;
    const auto version = must(repository->writer(series));
    write_file(*version, kRootIno, "new", noise(1500, seed));
    must(repository->seal(series, number, ""));
  }
  // Replaces a file or folder of the series with that of another repository.
  void take(const std::string& other, const std::string& name) {
    fs::remove_all(in_series(name));
    fs::copy(other + "/series/00000001/" + name, in_series(name), fs::copy_options::recursive);
  }
  [[nodiscard]] std::map<std::string, std::string> bytes() const {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(path_)) {
      const auto name = entry.path().filename();
      if (!entry.is_regular_file() || name == "lock.mdb") continue;
      std::ifstream stream(entry.path(), std::ios::binary);
      all[entry.path()] = varve::test::rest_of(stream);
    }
    return all;
  }
  // Adds the files of a folder that another repository has alone.
  void take_missing(const std::string& other, const std::string& name) {
    for (const auto& file : fs::directory_iterator(other + "/series/00000001/" + name)) {
      const auto to = in_series(name) + "/" + file.path().filename().string();
      if (!fs::exists(to)) fs::copy(file.path(), to);
    }
  }
  [[nodiscard]] Result<std::unique_ptr<Repair>> plan(bool skip_mixed) const {
    RepairOptions options;
    options.skip_mixed = skip_mixed;
    return Repair::plan(path_, options, false, {});
  }
  static bool names(const std::vector<std::string>& problems, const std::string& what) {
    return std::any_of(problems.begin(), problems.end(), [&](const std::string& problem) {
      return problem.find(what) != std::string::npos;
    });
  }

 private:
  int forks_ = 0;
};

}  // namespace varve::test
