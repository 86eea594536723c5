// SPDX-License-Identifier: Apache-2.0
// The requests for slices of sealed containers: windows of one size, or the whole container.
#include "restore/sealed_windows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "restore/slice_reader.h"
#include "support/same_bytes.h"
#include "support/temp_repository.h"

namespace varve::restore {
namespace {

using test::must;

constexpr std::size_t kWindow = SealedWindows::kWindowBytes;
using Range = std::pair<std::uint32_t, std::size_t>;

/// A source of the data of one container, which notes each read.
class NotingSource final : public layout::ChunkSource {
 public:
  explicit NotingSource(std::size_t bytes) : data_(bytes) {
    std::mt19937 random(5);
    for (auto& b : data_) b = static_cast<std::byte>(random());
  }

  [[nodiscard]] const format::FrameCodec& codec() const override { std::abort(); }
  Result<layout::LocationRun> locate(ChunkId /*id*/) override { return unused(); }
  Result<std::shared_ptr<const format::ContainerHeader>> header(
      ContainerNumber /*container*/) override {
    return unused();
  }
  Result<std::uint64_t> place_of(ContainerNumber /*container*/) override { return unused(); }
  Result<void> read_data(ContainerNumber /*container*/, std::uint32_t offset,
                         std::span<std::byte> out) override {
    const std::lock_guard lock(mutex_);
    ++ranges_[{offset, out.size()}];
    if (failures_ > 0) {
      --failures_;
      return unused();
    }
    if (offset + out.size() > data_.size()) return ends_early();
    std::copy_n(data_.begin() + offset, out.size(), out.begin());
    return {};
  }
  Result<store::UnreadParts> read_around(ContainerNumber /*container*/, std::uint32_t offset,
                                         std::span<std::byte> out) override {
    const std::lock_guard lock(mutex_);
    ++ranges_[{offset, out.size()}];
    const auto present = data_.size() > offset ? std::min(out.size(), data_.size() - offset) : 0;
    if (present > 0) std::copy_n(data_.begin() + offset, present, out.begin());
    store::UnreadParts unread;
    unread.add(present, out.size(), ends_early());
    return unread;
  }
  void will_read_data(ContainerNumber /*container*/, std::uint32_t offset,
                      std::size_t bytes) override {
    announced_.emplace_back(offset, bytes);
  }

  void fail(int reads) { failures_ = reads; }
  void truncate(std::size_t bytes) { data_.resize(bytes); }
  [[nodiscard]] const std::vector<std::byte>& data() const { return data_; }
  [[nodiscard]] const std::map<Range, int>& ranges() const { return ranges_; }
  [[nodiscard]] const std::vector<Range>& announced() const { return announced_; }

 private:
  static Error ends_early() { return {ErrorCode::kCorrupt, "the file ends"}; }
  static Error unused() { return {ErrorCode::kIo, "no such bytes"}; }

  std::mutex mutex_;
  std::vector<std::byte> data_;
  std::map<Range, int> ranges_;
  std::vector<Range> announced_;
  int failures_ = 0;
};

class SealedReads : public testing::Test {
 protected:
  static constexpr std::uint32_t kHeaderBytes = 8192;
  static constexpr std::uint32_t kFrames = 12;

  SealedReads() {
    std::mt19937 random(6);
    header_.number = ContainerNumber{3};
    header_.header_bytes = kHeaderBytes;
    for (std::uint32_t i = 0; i < kFrames; ++i) {
      format::FrameEntry frame;
      frame.offset = header_.data_bytes;
      frame.stored_bytes = 20000 + static_cast<std::uint32_t>(random() % 100000);
      header_.data_bytes += frame.stored_bytes;
      header_.frames.push_back(frame);
    }
    header_.seal.emplace();
    header_.seal->salt.fill(std::byte{9});
    header_.seal->total_bytes = kHeaderBytes + static_cast<std::uint32_t>(source_.data().size());
  }

  /// Reads a slice and compares it.
  void read(Slice slice, bool once = true) {
    std::vector<std::byte> room(layout::room_for(slice_bytes(header_, slice)));
    const auto bytes = slice_bytes(header_, slice);
    if (once) {
      const auto got = must(reader_.read_once(source_, header_, slice, room, plan_));
      ASSERT_EQ(got.bytes.size(), bytes);
      expect_equal(got.bytes, slice);
    } else {
      const auto got = must(reader_.read(source_, header_, slice, room, plan_));
      ASSERT_EQ(got.bytes.size(), bytes);
      expect_equal(got.bytes, slice);
    }
  }
  void expect_equal(std::span<const std::byte> got, Slice slice) const {
    const auto begin = source_.data().begin() + header_.frames[slice.first].offset;
    EXPECT_TRUE(std::equal(got.begin(), got.end(), begin)) << slice.first << " to " << slice.last;
  }
  /// The requests that read the container's windows from `first` on, in order: with one window
  /// each, and then with half as many as were read before.
  [[nodiscard]] std::map<Range, int> all_windows(std::size_t first = 0) const {
    std::map<Range, int> all;
    const std::size_t end = source_.data().size();
    for (std::size_t at = first * kWindow; at < end;) {
      const std::size_t run = at / kWindow - first;
      const std::size_t count = std::clamp<std::size_t>(run / 2, 1, SealedWindows::kTogetherMax);
      const auto bytes = std::min(count * kWindow, end - at);
      all[{static_cast<std::uint32_t>(at), bytes}] = 1;
      at += bytes;
    }
    return all;
  }

  // Longer than the frames: the padding of the container.
  NotingSource source_{1400000};
  const std::vector<std::byte> whole_ = source_.data();
  format::ContainerHeader header_;
  base::Metrics registry_;
  ReadMetrics metrics_{registry_};
  SliceReader reader_{metrics_};
  SealedWindows::Plan plan_;
};

TEST_F(SealedReads, SlicesInOrderReadEachWindowOnceUpToTheEndOfThePadding) {
  for (const bool once : {true, false}) {
    for (std::uint32_t frame = 0; frame < kFrames; ++frame) {
      ASSERT_NO_FATAL_FAILURE(read({frame, frame}, once));
    }
  }
  EXPECT_EQ(source_.ranges(), all_windows());
  EXPECT_EQ(metrics_.read_bytes.value(), source_.data().size());
  EXPECT_EQ(metrics_.requests.value(), all_windows().size());
}

TEST_F(SealedReads, TheRequestsOfARestoreDoNotDependOnTheFrames) {
  for (std::uint32_t frame = 0; frame < kFrames; frame += 3) {
    ASSERT_NO_FATAL_FAILURE(read({frame, frame + 2}));
  }
  EXPECT_EQ(source_.ranges(), all_windows());
}

TEST_F(SealedReads, AWholeContainerIsOneRequest) {
  ASSERT_NO_FATAL_FAILURE(read({0, kFrames - 1}));
  const std::map<Range, int> whole{{{0, source_.data().size()}, 1}};
  EXPECT_EQ(source_.ranges(), whole);
}

TEST_F(SealedReads, AWholeContainerAfterAPartOfItIsReadInWindows) {
  ASSERT_NO_FATAL_FAILURE(read({0, 0}));
  ASSERT_NO_FATAL_FAILURE(read({0, kFrames - 1}));
  EXPECT_EQ(source_.ranges(), all_windows());
}

TEST_F(SealedReads, AForgottenContainerIsReadAgain) {
  ASSERT_NO_FATAL_FAILURE(read({1, 1}));
  ASSERT_NO_FATAL_FAILURE(read({1, 1}));
  EXPECT_EQ(source_.ranges().begin()->second, 1);
  EXPECT_FALSE(reader_.drop(source_, header_)) << "the source keeps nothing";
  ASSERT_NO_FATAL_FAILURE(read({1, 1}));
  EXPECT_EQ(source_.ranges().begin()->second, 2);
}

TEST_F(SealedReads, AFailedReadIsAnErrorAndIsTriedAgain) {
  source_.fail(1);
  std::vector<std::byte> room(layout::room_for(slice_bytes(header_, {2, 2})));
  const auto got = reader_.read_once(source_, header_, {2, 2}, room);
  ASSERT_FALSE(got.has_value());
  EXPECT_NE(got.error().message().find("frame 2"), std::string::npos) << got.error().message();
  ASSERT_NO_FATAL_FAILURE(read({2, 2}));
}

TEST_F(SealedReads, OtherContainersHaveOtherWindows) {
  ASSERT_NO_FATAL_FAILURE(read({0, 0}));
  header_.seal->salt.fill(std::byte{10});
  ASSERT_NO_FATAL_FAILURE(read({0, 0}));
  EXPECT_EQ(source_.ranges().begin()->second, 2);
}

TEST_F(SealedReads, SlicesOfSealedContainersAreNotAnnounced) {
  SliceReader::announce(source_, header_, {4, 5});
  EXPECT_TRUE(source_.announced().empty());
  header_.seal.reset();
  SliceReader::announce(source_, header_, {4, 5});
  const std::vector<Range> exact{{header_.frames[4].offset, slice_bytes(header_, {4, 5})}};
  EXPECT_EQ(source_.announced(), exact);
}

TEST_F(SealedReads, TheRequestsFollowFromTheWindowsThatAreWanted) {
  // The same windows in the same order, by slices of other frames.
  const auto wanted = [&](const std::vector<Slice>& slices) {
    std::vector<std::uint32_t> windows;
    for (const Slice slice : slices) {
      const std::size_t begin = header_.frames[slice.first].offset;
      for (auto at = begin / kWindow; at <= (begin + slice_bytes(header_, slice) - 1) / kWindow;
           ++at) {
        const auto window = static_cast<std::uint32_t>(at);
        if (windows.empty() || windows.back() < window) windows.push_back(window);
      }
    }
    return windows;
  };
  std::vector<Slice> ones;
  for (std::uint32_t frame = 3; frame < kFrames; ++frame) ones.push_back({frame, frame});
  const std::vector<Slice> longer{{3, 4}, {5, 8}, {9, kFrames - 1}};
  ASSERT_EQ(wanted(ones), wanted(longer));
  for (const Slice slice : ones) ASSERT_NO_FATAL_FAILURE(read(slice));
  const auto by_ones = source_.ranges();
  EXPECT_EQ(by_ones, all_windows(wanted(ones).front()));
  header_.seal->salt.fill(std::byte{11});
  for (const Slice slice : longer) ASSERT_NO_FATAL_FAILURE(read(slice));
  for (const auto& [range, times] : source_.ranges()) {
    EXPECT_EQ(times, 2) << range.first << ", " << range.second;
    EXPECT_TRUE(by_ones.contains(range)) << range.first << ", " << range.second;
  }
}

TEST_F(SealedReads, APlannedBlockIsOneRequestInAnyOrder) {
  // Several lanes read slices at the same time, so they come out of order.
  for (std::uint32_t i = 0; i < kFrames; ++i)
    SealedWindows::add_windows(header_, {i, i}, plan_.wanted);
  for (const std::uint32_t frame : {6U, 11U, 0U, 3U, 7U, 1U, 2U, 4U, 5U, 8U, 9U, 10U}) {
    ASSERT_NO_FATAL_FAILURE(read({frame, frame}));
  }
  std::map<Range, int> blocks;
  const std::size_t block = SealedWindows::kTogetherMax * kWindow;
  for (std::size_t at = 0; at < source_.data().size(); at += block) {
    const auto bytes = std::min(block, source_.data().size() - at);
    blocks[{static_cast<std::uint32_t>(at), bytes}] = 1;
  }
  EXPECT_EQ(source_.ranges(), blocks);
}

TEST_F(SealedReads, ABlockOfWhichHalfIsPlannedIsReadInWindows) {
  plan_.wanted.set(0).set(1);
  ASSERT_NO_FATAL_FAILURE(read({0, 0}));
  const std::map<Range, int> first{{{0, kWindow}, 1}};
  EXPECT_EQ(source_.ranges(), first);
}

TEST_F(SealedReads, ARandomReadOfTwoWindowsIsOneRequestWithoutACopy) {
  std::uint32_t frame = 0;
  const auto end_of = [&](std::uint32_t i) { return frame_end(header_.frames[i]) - 1; };
  while (header_.frames[frame].offset / kWindow == end_of(frame) / kWindow) ++frame;
  const auto first = header_.frames[frame].offset / static_cast<std::uint32_t>(kWindow);
  plan_.is_random = true;
  std::vector<std::byte> room(layout::room_for(slice_bytes(header_, {frame, frame})));
  const auto got = must(reader_.read_once(source_, header_, {frame, frame}, room, plan_));
  expect_equal(got.bytes, {frame, frame});
  EXPECT_TRUE(got.holder);
  EXPECT_EQ(std::ranges::count(room, std::byte{0}), std::ssize(room)) << "the bytes were copied";
  const std::map<Range, int> both{{{first * static_cast<std::uint32_t>(kWindow), 2 * kWindow}, 1}};
  EXPECT_EQ(source_.ranges(), both);
}

TEST_F(SealedReads, HeldBytesStayWhileOtherWindowsReplaceThem) {
  std::vector<std::byte> room(layout::room_for(slice_bytes(header_, {0, 0})));
  const auto held = must(reader_.read_once(source_, header_, {0, 0}, room));
  for (std::uint8_t other = 20; other < 28; ++other) {
    header_.seal->salt.fill(std::byte{other});
    for (std::uint32_t i = 0; i < kFrames; ++i) ASSERT_NO_FATAL_FAILURE(read({i, i}));
  }
  expect_equal(held.bytes, {0, 0});
}

// More blocks than the memory for them has room for.
TEST_F(SealedReads, ReadersMayHoldManyBlocks) {
  plan_.wanted.set();
  const auto frames_in_a_block = [&](std::uint32_t frame) {
    const auto block_of = [](std::uint32_t byte) {
      return byte / (SealedWindows::kTogetherMax * kWindow);
    };
    return block_of(header_.frames[frame].offset) == block_of(frame_end(header_.frames[frame]) - 1);
  };
  ASSERT_TRUE(frames_in_a_block(0));
  ASSERT_TRUE(frames_in_a_block(5));
  std::vector<std::byte> room(layout::room_for(format::kFrameRawBytesMax));
  for (int round = 0; round < 3; ++round) {
    std::vector<std::pair<SliceBytes, std::uint32_t>> held;
    for (std::uint8_t other = 0; other < 16; ++other) {
      header_.seal->salt.fill(std::byte{other});
      for (const std::uint32_t frame : {0U, 5U}) {
        held.emplace_back(must(reader_.read_once(source_, header_, {frame, frame}, room, plan_)),
                          frame);
        EXPECT_NE(held.back().first.holder, nullptr);
      }
    }
    for (const auto& [got, frame] : held) expect_equal(got.bytes, {frame, frame});
    std::ranges::reverse(held);  // They end in another order than they were read in.
  }
}

TEST_F(SealedReads, AnUnreadableWindowDoesNotHideTheOneBeforeIt) {
  // The fifth window is read with the sixth one, which is behind the file's end.
  const std::uint32_t first = 4 * kWindow;
  source_.truncate(first + kWindow);
  header_.frames = {};
  for (std::uint32_t i = 0; i < 6; ++i) {
    format::FrameEntry frame;
    frame.offset = i * kWindow;
    frame.stored_bytes = kWindow;
    header_.frames.push_back(frame);
  }
  header_.seal->total_bytes = kHeaderBytes + 6 * kWindow;
  for (std::uint32_t frame = 0; frame < 5; ++frame) {
    ASSERT_NO_FATAL_FAILURE(read({frame, frame}));
  }
  EXPECT_TRUE(source_.ranges().contains({first, 2 * kWindow}));
  EXPECT_TRUE(source_.ranges().contains({first, kWindow}));
  std::vector<std::byte> room(layout::room_for(kWindow));
  const auto got = must(reader_.read_once(source_, header_, {5, 5}, room));
  EXPECT_NE(got.unread.find(0, 1), nullptr);
}

TEST_F(SealedReads, FramesBesideTheEndOfACutFileAreRead) {
  const auto frame_is_whole = [this](const SliceBytes& got, Slice slice, std::uint32_t frame) {
    const auto& entry = header_.frames[frame];
    const auto at = entry.offset - header_.frames[slice.first].offset;
    if (got.unread.find(at, at + entry.stored_bytes) != nullptr) return false;
    return test::same_bytes(got.bytes.subspan(at, entry.stored_bytes),
                            std::span(whole_).subspan(entry.offset, entry.stored_bytes));
  };
  std::vector<std::byte> room(layout::room_for(source_.data().size()));
  const Slice all{0, kFrames - 1};
  for (const std::uint32_t lost : {kFrames, kFrames - 1, kFrames / 2}) {
    // Without the padding, and in the middle of frame `lost`.
    const bool is_padding = lost == kFrames;
    source_.truncate(is_padding
                         ? header_.data_bytes
                         : header_.frames[lost].offset + header_.frames[lost].stored_bytes / 2);
    for (const bool once : {false, true}) {
      for (std::uint32_t frame = 0; frame < kFrames; ++frame) {
        for (const Slice slice : {Slice{frame, frame}, all}) {
          static_cast<void>(reader_.drop(source_, header_));
          const auto got = must(once ? reader_.read_once(source_, header_, slice, room, plan_)
                                     : reader_.read(source_, header_, slice, room, plan_));
          EXPECT_EQ(frame_is_whole(got, slice, frame), frame < lost) << frame << " of " << lost;
        }
      }
    }
  }
}

TEST_F(SealedReads, ThreadsShareWindows) {
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < 4; ++i) {
    threads.emplace_back([this, i] {
      for (std::uint32_t frame = 0; frame < kFrames; ++frame) {
        read({(frame + i) % kFrames, (frame + i) % kFrames});
      }
    });
  }
  for (auto& thread : threads) thread.join();
  // Which windows are read together depends on the order of the threads, but each is read once.
  std::size_t next = 0;
  for (const auto& [range, times] : source_.ranges()) {
    EXPECT_EQ(times, 1);
    EXPECT_EQ(range.first, next);
    EXPECT_EQ(range.first % kWindow, 0U);
    next = range.first + range.second;
  }
  EXPECT_EQ(next, source_.data().size());
}

TEST_F(SealedReads, APlainContainerIsReadAsBefore) {
  header_.seal.reset();
  ASSERT_NO_FATAL_FAILURE(read({1, 2}));
  const std::map<Range, int> exact{{{header_.frames[1].offset, slice_bytes(header_, {1, 2})}, 1}};
  EXPECT_EQ(source_.ranges(), exact);
}

}  // namespace
}  // namespace varve::restore
