// SPDX-License-Identifier: Apache-2.0
// A repository whose series keep their chunks in the pool, for tests that damage and repair it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/ids.h"
#include "meta/lmdb.h"
#include "meta/schema.h"
#include "support/closed_catalog.h"
#include "support/temp_repository.h"
#include "varve/backup.h"
#include "varve/check.h"
#include "varve/repair.h"
#include "varve/retention.h"

namespace varve::test {

namespace fs = std::filesystem;

/// Series "a" has two versions, and "b" has one. Each version has a file of its own, and all share
/// the file "same". So does the version of "c", whose own file is in the series' own store.
class PoolTest : public testing::Test {
 protected:
  using Files = std::map<std::string, std::string>;

  PoolTest() : path_(directory_.path() + "/r") {
    auto parameters = small_chunks(Codec::kZstd);
    parameters.placement = Placement::kPool;
    must(Repository::create(path_, parameters));
    repository_ = reopen(path_);
    must(repository_->create_series("a"));
    must(repository_->create_series("b"));
    SeriesOptions both;
    both.placement = Placement::kLineagePool;
    must(repository_->create_series("c", both));
    add_version("a", "v1", {{"same", noise(200000, 1)}, {"own", noise(150000, 2)}});
    add_version("a", "v2", {{"same", noise(200000, 1)}, {"own", noise(150000, 3)}});
    add_version("b", "v1", {{"same", noise(200000, 1)}, {"own", noise(150000, 4)}});
    add_version("c", "v1", {{"same", noise(200000, 1)}, {"own", noise(150000, 12)}});
  }

  [[nodiscard]] SeriesId series(const std::string& name) {
    return must(repository_->find_series(name)).id;
  }
  void add_version(const std::string& of, const std::string& name, const Files& files) {
    const auto number = must(repository_->open_version(series(of), name, folder())).number;
    const auto version = must(repository_->writer(series(of)));
    for (const auto& [file, bytes] : files) {
      write_file(*version, kRootIno, file, bytes);
      contents_[of + "/" + name + "/" + file] = bytes;
    }
    must(repository_->seal(series(of), number, ""));
  }
  DeletionForecast remove(const std::string& of, const std::string& name) {
    const auto number = must(repository_->find_version(series(of), name)).number;
    std::erase_if(contents_, [&](const auto& entry) {
      return entry.first.starts_with(of + "/" + name + "/");
    });
    return must(repository_->delete_versions(series(of), {number}));
  }

  /// Returns the files of sealed versions that cannot be read, by reading all of them. A file that
  /// is read must have its content.
  std::set<std::string> unreadable() {
    std::set<std::string> bad;
    for (const auto& [path, bytes] : contents_) {
      const auto first = path.find('/');
      const auto second = path.find('/', first + 1);
      const auto of = series(path.substr(0, first));
      const auto info =
          must(repository_->find_version(of, path.substr(first + 1, second - first - 1)));
      const auto reader = must(repository_->reader(of, info.number));
      try {
        EXPECT_TRUE(read_sealed(*reader, path.substr(second + 1)) == bytes) << path;
      } catch (const std::runtime_error&) {
        bad.insert(path);
      }
    }
    return bad;
  }
  void open_read_only() {
    repository_.reset();
    OpenOptions options;
    options.read_only = true;
    repository_ = reopen(path_, options);
  }
  void open_for_writing() {
    repository_.reset();
    repository_ = reopen(path_);
  }
  CheckReport check(bool read_data = true) {
    CheckOptions how;
    how.read_data = read_data;
    how.verify_chunks = true;
    return must(repository_->check(how, {}));
  }
  void expect_whole() {
    open_for_writing();
    EXPECT_EQ(unreadable(), std::set<std::string>());
    for (const auto& damage : check().damages) ADD_FAILURE() << damage.where << ": " << damage.what;
  }
  static std::set<std::string> affected(const CheckReport& report) {
    std::set<std::string> all;
    for (const auto& damage : report.damages) {
      all.insert(damage.affected.begin(), damage.affected.end());
    }
    return all;
  }
  RepairReport repair(const RepairOptions& options = {}) {
    repository_.reset();
    const auto planned = must(Repair::plan(path_, options, false, {}));
    steps_ = planned->steps();
    return must(planned->execute({}));
  }
  void lose_catalog() {
    repository_.reset();
    fs::remove_all(path_ + "/catalog");
  }

  [[nodiscard]] std::vector<std::string> pool_files() const {
    std::vector<std::string> files;
    if (!fs::exists(path_ + "/pool/active")) return files;
    for (const auto& at : fs::directory_iterator(path_ + "/pool/active")) {
      files.push_back(at.path());
    }
    std::ranges::sort(files);
    return files;
  }
  /// Returns the length of all files of the pool and of the series.
  [[nodiscard]] std::uint64_t stored_bytes() const {
    std::uint64_t sum = 0;
    for (const char* below : {"/pool", "/series"}) {
      for (const auto& at : fs::recursive_directory_iterator(path_ + below)) {
        if (at.is_regular_file()) sum += at.file_size();
      }
    }
    return sum;
  }
  static void flip(const std::string& file, std::uint64_t offset) {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(static_cast<std::streamoff>(offset));
    const auto byte = stream.get();
    stream.seekp(static_cast<std::streamoff>(offset));
    stream.put(static_cast<char>(byte ^ 0x24));
  }

  /// Commits a change to the catalog of the closed repository.
  template <typename Change>
  void change_catalog(const Change& change) {
    repository_.reset();
    change_closed_catalog(path_, change);
  }
  /// Returns all records of the pool, byte for byte.
  std::map<std::string, std::string> records() {
    std::map<std::string, std::string> all;
    repository_.reset();
    const auto env = open_catalog(path_ + "/catalog");
    const auto txn = must(meta::ReadTxn::begin(env));
    const auto take = [&](meta::catalog::Table table, const std::string& prefix) {
      must(meta::for_each_prefix(
          txn, table, prefix, [&](std::string_view key, std::string_view value) -> Result<bool> {
            all[std::string(meta::catalog::kTables[table]) + std::string(key)] = value;
            return true;
          }));
    };
    const auto pool = meta::store_key(kPoolStore);
    take(meta::catalog::kPoolUse, "");
    take(meta::catalog::kPoolUsers, "");
    take(meta::catalog::kContainers, pool);
    take(meta::catalog::kLocations, pool);
    take(meta::catalog::kSegments, pool);
    return all;
  }

  TempDirectory directory_;
  std::string path_;
  std::unique_ptr<Repository> repository_;
  Files contents_;  // Of all sealed versions, by SERIES/VERSION/file.
  std::vector<RepairStep> steps_;
};

}  // namespace varve::test
