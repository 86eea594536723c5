// SPDX-License-Identifier: Apache-2.0
// A repository with four versions that share data, for tests that damage and repair it.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/temp_repository.h"
#include "varve/arrange.h"
#include "varve/backup.h"
#include "varve/check.h"
#include "varve/repair.h"

namespace varve::test {

namespace fs = std::filesystem;

class RepairTest : public testing::TestWithParam<Codec> {
 protected:
  RepairTest() : path_(directory_.path() + "/r") {
    must(Repository::create(path_, small_chunks(GetParam())));
    repository_ = reopen(path_);
    series_ = must(repository_->create_series("s")).id;
    ArrangeSettings settings;
    settings.window = 2;  // Lets chunks depart after only four versions.
    must(repository_->set_arrange_settings(settings));
    for (int i = 1; i <= 4; ++i) add_version(i);
  }

  // Adds a version that shares half of its data with the one before.
  void add_version(int i) {
    const auto name = "v" + std::to_string(i);
    const auto number = must(repository_->open_version(series_, name, folder())).number;
    const auto version = must(repository_->writer(series_));
    fill(*version, name, i);
    must(repository_->seal(series_, number, ""));
  }
  void fill(VersionWriter& version, const std::string& name, int i) {
    const auto sub = must(version.create(kRootIno, "d", folder())).ino;
    const auto seed = static_cast<std::uint64_t>(i);
    for (const auto& [file, bytes] : {std::pair<std::string, std::string>{"a", noise(150000, seed)},
                                      {"b", noise(150000, seed - 1)},
                                      {"same", noise(100000, 77)}}) {
      write_file(version, sub, file, bytes);
      contents_[name]["d/" + file] = bytes;
    }
    must(version.link(must(version.lookup(sub, "same")).ino, kRootIno, "link"));
    contents_[name]["link"] = noise(100000, 77);
  }

  RepairReport repair(const RepairOptions& options = {}) {
    repository_.reset();
    const auto planned = must(Repair::plan(path_, options, false, {}));
    steps_ = planned->steps();
    return must(planned->execute({}));
  }
  void expect_whole(const std::vector<std::string>& names) {
    repository_.reset();
    repository_ = reopen(path_);
    const auto series = must(repository_->find_series("s")).id;
    std::vector<std::string> found;
    for (const auto& info : must(repository_->versions(series))) {
      if (info.state == VersionState::kSealed) found.push_back(info.name);
    }
    EXPECT_EQ(found, names);
    for (const auto& name : names) {
      const auto info = must(repository_->find_version(series, name));
      const auto reader = must(repository_->reader(series, info.number));
      EXPECT_EQ(info.entries, 5U);
      for (const auto& [file, bytes] : contents_[name]) {
        EXPECT_TRUE(read_sealed(*reader, file) == bytes) << name << "/" << file;
      }
    }
    expect_clean();
  }
  void expect_clean() {
    CheckOptions options;
    options.verify_chunks = true;
    for (const auto& damage : must(repository_->check(options, {})).damages) {
      ADD_FAILURE() << damage.where << ": " << damage.what;
    }
  }
  void lose_catalog() {
    repository_.reset();
    fs::remove_all(path_ + "/catalog");
  }
  static void flip(const std::string& file, std::uint64_t offset) {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(static_cast<std::streamoff>(offset));
    const auto byte = stream.get();
    stream.seekp(static_cast<std::streamoff>(offset));
    stream.put(static_cast<char>(byte ^ 0x24));
  }
  [[nodiscard]] std::string in_series(const std::string& name) const {
    return path_ + "/series/00000001/" + name;
  }

  TempDirectory directory_;
  std::string path_;
  SeriesId series_{};
  std::unique_ptr<Repository> repository_;
  std::map<std::string, std::map<std::string, std::string>> contents_;
  std::vector<RepairStep> steps_;
};

}  // namespace varve::test
