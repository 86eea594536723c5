// SPDX-License-Identifier: Apache-2.0
#include "store/container_builder.h"

#include <cstring>

#include "base/assert.h"

namespace varve::store {
namespace {

constexpr std::size_t kHeaderBufferBytes = 1U << 20;
// Length of the frames into which a sealed container divides an incompressible frame.
constexpr std::size_t kDividedFrameBytes = 32U << 10;

}  // namespace

ContainerBuilder::Buffers::Buffers()
    : data(format::kContainerBytesMax), header(kHeaderBufferBytes) {}

ContainerBuilder::ContainerBuilder(StoreId store, format::ContainerForm form,
                                   const format::FrameCodec& codec, const format::BirthMarks& marks)
    : codec_(codec), marks_(marks), form_(form) {
  header_.store = store;
  header_.compact = form.compact;
}

template <typename Handle>
void ContainerBuilder::for_each_stored(const PackedFrame& frame, const Handle& handle) const {
  if (frame.encoded->codec != Codec::kNone) {
    handle(frame.chunks, std::span<const std::byte>(frame.encoded->stored));
    return;
  }
  const bool is_divided = form_.sealed && !frame.is_whole;
  const std::size_t bytes_max = is_divided ? kDividedFrameBytes : frame.raw.size();
  std::size_t first = 0;
  std::size_t begin = 0;
  std::size_t end = 0;
  for (std::size_t i = 0; i < frame.chunks.size(); ++i) {
    if (i > first && end + frame.chunks[i].raw_bytes - begin > bytes_max) {
      handle(frame.chunks.subspan(first, i - first), frame.raw.subspan(begin, end - begin));
      first = i;
      begin = end;
    }
    end += frame.chunks[i].raw_bytes;
  }
  handle(frame.chunks.subspan(first), frame.raw.subspan(begin));
}

bool ContainerBuilder::fits(std::span<const PackedFrame> added,
                            const ContainerLimits& limits) const {
  if (is_empty()) return true;
  std::size_t frames = header_.frames.size();
  std::size_t stored_end = data_used_;
  std::size_t raw_end = raw_bytes_;
  std::size_t chunks = header_.chunks.size();
  std::size_t runs = id_runs_;
  std::set<VersionNumber> births;  // Births new to the container.
  ChunkId expected = header_.chunks.back().id.plus(1);
  for (const auto& frame : added) {
    for_each_stored(frame, [&](auto /*chunks*/, std::span<const std::byte> stored) {
      ++frames;
      stored_end += stored.size();
    });
    raw_end += frame.raw.size();
    chunks += frame.chunks.size();
    for (const auto& chunk : frame.chunks) {
      if (chunk.id != expected) {
        ++runs;
        if (!births_.contains(chunk.id.birth())) births.insert(chunk.id.birth());
      }
      expected = chunk.id.plus(1);
    }
  }
  if (raw_end > limits.raw_bytes_max) return false;
  const std::size_t marks = marks_.empty() ? 0 : births_.size() + births.size();
  const std::size_t header = format::container_header_bytes(frames, chunks, runs, form_, marks);
  return header <= kHeaderBufferBytes &&
         format::container_bytes(header, stored_end, form_) <= limits.bytes_max;
}

void ContainerBuilder::pack(const PackedFrame& frame) {
  if (!buffers_) buffers_ = std::make_unique<Buffers>();
  for_each_stored(
      frame, [&](std::span<const format::ChunkEntry> chunks, std::span<const std::byte> stored) {
        std::memcpy(buffers_->data.data() + data_used_, stored.data(), stored.size());
        data_used_ += stored.size();
        format::FrameEntry entry;
        entry.chunk_count = static_cast<std::uint32_t>(chunks.size());
        entry.stored_bytes = static_cast<std::uint32_t>(stored.size());
        for (const auto& chunk : chunks) entry.raw_bytes += chunk.raw_bytes;
        entry.codec = frame.encoded->codec;
        entry.prefix = frame.prefix;
        header_.frames.push_back(entry);
      });
  for (const auto& chunk : frame.chunks) {
    const bool follows = !header_.chunks.empty() && header_.chunks.back().id.plus(1) == chunk.id;
    if (!follows) {
      ++id_runs_;
      births_.insert(chunk.id.birth());
    }
    header_.chunks.push_back(chunk);
  }
  raw_bytes_ += frame.raw.size();
}

Result<void> ContainerBuilder::finish() {
  header_.marks = format::marks_for(births_, marks_);
  VARVE_TRY_ASSIGN(const auto encoded, codec_.finish_container(header_, buffers_->data.span()));
  VARVE_ASSERT(encoded.size() <= buffers_->header.size());
  std::memcpy(buffers_->header.data(), encoded.data(), encoded.size());
  is_final_ = true;
  return {};
}

void ContainerBuilder::clear() {
  is_final_ = false;
  header_.seal.reset();
  header_.frames.clear();
  header_.chunks.clear();
  header_.marks.clear();
  header_.checksum.reset();
  id_runs_ = 0;
  births_.clear();
  data_used_ = 0;
  raw_bytes_ = 0;
}

void ContainerBuilder::release() {
  VARVE_ASSERT(is_empty());
  buffers_.reset();
  header_.chunks = {};
}

}  // namespace varve::store
