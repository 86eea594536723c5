// SPDX-License-Identifier: Apache-2.0
// Two repositories, and copies from one to the other.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "support/temp_repository.h"
#include "support/tree_text.h"
#include "varve/copy.h"

namespace varve::test {

class CopyTest : public testing::Test {
 protected:
  CopyTest() {
    must(Repository::create(source_path_, test::small_chunks(Codec::kNone)));
    must(Repository::create(target_path_, test::small_chunks(Codec::kNone)));
    source_ = test::reopen(source_path_);
    target_ = test::reopen(target_path_);
  }

  Result<CopyReport> try_copy(const CopyOptions& options = {}) {
    const auto target = copy_target(*target_);
    return copy_versions(*source_, target.get(), options, {progress_, {}});
  }
  CopyReport copy(const CopyOptions& options = {}) {
    auto report = must(try_copy(options));
    for (const auto& problem : report.problems) ADD_FAILURE() << problem;
    return report;
  }

  SeriesId series(Repository& repository, const std::string& name = "s") {
    const auto found = repository.find_series(name);
    return found ? found->id : must(repository.create_series(name)).id;
  }
  std::shared_ptr<VersionWriter> open(const std::string& name, bool clone = true) {
    const auto id = series(*source_);
    const auto newest = source_->find_version(id, "latest");
    if (newest && clone) {
      must(source_->clone_version(id, newest->number, name + ".partial"));
    } else {
      must(source_->open_version(id, name + ".partial", test::folder()));
    }
    return must(source_->writer(id));
  }
  VersionInfo seal() {
    const auto id = series(*source_);
    return must(source_->seal(id, must(source_->writer(id))->info().number, "")).info;
  }
  std::string text(Repository& repository, const std::string& version,
                   const std::string& of = "s") {
    const auto id = series(repository, of);
    const auto info = must(repository.find_version(id, version));
    return test::tree_text(*must(repository.reader(id, info.number)));
  }
  void expect_equal(const std::string& version) {
    EXPECT_EQ(text(*source_, version), text(*target_, version)) << version;
  }
  std::vector<std::string> names(Repository& repository) {
    std::vector<std::string> names;
    for (const auto& version : must(repository.versions(series(repository)))) {
      names.push_back(version.name);
    }
    return names;
  }

  const test::TempDirectory place_;
  const std::string source_path_ = place_.path() + "/source";
  const std::string target_path_ = place_.path() + "/target";
  std::unique_ptr<Repository> source_;
  std::unique_ptr<Repository> target_;
  std::function<bool(const TransferProgress&)> progress_;
};

}  // namespace varve::test
