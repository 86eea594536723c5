// SPDX-License-Identifier: Apache-2.0
// Checks each implementation against the promises of ingest::Chunker.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <string_view>

#include "ingest/chunker.h"
#include "ingest/gear_chunker.h"
#include "support/chunker_test_data.h"
#include "support/slow_chunkers.h"
#include "support/test_keys.h"

namespace varve::ingest {
namespace {

using test::Bytes;
using test::cut;

struct Subject {
  std::string_view name;
  ChunkSizes sizes;
  bool scalar;

  [[nodiscard]] bool is_keyed() const { return (*find_chunker(name))->is_keyed(); }
};

const crypto::KeyRing& keys() {
  static const auto ring = varve::test::test_keys();
  return *ring;
}

std::unique_ptr<Chunker> make(const Subject& subject) {
  const auto* const ring = subject.is_keyed() ? &keys() : nullptr;
  auto made = subject.scalar ? make_gear16(subject.sizes, Gear16Form::kScalar, ring)
                             : make_chunker(subject.name, subject.sizes, ring);
  return made ? std::move(made).value() : nullptr;
}

/// Returns the length of the chunk at data[0] by the oracle.
std::size_t slow_next(const Subject& subject, std::span<const std::byte> data) {
  static const auto gear = test::slow_gear16_table(kGear16MatrixLow, kGear16MatrixHigh);
  static const auto keyed_gear = test::slow_gear16_table(keys());
  static const auto fastcdc = test::slow_fastcdc_table();
  static const auto keyed_fastcdc = test::slow_fastcdc_table(keys());
  if (subject.name.starts_with("gear16")) {
    return test::slow_gear16(subject.is_keyed() ? keyed_gear : gear, subject.sizes, data);
  }
  return test::slow_fastcdc(subject.is_keyed() ? keyed_fastcdc : fastcdc, subject.sizes, data);
}

class ChunkerContract : public testing::TestWithParam<Subject> {
 protected:
  const ChunkSizes sizes_ = GetParam().sizes;
  const std::unique_ptr<Chunker> chunker_ = make(GetParam());
};

TEST_P(ChunkerContract, TellsItsIdAndSizes) {
  EXPECT_EQ(chunker_->id(), GetParam().name);
  EXPECT_EQ(chunker_->sizes().min, sizes_.min);
  EXPECT_EQ(chunker_->sizes().avg, sizes_.avg);
  EXPECT_EQ(chunker_->sizes().max, sizes_.max);
}

TEST_P(ChunkerContract, CutsWhereTheSlowChunkerDoes) {
  for (const Bytes& data : {test::random_bytes(2 << 20, 15), test::text_bytes(1 << 20, 16),
                            test::repeated_bytes(300000, 777, 17), Bytes(200000)}) {
    for (std::span<const std::byte> rest(data); !rest.empty();) {
      const std::size_t length = chunker_->next(rest);
      ASSERT_EQ(length, slow_next(GetParam(), rest)) << "at " << data.size() - rest.size();
      rest = rest.subspan(length);
    }
  }
}

TEST_P(ChunkerContract, LengthsAreWithinTheSizesExceptTheLast) {
  for (const Bytes& data : {test::random_bytes(3 << 20, 1), test::text_bytes(3 << 20, 2),
                            test::repeated_bytes(3 << 20, 777, 3), Bytes(3 << 20)}) {
    const auto lengths = cut(*chunker_, data);
    ASSERT_FALSE(lengths.empty());
    for (std::size_t i = 0; i + 1 < lengths.size(); ++i) {
      ASSERT_GT(lengths[i], sizes_.min);
      ASSERT_LE(lengths[i], sizes_.max);
    }
    EXPECT_LE(lengths.back(), sizes_.max);
    EXPECT_EQ(std::accumulate(lengths.begin(), lengths.end(), std::size_t{0}), data.size());
  }
}

TEST_P(ChunkerContract, MeanLengthOfRandomBytesIsNearTheAverage) {
  const Bytes data = test::random_bytes(16 << 20, 7);
  const auto chunks = static_cast<double>(cut(*chunker_, data).size());
  const double mean = static_cast<double>(data.size()) / chunks;
  EXPECT_GT(mean, 0.9 * sizes_.avg);
  EXPECT_LT(mean, 1.4 * sizes_.avg);
}

TEST_P(ChunkerContract, DataUpToMinIsOneChunk) {
  const Bytes data = test::random_bytes(sizes_.min, 8);
  for (std::size_t length = 1; length <= data.size(); ++length) {
    ASSERT_EQ(chunker_->next(std::span(data).first(length)), length);
  }
}

TEST_P(ChunkerContract, BytesAfterMaxDoNotMatter) {
  for (const Bytes& data : {test::random_bytes(4 << 20, 9), test::text_bytes(2 << 20, 10)}) {
    const auto whole = cut(*chunker_, data);
    EXPECT_EQ(cut(*chunker_, data, sizes_.max), whole);
    EXPECT_EQ(cut(*chunker_, data, sizes_.max + 1), whole);
    EXPECT_EQ(cut(*chunker_, data, 2 * sizes_.max + 33), whole);
  }
}

TEST_P(ChunkerContract, AChunkEndsWhereItsOwnBytesSay) {
  const Bytes data = test::random_bytes(1 << 20, 11);
  std::span<const std::byte> rest(data);
  while (rest.size() > sizes_.max) {
    const std::size_t length = chunker_->next(rest);
    ASSERT_EQ(chunker_->next(rest.first(length)), length);
    rest = rest.subspan(length);
  }
}

TEST_P(ChunkerContract, OffsetInMemoryDoesNotMatter) {
  const Bytes data = test::random_bytes(sizes_.max, 12);
  const std::size_t length = chunker_->next(data);
  for (std::size_t offset = 1; offset < 70; ++offset) {
    Bytes moved(offset, std::byte{0xa5});
    moved.insert(moved.end(), data.begin(), data.end());
    ASSERT_EQ(chunker_->next(std::span(moved).subspan(offset)), length) << offset;
  }
}

TEST_P(ChunkerContract, InsertedBytesMoveBoundariesOnlyUntilTheyMeetAgain) {
  const Bytes data = test::random_bytes(8 << 20, 13);
  for (const std::size_t inserted : {1U, 13U, 64U, 5000U}) {
    Bytes edited = test::random_bytes(inserted, 14);
    edited.insert(edited.end(), data.begin(), data.end());
    std::set<std::size_t> ends;
    std::size_t at = 0;
    for (const auto length : cut(*chunker_, data)) ends.insert(at += length);
    at = 0;
    bool met = false;
    std::size_t met_at = 0;
    for (const auto length : cut(*chunker_, edited)) {
      at += length;
      const bool shared = at >= inserted && ends.contains(at - inserted);
      ASSERT_TRUE(shared || !met) << "boundaries part again at " << at;
      if (shared && !met) met_at = at;
      met = met || shared;
    }
    EXPECT_TRUE(met);
    EXPECT_LT(met_at, 40 * std::size_t{sizes_.avg});
  }
}

TEST_P(ChunkerContract, ReadsNothingOutsideTheData) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t inner = 2 * std::size_t{sizes_.max};
  void* const map = mmap(nullptr, inner + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(map, MAP_FAILED);
  auto* const start = static_cast<std::byte*>(map) + page;
  ASSERT_EQ(mprotect(start, inner, PROT_READ | PROT_WRITE), 0);
  // Zeros never end a chunk, so each scan runs to the data's end or to max.
  const std::size_t lengths[] = {sizes_.min - 1,  sizes_.min,      sizes_.min + 1, sizes_.min + 63,
                                 sizes_.min + 64, sizes_.min + 65, sizes_.avg - 1, sizes_.avg,
                                 sizes_.avg + 1,  sizes_.avg + 63, sizes_.max - 1, sizes_.max};
  for (const std::size_t length : lengths) {
    EXPECT_EQ(chunker_->next({start, length}), length);                   // A fault before it ...
    EXPECT_EQ(chunker_->next({start + inner - length, length}), length);  // ... and after it.
  }
  munmap(map, inner + 2 * page);
}

std::vector<Subject> subjects() {
  std::vector<Subject> all;
  for (const auto sizes : test::kAllSizes) {
    for (const auto& kind : chunker_kinds()) all.push_back({kind.id, sizes, false});
    all.push_back({"gear16", sizes, true});
    all.push_back({"gear16-keyed", sizes, true});
  }
  return all;
}

std::string name_of(const testing::TestParamInfo<Subject>& subject) {
  std::string name(subject.param.name);
  std::ranges::replace(name, '-', '_');
  return name + (subject.param.scalar ? "_scalar_" : "_") + std::to_string(subject.param.sizes.avg);
}

INSTANTIATE_TEST_SUITE_P(All, ChunkerContract, testing::ValuesIn(subjects()), name_of);

TEST(MakeChunker, UnknownIdIsUnsupported) {
  const auto made = make_chunker("rabin", ChunkSizes{});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), ErrorCode::kUnsupported);
}

TEST(MakeChunker, OddSizesAreInvalid) {
  for (const ChunkSizes sizes :
       {ChunkSizes{0, 8192, 65536}, ChunkSizes{2048, 8000, 65536}, ChunkSizes{2048, 32768, 65536},
        ChunkSizes{8192, 8192, 65536}, ChunkSizes{2048, 8192, 8192}, ChunkSizes{2050, 8192, 65536},
        ChunkSizes{2048, 8192, 65537}, ChunkSizes{2048, 8192, 262144}}) {
    for (const auto& kind : chunker_kinds()) {
      const auto made = make_chunker(kind.id, sizes, &keys());
      ASSERT_FALSE(made) << kind.id << ' ' << sizes.min << ':' << sizes.avg << ':' << sizes.max;
      EXPECT_EQ(made.error().code(), ErrorCode::kInvalid);
    }
  }
}

}  // namespace
}  // namespace varve::ingest
