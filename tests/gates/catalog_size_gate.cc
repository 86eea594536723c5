// SPDX-License-Identifier: Apache-2.0
// A deletion leaves no long hole at the end of the catalog: programs that copy a repository count
// it.
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
    fill(*repository, series);
    full_ = Sizes(path_).apparent;
    const auto versions = must(repository->versions(series.id));
    std::vector<VersionNumber> numbers;
    for (const VersionInfo& version : versions) numbers.push_back(version.number);
    numbers.pop_back();
    must(repository->delete_versions(series.id, numbers, {}));
    must(repository->close());
  }

  const test::TempDirectory directory_;
  const std::string path_ = directory_.path() + "/repo";
  std::uint64_t full_ = 0;
};

TEST_F(CatalogSizeGate, ADeletionLeavesNoLongHole) {
  const Sizes sizes(path_);
  EXPECT_LE(sizes.apparent, sizes.blocks + sizes.blocks / 2);
  EXPECT_LE(sizes.apparent, full_ + 8 * kMiB);
}

}  // namespace
}  // namespace varve
