// SPDX-License-Identifier: Apache-2.0
#include "remote/changes.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "support/temp_repository.h"

namespace varve::remote {
namespace {

using test::code_of;
using test::must;

struct Seen {
  std::uint8_t table = 0;
  std::string key;
  std::optional<std::string> value;
  bool operator==(const Seen&) const = default;
};

Result<std::vector<Seen>> read(const std::vector<std::string>& parts) {
  std::vector<Seen> seen;
  for (const auto& part : parts) {
    VARVE_TRY(for_each_change(part, [&](const Change& change) -> Result<void> {
      seen.push_back({change.table, std::string(change.key), {}});
      if (change.value) seen.back().value = std::string(*change.value);
      return {};
    }));
  }
  return seen;
}

TEST(Changes, AreReadAsTheyWereWritten) {
  ChangeWriter writer;
  std::vector<Seen> written;
  for (int i = 0; i < 300; ++i) {
    Seen one{static_cast<std::uint8_t>(i % 19), "key " + std::to_string(i), {}};
    if (i % 3 != 0) one.value = test::noise(static_cast<std::size_t>(i * 300), 1);
    written.push_back(one);
    std::optional<std::string_view> value;
    if (one.value) value = *one.value;
    writer.add({one.table, one.key, value});
  }
  const auto parts = writer.finish();
  EXPECT_GT(parts.size(), 1U);
  EXPECT_EQ(must(read(parts)), written);
}

// Some changes of compressed bytes give other changes: the digest in the head finds those.
TEST(Changes, DamagedPartsNeverReadOutsideTheirBytes) {
  ChangeWriter writer;
  for (int i = 0; i < 50; ++i) writer.add({1, "key " + std::to_string(i), "value"});
  const auto part = writer.finish().front();
  std::mt19937 random(7);
  for (int round = 0; round < 20000; ++round) {
    auto changed = part;
    changed[random() % changed.size()] = static_cast<char>(random());
    if (random() % 4 == 0) changed.resize(random() % changed.size());
    static_cast<void>(read({changed}));
  }
}

TEST(Changes, ForgedLengthReturnsCorrupt) {
  ChangeWriter writer;
  writer.add({1, "key", "value"});
  auto part = writer.finish().front();
  for (std::size_t i = 12; i < 20; ++i) part[i] = '\x7f';
  EXPECT_EQ(code_of(read({part})), ErrorCode::kCorrupt);
}

TEST(ObjectMap, RecordIsDecodedAsItWasEncoded) {
  const Extent extent{"r/seg/w-1", 100, 200, 42, 7};
  const auto record =
      must(decode_extent(extent_key("series/00000001/labels", 1U << 20), encode_extent(extent)));
  EXPECT_EQ(record.path, "series/00000001/labels");
  EXPECT_EQ(record.offset, 1U << 20);
  EXPECT_EQ(record.extent, extent);
}

TEST(ObjectMap, PathOutsideOfTheRepositoryReturnsCorrupt) {
  const auto value = encode_extent({"o", 1, 1, 0, 1});
  for (const auto* const path :
       {"", "/etc/passwd", "../x", "series/../../x", "a//b", "a/", "./a"}) {
    EXPECT_EQ(code_of(decode_extent(extent_key(path, 0), value)), ErrorCode::kCorrupt) << path;
  }
}

// A reader allocates an object's bytes before the request.
TEST(ObjectMap, LongerObjectThanAnyUploadedReturnsCorrupt) {
  const auto decoded = [](std::uint64_t bytes, std::uint64_t object_bytes) {
    return decode_extent(extent_key("f", 0), encode_extent({"o", bytes, object_bytes, 0, 1}));
  };
  EXPECT_TRUE(decoded(1, kExtentBytesMax));
  EXPECT_EQ(code_of(decoded(1, kExtentBytesMax + 1)), ErrorCode::kCorrupt);
  EXPECT_EQ(code_of(decoded(1ULL << 60, 1ULL << 60)), ErrorCode::kCorrupt);
}

TEST(ObjectMap, GapReturnsCorrupt) {
  std::map<std::string, std::string> records;
  records[extent_key("f", 0)] = encode_extent({"a", 10, 10, 0, 0});
  records[extent_key("f", 11)] = encode_extent({"b", 10, 10, 0, 0});
  EXPECT_EQ(code_of(map_of(records)), ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace varve::remote
