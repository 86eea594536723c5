// SPDX-License-Identifier: Apache-2.0
// Opening a repository with a pool costs the same for any number of containers and versions, and so
// does finding out which chunks the pool's index lacks. A seal costs the containers of its version.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "support/pool_oracle.h"
#include "support/prefer_memory.h"
#include "support/records_read.h"
#include "support/temp_repository.h"

namespace varve {
namespace {

namespace fs = std::filesystem;
using test::must;

constexpr std::size_t kFileBytes = 20'000;
constexpr const char* kRecordsRead = "varve_catalog_records_read_total";

/// The number of containers, and of the versions that stored them.
struct Size {
  int containers = 0;
  int versions = 0;
};

class PoolOpeningGate : public testing::Test {
 protected:
  /// Stores files, each in a container of its own. Each version has all files of the one before.
  void store(const Size& size) {
    path_ = directory_.path() + "/" + std::to_string(++stored_);
    must(Repository::create(path_, test::small_chunks(Codec::kNone)));
    repository_ = test::reopen(path_);
    SeriesOptions options;
    options.placement = Placement::kPool;
    series_ = must(repository_->create_series("s", options)).id;
    newest_ = {};
    files_ = 0;
    for (int version = 1; version <= size.versions; ++version) {
      const auto number = open_version("v" + std::to_string(version));
      while (files_ < size.containers * version / size.versions) add_file();
      seal(number);
    }
    close();
    ASSERT_EQ(test::PoolOracle(path_).containers(), static_cast<std::size_t>(size.containers));
  }
  VersionNumber open_version(const std::string& name) {
    return newest_ == VersionNumber{}
               ? must(repository_->open_version(series_, name, test::folder())).number
               : must(repository_->clone_version(series_, newest_, name)).number;
  }
  void add_file() {
    const auto writer = must(repository_->writer(series_));
    ++files_;
    test::write_file(*writer, kRootIno, "f" + std::to_string(files_),
                     test::noise(kFileBytes, static_cast<std::uint64_t>(files_)));
    must(writer->sync());
  }
  void seal(VersionNumber number) {
    must(repository_->seal(series_, number, ""));
    newest_ = number;
  }
  void close() {
    must(repository_->close());
    repository_.reset();
  }
  void open(bool read_only = false) {
    auto options = test::quiet_options();
    options.read_only = read_only;
    repository_ = test::reopen(path_, options);
  }
  std::uint64_t records() const { return test::metric(*repository_, kRecordsRead); }

  struct Costs {
    std::uint64_t open = 0;          // Records read by opening a repository that was closed.
    std::uint64_t read = 0;          // By opening it read-only, and reading a file.
    std::uint64_t open_version = 0;  // By opening a version.
    std::uint64_t first_file = 0;    // By its first file, until it is in the pool.
    std::uint64_t seal = 0;
    std::uint64_t after_crash = 0;  // By opening it after a crash.
  };
  Costs measure(const std::string& name, const Size& size) {
    Costs costs;
    store(size);
    open();
    costs.open = records();
    close();
    open(true);
    EXPECT_EQ(test::read_sealed(*must(repository_->reader(series_, newest_)), "f1"),
              test::noise(kFileBytes, 1));
    costs.read = records();
    close();
    open();
    VersionNumber number{};
    costs.open_version = test::records_read(*repository_, [&] {
      number = open_version("next");
      must(repository_->writer(series_));
    });
    costs.first_file = test::records_read(*repository_, [&] { add_file(); });
    costs.seal = test::records_read(*repository_, [&] { seal(number); });
    const auto crashed = directory_.path() + "/crashed";
    test::copy_crashed(path_, crashed);
    close();
    repository_ = test::reopen(crashed);
    costs.after_crash = records();
    repository_.reset();
    RecordProperty(name,
                   "open " + std::to_string(costs.open) + ", read " + std::to_string(costs.read) +
                       ", version " + std::to_string(costs.open_version) + ", file " +
                       std::to_string(costs.first_file) + ", seal " + std::to_string(costs.seal) +
                       ", after a crash " + std::to_string(costs.after_crash));
    return costs;
  }

  const test::PreferMemory in_memory_;
  const test::TempDirectory directory_;
  std::string path_;
  std::unique_ptr<Repository> repository_;
  SeriesId series_{};
  VersionNumber newest_{};
  int files_ = 0;
  int stored_ = 0;
};

TEST_F(PoolOpeningGate, CostsTheSameForAnyNumberOfContainers) {
  const auto few = measure("few", {20, 4});
  const auto containers = measure("containers", {120, 4});
  const auto versions = measure("versions", {120, 60});
  for (const auto& many : {containers, versions}) {
    EXPECT_EQ(many.open, few.open);
    EXPECT_LE(many.open, 11U);  // With the record of the series, which its labels must not pass.
    EXPECT_EQ(many.read, few.read);
    EXPECT_GT(many.after_crash, few.after_crash + 100) << "all is looked at after a crash";
  }
  EXPECT_LE(containers.open_version, few.open_version);
  EXPECT_LE(containers.first_file, few.first_file);
  // Its location, its users twice, and two for a file in the changed directory.
  EXPECT_LE(containers.seal - few.seal, 100U * 52 / 10);
}

// Only an opening after a crash lists the files of the pool: it removes a file without a container.
TEST_F(PoolOpeningGate, FilesAreListedAfterACrashOnly) {
  store({20, 4});
  const auto stray = path_ + "/pool/active/00ffffff.seg";
  const auto crashed = directory_.path() + "/crashed";
  std::ofstream(stray) << "x";
  open();
  const auto number = open_version("next");
  add_file();
  seal(number);
  test::copy_crashed(path_, crashed);
  close();
  EXPECT_TRUE(fs::exists(stray));
  repository_ = test::reopen(crashed);
  EXPECT_FALSE(fs::exists(crashed + "/pool/active/00ffffff.seg"));
}

}  // namespace
}  // namespace varve
