// SPDX-License-Identifier: Apache-2.0
// A repository with one open version, for tests of versions that start as a sealed one.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "catalog/dir_tree.h"
#include "catalog/series_catalog.h"
#include "meta/lmdb.h"
#include "meta/schema.h"
#include "support/temp_repository.h"
#include "varve/backup.h"
#include "varve/check.h"

namespace varve::test {

class CloneTest : public testing::Test {
 protected:
  CloneTest() : path_(directory_.path() + "/r") {
    must(Repository::create(path_, small_chunks(Codec::kNone)));
    repository_ = reopen(path_);
    series_ = must(repository_->create_series("s")).id;
    must(repository_->open_version(series_, "one", folder()));
    version_ = must(repository_->writer(series_));
  }

  Ino make_directory(Ino parent, const std::string& name) {
    return must(version_->create(parent, name, folder())).ino;
  }
  // Makes directories of some pages, a long recipe and a file with names in two of them.
  void make_tree() {
    const Ino a = make_directory(kRootIno, "a");
    const Ino deep = make_directory(make_directory(a, "b"), "c");
    const Ino z = make_directory(kRootIno, "z");
    for (int i = 0; i < 150; ++i) {
      const auto name = "f" + std::to_string(i);
      write_file(*version_, i % 2 == 0 ? deep : z, name, noise(10, static_cast<std::uint64_t>(i)));
    }
    write_file(*version_, a, "big", long_content());
    const Ino hard = write_file(*version_, deep, "hard", noise(5000, 7));
    must(version_->link(hard, z, "linked"));
    must(version_->link(hard, kRootIno, "m"));
  }
  // Returns blocks, then the same ones in another order, which makes a recipe of many runs.
  static std::string long_content() {
    std::string out;
    for (std::uint64_t i = 0; i < 40; ++i) out += noise(20000, 1000 + (i < 12 ? i : i * 5 % 12));
    return out;
  }
  VersionNumber seal(const std::string& name = "") {
    const auto number = version_->info().number;
    version_.reset();
    must(repository_->seal(series_, number, name));
    return number;
  }
  VersionNumber clone(VersionNumber source, const std::string& name) {
    const auto number = must(repository_->clone_version(series_, source, name)).number;
    version_ = must(repository_->writer(series_));
    return number;
  }
  Ino ino(const std::string& path) {
    Ino at = kRootIno;
    for (const auto& part : std::filesystem::path(path)) {
      at = must(version_->lookup(at, part.string())).ino;
    }
    return at;
  }
  std::shared_ptr<VersionReader> reader(VersionNumber number) {
    return must(repository_->reader(series_, number));
  }
  void restart() {
    version_.reset();
    must(repository_->close());
    repository_.reset();
    repository_ = reopen(path_);
    auto writer = repository_->writer(series_);
    if (writer) version_ = *writer;
  }
  void expect_no_damage() {
    CheckOptions options;
    options.verify_chunks = true;
    const auto report = must(repository_->check(options, {}));
    for (const auto& damage : report.damages) ADD_FAILURE() << damage.where << ": " << damage.what;
  }
  // Runs `look` on the catalog while no other code has it open.
  template <typename Look>
  void with_catalog(Look&& look) {
    version_.reset();
    repository_.reset();
    {
      meta::EnvOptions options;
      options.tables = meta::catalog::kTables;
      const auto env = must(meta::Env::open(path_ + "/catalog", options));
      look(env);
    }
    repository_ = reopen(path_);
  }
  static std::size_t rows(const meta::Env& env, meta::TableIndex table) {
    const auto txn = must(meta::ReadTxn::begin(env));
    std::size_t count = 0;
    must(meta::for_each_prefix(txn, table, "",
                               [&](std::string_view, std::string_view) -> Result<bool> {
                                 ++count;
                                 return true;
                               }));
    return count;
  }

  TempDirectory directory_;
  std::string path_;
  std::unique_ptr<Repository> repository_;
  SeriesId series_{};
  std::shared_ptr<VersionWriter> version_;
};

}  // namespace varve::test
