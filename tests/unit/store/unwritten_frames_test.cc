// SPDX-License-Identifier: Apache-2.0
#include "store/unwritten_frames.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "store/container_builder.h"

namespace varve::store {
namespace {

constexpr std::size_t kFrameBytes = 1000;

ChunkId chunk_id(std::uint32_t ordinal) { return ChunkId::make(VersionNumber{1}, ordinal); }

std::vector<std::byte> bytes_of(std::uint32_t ordinal, std::size_t size) {
  return std::vector<std::byte>(size, static_cast<std::byte>(ordinal));
}

void append(UnwrittenFrames& frames, std::uint32_t ordinal, std::size_t size) {
  format::ChunkEntry entry;
  entry.id = chunk_id(ordinal);
  entry.raw_bytes = static_cast<std::uint32_t>(size);
  frames.append(entry, bytes_of(ordinal, size));
}

// Closes a frame with one chunk for each of the ordinals [from, to).
UnwrittenFramePtr close_frame_of(UnwrittenFrames& frames, std::uint32_t from, std::uint32_t to) {
  for (std::uint32_t i = from; i < to; ++i) append(frames, i, 100);
  return frames.close();
}

std::vector<GroupFrame> group_of(std::uint32_t first, std::uint32_t frames) {
  std::vector<GroupFrame> group(frames);
  for (std::uint32_t i = 0; i < frames; ++i) {
    group[i].chunks.emplace_back().id = chunk_id(first + i);
    group[i].raw = bytes_of(first + i, 50);
    group[i].prefix = static_cast<std::uint8_t>(i);
  }
  return group;
}

TEST(UnwrittenFrames, OpenFrameIsTooFullBeyondItsBytesAndItsChunks) {
  UnwrittenFrames frames(kFrameBytes);
  EXPECT_FALSE(frames.is_open_too_full(2 * kFrameBytes)) << "no frame is open";
  append(frames, 0, 600);
  EXPECT_FALSE(frames.is_open_too_full(400));
  EXPECT_TRUE(frames.is_open_too_full(401));
  UnwrittenFrames tiny(1U << 20);
  for (std::uint32_t i = 0; i < 4095; ++i) append(tiny, i, 1);
  EXPECT_FALSE(tiny.is_open_too_full(1));
  append(tiny, 4095, 1);
  EXPECT_TRUE(tiny.is_open_too_full(1));
}

TEST(UnwrittenFrames, ChunksAreFoundFromAppendingUntilTheirContainerIsWritten) {
  UnwrittenFrames frames(kFrameBytes);
  close_frame_of(frames, 10, 15);
  close_frame_of(frames, 20, 25);
  append(frames, 30, 7);
  for (const std::uint32_t ordinal : {10U, 14U, 20U, 24U}) {
    EXPECT_EQ(frames.find(chunk_id(ordinal)), bytes_of(ordinal, 100)) << ordinal;
  }
  EXPECT_EQ(frames.find(chunk_id(30)), bytes_of(30, 7));
  for (const std::uint32_t ordinal : {9U, 15U, 19U, 25U, 31U}) {
    EXPECT_FALSE(frames.find(chunk_id(ordinal))) << ordinal;
  }
  frames.pack();
  EXPECT_TRUE(frames.find(chunk_id(12))) << "packed, but not written";
  frames.drop_packed();
  EXPECT_FALSE(frames.find(chunk_id(12)));
  EXPECT_TRUE(frames.find(chunk_id(22)));
}

TEST(UnwrittenFrames, WaitingBytesAreThoseOfClosedFramesThatKeepThem) {
  UnwrittenFrames frames(kFrameBytes);
  append(frames, 0, 100);
  EXPECT_EQ(frames.waiting_bytes(), 0U);
  const auto first = frames.close();
  close_frame_of(frames, 1, 3);
  EXPECT_EQ(frames.waiting_bytes(), 300U);
  frames.append_group(group_of(10, 2));
  EXPECT_EQ(frames.waiting_bytes(), 400U);
  frames.pack();
  frames.release_raw(*first);
  EXPECT_EQ(frames.waiting_bytes(), 300U);
  frames.release_raw(*first);
  EXPECT_EQ(frames.waiting_bytes(), 300U) << "released twice";
  frames.pack();
  frames.drop_packed();
  EXPECT_EQ(frames.waiting_bytes(), 100U);
}

TEST(UnwrittenFrames, CountsFollowAFrameThroughItsStates) {
  UnwrittenFrames frames(kFrameBytes);
  EXPECT_TRUE(frames.is_empty());
  append(frames, 0, 1);
  EXPECT_TRUE(frames.has_open() && !frames.is_empty());
  EXPECT_EQ(frames.closed(), 0U);
  const auto frame = frames.close();
  EXPECT_FALSE(frames.has_open());
  EXPECT_EQ(frames.closed(), 1U);
  EXPECT_EQ(frames.unpacked(), 1U);
  EXPECT_EQ(frames.to_pack(), frame);
  EXPECT_FALSE(frames.is_ready() || frames.are_all_encoded());
  frame->encoded_done = true;
  EXPECT_TRUE(frames.is_ready() && frames.are_all_encoded());
  frames.pack();
  EXPECT_EQ(frames.packed(), 1U);
  EXPECT_EQ(frames.unpacked(), 0U);
  EXPECT_EQ(frames.to_pack(), nullptr);
  EXPECT_FALSE(frames.is_ready());
  EXPECT_EQ(frames.written(), 0U);
  frames.drop_packed();
  EXPECT_EQ(frames.packed(), 0U);
  EXPECT_EQ(frames.written(), 1U);
  EXPECT_EQ(frames.closed(), 1U);
  EXPECT_TRUE(frames.is_empty());
}

TEST(UnwrittenFrames, GroupIsPackedFromItsFirstFrameOn) {
  UnwrittenFrames frames(kFrameBytes);
  close_frame_of(frames, 0, 1);
  frames.append_group(group_of(10, 3));
  EXPECT_EQ(frames.group_to_pack().size(), 1U);
  EXPECT_FALSE(frames.group_to_pack().front().is_whole);
  frames.pack();
  const auto group = frames.group_to_pack();
  ASSERT_EQ(group.size(), 3U);
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(group[i].chunks.front().id, chunk_id(10 + i));
    EXPECT_EQ(group[i].prefix, i);
    EXPECT_TRUE(group[i].is_whole);
  }
  EXPECT_EQ(frames.to_pack()->group, 3U);
  frames.pack();
  EXPECT_EQ(frames.to_pack()->group, 0U) << "the container has the first frame of the group";
  EXPECT_EQ(frames.group_to_pack().size(), 1U);
}

TEST(UnwrittenFrames, NextFrameUsesTheBufferOfAWrittenFrame) {
  UnwrittenFrames frames(kFrameBytes);
  const auto* buffer = close_frame_of(frames, 0, 3)->raw.data();
  frames.pack();
  frames.drop_packed();
  const auto next = close_frame_of(frames, 3, 5);
  EXPECT_EQ(next->raw.data(), buffer);
  EXPECT_EQ(next->raw.size(), 200U);
  EXPECT_EQ(frames.find(chunk_id(4)), bytes_of(4, 100));
}

}  // namespace
}  // namespace varve::store
