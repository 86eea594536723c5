// SPDX-License-Identifier: Apache-2.0
// An encrypted repository, with a machine that remembers its sequence number.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "support/file_content.h"
#include "support/temp_repository.h"
#include "varve/repair.h"
#include "varve/repository.h"

namespace varve::test {

class SequenceTest : public testing::Test {
 protected:
  SequenceTest() { must(Repository::create(path_, small_chunks(Codec::kNone), encrypted())); }

  [[nodiscard]] OpenOptions options(const std::string& memory = "state") const {
    auto chosen = with_key(quiet_options());
    if (!memory.empty()) chosen.memory_folder = directory_.path() + "/" + memory;
    return chosen;
  }
  [[nodiscard]] OpenOptions reading(const std::string& memory = "state") const {
    auto chosen = options(memory);
    chosen.read_only = true;
    return chosen;
  }
  /// Returns the path of the file that has the number, also while a writer replaces this file;
  /// "" before the first number.
  [[nodiscard]] std::string memory_path() const {
    std::filesystem::path only;
    std::error_code none;
    for (const auto& one :
         std::filesystem::directory_iterator(directory_.path() + "/state", none)) {
      auto path = one.path();
      if (path.filename() == "lock") continue;
      only = path.extension() == ".tmp" ? path.replace_extension() : path;
    }
    return only.string();
  }
  [[nodiscard]] std::string memory() const {
    std::ifstream file(memory_path(), std::ios::binary);
    return varve::test::rest_of(file);
  }
  /// Waits until this machine remembers the number: a writer remembers it in the background.
  void await_memory(std::uint64_t sequence) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (memory() != line_of(sequence) && std::chrono::steady_clock::now() < end) {
      std::this_thread::yield();
    }
  }
  static std::string line_of(std::uint64_t sequence) {
    return "varve-sequence 1 " + std::to_string(sequence) + "\n";
  }
  static std::uint64_t sequence_of(Repository& repository) { return *must(repository.sequence()); }
  static SeriesId series_named(Repository& repository, const std::string& name) {
    auto found = repository.find_series(name);
    return found ? found->id : must(repository.create_series(name)).id;
  }
  static VersionNumber add_version(Repository& repository, const std::string& name,
                                   const std::string& series = "s") {
    const auto id = series_named(repository, series);
    const auto version = must(repository.open_version(id, name, folder()));
    write_file(*must(repository.writer(id)), kRootIno, "f", name);
    must(repository.seal(id, version.number, name, SealMode::kEnd, SealWriters::kRefuse));
    return version.number;
  }
  // Stores a version as a process of its own. Returns the sequence number behind it.
  std::uint64_t store(const std::string& name, const std::string& memory = "state") const {
    const auto repository = reopen(path_, options(memory));
    add_version(*repository, name);
    const auto sequence = sequence_of(*repository);
    must(repository->close());
    return sequence;
  }
  /// Returns the problems that the repair reported.
  std::vector<std::string> repair() const {
    RepairOptions how;
    how.key = with_key({}).key;
    return must(must(Repair::plan(path_, how, false, {}))->execute({})).problems;
  }
  /// Does work as a process of its own.
  void use(const std::function<void(Repository&)>& work) const {
    const auto repository = reopen(path_, options());
    work(*repository);
    must(repository->close());
  }
  /// Puts older labels of a series back.
  void put_labels_back(const std::string& folder) const {
    std::filesystem::copy_file(old_ + folder + "/labels", path_ + folder + "/labels",
                               std::filesystem::copy_options::overwrite_existing);
  }

  TempDirectory directory_;
  const std::string path_ = directory_.path() + "/repo";
  const std::string old_ = directory_.path() + "/old";
};

}  // namespace varve::test
