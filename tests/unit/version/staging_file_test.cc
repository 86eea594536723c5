// SPDX-License-Identifier: Apache-2.0
// Tests encrypted staging files: random histories, files cut short by a crash, and changed bytes.
#include "version/staging_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/coding.h"
#include "io/memory_file_system.h"
#include "support/faulty_file_system.h"
#include "support/repeated_random.h"
#include "support/sealed_pairs.h"
#include "support/temp_repository.h"
#include "support/test_keys.h"

namespace varve::version {
namespace {

using varve::test::code_of;
using varve::test::must;

constexpr const char* kPath = "/staged";
constexpr StagingPlace kPlace{SeriesId{3}, VersionNumber{7}, 12, 1};

class SealedStaging : public testing::Test {
 protected:
  std::shared_ptr<StagingFile> create(const StagingPlace& place = kPlace,
                                      const char* path = kPath) {
    return must(create_staging_file(*files_, path, keys_.get(), place));
  }
  Result<std::shared_ptr<StagingFile>> open(std::uint64_t needed,
                                            const StagingPlace& place = kPlace,
                                            const char* path = kPath) {
    return open_staging_file(*files_, path, keys_.get(), place, needed);
  }
  static Result<std::string> read(StagingFile& file, std::uint64_t from, std::size_t bytes) {
    std::string out(bytes, '\0');
    VARVE_TRY_ASSIGN(const auto got, file.read(from, std::as_writable_bytes(std::span(out))));
    out.resize(got);
    return out;
  }
  static std::uint64_t write(StagingFile& file, const std::string& bytes) {
    return must(file.write(0, base::as_bytes(bytes)));
  }
  std::string image() {
    const auto file = must(files_->open(kPath, io::OpenMode::kRead));
    std::string bytes(must(file->size()), '\0');
    EXPECT_EQ(must(file->read_at(0, std::as_writable_bytes(std::span(bytes)))), bytes.size());
    return bytes;
  }
  void put_image(const std::string& bytes) {
    const auto file = must(files_->open(kPath, io::OpenMode::kReadWrite));
    must(file->truncate(0));
    must(file->write_at(0, base::as_bytes(bytes)));
  }

  std::shared_ptr<const crypto::KeyRing> keys_ = test::test_keys();
  std::unique_ptr<io::FileSystem> files_ = io::make_memory_file_system();
};

TEST_F(SealedStaging, WritesEndWithTheTextsOfTheKey) {
  const auto file = must(create_staging_file(*files_, kPath, keys_.get(), kPlace, 20));
  for (int i = 0; i < 18; ++i) write(*file, "piece");
  const auto refused = file->write(0, base::as_bytes(test::noise(100'000, 1)));
  ASSERT_FALSE(refused) << "four blocks";
  EXPECT_EQ(refused.error().code(), ErrorCode::kTooLarge);
  EXPECT_NE(refused.error().message().find("seal the open version"), std::string::npos);
  write(*file, "piece");
  write(*file, "piece");
  EXPECT_EQ(code_of(file->write(0, base::as_bytes(std::string("piece")))), ErrorCode::kTooLarge);
  EXPECT_EQ(must(read(*file, 95, 5)), "piece");
}

TEST_F(SealedStaging, RandomHistoryReadsWhatWasWritten) {
  std::mt19937_64 random(1);
  std::string log;
  auto file = create();
  for (int step = 0; step < 400; ++step) {
    if (random() % 3 != 0) {
      const auto bytes = test::noise(1 + random() % (random() % 4 == 0 ? 100'000 : 500), random());
      EXPECT_EQ(write(*file, bytes), log.size());
      log += bytes;
    } else if (random() % 8 == 0) {
      file = must(open(log.size()));
    }
    const std::size_t from = random() % (log.size() + 1);
    const std::size_t bytes = random() % 70'000;
    ASSERT_EQ(must(read(*file, from, bytes)), log.substr(from, bytes)) << "step " << step;
  }
  EXPECT_EQ(file->log_bytes(), image().size());
}

// A crash loses a part of what was not synced.
TEST_F(SealedStaging, SyncedBytesSurviveATornEnd) {
  std::string synced;
  std::string whole;
  {
    const auto file = create();
    synced = test::noise(40'000, 1);
    write(*file, synced);
    write(*file, "a little");
    synced += "a little";
  }
  const auto durable = image().size();
  {
    const auto file = must(open(synced.size()));
    write(*file, test::noise(300, 2));
    write(*file, test::noise(50, 3));
  }
  whole = image();
  for (std::size_t cut = durable; cut <= whole.size(); ++cut) {
    for (const bool zeros : {false, true}) {
      auto torn = whole.substr(0, cut);
      if (zeros) torn.resize(whole.size());
      put_image(torn);
      auto file = must(open(synced.size()));
      ASSERT_EQ(must(read(*file, 0, synced.size())), synced) << cut;
      const auto at = write(*file, "after the crash");
      ASSERT_GE(at, synced.size());
      file = must(open(at + 15));
      ASSERT_EQ(must(read(*file, at, 100)), "after the crash") << cut;
      ASSERT_EQ(must(read(*file, 0, synced.size())), synced) << cut;
    }
  }
}

TEST_F(SealedStaging, ChangedByteIsNeverReadAsAnother) {
  const std::string bytes = test::noise(200, 1) + test::noise(300, 2);
  {
    const auto file = create();
    write(*file, bytes.substr(0, 200));
    write(*file, bytes.substr(200));
  }
  const auto good = image();
  int refused = 0;
  for (std::size_t i = 0; i < good.size(); ++i) {
    auto changed = good;
    changed[i] = static_cast<char>(changed[i] ^ 0x20);
    put_image(changed);
    const auto file = open(bytes.size());
    if (!file) {
      EXPECT_EQ(file.error().code(), ErrorCode::kCorrupt) << i;
      ++refused;
      continue;
    }
    const auto first = read(**file, 0, 200);
    const auto second = read(**file, 200, 300);
    EXPECT_TRUE(!first || !second) << i;
    EXPECT_EQ(first ? *first : bytes.substr(0, 200), bytes.substr(0, 200)) << i;
    EXPECT_EQ(second ? *second : bytes.substr(200), bytes.substr(200)) << i;
  }
  EXPECT_EQ(refused, 64 + 2 * 48) << "headers";
}

TEST_F(SealedStaging, FileOfAnotherPlaceOrKeyIsCorrupt) {
  write(*create(), "bytes");
  auto other = kPlace;
  other.ino = 13;
  auto older = kPlace;
  older.generation = 2;
  auto sibling = kPlace;
  sibling.number = VersionNumber{8};
  for (const auto& place : {other, older, sibling}) {
    const auto file = must(open(5, place));
    EXPECT_EQ(code_of(read(*file, 0, 5)), ErrorCode::kCorrupt);
  }
  keys_ = test::test_keys(2);
  EXPECT_EQ(code_of(read(*must(open(5)), 0, 5)), ErrorCode::kCorrupt);
}

TEST_F(SealedStaging, SwappedBlocksAreCorrupt) {
  const auto file = create();
  write(*file, test::noise(100, 1));
  write(*file, test::noise(100, 2));
  const auto good = image();
  put_image(good.substr(0, 64) + good.substr(64 + 148, 148) + good.substr(64, 148));
  const auto swapped = must(open(200));
  EXPECT_EQ(code_of(read(*swapped, 0, 100)), ErrorCode::kCorrupt);
  EXPECT_EQ(code_of(read(*swapped, 100, 100)), ErrorCode::kCorrupt);
}

TEST_F(SealedStaging, FileShowsNoContent) {
  const auto file = create();
  for (int i = 0; i < 10; ++i) write(*file, "a canary in the staged content");
  EXPECT_EQ(image().find("canary"), std::string::npos);
}

TEST_F(SealedStaging, FailedWriteLeavesTheLogUsable) {
  const std::string path = kPath;
  test::FaultyFileSystem faulty(io::make_memory_file_system());
  auto& faults = faulty.faults;
  const auto file = must(create_staging_file(faulty, path, keys_.get(), kPlace));
  const auto bytes = test::noise(90'000, 1);
  EXPECT_EQ(write(*file, bytes), 0U);
  faults.disk_full = true;
  EXPECT_EQ(code_of(file->write(0, base::as_bytes(bytes))), ErrorCode::kNoSpace);
  faults.disk_full = false;
  EXPECT_EQ(must(read(*file, 0, bytes.size() + 1)), bytes);
  EXPECT_EQ(write(*file, "more"), bytes.size());
  const auto again = must(open_staging_file(faulty, path, keys_.get(), kPlace, bytes.size() + 4));
  EXPECT_EQ(must(read(*again, 0, bytes.size() + 4)), bytes + "more");
}

// As two futures of a virtual machine that goes back to a snapshot.
TEST_F(SealedStaging, RandomBytesThatRepeatSealNoTwoBlocksAlike) {
  const test::SealedPairs pairs;
  const test::RepeatedRandom repeated;
  write(*create(), "before");
  const auto snapshot = image();
  for (const char with : {'a', 'b'}) {
    put_image(snapshot);
    const auto file = must(open(6));
    write(*file, std::string(70'000, with));
    write(*file, std::string(10, with));
    EXPECT_EQ(must(read(*file, 70'006, 10)), std::string(10, with));
  }
  EXPECT_EQ(pairs.counts().texts, 1U + 2 * 4);
  EXPECT_EQ(pairs.counts().repeated, 0U);
}

}  // namespace
}  // namespace varve::version
