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
  const auto codec = format::make_plain_frame_codec({});
  for (std::uint32_t i = 0; i < header->frames.size(); ++i) {
    auto frame = header->frames[i];
    if (header->header_bytes + std::size_t{frame.offset} + frame.stored_bytes > bytes.size()) break;
    const auto stored = span.subspan(header->header_bytes + frame.offset, frame.stored_bytes);
    frame.checksum = base::checksum64(stored);
    std::vector<std::byte> raw(frame.raw_bytes);
    static_cast<void>(codec->decode(format::place_of_frame(*header, i), frame, stored, raw));
  }
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
    const auto stored = span.subspan(header->header_bytes + frame.offset, frame.stored_bytes);
    if (!codec->decode(format::place_of_frame(*header, i), frame, stored, raw)) continue;
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
