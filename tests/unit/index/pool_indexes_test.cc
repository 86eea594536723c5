// SPDX-License-Identifier: Apache-2.0
// The choice of the pool's index, and of N by the number of chunks.
#include "index/pool_indexes.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "index/zero_files.h"
#include "support/pool_containers.h"
#include "support/sealed_memory.h"
#include "support/temp_repository.h"

namespace varve::index {
namespace {

using test::must;

class PoolIndexes : public testing::Test {
 protected:
  void SetUp() override { must(files_->make_directory("/p")); }
  // Opens an index of a pool with so many chunks, tells it one, and saves it.
  void use(const PoolIndexChoice& choice, std::optional<std::uint64_t> chunks) {
    const auto index = must(open_pool_index(choice, pool_index_folder(*files_, "/p"), containers_,
                                            [&]() -> Result<std::uint64_t> {
                                              if (!chunks)
                                                return Error(ErrorCode::kInvalid, "counted again");
                                              return *chunks;
                                            }));
    const auto id = pool_id(1, ordinal_++);
    index->placed(StreamNumber{1}, std::vector{PlacedChunk{fingerprint_of(id), id}});
    PoolChunks all;
    all.from = [&](ChunkId) { return Result<base::IdRuns>(base::IdRuns::from({{id, 1}})); };
    must(index->save(all));
  }
  static Fingerprint fingerprint_of(ChunkId id) {
    Fingerprint out{};
    base::store_le(out.data(), id.value);
    return out;
  }
  std::optional<std::uint32_t> hook_bits() {
    const auto present = ZeroFiles::open_present(*files_, "/p");
    return present ? std::optional(present->parameter()) : std::nullopt;
  }
  bool has_snapshot() {
    return must(files_->exists("/p/" + pool_index_folder(*files_, "/p").snapshot_name));
  }

  const std::unique_ptr<io::FileSystem> files_ = test::memory_files();
  PoolContainers containers_;
  std::uint32_t ordinal_ = 0;
};

TEST_F(PoolIndexes, HookBitsBoundTheHooks) {
  EXPECT_EQ(hook_bits_for(0), 6U);
  EXPECT_EQ(hook_bits_for(std::uint64_t{1} << 26), 6U);
  EXPECT_EQ(hook_bits_for((std::uint64_t{1} << 26) + 64), 7U);
  EXPECT_EQ(hook_bits_for(std::uint64_t{1} << 28), 8U);
  EXPECT_EQ(hook_bits_for(std::uint64_t{1} << 30), 10U);
  EXPECT_EQ(hook_bits_for(std::uint64_t{1} << 40), 10U);
}

TEST_F(PoolIndexes, OneKindRemovesTheFilesOfTheOther) {
  use({}, std::nullopt);
  EXPECT_TRUE(has_snapshot());
  EXPECT_FALSE(hook_bits());
  use({PoolIndexKind::kZeroChunk, 7}, std::nullopt);
  EXPECT_FALSE(has_snapshot());
  EXPECT_EQ(hook_bits(), 7U);
  use({}, std::nullopt);
  EXPECT_TRUE(has_snapshot());
  EXPECT_FALSE(hook_bits());
}

TEST_F(PoolIndexes, StreamIndexHasTheFilesOfTheExactOne) {
  use({PoolIndexKind::kZeroChunk, 7}, std::nullopt);
  use({PoolIndexKind::kStream, 0}, std::nullopt);
  EXPECT_FALSE(hook_bits());
  EXPECT_TRUE(has_snapshot());
  const auto exact = must(open_pool_index({}, pool_index_folder(*files_, "/p"), containers_,
                                          [] { return Result<std::uint64_t>(0); }));
  EXPECT_TRUE(exact->covered().contains(pool_id(1, 1)));
}

TEST_F(PoolIndexes, HookBitsStayUntilTheIndexOutgrowsThem) {
  const PoolIndexChoice by_size{PoolIndexKind::kZeroChunk, 0};
  use(by_size, std::uint64_t{1} << 29);
  EXPECT_EQ(hook_bits(), 9U);
  use(by_size, std::nullopt);
  EXPECT_EQ(hook_bits(), 9U) << "fewer chunks do not change it";
  use({PoolIndexKind::kZeroChunk, 7}, std::nullopt);
  EXPECT_EQ(hook_bits(), 7U);
}

}  // namespace
}  // namespace varve::index
