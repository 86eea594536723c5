// SPDX-License-Identifier: Apache-2.0
// Deletions leave no long hole in the catalog, and give its free pages back: programs that copy a
// repository count both.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>
#include <vector>

#include "support/temp_repository.h"
#include "varve/retention.h"

namespace varve {
namespace {

using test::must;

constexpr int kVersions = 4;
constexpr int kFiles = 800;
constexpr std::size_t kXattrBytes = 9000;
constexpr std::uint64_t kMiB = 1U << 20;

struct Sizes {
  explicit Sizes(const std::string& repository) {
    struct stat status {};
    EXPECT_EQ(::stat((repository + "/catalog/data.mdb").c_str(), &status), 0);
    apparent = static_cast<std::uint64_t>(status.st_size);
    blocks = static_cast<std::uint64_t>(status.st_blocks) * 512;
  }
  std::uint64_t apparent = 0;
  std::uint64_t blocks = 0;
};

std::string name_of(int i) { return "a-file-with-a-long-name-" + std::to_string(i); }

/// Stores versions that share nothing but one file, so that the catalog has much for each.
void fill(Repository& repository, const SeriesInfo& series) {
  for (int number = 1; number <= kVersions; ++number) {
    const auto version =
        must(repository.open_version(series.id, "v" + std::to_string(number), test::folder()));
    const auto writer = must(repository.writer(series.id));
    for (int i = 0; i < kFiles; ++i) {
      const auto seed = static_cast<std::uint64_t>(number * kFiles + i);
      const Ino ino = test::write_file(*writer, kRootIno, name_of(i), test::noise(100, seed));
      must(writer->set_xattr(ino, "user.noise", test::noise(kXattrBytes, seed), XattrMode::kAny));
    }
    test::write_file(*writer, kRootIno, "same", "in all versions");
    must(repository.seal(series.id, version.number, ""));
  }
}

class CatalogSizeGate : public testing::Test {
 protected:
  void SetUp() override {
    must(Repository::create(path_, test::small_chunks(Codec::kNone)));
    const auto repository = must(Repository::open(path_, test::quiet_options()));
    const auto series = must(repository->create_series("s"));
    series_ = series.id;
    fill(*repository, series);
    full_ = Sizes(path_).apparent;
    must(repository->close());
  }

  /// Deletes the oldest versions with a repository opened for it.
  void delete_oldest(std::size_t count) {
    const auto repository = must(Repository::open(path_, test::quiet_options()));
    std::vector<VersionNumber> numbers;
    for (const VersionInfo& version : must(repository->versions(series_))) {
      if (numbers.size() < count) numbers.push_back(version.number);
    }
    must(repository->delete_versions(series_, numbers, {}));
    must(repository->close());
  }
  void expect_no_long_hole() const {
    const Sizes sizes(path_);
    EXPECT_LE(sizes.apparent, sizes.blocks + sizes.blocks / 2);
  }

  const test::TempDirectory directory_;
  const std::string path_ = directory_.path() + "/repo";
  SeriesId series_{};
  std::uint64_t full_ = 0;
};

TEST_F(CatalogSizeGate, ADeletionLeavesNoLongHole) {
  delete_oldest(1);
  expect_no_long_hole();
  EXPECT_LE(Sizes(path_).apparent, full_ + 8 * kMiB);
}

TEST_F(CatalogSizeGate, DeletionsGiveThePagesBack) {
  for (int left = kVersions - 1; left > 0; --left) {
    delete_oldest(1);
    expect_no_long_hole();
    // At most half of the pages are free.
    const auto live = full_ * static_cast<std::uint64_t>(left) / kVersions;
    EXPECT_LE(Sizes(path_).apparent, 2 * live + 4 * kMiB) << left << " versions left";
  }
}

}  // namespace
}  // namespace varve
