// SPDX-License-Identifier: Apache-2.0
#include "format/beside.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>

#include "base/checksum.h"
#include "base/coding.h"

namespace varve::format {
namespace {

constexpr SeriesId kSeries{7};

BesideRecord record(Ino ino, Ino parent, const char* name, std::uint32_t mode,
                    const char* content = "") {
  BesideRecord made;
  made.ino = ino;
  made.parent = parent;
  made.name = name;
  made.mode = mode;
  made.uid = 5;
  made.gid = 6;
  made.mtime = {-1, 999999999};
  made.ctime = {2, 3};
  made.atime = {4, 5};
  made.content = content;
  return made;
}

BesideImage example() {
  BesideImage image;
  image.next = 20;
  image.records = {record(2, 9, "in", S_IFREG | 0600, "text"),
                   record(5, kRootIno, "latest", S_IFLNK | 0777, "v1"),
                   record(9, kRootIno, "folder", S_IFDIR | 0755)};
  return image;
}

bool decodes(const BesideImage& image) {
  return decode_beside(kSeries, encode_beside(kSeries, image)).has_value();
}

TEST(Beside, RoundTrip) {
  const auto bytes = encode_beside(kSeries, example());
  const auto image = decode_beside(kSeries, bytes);
  ASSERT_TRUE(image);
  EXPECT_EQ(image->next, 20U);
  ASSERT_EQ(image->records.size(), 3U);
  EXPECT_EQ(image->records[0].name, "in");
  EXPECT_EQ(image->records[0].content, "text");
  EXPECT_EQ(image->records[0].mtime, (Timestamp{-1, 999999999}));
  EXPECT_EQ(encode_beside(kSeries, *image), bytes);
}

TEST(Beside, EveryChangedByteAndEveryCutIsDamage) {
  const auto bytes = encode_beside(kSeries, example());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    auto changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ 0x10);
    EXPECT_FALSE(decode_beside(kSeries, changed)) << i;
    EXPECT_FALSE(decode_beside(kSeries, bytes.substr(0, i))) << i;
  }
  EXPECT_FALSE(decode_beside(SeriesId{8}, bytes));
}

TEST(Beside, NewerFormatIsUnsupported) {
  auto bytes = encode_beside(kSeries, example());
  bytes[8] = 2;
  bytes.resize(bytes.size() - 8);
  base::ByteWriter(bytes).u64(base::checksum64(base::as_bytes(bytes)));
  const auto read = decode_beside(kSeries, bytes);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code(), ErrorCode::kUnsupported);
}

TEST(Beside, ForgedRecordsAreRefused) {
  ASSERT_TRUE(decodes(example()));
  const auto with = [](const BesideRecord& changed) {
    auto image = example();
    image.records[0] = changed;
    return decodes(image);
  };
  EXPECT_FALSE(with(record(2, 9, "..", S_IFREG | 0600)));
  EXPECT_FALSE(with(record(2, 9, "a/b", S_IFREG | 0600)));
  EXPECT_FALSE(with(record(2, 9, "", S_IFREG | 0600)));
  EXPECT_FALSE(with(record(2, 5, "in", S_IFREG | 0600)));  // In a link.
  EXPECT_FALSE(with(record(2, 3, "in", S_IFREG | 0600)));  // In nothing.
  EXPECT_FALSE(with(record(2, 2, "in", S_IFDIR | 0700)));  // In itself.
  EXPECT_FALSE(with(record(2, 9, "in", S_IFDIR | 0700)));  // A folder in a folder.
  EXPECT_FALSE(with(record(2, 9, "in", S_IFCHR | 0600)));
  EXPECT_FALSE(with(record(2, kRootIno, "latest", S_IFREG)));    // A name twice.
  EXPECT_FALSE(with(record(2, kRootIno, "l", S_IFLNK | 0777)));  // Without a target.
  EXPECT_FALSE(with(record(1, kRootIno, "root", S_IFREG | 0600)));
  EXPECT_FALSE(with(record(7, 9, "in", S_IFREG | 0600)));  // Not ascending.
  auto image = example();
  image.next = 9;
  EXPECT_FALSE(decodes(image));
  image = example();
  for (Ino ino = 20; image.records.size() <= kBesideNamesMax; ++ino) {
    image.records.push_back(record(ino, 9, std::to_string(ino).c_str(), S_IFREG));
    image.next = ino + 1;
  }
  EXPECT_FALSE(decodes(image));
  image.records.resize(kBesideNamesMax);
  EXPECT_TRUE(decodes(image));
}

}  // namespace
}  // namespace varve::format
