// SPDX-License-Identifier: Apache-2.0
// Volumes of chunks that are compressed with similar chunks, through crashes and damage.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "delta_chunks.h"
#include "history_model.h"

namespace varve::layout {
namespace {

class DeltaHistory : public testing::TestWithParam<std::uint64_t> {
 protected:
  /// Stores versions with a tenth of new chunks each, and arranges the versions without prefixes.
  static void store(History& history, int versions, int chunks = 160, int changes = 16) {
    history.coalescing.stored_bytes_max = 0;
    history.coalescing.delta_fan = 3;
    history.coalescing.delta_volume_bytes_max = 1U << 20;
    history.set(settings(0));
    Content next = 0;
    auto stream = new_contents(static_cast<std::size_t>(chunks), next);
    for (int version = 0; version < versions; ++version) {
      history.open();
      history.write(stream);
      history.seal();
      must(history.arrange());
      for (int i = 0; i < changes; ++i) stream[history.random() % stream.size()] = next++;
    }
    ASSERT_EQ(delta_chunks(history), 0U);
  }
  /// Returns the deaths of the volumes, ascending.
  static std::vector<VersionNumber> volumes_of(History& history) {
    const auto txn = must(meta::ReadTxn::begin(history.catalog()));
    std::vector<VersionNumber> deaths;
    for (const auto& file : must(catalog::list_segments(txn, kStore))) {
      if (!file.active()) deaths.push_back(file.version);
    }
    std::ranges::sort(deaths);
    return deaths;
  }
  static ArrangeSettings settings(std::uint32_t delta) {
    ArrangeSettings settings;
    settings.policy = ArrangePolicyKind::kOriginal;
    settings.window = 1;
    settings.delta = delta;
    return settings;
  }
  static constexpr format::Compression kCompression{Codec::kZstd, 1};
};
INSTANTIATE_TEST_SUITE_P(PlainAndSealed, DeltaHistory, testing::Values(40, 41));

TEST_P(DeltaHistory, JoinsOnceAndThenRests) {
  History history(GetParam(), kCompression);
  ASSERT_NO_FATAL_FAILURE(store(history, 11));
  const auto before = must(history.files.tree_bytes(kFolder));
  history.set(settings(1));
  ASSERT_TRUE(must(history.arrange()));
  history.check();
  EXPECT_GT(delta_chunks(history), 25U);
  EXPECT_LT(must(history.files.tree_bytes(kFolder)), before);
  ASSERT_TRUE(must(history.arrange()));
  EXPECT_EQ(history.moved.bytes_written, 0U);
  EXPECT_EQ(history.moved.bytes_read, 0U);
  history.remove(history.sealed());
  EXPECT_EQ(must(history.files.tree_bytes(kFolder)), 0U);
}

// Otherwise a joining longer than the life of a process would begin again and again.
TEST_P(DeltaHistory, AnInterruptedJoiningGoesOn) {
  std::uint64_t at_once = 0;
  for (const std::uint64_t steps : {1000, 1}) {
    History history(GetParam(), kCompression);
    history.batch_bytes_max = 1U << 20;
    history.step_bytes_max = 60'000;
    ASSERT_NO_FATAL_FAILURE(store(history, 6, 3000, 3000));
    history.set(settings(1));
    std::uint64_t written = 0;
    int runs = 1;
    for (; !must(history.arrange(steps)) && runs < 100; ++runs) {
      written += history.moved.bytes_written;
    }
    written += history.moved.bytes_written;
    history.check();
    ASSERT_LT(runs, 100) << "it never came to its end";
    if (steps == 1) {
      EXPECT_GT(runs, 3) << "it was not interrupted";
      EXPECT_LE(written, at_once * 3 / 2);
    }
    at_once = written;
  }
}

TEST_P(DeltaHistory, LosesNothingWhereverJoiningBreaks) {
  bool is_whole = false;
  for (std::uint64_t at = 1; at < 300 && !is_whole; ++at) {
    History history(GetParam(), kCompression);
    ASSERT_NO_FATAL_FAILURE(store(history, 8));
    history.set(settings(1));
    history.files.break_after(at);
    const auto arranged = history.arrange();
    is_whole = arranged && !history.files.broken();
    history.crash();
    history.check();
    ASSERT_FALSE(testing::Test::HasFailure()) << "broken at change " << at;
    ASSERT_TRUE(must(history.arrange()));
    history.check();
    ASSERT_FALSE(testing::Test::HasFailure()) << "after arranging, broken at change " << at;
    EXPECT_GT(delta_chunks(history), 0U);
  }
  EXPECT_TRUE(is_whole) << "it never came to its end";
}

// Opening a version takes joined volumes of the window back. The files become volumes again
// unchanged.
TEST_P(DeltaHistory, JoinedVolumesOfTheWindowSettleWithoutACopy) {
  History history(GetParam(), kCompression);
  history.coalescing.delta_fan = 8;
  history.coalescing.delta_volume_bytes_max = 1U << 20;
  history.coalescing.delta_few_share = history.coalescing.delta_many_share = 2;
  auto with_window = settings(1);
  with_window.window = 4;
  history.set(with_window);
  Content next = 0;
  auto stream = new_contents(160, next);
  const auto first = stream;
  for (int version = 0; version < 8; ++version) {
    history.open();
    history.write(stream);
    history.seal();
    ASSERT_TRUE(must(history.arrange()));
    history.check();
    for (int i = 0; i < 16; ++i) stream[history.random() % stream.size()] = next++;
  }
  EXPECT_GT(delta_chunks(history), 12U);
  // Seven deaths are joined as four, two and one. Give the volumes of the two a joined death, with
  // a second volume for the chunks of the highest death.
  {
    auto txn = must(meta::WriteTxn::begin(history.catalog()));
    for (auto& file : must(catalog::list_segments(txn, kStore))) {
      if (file.active() || file.version != VersionNumber{6}) continue;
      file.version = VersionNumber{7};
      must(catalog::put_segment(txn, kStore, file));
    }
    must(txn.commit());
  }
  const auto before = volumes_of(history);
  const auto of_last = std::ranges::count(before, VersionNumber{7});
  EXPECT_GE(of_last, 2);
  history.open();
  EXPECT_EQ(volumes_of(history).size() + static_cast<std::size_t>(of_last), before.size())
      << "the window takes these volumes back";
  history.abandon();
  ASSERT_TRUE(must(history.arrange()));
  EXPECT_EQ(history.moved.bytes_written, 0U);
  EXPECT_TRUE(volumes_of(history) == before);
  history.check();
  // Chunks of the window return out of the joined volumes.
  auto mixed = stream;
  for (std::size_t i = 0; i < mixed.size(); i += 2) mixed[i] = first[i];
  for (const auto& content : {mixed, stream, mixed}) {
    history.open();
    history.write(content);
    history.seal();
    ASSERT_TRUE(must(history.arrange()));
    history.check();
  }
  history.remove(history.sealed());
  EXPECT_EQ(must(history.files.tree_bytes(kFolder)), 0U);
}

// An unreadable chunk stays in place. All readable chunks are joined, and no container gets a chunk
// older than the container's first chunk.
TEST_P(DeltaHistory, ChunksThatCannotBeReadAreLeftOut) {
  for (const int share : {2, 3, 5}) {
    History history(GetParam(), kCompression);
    ASSERT_NO_FATAL_FAILURE(store(history, 10));
    std::vector<format::ContainerRecord> containers;
    {
      const auto txn = must(meta::ReadTxn::begin(history.catalog()));
      must(catalog::for_each_container(txn, kStore,
                                       [&](const format::ContainerRecord& record) -> Result<bool> {
                                         if (is_volume(record.segment))
                                           containers.push_back(record);
                                         return true;
                                       }));
    }
    ASSERT_GT(containers.size(), 6U);
    const auto flip = [&] {
      for (std::size_t i = 0; i < containers.size(); ++i) {
        if (i % static_cast<std::size_t>(share) != 0) continue;
        const auto& record = containers[i];
        auto file = must(history.files.open(kFolder + "/" + store::segment_path(record.segment),
                                            io::OpenMode::kReadWrite));
        std::array<std::byte, 1> byte{};
        must(file->read_at(record.offset + record.header_bytes, byte));
        byte[0] ^= std::byte{1};
        must(file->write_at(record.offset + record.header_bytes, byte));
      }
    };
    flip();
    history.set(settings(1));
    must(history.arrange());
    EXPECT_GT(history.moved.bytes_written, 0U);
    std::erase_if(containers, [&](const format::ContainerRecord& record) {
      const auto txn = must(meta::ReadTxn::begin(history.catalog()));
      return !must(catalog::find_container(txn, kStore, record.number));
    });
    ASSERT_FALSE(containers.empty());
    // Of the flipped containers, only the damaged containers are left: each is flipped back.
    for (const auto& record : containers) {
      auto file = must(history.files.open(kFolder + "/" + store::segment_path(record.segment),
                                          io::OpenMode::kReadWrite));
      const auto header = history.layout().header(record.number);
      if (!header) continue;
      std::vector<std::byte> stored(format::extent_bytes((*header)->frames[0]));
      std::vector<std::byte> raw((*header)->frames[0].raw_bytes);
      must(history.layout().read_data(record.number, 0, stored));
      if (format::decode_frame(history.layout().codec(), **header, 0, stored, raw)) continue;
      std::array<std::byte, 1> byte{};
      must(file->read_at(record.offset + record.header_bytes, byte));
      byte[0] ^= std::byte{1};
      must(file->write_at(record.offset + record.header_bytes, byte));
    }
    history.check();
    ASSERT_TRUE(must(history.arrange()));
    history.check();
  }
}

}  // namespace
}  // namespace varve::layout
