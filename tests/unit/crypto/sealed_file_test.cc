// SPDX-License-Identifier: Apache-2.0
// Sealed files against plain ones, against crashes, and against a disk that changes bytes.
#include "crypto/sealed_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/checksum.h"
#include "base/coding.h"
#include "io/memory_file_system.h"
#include "support/temp_repository.h"

namespace varve::crypto {
namespace {

using test::must;
using test::noise;

std::shared_ptr<const KeyRing> some_keys() {
  return must(KeyRing::make(must(SecretKey::random()), "0123456789abcdef0123456789abcdef",
                            Cipher::kAes256Gcm));
}

std::string all_of(io::File& file) {
  std::string text(must(file.size()), '\0');
  EXPECT_EQ(must(file.read_at(0, std::as_writable_bytes(std::span(text)))), text.size());
  return text;
}
void put(io::File& file, std::uint64_t at, std::string_view text) {
  must(file.write_at(at, base::as_bytes(text)));
}

/// A sealed file and the file below it, which an attacker may change.
class SealedFileTest : public testing::Test {
 protected:
  std::unique_ptr<io::File> raw(const std::string& path = "file") {
    return must(disk_->open(path, io::OpenMode::kReadWrite));
  }
  std::unique_ptr<io::File> open(const std::string& path = "file") { return open_at(place_, path); }
  std::unique_ptr<io::File> open_at(const SealedPlace& place, const std::string& path = "file") {
    return make_sealed_file(raw(path), path, keys_, place);
  }
  /// Returns what a reader gets: text, or nothing for kCorrupt.
  std::optional<std::string> read(const std::string& path = "file") {
    auto file = open(path);
    const auto size = file->size();
    if (!size) {
      EXPECT_EQ(size.error().code(), ErrorCode::kCorrupt);
      return std::nullopt;
    }
    std::string text(*size, '\0');
    const auto got = file->read_at(0, std::as_writable_bytes(std::span(text)));
    if (!got) {
      EXPECT_EQ(got.error().code(), ErrorCode::kCorrupt);
      return std::nullopt;
    }
    text.resize(*got);
    return text;
  }

  const SealedPlace place_{.kind = 1, .store = 2, .number = 3, .block_bytes = 512};
  const std::unique_ptr<io::FileSystem> disk_ = io::make_memory_file_system();
  const std::shared_ptr<const KeyRing> keys_ = some_keys();
};

constexpr std::size_t kHeader = 64;
constexpr std::size_t kSlot = 512 + 40;

TEST_F(SealedFileTest, RandomHistoriesEqualThoseOfAPlainFile) {
  std::mt19937_64 random(20);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  for (int history = 0; history < 40; ++history) {
    SealedPlace place = place_;
    place.block_bytes = history % 2 == 0 ? 512 : 4096;
    const auto name = "history" + std::to_string(history);
    const auto plain = raw("plain" + std::to_string(history));
    auto sealed = open_at(place, name);
    for (int step = 0; step < 120; ++step) {
      const auto size = must(plain->size());
      ASSERT_EQ(must(sealed->size()), size) << "seed 20, history " << history << ", step " << step;
      const auto bytes = noise(1 + below(below(4) == 0 ? 9000 : 600), random());
      switch (below(7)) {
        case 0:
        case 1:  // An append, now and then behind a gap.
          for (auto* file : {plain.get(), sealed.get()}) {
            put(*file, size + (step % 3 == 0 ? step * 7U : 0), bytes);
          }
          break;
        case 2: {
          const auto at = below(size + 1);
          for (auto* file : {plain.get(), sealed.get()}) put(*file, at, bytes);
          break;
        }
        case 3: {
          const auto to = below(5) == 0 ? 0 : below(size + 700);
          for (auto* file : {plain.get(), sealed.get()}) must(file->truncate(to));
          break;
        }
        case 4:
          sealed = open_at(place, name);
          break;
        default: {
          std::string expected(below(5000), '\0');
          std::string got(expected.size(), '\1');
          const auto at = below(size + 10);
          expected.resize(must(plain->read_at(at, std::as_writable_bytes(std::span(expected)))));
          got.resize(must(sealed->read_at(at, std::as_writable_bytes(std::span(got)))));
          ASSERT_EQ(got, expected) << "seed 20, history " << history << ", step " << step;
        }
      }
    }
    ASSERT_EQ(all_of(*sealed), all_of(*plain)) << "seed 20, history " << history;
  }
}

TEST_F(SealedFileTest, AnAppendAtTheNextUnitLeavesEveryEarlierByteOnDisk) {
  auto file = open();
  std::string expected = noise(700, 1);
  put(*file, 0, expected);
  for (int i = 0; i < 5; ++i) {
    const auto before = all_of(*raw());
    const auto at = file->next_append(expected.size());
    EXPECT_EQ(at % 512, 0U);
    const auto more = noise(100 + 300 * i, i);
    put(*file, at, more);
    EXPECT_TRUE(all_of(*raw()).starts_with(before)) << "a promised byte was written again";
    expected.resize(at);
    expected += more;
    EXPECT_EQ(all_of(*file), expected);
  }
  // A cut at the end of an earlier append changes no byte before it, either.
  const auto before = all_of(*raw());
  must(file->truncate(700));
  EXPECT_TRUE(before.starts_with(all_of(*raw())));
  EXPECT_EQ(all_of(*file), expected.substr(0, 700));
}

TEST_F(SealedFileTest, EachFlippedByteIsSeen) {
  const auto text = noise(1300, 2);
  put(*open(), 0, text);
  const auto sound = all_of(*raw());
  for (std::size_t i = 0; i < sound.size(); ++i) {
    auto changed = sound;
    changed[i] = static_cast<char>(changed[i] ^ (1 << (i % 8)));
    put(*raw(), 0, changed);
    EXPECT_EQ(read(), std::nullopt) << "byte " << i;
    EXPECT_FALSE(must(find_sealed_fault(*raw())).what.empty()) << "byte " << i;
    if (i >= kHeader + kSlot) {  // The first block still opens.
      std::string first(512, '\0');
      ASSERT_TRUE(open()->read_at(0, std::as_writable_bytes(std::span(first))).has_value());
      EXPECT_EQ(first, text.substr(0, 512));
    }
  }
  put(*raw(), 0, sound);
  EXPECT_EQ(read(), text);
  EXPECT_TRUE(must(find_sealed_fault(*raw())).what.empty());
}

TEST_F(SealedFileTest, ChangesWithRightChecksumsAreSeen) {
  // The attacker knows the format, and makes checksums of what he changes.
  put(*open(), 0, noise(1024, 3));
  const auto sound = all_of(*raw());
  for (std::size_t i = 8; i < kSlot; i += 5) {
    auto slot = sound.substr(kHeader, kSlot);
    slot[i] = static_cast<char>(slot[i] ^ 1);
    const auto length = base::load_le<std::uint32_t>(base::as_bytes(slot).data() + 8);
    if (length > 512) continue;
    base::store_le(std::as_writable_bytes(std::span(slot)).data(),
                   base::checksum64(base::as_bytes(slot).subspan(8, 32 + length)));
    put(*raw(), kHeader, slot);
    EXPECT_EQ(read(), std::nullopt) << "byte " << i;
  }
}

TEST_F(SealedFileTest, BlocksDoNotOpenInOtherPlaces) {
  put(*open(), 0, noise(1024, 4));
  const auto sound = all_of(*raw());
  // Moves a block, with the checksum that fits there.
  const auto moved = [&](std::string file, std::size_t from, std::size_t to) {
    auto slot = sound.substr(kHeader + from * kSlot, kSlot);
    const auto bytes = std::as_writable_bytes(std::span(slot));
    base::store_le(bytes.data(), base::load_le<std::uint64_t>(bytes.data()) ^ from ^ to);
    return file.replace(kHeader + to * kSlot, kSlot, slot);
  };
  put(*raw(), 0, moved(moved(sound, 0, 1), 1, 0));
  EXPECT_EQ(read(), std::nullopt);
  EXPECT_TRUE(must(find_sealed_fault(*raw())).what.empty()) << "the checksums should fit";
  // A block of another file of the same place, such as an older copy.
  put(*open("other"), 0, noise(1024, 5));
  auto mixed = sound;
  mixed.replace(kHeader, kSlot, all_of(*raw("other")).substr(kHeader, kSlot));
  put(*raw(), 0, mixed);
  EXPECT_EQ(read(), std::nullopt);
  // A whole file in another place.
  put(*raw(), 0, sound);
  EXPECT_NE(read(), std::nullopt);
  for (auto other :
       {SealedPlace{9, 2, 3, 512}, SealedPlace{1, 9, 3, 512}, SealedPlace{1, 2, 9, 512}}) {
    std::string out(10, '\0');
    const auto got = open_at(other)->read_at(0, std::as_writable_bytes(std::span(out)));
    ASSERT_FALSE(got.has_value());
    EXPECT_EQ(got.error().code(), ErrorCode::kCorrupt);
  }
  // The same place of another repository.
  const auto other =
      KeyRing::make(keys_->master(), "ffffffffffffffffffffffffffffffff", Cipher::kAes256Gcm);
  std::string out(10, '\0');
  EXPECT_FALSE(make_sealed_file(raw(), "file", *other, place_)
                   ->read_at(0, std::as_writable_bytes(std::span(out)))
                   .has_value());
}

TEST_F(SealedFileTest, ALostBlockDoesNotReadAsZeros) {
  put(*open(), 0, noise(1536, 6));
  put(*raw(), kHeader + kSlot, std::string(kSlot, '\0'));
  EXPECT_EQ(read(), std::nullopt);
  // Nor does a write inside of it take its other bytes for zeros.
  auto file = open();
  EXPECT_EQ(file->write_at(600, base::as_bytes("x")).error().code(), ErrorCode::kCorrupt);
  // A write of the whole block needs nothing of it.
  put(*file, 512, noise(512, 7));
  EXPECT_NE(read(), std::nullopt);
}

TEST_F(SealedFileTest, AnyCutIsDamageOrShorter) {
  const auto text = noise(1100, 8);
  put(*open(), 0, text);
  const auto sound = all_of(*raw());
  for (std::size_t bytes = 0; bytes < sound.size(); ++bytes) {
    must(raw()->truncate(0));
    put(*raw(), 0, sound.substr(0, bytes));
    const auto got = read();
    if (!got) continue;
    EXPECT_LT(got->size(), text.size()) << bytes;
    EXPECT_TRUE(text.starts_with(*got)) << bytes;
  }
}

TEST_F(SealedFileTest, BytesBehindTheLastBlockAreDamageOrLeftByACrash) {
  const auto text = noise(600, 9);
  put(*open(), 0, text);
  const auto sound = all_of(*raw());
  put(*raw(), sound.size(), "what a crash left");
  EXPECT_EQ(read(), std::nullopt);
  EXPECT_TRUE(must(find_sealed_fault(*raw())).only_at_end);
  SealedPlace growing = place_;
  growing.grows = true;
  std::string got(1000, '\0');
  got.resize(must(open_at(growing)->read_at(0, std::as_writable_bytes(std::span(got)))));
  EXPECT_EQ(got, text);
  // A writer cuts them off.
  must(open_at(growing)->truncate(600));
  EXPECT_EQ(all_of(*raw()), sound);
}

TEST_F(SealedFileTest, AnEmptiedFileGetsAnotherKey) {
  auto file = open();
  put(*file, 0, "first");
  const auto salt = all_of(*raw()).substr(16, 32);
  must(file->truncate(0));
  EXPECT_EQ(must(raw()->size()), 0U);
  put(*file, 0, "again");
  EXPECT_NE(all_of(*raw()).substr(16, 32), salt);
  EXPECT_EQ(read(), "again");
}

TEST_F(SealedFileTest, EachWriteHasANonceOfItsOwn) {
  auto file = open();
  std::set<std::string> nonces;
  for (int i = 0; i < 50; ++i) {
    put(*file, 0, "the same text");
    EXPECT_TRUE(nonces.insert(all_of(*raw()).substr(kHeader + 12, 12)).second);
  }
}

TEST_F(SealedFileTest, SizesOnDiskAreAsStated) {
  for (const std::uint64_t bytes : {0, 1, 511, 512, 513, 1024, 5000}) {
    auto file = open("f" + std::to_string(bytes));
    if (bytes != 0) put(*file, 0, noise(bytes, 1));
    EXPECT_EQ(must(raw("f" + std::to_string(bytes))->size()), sealed_bytes(place_, bytes));
  }
}

TEST_F(SealedFileTest, AWriteFarBehindTheEndIsRefused) {
  auto file = open();
  EXPECT_EQ(file->write_at(std::uint64_t{1} << 40, base::as_bytes("x")).error().code(),
            ErrorCode::kInvalid);
  EXPECT_EQ(file->truncate(std::uint64_t{1} << 40).error().code(), ErrorCode::kInvalid);
}

TEST_F(SealedFileTest, APlainFileIsNotRead) {
  put(*raw(), 0, noise(5000, 10));
  EXPECT_EQ(read(), std::nullopt);
  EXPECT_EQ(open()->write_at(0, base::as_bytes("x")).error().code(), ErrorCode::kCorrupt);
}

TEST_F(SealedFileTest, ADamagedEndIsToldFromDamageBeforeSoundBlocks) {
  put(*open(), 0, noise(2048, 11));
  const auto sound = all_of(*raw());
  put(*raw(), kHeader + 3 * kSlot + 100, "????");
  EXPECT_TRUE(must(find_sealed_fault(*raw())).only_at_end);
  put(*raw(), kHeader + 100, "????");
  const auto fault = must(find_sealed_fault(*raw()));
  EXPECT_FALSE(fault.only_at_end);
  EXPECT_EQ(fault.what, "block 0 is damaged");
}

TEST_F(SealedFileTest, ACrashKeepsWhatASyncPromised) {
  // The disk writes sectors of 512 bytes, in any order, and may lose those after the last sync.
  std::mt19937_64 random(21);
  for (int round = 0; round < 300; ++round) {
    const auto name = "crash" + std::to_string(round);
    auto file = open(name);
    std::string promised;
    std::string synced;  // What the disk has for sure.
    for (int appends = static_cast<int>(random() % 4) + 1; appends > 0; --appends) {
      const auto at = file->next_append(promised.size());
      promised.resize(at);
      promised += noise(1 + random() % 1500, random());
      put(*file, at, promised.substr(at));
      synced = all_of(*raw(name));  // Here the file is synced.
    }
    // Lost: appends in one or more pieces, the later ones inside a block that is not synced.
    std::uint64_t at = file->next_append(promised.size());
    for (int writes = 0; writes < 3; ++writes) {
      const auto lost = noise(1 + random() % 900, random());
      put(*file, at, lost);
      at += lost.size();
    }
    const auto written = all_of(*raw(name));
    auto left = written.substr(0, synced.size() + random() % (written.size() - synced.size() + 1));
    for (std::size_t sector = 0; sector < left.size(); sector += 512) {
      if (random() % 2 == 0) continue;
      for (std::size_t i = sector; i < std::min(left.size(), sector + 512); ++i) {
        left[i] = i < synced.size() ? synced[i] : '\0';
      }
    }
    must(raw(name)->truncate(0));
    put(*raw(name), 0, left);
    std::string got(promised.size(), '\0');
    const auto read = open(name)->read_at(0, std::as_writable_bytes(std::span(got)));
    ASSERT_TRUE(read.has_value()) << "seed 21, round " << round;
    ASSERT_EQ(got, promised) << "seed 21, round " << round;
  }
}

TEST_F(SealedFileTest, ReadDespiteDamageHasZerosForDamagedUnits) {
  const auto text = noise(2000, 12);
  put(*open(), 0, text);
  put(*raw(), kHeader + kSlot + 100, "????");
  auto expected = text;
  std::fill_n(expected.begin() + 512, 512, '\0');
  EXPECT_EQ(must(io::read_despite_damage(*open(), 0, 2000)), expected);
  EXPECT_EQ(must(io::read_despite_damage(*open(), 700, 1000)), expected.substr(700, 1000));
}

// A block that is written again is another text.
TEST_F(SealedFileTest, WritesEndWithTheTextsOfTheKey) {
  constexpr std::uint64_t kMax = 40;
  auto file = make_sealed_file(raw(), "file", keys_, place_, kMax);
  int writes = 0;
  Result<void> last;
  for (; writes < 100 && last; ++writes)
    last = file->write_at(0, base::as_bytes(std::string("again")));
  ASSERT_FALSE(last);
  EXPECT_EQ(last.error().code(), ErrorCode::kTooLarge);
  EXPECT_GE(writes, 38);
  EXPECT_LE(writes, 41);
  EXPECT_EQ(all_of(*file), "again");
  EXPECT_FALSE(file->truncate(2)) << "it seals the last block again";
  // The next key.
  must(file->truncate(0));
  put(*file, 0, noise(20 * 512, 1));
  // Blocks that are there count.
  file = make_sealed_file(raw(), "file", keys_, place_, kMax);
  put(*file, 20 * 512, noise(15 * 512, 2));
  EXPECT_FALSE(file->write_at(0, base::as_bytes(noise(15 * 512, 3))));
}

}  // namespace
}  // namespace varve::crypto
