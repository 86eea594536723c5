// SPDX-License-Identifier: Apache-2.0
#include "version/open_inode.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "io/memory_file_system.h"
#include "support/temp_repository.h"

namespace varve::version {
namespace {

using varve::test::code_of;
using varve::test::must;

constexpr Ino kIno = 12;
constexpr StagingPlace kInodePlace{SeriesId{1}, VersionNumber{2}, kIno, 5};

// A recipe of 100 bytes in chunks and a hole of 60 bytes.
format::Recipe recipe_with_hole() {
  format::Recipe recipe;
  recipe.append_run({ChunkId::make(VersionNumber{1}, 0), 4, 100});
  recipe.append_hole(60);
  return recipe;
}

OpenInode regular_file() {
  OpenInode inode;
  inode.ino = kIno;
  inode.mode = S_IFREG | 0644;
  inode.content.set_recipe(recipe_with_hole());
  inode.content.size = 160;
  return inode;
}

std::unique_ptr<StagedContent> staged_ranges(std::uint64_t written, std::uint64_t size = 1000) {
  auto ranges = std::make_unique<StagedContent>();
  ranges->write(0, written, 0);
  ranges->resize(size);
  return ranges;
}

TEST(OpenInode, DataOfAFileAtRestIsItsSizeWithoutHoles) {
  const auto inode = regular_file();
  EXPECT_EQ(inode.content.hole_bytes, 60U);
  EXPECT_EQ(inode.attributes().size, 160U);
  EXPECT_EQ(inode.attributes().data_bytes, 100U);
}

TEST(OpenInode, DataOfAStagedFileIsThatOfItsRanges) {
  auto inode = regular_file();
  inode.staging.begin(5, staged_ranges(300, 1U << 20), {});
  inode.content.size = 1U << 20;
  EXPECT_EQ(inode.attributes().size, 1U << 20);
  EXPECT_EQ(inode.attributes().data_bytes, inode.staging.ranges->data_bytes_max());
  EXPECT_LT(inode.attributes().data_bytes, 1U << 20);
  inode.staging.end();
  EXPECT_EQ(inode.attributes().data_bytes, (1U << 20) - 60U);
}

TEST(OpenInode, DirectoryHasTheSizeOfItsNamesAndALinkForEachSubdirectory) {
  OpenInode inode;
  inode.mode = S_IFDIR | 0755;
  inode.directory.children = 7;
  inode.directory.subdirectories = 3;
  EXPECT_EQ(inode.attributes().size, 7U);
  EXPECT_EQ(inode.attributes().nlink, 5U);
  inode.nlink = 0;
  EXPECT_EQ(inode.attributes().nlink, 0U) << "removed";
}

TEST(OpenInode, EndOfStagingForgetsAllButTheCounts) {
  const auto files = io::make_memory_file_system();
  OpenInode inode = regular_file();
  auto& staging = inode.staging;
  EXPECT_FALSE(staging.is_staged());
  staging.begin(5, staged_ranges(10),
                must(create_staging_file(*files, "/f", nullptr, kInodePlace)));
  staging.lost = true;
  staging.writes = 3;
  staging.counted = 10;
  EXPECT_TRUE(staging.is_staged());
  EXPECT_EQ(staging.bytes_on_disk(), 10U);
  staging.end();
  EXPECT_FALSE(staging.is_staged() || staging.ranges || staging.file || staging.lost);
  EXPECT_EQ(staging.writes, 3U) << "a cut that began before the end must see a change";
  EXPECT_EQ(staging.counted, 10U) << "StagingArea takes the bytes off its sum";
}

TEST(OpenInode, StreamGrowsUntilItIsFinished) {
  InodeContent content;
  EXPECT_FALSE(content.has_growing_stream());
  content.stream = std::make_shared<ingest::IngestStream>();
  EXPECT_TRUE(content.has_growing_stream());
  content.stream_finished = true;
  EXPECT_FALSE(content.has_growing_stream());
  content.end_stream();
  EXPECT_FALSE(content.stream || content.stream_finished);
}

TEST(OpenInode, RecordKeepsEachStateOfTheContent) {
  const auto rest = must(decode_open_inode(kIno, encode_open_inode(regular_file()), 0));
  EXPECT_EQ(*rest->content.recipe, recipe_with_hole());
  EXPECT_EQ(rest->content.size, 160U);
  EXPECT_EQ(rest->content.hole_bytes, 60U);
  EXPECT_FALSE(rest->staging.is_staged());

  auto inode = regular_file();
  inode.staging.begin(5, staged_ranges(300), {});
  const auto staged = must(decode_open_inode(kIno, encode_open_inode(inode), 0));
  EXPECT_EQ(staged->staging.generation, 5U);
  EXPECT_EQ(staged->content.size, 1000U);
  EXPECT_EQ(staged->staging.counted, 300U);
  EXPECT_FALSE(staged->staging.file) << "opened when first needed";

  auto of_base = regular_file();
  of_base.content.recipe.reset();
  of_base.content.recipe_id = format::NodeId{9};
  const auto record = encode_open_inode(of_base);
  const auto based = must(decode_open_inode(kIno, record, kIno + 1));
  EXPECT_EQ(based->content.recipe, nullptr);
  EXPECT_EQ(based->content.recipe_id, format::NodeId{9});
  EXPECT_EQ(based->content.size, 160U);
  EXPECT_EQ(based->content.hole_bytes, 60U);
  EXPECT_EQ(code_of(decode_open_inode(kIno, record, kIno)), ErrorCode::kCorrupt)
      << "the base has no such inode";
}

}  // namespace
}  // namespace varve::version
