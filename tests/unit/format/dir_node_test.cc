// SPDX-License-Identifier: Apache-2.0
#include "format/dir_node.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/coding.h"
#include "support/format_samples.h"

namespace varve::format {
namespace {

// Returns the bytes of a page's entry: flags, shared name bytes, name, and the rest.
std::string entry_bytes(unsigned char flags, unsigned char shared, std::string_view name,
                        std::string_view rest) {
  std::string out;
  base::ByteWriter w(out);
  w.u8(flags);
  w.u8(shared);
  w.sized_text(name);
  w.text(rest);
  return out;
}

std::string page_bytes(const std::vector<std::string>& entries) {
  std::string out;
  base::ByteWriter w(out);
  w.u8(1);
  w.varint(entries.size());
  for (const auto& entry : entries) w.text(entry);
  return out;
}

// Flags of a FIFO with the same owner and whole seconds: the name is followed by mode and time.
constexpr unsigned char kFifoFlags = 0x06;
const std::string kFifoRest("\x80\x20\x00", 3);

std::string fifo_page(const std::vector<std::string>& names) {
  std::vector<std::string> entries;
  for (const auto& name : names) entries.push_back(entry_bytes(kFifoFlags, 0, name, kFifoRest));
  return page_bytes(entries);
}

void expect_corrupt(const std::string& bytes, const std::string& what) {
  const auto page = decode_dir_page(bytes);
  ASSERT_FALSE(page.has_value()) << what;
  EXPECT_EQ(page.error().code(), ErrorCode::kCorrupt) << what;
}

void expect_round_trip(const DirPage& page) {
  const auto back = decode_dir_page(encode_dir_page(page));
  ASSERT_TRUE(back.has_value()) << back.error().message();
  EXPECT_EQ(*back, page);
}

TEST(LeafPage, EveryKindOfEntryRoundTrips) { expect_round_trip(sample_leaf()); }

TEST(LeafPage, WithoutEntriesRoundTrips) { expect_round_trip(LeafPage{}); }

TEST(LeafPage, HostileNamesRoundTrip) {
  std::set<std::string> names = {"\x01", "\n",  "...", ".a",   " ",    "a",
                                 "a\n",  "a\\", "-rf", "\xff", "\xc3", std::string(255, 'z')};
  names.insert(std::string(255, '\xff'));
  names.insert(std::string(254, 'z') + "{");
  names.insert(std::string(254, 'z'));
  LeafPage page;
  for (const auto& name : names) page.entries.push_back(plain_file(name));
  expect_round_trip(page);
}

TEST(LeafPage, RandomNamesOfAnyByteRoundTrip) {
  std::mt19937 random(21);
  for (int round = 0; round < 50; ++round) {
    std::set<std::string> names;
    for (int i = 0; i < 60; ++i) {
      std::string name(1 + random() % (round % 2 == 0 ? 3 : 255), '\0');
      for (auto& c : name) {
        do c = static_cast<char>(random());
        while (c == '\0' || c == '/');
      }
      if (name != "." && name != "..") names.insert(name);
    }
    LeafPage page;
    for (const auto& name : names) page.entries.push_back(plain_file(name));
    expect_round_trip(page);
  }
}

TEST(LeafPage, ExtremeAttributesRoundTrip) {
  LeafPage page;
  const std::int64_t times[] = {INT64_MIN, INT64_MAX, -1, 0, 1};
  for (const auto seconds : times) {
    DirEntry entry = plain_file("f" + std::to_string(page.entries.size()));
    entry.mtime = {seconds, static_cast<std::uint32_t>(page.entries.size() % 2) * 999999999U};
    entry.uid = seconds < 0 ? 0xffffffff : 0;
    entry.gid = seconds > 0 ? 0xfffffffe : 1;
    entry.mode = S_IFREG | (seconds == 0 ? 07777 : 0);
    page.entries.push_back(entry);
  }
  expect_round_trip(page);
}

TEST(LeafPage, LargestXattrsAndSymlinkRoundTrip) {
  LeafPage page;
  DirEntry& file = page.entries.emplace_back(plain_file("f"));
  for (char c = 'a'; c < 'e'; ++c) {
    file.xattrs.push_back({std::string("user.") + c, std::string(kXattrValueBytesMax - 6, c)});
  }
  DirEntry& link = page.entries.emplace_back();
  link.name = "l";
  link.mode = S_IFLNK | 0777;
  link.symlink_target = std::string(kSymlinkBytesMax, 'x');
  expect_round_trip(page);
}

TEST(LeafPage, LongXattrsAreNotWrittenAsRepeated) {
  // A repetition costs the reader memory, so the reader accepts only short ones.
  for (const std::size_t bytes : {100U, 10000U}) {
    LeafPage page;
    for (const char* name : {"a", "b", "c"}) {
      page.entries.push_back(plain_file(name));
      page.entries.back().xattrs = {{"user.x", std::string(bytes, 'v')}};
    }
    expect_round_trip(page);
    EXPECT_EQ(encode_dir_page(page).size() > 3 * bytes, bytes == 10000U);
  }
}

TEST(LeafPage, NeighboursThatAreAlikeCostFewBytes) {
  LeafPage page;
  Recipe recipe;
  for (std::uint32_t i = 0; i < 32; ++i) {
    DirEntry entry = plain_file("file-" + std::to_string(1000 + i) + ".txt");
    entry.uid = entry.gid = 1000;
    entry.mtime = {1700000000 + i * 1000, 0};
    entry.recipe->append_chunk(ChunkId::make(VersionNumber{3}, 5000 + i), 8000);
    entry.size = entry.data_bytes = 8000;
    page.entries.push_back(entry);
  }
  expect_round_trip(page);
  // Flags 1, name 2 + 5, time 2, recipe 5, for all but the first.
  EXPECT_LE(encode_dir_page(page).size(), 32U * 16U + 30U);
}

TEST(LeafPage, EveryTruncationReturnsCorrupt) {
  const std::string bytes = encode_dir_page(sample_leaf());
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    expect_corrupt(bytes.substr(0, n), std::to_string(n));
  }
  expect_corrupt(bytes + '\0', "a byte more");
}

TEST(DirPage, FlippedBytesNeverBreakTheReader) {
  for (const DirPage& page : {DirPage(sample_leaf()), DirPage(sample_inner())}) {
    std::string bytes = encode_dir_page(page);
    for (std::size_t at = 0; at < bytes.size(); ++at) {
      for (unsigned bit = 0; bit < 8; ++bit) {
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit));
        // An accepted page must survive encoding and decoding.
        const auto back = decode_dir_page(bytes);
        if (back) {
          const auto again = decode_dir_page(encode_dir_page(*back));
          ASSERT_TRUE(again.has_value()) << "byte " << at;
          ASSERT_EQ(*again, *back);
        }
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit));
      }
    }
  }
}

TEST(DirPage, RandomBytesNeverBreakTheReader) {
  std::mt19937 random(77);
  for (int round = 0; round < 20000; ++round) {
    std::string bytes(random() % 60, '\0');
    for (auto& c : bytes) c = static_cast<char>(random() % (round % 2 == 0 ? 256 : 8));
    if (!bytes.empty()) bytes[0] = static_cast<char>(1 + random() % 2);
    if (const auto page = decode_dir_page(bytes)) expect_round_trip(*page);
  }
}

TEST(LeafPage, NamesOutOfOrderReturnCorrupt) {
  ASSERT_TRUE(decode_dir_page(fifo_page({"a", "b"})).has_value());
  expect_corrupt(fifo_page({"b", "a"}), "descending");
  expect_corrupt(fifo_page({"a", "a"}), "twice");
  // Bytes order as unsigned numbers.
  ASSERT_TRUE(decode_dir_page(fifo_page({"a", "\xff"})).has_value());
  expect_corrupt(fifo_page({"\xff", "a"}), "as signed numbers");
}

TEST(LeafPage, NamesThatNoDirectoryHasReturnCorrupt) {
  const std::string bad[] = {
      "", ".", "..", "a/b", "/", std::string("a\0b", 3), std::string(256, 'a')};
  for (const auto& name : bad) expect_corrupt(fifo_page({name}), "name " + name);
}

TEST(LeafPage, SharedNameBytesBeyondThePreviousNameReturnCorrupt) {
  const std::string first = entry_bytes(kFifoFlags, 0, "ab", kFifoRest);
  ASSERT_TRUE(
      decode_dir_page(page_bytes({first, entry_bytes(kFifoFlags, 2, "c", kFifoRest)})).has_value());
  expect_corrupt(page_bytes({first, entry_bytes(kFifoFlags, 3, "c", kFifoRest)}), "3 of 2");
  expect_corrupt(page_bytes({entry_bytes(kFifoFlags, 1, "c", kFifoRest)}), "1 of 0");
}

TEST(LeafPage, UnknownTypesAndFlagsReturnCorrupt) {
  expect_corrupt(page_bytes({entry_bytes(kFifoFlags | 0x80, 0, "a", kFifoRest)}), "bit 7");
  expect_corrupt(page_bytes({entry_bytes(0x07, 0, "a", std::string("\0", 1))}), "no mode");
  expect_corrupt(page_bytes({entry_bytes(kFifoFlags, 0, "a", std::string("\x80\xe0\x03\0", 4))}),
                 "type 0170000");
  expect_corrupt(page_bytes({entry_bytes(kFifoFlags, 0, "a", std::string("\x80\xa0\x04\0", 4))}),
                 "mode over 16 bits");
  expect_corrupt(page_bytes({entry_bytes(kFifoFlags | 0x20, 0, "a", kFifoRest)}),
                 "a FIFO with a recipe");
  expect_corrupt(page_bytes({entry_bytes(kFifoFlags | 0x40, 0, "a", kFifoRest)}),
                 "xattrs of no previous entry");
}

TEST(LeafPage, NanosecondsOutOfRangeReturnCorrupt) {
  const auto page = [](std::uint32_t nanoseconds) {
    std::string rest = kFifoRest;
    base::ByteWriter(rest).u32(nanoseconds);
    return page_bytes({entry_bytes(0x02, 0, "a", rest)});
  };
  ASSERT_TRUE(decode_dir_page(page(999999999)).has_value());
  expect_corrupt(page(1000000000), "1e9");
  expect_corrupt(page(0), "zero is said by a flag");
}

TEST(LeafPage, LinksWithoutGroupReturnCorrupt) {
  const auto page = [](unsigned char nlink, unsigned char group) {
    const std::string rest = kFifoRest + static_cast<char>(nlink) + static_cast<char>(group);
    return page_bytes({entry_bytes(kFifoFlags | 0x08, 0, "a", rest)});
  };
  ASSERT_TRUE(decode_dir_page(page(2, 7)).has_value());
  expect_corrupt(page(2, 0), "two names without a group");
  expect_corrupt(page(0, 7), "no name");
}

TEST(LeafPage, CountBeyondTheBytesReturnsCorrupt) {
  std::string bytes("\x01", 1);
  base::ByteWriter(bytes).varint(1ULL << 40);
  expect_corrupt(bytes + std::string(100, '\0'), "count");
}

TEST(DirPage, OverTheBoundReturnsCorrupt) {
  expect_corrupt(std::string(kDirPageBytesMax + 1, '\x01'), "too long");
}

TEST(DirPage, UnknownKindReturnsCorrupt) {
  expect_corrupt("", "nothing");
  expect_corrupt(std::string("\0\0", 2), "kind 0");
  expect_corrupt(encode_recipe_object(Recipe{}), "a recipe");
}

TEST(InnerPage, RoundTrips) { expect_round_trip(sample_inner()); }

TEST(InnerPage, EveryTruncationReturnsCorrupt) {
  const std::string bytes = encode_dir_page(sample_inner());
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    expect_corrupt(bytes.substr(0, n), std::to_string(n));
  }
}

TEST(InnerPage, WithoutReferencesReturnsCorrupt) {
  expect_corrupt(std::string("\x02\x00", 2), "empty");
}

TEST(InnerPage, ReferencesOutOfOrderReturnCorrupt) {
  InnerPage page;
  page.refs = {{"b", sample_node(1), 1, 1}, {"c", sample_node(2), 1, 1}};
  std::string bytes = encode_dir_page(page);
  const std::size_t second = bytes.find('c');
  ASSERT_NE(second, std::string::npos);
  bytes[second] = 'b';
  expect_corrupt(bytes, "twice");
  bytes[second] = 'a';
  expect_corrupt(bytes, "descending");
}

TEST(DirPageDeathTest, WritingNamesOutOfOrderIsAProgrammersError) {
  LeafPage page;
  page.entries = {plain_file("b"), plain_file("a")};
  EXPECT_DEATH(static_cast<void>(encode_dir_page(page)), "follows");
}

TEST(DirEntryAlone, EveryKindRoundTrips) {
  for (DirEntry entry : sample_leaf().entries) {
    const auto back = decode_dir_entry(encode_dir_entry(entry));
    ASSERT_TRUE(back.has_value()) << entry.name;
    EXPECT_EQ(*back, entry);
  }
}

TEST(DirEntryAlone, MayBeNamelessAndUnlinked) {
  DirEntry entry = plain_file("");
  entry.nlink = 0;
  EXPECT_EQ(*decode_dir_entry(encode_dir_entry(entry)), entry);
}

TEST(DirEntryAlone, EveryTruncationReturnsCorrupt) {
  const std::string bytes = encode_dir_entry(sample_leaf().entries[5]);
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_FALSE(decode_dir_entry(std::string_view(bytes).substr(0, n)).has_value()) << n;
  }
  EXPECT_FALSE(decode_dir_entry(bytes + '\0').has_value());
}

TEST(PageBoundary, StandsAtOneNameIn32AtEachLevel) {
  for (unsigned level = 0; level < 4; ++level) {
    int boundaries = 0;
    for (int i = 0; i < 32000; ++i) {
      boundaries += is_page_boundary("name-" + std::to_string(i), level) ? 1 : 0;
    }
    EXPECT_NEAR(boundaries, 1000, 150) << "level " << level;
  }
}

TEST(PageBoundary, LevelsAreIndependent) {
  int both = 0;
  for (int i = 0; i < 32000; ++i) {
    const std::string name = "name-" + std::to_string(i);
    both += is_page_boundary(name, 0) && is_page_boundary(name, 1) ? 1 : 0;
  }
  EXPECT_LT(both, 100);
}

TEST(LeafPage, MoreEntriesBelowThanAVersionHasReturnsCorrupt) {
  LeafPage page;
  for (const char* name : {"a", "b"}) {
    DirEntry& entry = page.entries.emplace_back(plain_file(name));
    entry.mode = S_IFDIR | 0755;
    entry.recipe.reset();
    entry.size = entry.data_bytes = 0;
    entry.subtree_entries = 0x7ffffffe;
  }
  expect_round_trip(page);
  page.entries.back().subtree_entries += 1;
  expect_corrupt(encode_dir_page(page), "2^32 - 1 entries");
}

TEST(LeafPage, EntriesThatAreSmallOnlyAsTheyAreStoredReturnCorrupt) {
  LeafPage page;
  for (int i = 10000; i < 14000; ++i) {
    page.entries.push_back(plain_file(std::string(240, 'n') + std::to_string(i)));
  }
  const auto bytes = encode_dir_page(page);
  EXPECT_LT(bytes.size(), 100'000U);
  EXPECT_GT(memory_of_page(page), kDirPageMemoryMax);
  expect_corrupt(bytes, "too much memory");
}

}  // namespace
}  // namespace varve::format
