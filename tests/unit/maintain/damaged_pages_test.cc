// SPDX-License-Identifier: Apache-2.0
// Tests LMDB pages that can be read but not written to. Varve refuses writers, still reads sealed
// versions, and repairs the repository.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/coding.h"
#include "meta/page_format.h"
#include "repair_fixture.h"

namespace varve::test {
namespace {

class DamagedPages : public RepairTest {
 protected:
  // Marks the root of a tree as LMDB marks pages in memory. LMDB would then write to its read-only
  // map and crash.
  static void make_dirty(const std::string& file, bool of_free_pages) {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    const auto meta_at = [&](std::size_t page) {
      std::string bytes(meta::kMetaBytes, '\0');
      stream.seekg(static_cast<std::streamoff>(page + meta::kPageHeader));
      stream.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
      return base::load_le<meta::Meta>(base::as_bytes(bytes).data());
    };
    constexpr std::size_t kPage = 4096;
    const auto first = meta_at(0);
    const auto second = meta_at(kPage);
    const auto& meta = first.commit > second.commit ? first : second;
    const auto root = (of_free_pages ? meta.free : meta.main).root;
    const auto at = root * kPage + meta::kFlagsAt;
    ASSERT_NE(root, meta::kNoPage);
    stream.seekg(static_cast<std::streamoff>(at));
    const auto flags = stream.get();
    stream.seekp(static_cast<std::streamoff>(at));
    stream.put(static_cast<char>(flags | 0x10));
  }
  static void expect_advice(const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
    EXPECT_NE(error.message().find("varve repair"), std::string::npos) << error.message();
  }
};

TEST_P(DamagedPages, OfTheCatalogKeepWritersOutAndAreMadeAnew) {
  for (const bool of_free_pages : {true, false}) {
    repository_.reset();
    make_dirty(path_ + "/catalog/data.mdb", of_free_pages);
    const auto refused = Repository::open(path_, quiet_options());
    ASSERT_FALSE(refused);
    expect_advice(refused.error());
    {
      auto options = quiet_options();
      options.read_only = true;
      const auto repository = reopen(path_, options);
      const auto series = must(repository->find_series("s")).id;
      for (const auto& [name, files] : contents_) {
        const auto number = must(repository->find_version(series, name)).number;
        const auto reader = must(repository->reader(series, number));
        for (const auto& [file, bytes] : files) {
          EXPECT_TRUE(read_sealed(*reader, file) == bytes) << name << "/" << file;
        }
      }
      const auto damages = must(repository->check({}, {})).damages;
      ASSERT_FALSE(damages.empty());
      EXPECT_EQ(damages.front().where, path_ + "/catalog");
    }
    EXPECT_TRUE(repair().problems.empty());
    ASSERT_EQ(steps_.size(), 1U);
    EXPECT_EQ(steps_.front().kind, RepairStep::Kind::kCatalog);
    expect_whole({"v1", "v2", "v3", "v4"});
  }
  add_version(5);
  expect_whole({"v1", "v2", "v3", "v4", "v5"});
}

TEST_P(DamagedPages, OfAnOverlayCostTheOpenVersionOnly) {
  must(repository_->open_version(series_, "v5", folder()));
  fill(*must(repository_->writer(series_)), "v5", 5);
  must(must(repository_->writer(series_))->sync());
  must(repository_->close());
  repository_.reset();
  make_dirty(fs::directory_iterator(path_ + "/staging")->path().string() + "/overlay/data.mdb",
             false);
  repository_ = reopen(path_);
  const auto writer = repository_->writer(series_);
  ASSERT_FALSE(writer);
  expect_advice(writer.error());
  EXPECT_EQ(must(repository_->check({}, {})).damages.size(), 1U);
  const auto report = repair();
  ASSERT_EQ(steps_.size(), 1U);
  EXPECT_EQ(steps_.front().kind, RepairStep::Kind::kOpenVersion);
  EXPECT_EQ(report.problems.size(), 1U);
  expect_whole({"v1", "v2", "v3", "v4"});
  add_version(6);
  expect_whole({"v1", "v2", "v3", "v4", "v6"});
}

INSTANTIATE_TEST_SUITE_P(Codecs, DamagedPages, testing::Values(Codec::kZstd));

}  // namespace
}  // namespace varve::test
