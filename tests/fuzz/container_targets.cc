// SPDX-License-Identifier: Apache-2.0
#include "container_targets.h"

#include <algorithm>
#include <cstring>

#include "checks.h"
#include "format/container.h"
#include "format/frame_codec.h"
#include "support/format_samples.h"
#include "support/test_keys.h"

namespace varve::fuzz {
namespace {

constexpr std::size_t kComparedFrames = 200;

// Three frames: the second and the third have the frame before as their prefix. `raw` is the text
// of all frames. Returns the stored bytes.
std::string compress_with_prefixes(format::ContainerHeader& header, const std::string& raw) {
  const auto codec = format::make_plain_frame_codec({Codec::kZstd, 1});
  const auto bytes = base::as_bytes(raw);
  header.frames.clear();
  header.chunks.clear();
  std::string stored;
  std::size_t at = 0;
  std::span<const std::byte> before;
  for (const std::uint32_t length : {9000U, 9100U, 4000U}) {
    const auto text = bytes.subspan(at, length);
    const auto packed = codec->compress(text, before);
    require(packed.codec == Codec::kZstd, "a text with a prefix shrinks");
    format::FrameEntry frame;
    frame.chunk_count = 1;
    frame.raw_bytes = length;
    frame.stored_bytes = static_cast<std::uint32_t>(packed.stored.size());
    frame.codec = packed.codec;
    frame.prefix = before.empty() ? 0 : 1;
    frame.checksum = base::checksum64(packed.stored);
    header.frames.push_back(frame);
    header.chunks.push_back(
        format::chunk(ChunkId::make(VersionNumber{5}, static_cast<std::uint32_t>(at)), length));
    stored += base::as_text(packed.stored);
    before = text;
    at += length;
  }
  return stored;
}

// Decodes frames from their first prefixes on. The result must be that of each frame alone, with
// the raw bytes of its prefix.
void decode_frames(const format::ContainerHeader& header, const std::string& bytes) {
  const auto codec = format::make_plain_frame_codec({});
  const auto data = base::as_bytes(bytes).subspan(header.header_bytes);
  const auto stored_from = [&](std::size_t from, const format::FrameEntry& frame) {
    return data.subspan(from, frame.offset + frame.stored_bytes - from);
  };
  const auto decode = [&](std::uint32_t number, std::vector<std::byte>& raw) {
    const auto& frame = header.frames[number];
    raw.resize(frame.raw_bytes);
    return format::decode_frame(*codec, header, number, stored_from(extent_begin(frame), frame),
                                raw);
  };
  const auto count = std::min(header.frames.size(), kComparedFrames);
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto& frame = header.frames[i];
    require(format::extent_bytes(frame) <= format::kFrameExtentBytesMax ||
                frame.stored_bytes == format::extent_bytes(frame),
            "what a frame needs is bounded");
    std::vector<std::byte> raw;
    const auto decoded = decode(i, raw);
    if (frame.prefix == 0) continue;
    std::vector<std::byte> prefix;
    std::vector<std::byte> again(frame.raw_bytes);
    const bool alone = decode(i - frame.prefix, prefix) &&
                       codec->decode_on(format::place_of_frame(header, i), frame, prefix,
                                        stored_from(frame.offset, frame), again);
    require(alone == decoded.has_value() && (!alone || again == raw),
            "a frame decodes as with the raw bytes of its prefix");
  }
}

}  // namespace

void container(Bytes input) {
  std::string bytes(text_of(input));
  if (bytes.size() < format::kContainerFixedHeaderBytes) return;
  std::uint32_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data() + 32, sizeof header_bytes);
  if (header_bytes >= format::kContainerFixedHeaderBytes && header_bytes <= bytes.size()) {
    put64(bytes, 48, sum(bytes, format::kContainerFixedHeaderBytes, header_bytes));
  }
  put64(bytes, 120, sum(bytes, 0, 120));
  const auto span = base::as_bytes(bytes);
  const auto length =
      format::container_header_length(span.first(format::kContainerFixedHeaderBytes));
  if (!length || *length > bytes.size()) return;
  const auto header = format::decode_container_header(span.first(*length));
  if (!header) return;
  auto copy = *header;
  require(format::encode_container_header(copy) == bytes.substr(0, *length),
          "a header that is accepted has one encoding");
  // As far as there are data, with their checksums.
  for (std::size_t i = 0; i < copy.frames.size(); ++i) {
    auto& frame = copy.frames[i];
    const auto at = copy.header_bytes + std::size_t{frame.offset};
    if (at + frame.stored_bytes > bytes.size()) {
      copy.frames.resize(i);
      break;
    }
    frame.checksum = base::checksum64(span.subspan(at, frame.stored_bytes));
  }
  decode_frames(copy, bytes);
}

std::vector<std::string> container_seeds() {
  auto header = format::sample_header();
  const auto text = format::compressible_text(10100);
  const auto packed =
      format::make_plain_frame_codec({Codec::kZstd, 1})->compress(base::as_bytes(text));
  header.frames[1].stored_bytes = static_cast<std::uint32_t>(packed.stored.size());
  std::vector<std::string> seeds;
  for (const bool compact : {false, true}) {
    header.compact = compact;
    seeds.push_back(
        format::encode_container_header(header) + std::string(68536, 'x') +
        std::string(reinterpret_cast<const char*>(packed.stored.data()), packed.stored.size()));
  }
  header.compact = true;
  const auto stored = compress_with_prefixes(header, format::compressible_text(30'000));
  const auto start = format::encode_container_header(header);
  seeds.push_back(start + stored);
  return seeds;
}

// Any bytes as a sealed container, with the checksums of its clear fields corrected. Only what the
// keys sealed opens, and it opens to what was sealed.
void sealed_container(Bytes input) {
  std::string bytes(text_of(input));
  if (bytes.size() < format::kContainerFixedHeaderBytes) return;
  put64(bytes, 112, sum(bytes, format::kContainerFixedHeaderBytes, bytes.size()));
  put64(bytes, 120, sum(bytes, 0, 120));
  const auto codec = test::sealed_codec();
  const auto span = base::as_bytes(bytes);
  const auto start = span.first(format::kContainerFixedHeaderBytes);
  static_cast<void>(format::container_length(start));
  const auto length = format::container_header_length(start, codec->keys());
  if (!length || *length > bytes.size()) return;
  const auto header = format::decode_container_header(span.first(*length), codec->keys());
  if (!header) return;
  for (std::uint32_t i = 0; i < header->frames.size(); ++i) {
    const auto& frame = header->frames[i];
    if (header->header_bytes + std::size_t{frame.offset} + frame.stored_bytes > bytes.size()) break;
    std::vector<std::byte> raw(frame.raw_bytes);
    const auto stored =
        span.subspan(header->header_bytes + extent_begin(frame), extent_bytes(frame));
    if (!format::decode_frame(*codec, *header, i, stored, raw)) continue;
    const auto right = std::ranges::all_of(raw, [](std::byte b) { return b == std::byte{'x'}; });
    require(right, "a frame that opens has its own bytes");
  }
}

std::vector<std::string> sealed_container_seeds() {
  std::vector<std::string> seeds;
  for (const bool compact : {false, true}) {
    auto header = format::sample_header();
    header.compact = compact;
    header.frames[1].codec = Codec::kNone;
    header.frames[1].stored_bytes = header.frames[1].raw_bytes;
    std::vector<std::byte> data(format::kContainerBytesMax, std::byte{'x'});
    const auto encoded = test::sealed_codec({}, test::test_keys(), test::counting_salts())
                             ->finish_container(header, data);
    if (!encoded) continue;
    const auto rest = std::span(data).first(header.stored_bytes() - encoded->size());
    seeds.push_back(*encoded + std::string(base::as_text(rest)));
  }
  auto header = format::sample_header();
  header.compact = true;
  const auto stored = compress_with_prefixes(header, std::string(30'000, 'x'));
  std::vector<std::byte> data(format::kContainerBytesMax);
  std::ranges::copy(base::as_bytes(stored), data.begin());
  const auto encoded = test::sealed_codec({}, test::test_keys(), test::counting_salts())
                           ->finish_container(header, data);
  require(encoded.has_value(), "a container with prefixes is sealed");
  const auto rest = std::span(data).first(header.stored_bytes() - encoded->size());
  seeds.push_back(*encoded + std::string(base::as_text(rest)));
  return seeds;
}

void frame(Bytes input) {
  if (input.size() < 8) return;
  format::FrameEntry entry;
  entry.codec = Codec::kZstd;
  std::memcpy(&entry.raw_bytes, input.data(), sizeof entry.raw_bytes);
  entry.raw_bytes = entry.raw_bytes % format::kFrameRawBytesMax + 1;
  const auto stored = input.subspan(8);
  entry.stored_bytes = static_cast<std::uint32_t>(stored.size());
  entry.checksum = base::checksum64(stored);
  std::vector<std::byte> raw(entry.raw_bytes);
  static_cast<void>(
      format::make_plain_frame_codec({})->decode(format::FramePlace{}, entry, stored, raw));
}

std::vector<std::string> frame_seeds() {
  const auto text = format::compressible_text(5000);
  const auto packed =
      format::make_plain_frame_codec({Codec::kZstd, 3})->compress(base::as_bytes(text));
  std::string seed(8, '\0');
  const std::uint32_t raw = 4999;
  std::memcpy(seed.data(), &raw, sizeof raw);
  return {seed.append(reinterpret_cast<const char*>(packed.stored.data()), packed.stored.size())};
}

}  // namespace varve::fuzz
