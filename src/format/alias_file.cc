// SPDX-License-Identifier: Apache-2.0
#include "format/alias_file.h"

#include <utility>

#include "base/assert.h"
#include "base/checksum.h"
#include "base/coding.h"

namespace varve::format {

namespace {

constexpr std::uint32_t kAliasMagic = 0x4c415656;  // "VVAL"
constexpr std::uint32_t kFormatWithoutBirths = 1;
constexpr std::uint32_t kFormatWithBirths = 2;

Error bad_alias_file(const char* what) {
  return {ErrorCode::kCorrupt, std::string("file of aliases: ") + what};
}

}  // namespace

bool is_alias_run(const AliasRun& run) {
  return run.count != 0 && is_pool(run.first) && is_pool(run.target) && run.first != run.target &&
         are_chunk_ids(run.first, run.count) && are_chunk_ids(run.target, run.count);
}

std::uint64_t alias_tag(const Fingerprint& fingerprint) {
  return base::load_le<std::uint64_t>(fingerprint.data());
}

std::string encode_alias_header(const AliasFileHeader& header) {
  std::string out;
  base::ByteWriter w(out);
  w.u32(kAliasMagic);
  w.u32(header.births_bytes == 0 ? kFormatWithoutBirths : kFormatWithBirths);
  w.u64(header.blocks);
  w.u64(header.chunks);
  w.u64(header.births_bytes);
  w.u64(base::checksum64(base::as_bytes(out)));
  return out;
}

Result<AliasFileHeader> decode_alias_header(std::span<const std::byte> bytes) {
  if (bytes.size() < kAliasHeaderBytes) return bad_alias_file("it is cut short");
  const auto header = bytes.first(kAliasHeaderBytes);
  base::ByteReader r(header);
  if (r.u32() != kAliasMagic) return bad_alias_file("its header is damaged");
  const auto format = r.u32();
  AliasFileHeader found;
  found.blocks = r.u64();
  found.chunks = r.u64();
  found.births_bytes = r.u64();
  const auto sum = r.u64();
  if (sum != base::checksum64(header.first(kAliasHeaderBytes - sizeof sum))) {
    return bad_alias_file("its header is damaged");
  }
  if (format != kFormatWithoutBirths && format != kFormatWithBirths) {
    return Error(ErrorCode::kUnsupported, "file of aliases: another format; use a newer Varve");
  }
  if ((found.births_bytes != 0) != (format == kFormatWithBirths) ||
      found.births_bytes > kAliasBirthsBytesMax) {
    return bad_alias_file("its header is damaged");
  }
  return found;
}

bool AliasBlockEncoder::add(const TaggedAliases& aliases) {
  const auto& run = aliases.run;
  VARVE_ASSERT(is_alias_run(run) && run.count == aliases.tags.size() &&
               run.count <= kAliasesInBlockMax);
  std::string out;
  base::ByteWriter w(out);
  const bool follows = runs_ == 0 || run.first.value >= end_;
  VARVE_ASSERT(follows);
  w.varint(run.first.value - end_);
  w.varint(run.count);
  w.svarint(static_cast<std::int64_t>(run.target.value - run.first.value));
  for (const auto tag : aliases.tags) w.u64(tag);
  if (content_.size() + out.size() > kAliasBlockBytesMax) return false;
  content_ += out;
  end_ = run.first.value + run.count;
  ++runs_;
  return true;
}

std::string AliasBlockEncoder::take() {
  std::string rest;
  base::ByteWriter w(rest);
  w.u32(static_cast<std::uint32_t>(content_.size()));
  w.u32(std::exchange(runs_, 0));
  w.text(content_);
  content_.clear();
  end_ = 0;
  std::string block;
  base::ByteWriter whole(block);
  whole.u64(base::checksum64(base::as_bytes(rest)));
  whole.text(rest);
  return block;
}

std::string encode_alias_births(const Births& births) {
  const auto text = encode_births(births);
  std::string out;
  base::ByteWriter w(out);
  w.u64(base::checksum64(base::as_bytes(text)));
  w.text(text);
  return out;
}

Result<Births> decode_alias_births(std::span<const std::byte> bytes) {
  base::ByteReader r(bytes);
  const std::uint64_t sum = r.u64();
  const auto text = r.bytes(r.left());
  if (!r.ok() || base::checksum64(text) != sum) return bad_alias_file("its births are damaged");
  return decode_births(base::as_text(text));
}

std::size_t alias_block_bytes(std::span<const std::byte> header) {
  if (header.size() < kAliasBlockHeaderBytes) return 0;
  const auto bytes = base::load_le<std::uint32_t>(header.data() + 8);
  return bytes <= kAliasBlockBytesMax ? bytes : 0;
}

Result<std::vector<TaggedAliases>> decode_alias_block(std::span<const std::byte> block) {
  const auto bytes = alias_block_bytes(block);
  if (bytes == 0 || block.size() != kAliasBlockHeaderBytes + bytes ||
      base::load_le<std::uint64_t>(block.data()) != base::checksum64(block.subspan(8))) {
    return bad_alias_file("a block is damaged");
  }
  const auto runs = base::load_le<std::uint32_t>(block.data() + 12);
  base::ByteReader r(block.subspan(kAliasBlockHeaderBytes));
  std::vector<TaggedAliases> found;
  std::uint64_t end = 0;
  for (std::uint32_t i = 0; i < runs && r.ok(); ++i) {
    TaggedAliases one;
    const auto gap = r.varint();
    const auto count = r.varint();
    const auto distance = static_cast<std::uint64_t>(r.svarint());
    if (!r.ok() || gap > UINT64_MAX - end || count > r.left() / sizeof(std::uint64_t)) {
      return bad_alias_file("a block is damaged");
    }
    one.run.first = ChunkId{end + gap};
    one.run.count = static_cast<std::uint32_t>(count);
    one.run.target = ChunkId{one.run.first.value + distance};
    if (count > kAliasesInBlockMax || !is_alias_run(one.run))
      return bad_alias_file("a block is damaged");
    one.tags.reserve(count);
    for (std::uint64_t k = 0; k < count; ++k) one.tags.push_back(r.u64());
    end = one.run.first.value + count;
    found.push_back(std::move(one));
  }
  if (runs == 0 || !r.done()) return bad_alias_file("a block is damaged");
  return found;
}

}  // namespace varve::format
