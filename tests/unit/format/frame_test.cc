// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/checksum.h"
#include "base/coding.h"
#include "format/frame_codec.h"
#include "format/raw_frame.h"
#include "support/format_samples.h"

namespace varve::format {
namespace {

using base::as_bytes;

std::string random_text(std::size_t bytes) {
  std::mt19937 random(11);
  std::string text(bytes, '\0');
  for (auto& c : text) c = static_cast<char>(random());
  return text;
}

struct Stored {
  FrameEntry entry;
  std::string bytes;
};

Stored store(const std::string& raw, Codec codec, int level = 1) {
  const EncodedFrame frame = make_plain_frame_codec({codec, level})->compress(as_bytes(raw));
  Stored stored;
  stored.bytes = frame.codec == Codec::kNone ? raw : std::string(base::as_text(frame.stored));
  stored.entry.codec = frame.codec;
  stored.entry.stored_bytes = static_cast<std::uint32_t>(stored.bytes.size());
  stored.entry.raw_bytes = static_cast<std::uint32_t>(raw.size());
  stored.entry.checksum = base::checksum64(as_bytes(stored.bytes));
  return stored;
}

Result<std::string> load(const Stored& stored) {
  std::string out(stored.entry.raw_bytes, '?');
  VARVE_TRY(make_plain_frame_codec({})->decode(
      FramePlace{}, stored.entry, as_bytes(stored.bytes),
      std::as_writable_bytes(std::span(out.data(), out.size()))));
  return out;
}

TEST(RawFrame, IsOneWhoseStoredBytesAreRaw) {
  ContainerHeader header;
  const auto noise = store(random_text(5000), Codec::kZstd);
  EXPECT_TRUE(is_raw_frame(header, noise.entry));
  EXPECT_FALSE(is_raw_frame(header, store(compressible_text(5000), Codec::kZstd).entry));
  auto other = noise.entry;
  ++other.raw_bytes;
  EXPECT_FALSE(is_raw_frame(header, other));
  header.seal = ContainerSeal{};
  EXPECT_FALSE(is_raw_frame(header, noise.entry)) << "its bytes are encrypted";
}

TEST(RawFrame, EveryDamagedByteReturnsCorrupt) {
  auto stored = store(random_text(300), Codec::kNone);
  EXPECT_TRUE(verify_plain_frame(stored.entry, as_bytes(stored.bytes)));
  const auto cut = verify_plain_frame(stored.entry, as_bytes(stored.bytes).first(299));
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().code(), ErrorCode::kCorrupt);
  for (auto& byte : stored.bytes) {
    byte = static_cast<char>(~byte);
    const auto damaged = verify_plain_frame(stored.entry, as_bytes(stored.bytes));
    ASSERT_FALSE(damaged);
    EXPECT_EQ(damaged.error().code(), ErrorCode::kCorrupt);
    byte = static_cast<char>(~byte);
  }
}

TEST(Frame, RoundTripsAtEveryLevel) {
  const std::string raw = compressible_text(kFrameRawBytesMax);
  for (const int level : {1, 3, 9, 19}) {
    const Stored stored = store(raw, Codec::kZstd, level);
    EXPECT_EQ(stored.entry.codec, Codec::kZstd);
    EXPECT_LT(stored.bytes.size(), raw.size() / 2);
    const auto back = load(stored);
    ASSERT_TRUE(back.has_value()) << back.error().message();
    EXPECT_EQ(*back, raw);
  }
}

TEST(Frame, WithoutCodecIsStoredAsItIs) {
  const std::string raw = compressible_text(1000);
  const Stored stored = store(raw, Codec::kNone);
  EXPECT_EQ(stored.entry.codec, Codec::kNone);
  EXPECT_EQ(*load(stored), raw);
}

TEST(Frame, IncompressibleDataIsStoredAsItIs) {
  for (const std::size_t bytes : {1U, 31U, 32U, 4096U, 131072U}) {
    EXPECT_EQ(store(random_text(bytes), Codec::kZstd).entry.codec, Codec::kNone) << bytes;
  }
}

TEST(Frame, DataThatShrinksByLessThanOneIn32IsStoredAsItIs) {
  // 2 % of it are zeros.
  const std::string raw = random_text(98000) + std::string(2000, '\0');
  EXPECT_EQ(store(raw, Codec::kZstd).entry.codec, Codec::kNone);
  const std::string better = random_text(90000) + std::string(10000, '\0');
  EXPECT_EQ(store(better, Codec::kZstd).entry.codec, Codec::kZstd);
}

TEST(Frame, EveryFlippedByteReturnsCorrupt) {
  for (const Codec codec : {Codec::kNone, Codec::kZstd}) {
    Stored stored = store(compressible_text(5000), codec);
    for (auto& c : stored.bytes) {
      for (const char flip : {'\x01', '\x80', '\xff'}) {
        c = static_cast<char>(c ^ flip);
        const auto back = load(stored);
        ASSERT_FALSE(back.has_value());
        ASSERT_EQ(back.error().code(), ErrorCode::kCorrupt);
        c = static_cast<char>(c ^ flip);
      }
    }
  }
}

TEST(Frame, EveryTruncationReturnsCorrupt) {
  Stored stored = store(compressible_text(5000), Codec::kZstd);
  while (!stored.bytes.empty()) {
    stored.bytes.pop_back();
    ASSERT_FALSE(load(stored).has_value());
  }
}

TEST(Frame, DamageUnderARightChecksumReturnsCorrupt) {
  const Stored whole = store(compressible_text(5000), Codec::kZstd);
  for (std::size_t n = 0; n < whole.bytes.size(); ++n) {
    Stored cut = whole;
    cut.bytes.resize(n);
    cut.entry.stored_bytes = static_cast<std::uint32_t>(n);
    cut.entry.checksum = base::checksum64(as_bytes(cut.bytes));
    ASSERT_FALSE(load(cut).has_value()) << n;
  }
}

TEST(Frame, OtherRawLengthThanTheEntrySaysReturnsCorrupt) {
  for (const int difference : {-1, 1}) {
    Stored stored = store(compressible_text(5000), Codec::kZstd);
    stored.entry.raw_bytes += static_cast<std::uint32_t>(difference);
    const auto back = load(stored);
    ASSERT_FALSE(back.has_value());
    EXPECT_EQ(back.error().code(), ErrorCode::kCorrupt);
  }
}

TEST(Frame, ThreadsDoNotDisturbEachOther) {
  std::vector<std::thread> threads;
  std::vector<int> good(4, 0);
  for (std::size_t t = 0; t < good.size(); ++t) {
    threads.emplace_back([&good, t] {
      for (std::size_t i = 0; i < 50; ++i) {
        const std::string raw = compressible_text(1000 + 1000 * t + i);
        const auto back = load(store(raw, Codec::kZstd));
        good[t] += back && *back == raw ? 1 : 0;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(good, std::vector<int>(4, 50));
}

TEST(Checksum, IsXxh3WithSeedZero) {
  // The published value for no bytes.
  EXPECT_EQ(base::checksum64({}), 0x2d06800538d394c2U);
}

}  // namespace
}  // namespace varve::format
