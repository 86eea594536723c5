// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "parity/group_restorer.h"
#include "sample_files.h"
#include "varve/arrange.h"

namespace varve::parity {
namespace {

using format::kParityBlockBytes;
using GroupTest = SampleFiles;

// Restores every bad block of the group.
std::map<std::uint32_t, std::vector<std::byte>> restored(store::FolderStore& store,
                                                         const Group& group) {
  auto restorer = GroupRestorer::open(store, group);
  EXPECT_TRUE(restorer);
  (*restorer)->scan([](std::uint64_t) {});
  std::set<std::uint32_t> wanted;
  for (std::uint32_t i = 0; i < group.index.blocks; ++i) {
    if ((*restorer)->is_bad(i)) wanted.insert(i);
  }
  return (*restorer)->restore(wanted);
}

TEST_F(GroupTest, DamagedBlocksOfSeveralFilesComeBack) {
  const std::vector<DataFile> present{add(1, 40 * kParityBlockBytes), add(2, 300'000),
                                      add(3, 4096)};
  ASSERT_EQ(keep(present, 10).groups_made, 1U);
  const auto group = groups().front();
  const auto shape = group.index.shape();
  ASSERT_EQ(shape.blocks, 40U + 19 + 1);
  ASSERT_EQ(shape.parity_blocks, 6U);
  // Damages six blocks. A block crosses two parts of the group, and a block has a file's last
  // bytes.
  for (const std::uint64_t at : {0U, 70'000U, 100'000U}) flip(path_of(1), at);
  write(path_of(2), 2 * kParityBlockBytes, std::vector<std::byte>(kParityBlockBytes));
  flip(path_of(2), 299'999);
  flip(path_of(3), 4095);
  const auto blocks = restored(store, group);
  ASSERT_EQ(blocks.size(), 6U);
  for (const auto& [number, bytes] : blocks) {
    const std::uint32_t segment = number < 40 ? 1 : number < 59 ? 2 : 3;
    const std::uint64_t begin = (number - (segment == 1   ? 0U
                                           : segment == 2 ? 40U
                                                          : 59U)) *
                                std::uint64_t{kParityBlockBytes};
    const auto& was = contents[segment];
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const auto want = begin + i < was.size() ? was[begin + i] : std::byte{};
      ASSERT_EQ(bytes[i], want);
    }
  }
}

TEST_F(GroupTest, OneBlockTooManyRestoresNone) {
  const std::vector<DataFile> present{add(1, 60 * kParityBlockBytes)};
  keep(present, 10);
  for (std::uint64_t i = 0; i < 7; ++i) flip(path_of(1), i * kParityBlockBytes * 3);
  EXPECT_TRUE(restored(store, groups().front()).empty());
}

TEST_F(GroupTest, DamagedParityBlocksAndAIndexCountAsLost) {
  const std::vector<DataFile> present{add(1, 60 * kParityBlockBytes)};
  keep(present, 10);
  const auto group = groups().front();
  const auto path = store.path(group.number);
  ASSERT_EQ(*faults_of_group(store, group), "");
  const auto index_bytes = (group.bytes - 6 * kParityBlockBytes) / 2;
  flip(path, index_bytes + 5);                          // The first parity block.
  flip(path, index_bytes + 3 * kParityBlockBytes + 5);  // The fourth.
  EXPECT_EQ(*faults_of_group(store, group), "2 of 6 parity blocks are damaged");
  flip(path, 8);  // The first header.
  ASSERT_EQ(groups().size(), 1U);
  for (std::uint64_t i = 0; i < 4; ++i) flip(path_of(1), i * kParityBlockBytes * 3);
  EXPECT_EQ(restored(store, groups().front()).size(), 4U);
  flip(path_of(1), 50 * kParityBlockBytes);
  EXPECT_TRUE(restored(store, groups().front()).empty());
  // Damages the other header, too, so the file is not recognisable any more.
  flip(path, group.bytes - 1);
  EXPECT_TRUE(groups().empty());
  EXPECT_EQ(list_groups(store, kStore)->damaged.size(), 1U);
}

TEST_F(GroupTest, AMissingFileAndACutOneComeBackWithinTheParity) {
  const std::vector<DataFile> present{add(1, 90 * kParityBlockBytes), add(2, 30'000),
                                      add(3, 60'000)};
  keep(present, 10);
  const auto group = groups().front();
  ASSERT_EQ(group.index.shape().parity_blocks, 10U);
  ASSERT_TRUE(files->remove(path_of(2)));
  const auto cut = files->open(path_of(3), io::OpenMode::kReadWrite);
  ASSERT_TRUE((*cut)->truncate(20'000));
  const auto blocks = restored(store, group);
  EXPECT_EQ(blocks.size(), 2U + 3);
  ASSERT_TRUE(blocks.contains(90));
  EXPECT_TRUE(std::equal(blocks.at(90).begin(), blocks.at(90).end(), contents[2].begin()));
}

// docs/FORMAT.md promises to restore two containers of maximum length anywhere in a full group.
TEST(ParityShape, AFullGroupBringsTwoContainersBack) {
  constexpr std::uint32_t kContainerBlocks = (4U << 20) / kParityBlockBytes + 1;
  for (std::uint32_t percent = 1; percent <= kParityPercentMax; ++percent) {
    const auto least = static_cast<std::uint32_t>(full_group_bytes(percent) / kParityBlockBytes);
    for (std::uint32_t more = 0; more < 5000; more += 13) {
      if (least + more > format::kParityBlocksMax) break;
      const auto shape = format::ParityShape::of(least + more, percent);
      const auto hit = (kContainerBlocks + shape.codewords - 1) / shape.codewords;
      ASSERT_GE(shape.parity_blocks, 2 * hit) << percent << " % of " << shape.blocks;
      ASSERT_LE(shape.data_blocks + shape.parity_blocks, 255U);
      ASSERT_GE(shape.codewords * shape.data_blocks, shape.blocks);
    }
  }
}

}  // namespace
}  // namespace varve::parity
