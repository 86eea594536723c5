// SPDX-License-Identifier: Apache-2.0
#include "index/zero_files.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

#include "base/log.h"
#include "support/pool_containers.h"
#include "support/sealed_memory.h"
#include "support/temp_repository.h"

namespace varve::index {
namespace {

using test::must;

class ZeroFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    base::set_log_level(base::LogLevel::kError);
    must(files_->make_directory("/p"));
    reopen();
  }
  void TearDown() override { base::set_log_level(base::LogLevel::kWarning); }
  void reopen(std::uint32_t parameter = 8) { zero_ = ZeroFiles::open(*files_, "/p", parameter); }
  static base::IdRuns ids(std::uint32_t first, std::uint32_t count) {
    return base::IdRuns::from({{pool_id(1, first), count}});
  }
  // Changes a byte of the file whose name ends like this.
  void damage(const std::string& ending, std::uint64_t at) {
    for (const auto& name : must(files_->list("/p"))) {
      if (!name.ends_with(ending)) continue;
      const auto file = must(files_->open("/p/" + name, io::OpenMode::kReadWrite));
      std::byte one{};
      must(file->read_at(at, {&one, 1}));
      one ^= std::byte{1};
      must(file->write_at(at, {&one, 1}));
    }
  }

  const std::unique_ptr<io::FileSystem> files_ = test::memory_files();
  std::unique_ptr<ZeroFiles> zero_;
};

TEST_F(ZeroFilesTest, OnlyCommitsAreThereAfterACrash) {
  EXPECT_EQ(zero_->bins().size(), 0U);
  const auto one = zero_->add(11);
  const auto two = zero_->add(22);
  must(zero_->write(one, "first"));
  must(zero_->commit(ids(0, 5)));
  must(zero_->write(two, "second"));
  must(zero_->write(one, "changed"));
  EXPECT_EQ(must(zero_->read(one)), "changed");
  reopen();
  ASSERT_EQ(zero_->bins().size(), 2U);
  EXPECT_EQ(zero_->bins()[1].hook, 22U);
  EXPECT_EQ(must(zero_->read(one)), "first");
  EXPECT_EQ(must(zero_->read(two)), "") << "no content was committed";
  EXPECT_EQ(zero_->told(), ids(0, 5));
  must(zero_->write(two, "2"));
  must(zero_->commit(ids(5, 5), VersionNumber{7}));
  reopen();
  EXPECT_EQ(must(zero_->read(two)), "2");
  EXPECT_EQ(zero_->complete_below(), VersionNumber{7});
  EXPECT_EQ(zero_->told(), ids(0, 10));
}

// The bins were created, and the log was not.
TEST_F(ZeroFilesTest, ACreationThatFailsIsTriedAgain) {
  const std::string log = "/p/index-zero-00000001.log";
  must(files_->make_directory(log));
  const auto bin = zero_->add(11);
  EXPECT_FALSE(zero_->write(bin, "first"));
  EXPECT_FALSE(zero_->commit(ids(0, 5)));
  must(files_->remove(log));
  must(zero_->write(bin, "first"));
  must(zero_->commit(ids(0, 5)));
  reopen();
  EXPECT_EQ(must(zero_->read(bin)), "first");
  EXPECT_EQ(zero_->told(), ids(0, 5));
}

TEST_F(ZeroFilesTest, OtherParametersBeginWithNothing) {
  EXPECT_EQ(ZeroFiles::open_present(*files_, "/p"), nullptr);
  must(zero_->write(zero_->add(1), "x"));
  must(zero_->commit(ids(0, 1)));
  const auto present = ZeroFiles::open_present(*files_, "/p");
  ASSERT_NE(present, nullptr);
  EXPECT_EQ(present->parameter(), 8U);
  EXPECT_EQ(present->bins().size(), 1U);
  reopen(9);
  EXPECT_EQ(zero_->bins().size(), 0U);
  EXPECT_EQ(zero_->told(), base::IdRuns());
  must(zero_->write(zero_->add(2), "y"));
  must(zero_->commit({}));
  reopen(9);
  EXPECT_EQ(must(zero_->read(0)), "y");
}

TEST_F(ZeroFilesTest, DamageIsFound) {
  if (test::seals_memory()) GTEST_SKIP() << "sealed files have other offsets";
  must(zero_->write(zero_->add(1), "one"));
  must(zero_->commit(ids(0, 1)));
  must(zero_->write(zero_->add(2), "two"));
  must(zero_->commit(ids(1, 1)));
  damage(".bins", 17);  // In the content of the first.
  EXPECT_FALSE(zero_->read(0));
  EXPECT_EQ(must(zero_->read(1)), "two");
  damage(".log", 24 + 16 + 8 + 24 + 6 + 30);  // In the second batch.
  reopen();
  EXPECT_EQ(zero_->bins().size(), 1U);
  EXPECT_EQ(zero_->told(), ids(0, 1));
  damage(".log", 3);
  reopen();
  EXPECT_EQ(zero_->bins().size(), 0U);
  must(zero_->write(zero_->add(3), "three"));
  must(zero_->commit({}));
  reopen();
  EXPECT_EQ(must(zero_->read(0)), "three");
}

TEST_F(ZeroFilesTest, CompactionKeepsTheNewestCopies) {
  std::mt19937_64 random(3);
  std::map<BinNumber, std::string> content;
  for (std::uint64_t i = 0; i < 20; ++i) zero_->add(i);
  std::size_t compactions = 0;
  for (int round = 0; round < 200; ++round) {
    for (int i = 0; i < 10; ++i) {
      const auto bin = static_cast<BinNumber>(random() % 20);
      content[bin] = test::noise(random() % 20000, random());
      must(zero_->write(bin, content[bin]));
    }
    must(zero_->commit({}));
    if (zero_->wants_compaction()) {
      must(zero_->compact(ids(0, 3), [](std::string bytes) { return bytes; }));
      EXPECT_FALSE(zero_->wants_compaction());
      ++compactions;
    }
    if (round % 20 == 7) reopen();
    for (const auto& [bin, bytes] : content) ASSERT_EQ(must(zero_->read(bin)), bytes);
  }
  EXPECT_GT(compactions, 3U);
  EXPECT_EQ(zero_->told(), ids(0, 3));
  EXPECT_EQ(must(files_->list("/p")).size(), 2U);
  ZeroFiles::remove_all(*files_, "/p");
  EXPECT_TRUE(must(files_->list("/p")).empty());
}

}  // namespace
}  // namespace varve::index
