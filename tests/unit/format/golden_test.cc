// SPDX-License-Identifier: Apache-2.0
// Images of every structure of format 1, as they were first written. Never regenerate them
// for a change of the format: raise the format's number and add images beside these.
// With VARVE_WRITE_GOLDEN=1 in the environment missing images are made.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "base/checksum.h"
#include "base/coding.h"
#include "format/alias_file.h"
#include "format/container.h"
#include "format/dir_node.h"
#include "format/manifest.h"
#include "format/recipe.h"
#include "format/superblock.h"
#include "io/posix_file_system.h"
#include "support/format_samples.h"
#include "support/test_keys.h"

namespace varve::format {

// Made by Meson, which knows where the sources are.
std::string golden_directory();

namespace {

using base::as_bytes;

// The image's bytes.
std::string golden(const std::string& name, const std::string& encoder_output) {
  const auto fs = io::make_posix_file_system();
  const std::string path = golden_directory() + "/" + name;
  if (std::getenv("VARVE_WRITE_GOLDEN") != nullptr && !*fs->exists(path)) {
    EXPECT_TRUE(
        fs->write_file_atomically(golden_directory(), name, as_bytes(encoder_output)).has_value());
  }
  const auto bytes = fs->read_file(path, kContainerBytesMax);
  EXPECT_TRUE(bytes.has_value()) << (bytes ? "" : bytes.error().message());
  return bytes ? *bytes : std::string();
}

void pad(std::string& bytes) {
  bytes.resize((bytes.size() + kContainerAlignment - 1) / kContainerAlignment *
               kContainerAlignment);
}

// A container of one plain and one compressed frame, whole with data and padding.
struct SampleContainer {
  std::string plain = "chunk one|chunk two is longer";
  std::string packed = compressible_text(3000);
  ContainerHeader header;
  std::string bytes;

  SampleContainer() {
    const auto packed_frame = make_plain_frame_codec({Codec::kZstd, 1})->compress(as_bytes(packed));
    const std::string stored(base::as_text(packed_frame.stored));
    header.store = StoreId{2};
    header.number = ContainerNumber{9};
    header.chunks = {chunk(ChunkId::make(VersionNumber{1}, 0), 10),
                     chunk(ChunkId::make(VersionNumber{1}, 1), 19),
                     chunk(ChunkId::make(VersionNumber{4}, 7), 3000)};
    FrameEntry first;
    first.chunk_count = 2;
    first.raw_bytes = first.stored_bytes = static_cast<std::uint32_t>(plain.size());
    first.checksum = base::checksum64(as_bytes(plain));
    FrameEntry second;
    second.chunk_count = 1;
    second.raw_bytes = 3000;
    second.stored_bytes = static_cast<std::uint32_t>(stored.size());
    second.codec = packed_frame.codec;
    second.checksum = base::checksum64(as_bytes(stored));
    header.frames = {first, second};
    bytes = encode_container_header(header) + plain + stored;
    pad(bytes);
  }
};

std::string raw_bytes(const ContainerHeader& header, const std::string& bytes, std::size_t frame) {
  const FrameEntry& entry = header.frames[frame];
  std::string raw(entry.raw_bytes, '\0');
  const auto decoded = make_plain_frame_codec({})->decode(
      place_of_frame(header, static_cast<std::uint32_t>(frame)), entry,
      as_bytes(bytes).subspan(header.header_bytes + entry.offset, entry.stored_bytes),
      std::as_writable_bytes(std::span(raw.data(), raw.size())));
  EXPECT_TRUE(decoded.has_value()) << (decoded ? "" : decoded.error().message());
  return raw;
}

TEST(Golden, ContainerIsReadAndItsHeaderWrittenAlike) {
  const SampleContainer sample;
  const std::string bytes = golden("container-1.bin", sample.bytes);
  const auto header = decode_container_header(as_bytes(bytes));
  ASSERT_TRUE(header.has_value()) << header.error().message();
  EXPECT_EQ(header->stored_bytes(), bytes.size());
  EXPECT_EQ(header->store, StoreId{2});
  EXPECT_EQ(header->number, ContainerNumber{9});
  EXPECT_EQ(header->chunks, sample.header.chunks);
  EXPECT_EQ(raw_bytes(*header, bytes, 0), sample.plain);
  EXPECT_EQ(raw_bytes(*header, bytes, 1), sample.packed);
  // The compressed bytes themselves are zstd's affair and may differ between its releases.
  ContainerHeader again = *header;
  EXPECT_EQ(encode_container_header(again), bytes.substr(0, header->header_bytes));
}

TEST(Golden, ContainerWithMarksIsReadAndWrittenAlike) {
  auto header = SampleContainer().header;
  for (std::size_t i = 0; i < kBirthMarkBytes; ++i) {
    header.marks[VersionNumber{4}][i] = static_cast<std::byte>(0xc0 + i);
  }
  header.marks[VersionNumber{1}] = kNoMark;
  const auto encoded = encode_container_header(header);
  const auto image = golden("container-2.bin", encoded);
  EXPECT_EQ(image, encoded);
  const auto read = decode_container_header(as_bytes(image));
  ASSERT_TRUE(read.has_value()) << read.error().message();
  EXPECT_EQ(*read, header);
}

TEST(Golden, ContainerWithPrefixesIsRead) {
  const auto codec = make_plain_frame_codec({Codec::kZstd, 1});
  std::vector<std::string> raw(3, compressible_text(3000));
  raw[1].replace(500, 20, "another text of them");
  raw[2].replace(1500, 20, "one more of the same");
  ContainerHeader header;
  header.store = StoreId{2};
  header.number = ContainerNumber{10};
  header.compact = true;
  std::vector<std::byte> data(kContainerBytesMax);
  std::size_t end = 0;
  for (std::uint32_t i = 0; i < raw.size(); ++i) {
    const auto encoded =
        codec->compress(as_bytes(raw[i]), as_bytes(i == 0 ? std::string_view() : raw[i - 1]));
    std::ranges::copy(encoded.stored, data.begin() + static_cast<std::ptrdiff_t>(end));
    FrameEntry frame;
    frame.chunk_count = 1;
    frame.codec = encoded.codec;
    frame.prefix = i == 0 ? 0 : 1;
    frame.raw_bytes = static_cast<std::uint32_t>(raw[i].size());
    frame.stored_bytes = static_cast<std::uint32_t>(encoded.stored.size());
    end += encoded.stored.size();
    header.frames.push_back(frame);
    header.chunks.push_back(chunk(ChunkId::make(VersionNumber{i + 1}, 0), 3000));
  }
  auto bytes = *codec->finish_container(header, data);
  bytes += base::as_text(std::span(data).first(end));
  const auto image = golden("container-3.bin", bytes);
  const auto read = decode_container_header(as_bytes(image));
  ASSERT_TRUE(read.has_value()) << read.error().message();
  for (std::uint32_t i = 0; i < raw.size(); ++i) {
    const auto& frame = read->frames[i];
    EXPECT_EQ(frame.prefix, i == 0 ? 0 : 1);
    std::string text(frame.raw_bytes, '?');
    const auto decoded = decode_frame(
        *codec, *read, i,
        as_bytes(image).subspan(read->header_bytes + extent_begin(frame), extent_bytes(frame)),
        std::as_writable_bytes(std::span(text.data(), text.size())));
    EXPECT_TRUE(decoded.has_value());
    EXPECT_EQ(text, raw[i]);
  }
  ContainerHeader again = *read;
  EXPECT_EQ(encode_container_header(again), image.substr(0, read->header_bytes));
}

TEST(Golden, SealedContainerIsReadAndWrittenAlike) {
  // Without compression, and with a salt that is no secret, all bytes follow from the keys.
  for (const auto& [name, cipher] : {std::pair("sealed-aes-1.bin", crypto::Cipher::kAes256Gcm),
                                     {"sealed-chacha-1.bin", crypto::Cipher::kChaCha20Poly1305}}) {
    const auto ring = test::test_keys(7, test::kTestRepositoryId, cipher);
    const auto codec = test::sealed_codec({}, ring, test::counting_salts());
    const std::vector<std::string> raw{"chunk one|chunk two is longer", compressible_text(3000)};
    ContainerHeader header = SampleContainer().header;
    header.frames[1].codec = Codec::kNone;
    header.frames[1].stored_bytes = 3000;
    std::vector<std::byte> data(kContainerBytesMax);
    std::ranges::copy(as_bytes(raw[0] + raw[1]), data.begin());
    std::string written = test::must(codec->finish_container(header, data));
    written += base::as_text(std::span(data).first(header.stored_bytes() - written.size()));
    const std::string bytes = golden(name, written);
    EXPECT_EQ(written, bytes);
    const auto read = decode_container_header(as_bytes(bytes), codec->keys());
    ASSERT_TRUE(read.has_value()) << read.error().message();
    EXPECT_EQ(*read, header);
    for (std::uint32_t i = 0; i < 2; ++i) {
      const auto& frame = read->frames[i];
      std::vector<std::byte> opened(frame.raw_bytes);
      ASSERT_TRUE(codec->decode(
          place_of_frame(*read, i), frame,
          as_bytes(bytes).subspan(read->header_bytes + frame.offset, frame.stored_bytes), opened));
      EXPECT_EQ(base::as_text(opened), raw[i]);
    }
  }
}

TEST(Golden, SuperblockIsReadAndWrittenAlike) {
  Superblock sample;
  sample.repository_id = "0123456789abcdef0123456789abcdef";
  const std::string text = golden("superblock-1.txt", encode_superblock(sample));
  const auto superblock = decode_superblock(text);
  ASSERT_TRUE(superblock.has_value()) << superblock.error().message();
  EXPECT_EQ(superblock->repository_id, sample.repository_id);
  EXPECT_EQ(encode_superblock(sample), text);
}

TEST(Golden, LeafPageIsReadAndWrittenAlike) {
  const DirPage sample = sample_leaf();
  const std::string bytes = golden("leaf-page-1.bin", encode_dir_page(sample));
  const auto page = decode_dir_page(bytes);
  ASSERT_TRUE(page.has_value()) << page.error().message();
  EXPECT_EQ(*page, sample);
  EXPECT_EQ(encode_dir_page(sample), bytes);
}

TEST(Golden, InnerPageIsReadAndWrittenAlike) {
  const DirPage sample = sample_inner();
  const std::string bytes = golden("inner-page-1.bin", encode_dir_page(sample));
  const auto page = decode_dir_page(bytes);
  ASSERT_TRUE(page.has_value()) << page.error().message();
  EXPECT_EQ(*page, sample);
  EXPECT_EQ(encode_dir_page(sample), bytes);
}

TEST(Golden, RecipeObjectIsReadAndWrittenAlike) {
  Recipe sample;
  for (std::uint32_t i = 0; i < 20; ++i) {
    sample.append_chunk(ChunkId::make(VersionNumber{1 + i % 3}, i * 1000), 2048 + i);
    if (i % 5 == 0) sample.append_hole(4096ULL << i);
  }
  const std::string bytes = golden("recipe-1.bin", encode_recipe_object(sample));
  const auto recipe = decode_recipe_object(bytes);
  ASSERT_TRUE(recipe.has_value()) << recipe.error().message();
  EXPECT_EQ(*recipe, sample);
  EXPECT_EQ(encode_recipe_object(sample), bytes);
}

TEST(Golden, EntryAloneIsReadAndWrittenAlike) {
  const DirEntry sample = sample_leaf().entries[5];
  const std::string bytes = golden("entry-1.bin", encode_dir_entry(sample));
  const auto entry = decode_dir_entry(bytes);
  ASSERT_TRUE(entry.has_value()) << entry.error().message();
  EXPECT_EQ(*entry, sample);
  EXPECT_EQ(encode_dir_entry(sample), bytes);
}

TEST(Golden, LabelsAreReadAndWrittenAlike) {
  ManifestHeader identity;
  identity.kind = ManifestKind::kLabels;
  identity.series = SeriesId{3};
  identity.stamp = 77;
  std::string body;
  const auto codec = make_plain_frame_codec({});
  ManifestEncoder encoder(identity, *codec, Compression{},
                          [&](std::string_view bytes) -> Result<void> {
                            body += bytes;
                            return {};
                          });
  EXPECT_TRUE(encoder.add(ManifestRecord::kSeries, "", "a series").has_value());
  // Of two pieces, in two blocks.
  EXPECT_TRUE(encoder.add(ManifestRecord::kSetting, "name", std::string(140000, 'x')).has_value());
  const auto header = encoder.finish();
  ASSERT_TRUE(header.has_value());
  const auto bytes = golden("labels-1.bin", encode_manifest_header(*header) + body);
  EXPECT_EQ(encode_manifest_header(*header) + body, bytes);
  const auto read = decode_manifest_header(as_bytes(bytes));
  ASSERT_TRUE(read.has_value()) << read.error().message();
  EXPECT_EQ(*read, *header);
}

TEST(Golden, PageBoundariesStayWhereTheyWere) {
  std::string found;
  for (int i = 0; i < 300; ++i) {
    const std::string name = "entry-" + std::to_string(i);
    for (unsigned level = 0; level < 2; ++level) {
      if (is_page_boundary(name, level)) found += std::to_string(level) + " " + name + "\n";
    }
  }
  EXPECT_EQ(found, golden("page-boundaries-1.txt", found));
}

TEST(Golden, Aliases) {
  const auto pooled = [](std::uint32_t birth, std::uint32_t ordinal) {
    return ChunkId::make(static_cast<VersionNumber>(kPoolBit + birth), ordinal);
  };
  const TaggedAliases one{{pooled(9, 300), 3, pooled(4, 70000)},
                          {1, UINT64_MAX, 0x1122334455667788}};
  const TaggedAliases other{{pooled(9, 310), 1, pooled(12, 0)}, {7}};
  AliasBlockEncoder block;
  ASSERT_TRUE(block.add(one) && block.add(other));
  const auto header = encode_alias_header({1, 4});
  const auto encoded = header + block.take();
  const auto image = golden("aliases-1.bin", encoded);
  EXPECT_EQ(image, encoded);
  const auto bytes = as_bytes(image);
  EXPECT_EQ(*decode_alias_header(bytes), (AliasFileHeader{1, 4}));
  EXPECT_EQ(*decode_alias_block(bytes.subspan(kAliasHeaderBytes)), (std::vector{one, other}));
}

TEST(Golden, BirthsOfAliases) {
  Births births;
  births[VersionNumber{kPoolBit + 4}] = {{std::byte{0x11}}, SeriesId{2}, VersionNumber{6}, 0x99};
  births[VersionNumber{kPoolBit + 9}] = {{std::byte{0x22}}, SeriesId{3}, VersionNumber{1}, {}};
  const auto part = encode_alias_births(births);
  const auto encoded = encode_alias_header({0, 0, part.size()}) + part;
  const auto image = golden("aliases-2.bin", encoded);
  EXPECT_EQ(image, encoded);
  const auto bytes = as_bytes(image);
  const auto header = decode_alias_header(bytes);
  ASSERT_TRUE(header.has_value()) << header.error().message();
  EXPECT_EQ(header->births_bytes, part.size());
  EXPECT_EQ(*decode_alias_births(bytes.subspan(kAliasHeaderBytes)), births);
}

}  // namespace
}  // namespace varve::format
