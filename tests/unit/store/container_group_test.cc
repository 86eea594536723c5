// SPDX-License-Identifier: Apache-2.0
// Groups of frames with prefixes, as the writer stores them.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/coding.h"
#include "container_writer_fixture.h"
#include "store/unwritten_frames.h"
#include "support/noise.h"

namespace varve::store {
namespace {

// A frame's prefix is found by the distance in the container.
TEST_F(ContainerWriterTest, GroupsAreNotDividedEvenIfTheyAreLongerThanAContainerShouldBe) {
  for (const bool sealed : {false, true}) {
    sealed_ = sealed;
    compression_ = {Codec::kZstd, 1};
    options_.volume = true;
    options_.readable = false;
    options_.segment_bytes_max = 1;  // Containers of 1 MiB, the least.
    written_.clear();
    start();
    std::map<std::uint32_t, std::string> stored;
    constexpr std::uint32_t kGroups = 3;
    constexpr std::uint32_t kFrames = 20;
    for (std::uint32_t group = 0; group < kGroups; ++group) {
      std::vector<GroupFrame> frames;
      for (std::uint32_t i = 0; i < kFrames; ++i) {
        const std::uint32_t ordinal = group * kFrames + i;
        auto bytes = test::noise(100'000, ordinal / 2);
        GroupFrame frame;
        frame.prefix = i % 2;
        if (i % 2 == 1) bytes.replace(500, 9, "different");
        const auto raw = base::as_bytes(bytes);
        frame.raw.assign(raw.begin(), raw.end());
        frame.encoded =
            i % 2 == 1 ? codec_->compress(raw, frames.back().raw) : codec_->compress(raw);
        format::ChunkEntry chunk;
        chunk.id = ChunkId::make(kVersion, ordinal);
        chunk.raw_bytes = static_cast<std::uint32_t>(raw.size());
        frame.chunks.push_back(chunk);
        frames.push_back(std::move(frame));
        stored[ordinal] = std::move(bytes);
      }
      ASSERT_TRUE(writer_->append_group(std::move(frames)));
    }
    ASSERT_TRUE(writer_->sync());
    EXPECT_EQ(written_.size(), kGroups);
    SegmentReader reader(*store_, codec_->keys());
    for (const auto& written : written_) {
      const auto header = test::must(reader.read_header(kStore, written.record));
      ASSERT_EQ(header.frames.size(), kFrames);
      for (std::uint32_t f = 0; f < kFrames; ++f) {
        const auto& frame = header.frames[f];
        EXPECT_EQ(frame.prefix, f % 2);
        std::vector<std::byte> data(format::extent_bytes(frame));
        std::vector<std::byte> raw(frame.raw_bytes);
        ASSERT_TRUE(reader.read_data(written.record, format::extent_begin(frame), data));
        ASSERT_TRUE(format::decode_frame(*codec_, header, f, data, raw));
        EXPECT_TRUE(base::as_text(raw) == stored.at(header.chunks[f].id.ordinal()));
      }
    }
  }
}

}  // namespace
}  // namespace varve::store
