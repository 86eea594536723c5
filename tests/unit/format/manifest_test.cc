// SPDX-License-Identifier: Apache-2.0
#include "format/manifest.h"

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "base/coding.h"
#include "support/format_samples.h"

namespace varve::format {
namespace {

using base::as_bytes;

using Records = std::vector<std::tuple<ManifestRecord, std::string, std::string>>;

ManifestHeader identity() {
  ManifestHeader header;
  header.series = SeriesId{3};
  header.number = VersionNumber{7};
  return header;
}

std::string encoded(const Records& records, Codec codec) {
  std::string body;
  const auto frames = make_plain_frame_codec({});
  const auto compression = codec == Codec::kNone ? Compression{} : kManifestCompression;
  ManifestEncoder encoder(identity(), *frames, compression,
                          [&](std::string_view bytes) -> Result<void> {
                            body += bytes;
                            return {};
                          });
  for (const auto& [what, key, value] : records) {
    EXPECT_TRUE(encoder.add(what, key, value).has_value());
  }
  const auto header = encoder.finish();
  EXPECT_TRUE(header.has_value());
  EXPECT_EQ(header->stored_bytes, body.size());
  return encode_manifest_header(*header) + body;
}

// Records whose pieces are put together; an empty list and a message where one is refused.
Records decoded(std::string_view file, std::string& error) {
  Records records;
  const auto header = decode_manifest_header(as_bytes(file));
  if (!header) {
    error = header.error().message();
    return {};
  }
  std::size_t at = kManifestHeaderBytes;
  for (std::uint32_t i = 0; i < header->blocks; ++i) {
    const auto of_block =
        decode_manifest_block_header(as_bytes(file).subspan(std::min(at, file.size())));
    at += kManifestBlockHeaderBytes;
    if (!of_block || at > file.size() || of_block->stored_bytes > file.size() - at) {
      error = "a block's header";
      return {};
    }
    std::vector<std::byte> raw(of_block->raw_bytes);
    const auto block = make_plain_frame_codec({})->decode(
        place_of_block(*header, i), *of_block, as_bytes(file).subspan(at, of_block->stored_bytes),
        std::span(raw));
    at += of_block->stored_bytes;
    if (!block) {
      error = block.error().message();
      return {};
    }
    const auto visited =
        for_each_manifest_piece(raw, [&](const ManifestPiece& piece) -> Result<void> {
          if (piece.later) {
            std::get<2>(records.back()) += piece.value;
          } else {
            records.emplace_back(piece.what, piece.key, piece.value);
          }
          return {};
        });
    if (!visited) {
      error = visited.error().message();
      return {};
    }
  }
  if (at != file.size()) error = "bytes are left";
  return records;
}

const Records& sample() {
  static const Records records = {
      {ManifestRecord::kNode, std::string("\0\0\0\7\0\0\0\0", 8), compressible_text(3000)},
      {ManifestRecord::kRecipe, std::string("\0\0\0\7\0\0\0\1", 8), compressible_text(300000)},
      {ManifestRecord::kSeries, "", "a series"},
      {ManifestRecord::kVersion, std::string("\0\0\0\7", 4), ""},
  };
  return records;
}

TEST(Manifest, RecordsRoundTripWhateverTheirLength) {
  for (const Codec codec : {Codec::kNone, Codec::kZstd}) {
    const auto file = encoded(sample(), codec);
    std::string error;
    EXPECT_EQ(decoded(file, error), sample()) << error;
    EXPECT_EQ(error, "");
  }
}

TEST(Manifest, HeaderRoundTrips) {
  ManifestHeader header;
  header.kind = ManifestKind::kLabels;
  header.series = SeriesId{0xfffffffe};
  header.blocks = 5;
  header.stored_bytes = 12345;
  header.records = 99;
  header.stamp = 1ULL << 40;
  const auto bytes = encode_manifest_header(header);
  ASSERT_EQ(bytes.size(), kManifestHeaderBytes);
  const auto back = decode_manifest_header(as_bytes(bytes));
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(*back, header);
}

TEST(Manifest, EveryFlippedByteIsFound) {
  const auto file = encoded({sample()[0], sample()[2]}, Codec::kZstd);
  for (std::size_t i = 0; i < file.size(); ++i) {
    auto damaged = file;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    std::string error;
    static_cast<void>(decoded(damaged, error));
    EXPECT_NE(error, "") << i;
  }
}

TEST(Manifest, EveryTruncationIsFound) {
  const auto file = encoded({sample()[0], sample()[2]}, Codec::kNone);
  for (std::size_t i = 0; i < file.size(); i += 7) {
    std::string error;
    static_cast<void>(decoded(std::string_view(file).substr(0, i), error));
    EXPECT_NE(error, "") << i;
  }
}

TEST(Manifest, HeadersThatContradictThemselvesAreRefused) {
  const auto refused = [](const ManifestHeader& header) {
    const auto back = decode_manifest_header(as_bytes(encode_manifest_header(header)));
    return !back && back.error().code() == ErrorCode::kCorrupt;
  };
  auto header = identity();
  EXPECT_FALSE(refused(header));
  header.number = VersionNumber{};
  EXPECT_TRUE(refused(header));  // A version's manifest names it,
  header.kind = ManifestKind::kLabels;
  EXPECT_FALSE(refused(header));
  header.blocks = 2;
  header.stored_bytes = 39;
  EXPECT_TRUE(refused(header));  // blocks have headers,
  header = identity();
  header.stamp = 1;
  EXPECT_TRUE(refused(header));  // only labels have a stamp,
  header = identity();
  header.number = VersionNumber{};
  header.kind = ManifestKind::kUpdate;
  EXPECT_TRUE(refused(header));  // and only labels that grow have updates.
  header.grows = true;
  EXPECT_FALSE(refused(header));
}

TEST(Manifest, OnlyLabelsHaveFormat2) {
  auto header = identity();
  header.grows = true;
  const auto back = decode_manifest_header(as_bytes(encode_manifest_header(header)));
  ASSERT_FALSE(back);
  EXPECT_EQ(back.error().code(), ErrorCode::kUnsupported);
}

TEST(Manifest, BlocksWithImpossibleLengthsAreRefused) {
  const auto refused = [](std::uint32_t stored, std::uint32_t raw, std::uint32_t codec) {
    std::string bytes;
    base::ByteWriter w(bytes);
    w.u32(stored);
    w.u32(raw);
    w.u32(codec);
    w.u64(0);
    return !decode_manifest_block_header(as_bytes(bytes));
  };
  EXPECT_FALSE(refused(100, 200, 1));
  EXPECT_FALSE(refused(200, 200, 0));
  EXPECT_TRUE(refused(0, 200, 1));
  EXPECT_TRUE(refused(0, 0, 0));
  EXPECT_TRUE(refused(100, 200, 0));
  EXPECT_TRUE(refused(200, 200, 1));
  EXPECT_TRUE(refused(300, 200, 1));
  EXPECT_TRUE(refused(100, (128U << 10) + 1, 1));
  EXPECT_TRUE(refused(100, 200, 2));
}

TEST(Manifest, BlocksThatHoldNoRecordsAreRefused) {
  const auto refused = [](std::string_view raw) {
    return !for_each_manifest_piece(as_bytes(raw),
                                    [](const ManifestPiece&) { return Result<void>(); });
  };
  EXPECT_FALSE(refused(std::string_view("\1\0\1x", 4)));
  EXPECT_TRUE(refused(std::string_view("\0\0\1x", 4)));   // No such record.
  EXPECT_TRUE(refused(std::string_view("\14\0\1x", 4)));  // Nor this.
  EXPECT_TRUE(refused(std::string_view("\1\0\2x", 4)));   // Longer than what is left.
  EXPECT_TRUE(refused(std::string_view("\1\7x", 3)));
  EXPECT_TRUE(refused(std::string_view("\1", 1)));
}

}  // namespace
}  // namespace varve::format
