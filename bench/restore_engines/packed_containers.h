// SPDX-License-Identifier: Apache-2.0
// Containers in memory, with the chunks in the order in which they first appeared, as in a
// deduplicating store that never moves anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/checksum.h"
#include "format/container.h"
#include "layout/layout.h"

namespace varve::bench {

class PackedContainers final : public layout::ChunkSource {
 public:
  const format::FrameCodec& codec() const override { return *codec_; }
  void place(ChunkId id, std::span<const std::byte> raw) {
    if (frame_bytes_ + raw.size() > format::kFrameRawBytesMax) end_frame();
    if (data_.size() + raw.size() > kContainerDataBytes) end_container();
    format::ChunkEntry chunk;
    chunk.id = id;
    chunk.raw_bytes = static_cast<std::uint32_t>(raw.size());
    places_[id.value] = {static_cast<std::uint32_t>(headers_.size()),
                         static_cast<std::uint32_t>(header_.chunks.size())};
    header_.chunks.push_back(chunk);
    data_.insert(data_.end(), raw.begin(), raw.end());
    frame_bytes_ += raw.size();
    ++frame_chunks_;
  }
  /// Ends the container. The next chunk starts a new one.
  void end_container() {
    end_frame();
    if (header_.chunks.empty()) return;
    header_.number = static_cast<ContainerNumber>(headers_.size());
    static_cast<void>(format::encode_container_header(header_));
    headers_.push_back(std::make_shared<const format::ContainerHeader>(std::move(header_)));
    datas_.push_back(std::move(data_));
    header_ = {};
    data_ = {};
  }

  Result<layout::LocationRun> locate(ChunkId id) override {
    const auto found = places_.find(id.value);
    if (found == places_.end()) return Error(ErrorCode::kCorrupt, "no such chunk");
    const auto [container, index] = found->second;
    const auto& chunks = headers_[container]->chunks;
    layout::LocationRun run{id, 0, 0, static_cast<ContainerNumber>(container), index};
    for (std::uint32_t i = index; i < chunks.size() && chunks[i].id == id.plus(run.count); ++i) {
      ++run.count;
      run.raw_bytes += chunks[i].raw_bytes;
    }
    return run;
  }
  Result<std::shared_ptr<const format::ContainerHeader>> header(ContainerNumber number) override {
    const auto container = static_cast<std::uint32_t>(number);
    return headers_.at(container);
  }
  Result<void> read_data(ContainerNumber number, std::uint32_t offset,
                         std::span<std::byte> out) override {
    const auto container = static_cast<std::uint32_t>(number);
    std::memcpy(out.data(), datas_.at(container).data() + offset, out.size());
    return {};
  }
  Result<std::uint64_t> place_of(ContainerNumber number) override {
    return static_cast<std::uint32_t>(number);
  }

 private:
  const std::unique_ptr<const format::FrameCodec> codec_ = format::make_plain_frame_codec({});
  // The header takes the rest of the 4 MiB.
  static constexpr std::size_t kContainerDataBytes = (4U << 20) - (64U << 10);

  void end_frame() {
    if (frame_chunks_ == 0) return;
    format::FrameEntry frame;
    frame.chunk_count = frame_chunks_;
    frame.raw_bytes = static_cast<std::uint32_t>(frame_bytes_);
    frame.stored_bytes = frame.raw_bytes;
    frame.checksum = base::checksum64(std::span(data_).last(frame_bytes_));
    header_.frames.push_back(frame);
    frame_bytes_ = 0;
    frame_chunks_ = 0;
  }

  format::ContainerHeader header_;
  std::vector<std::byte> data_;
  std::size_t frame_bytes_ = 0;
  std::uint32_t frame_chunks_ = 0;
  std::vector<std::shared_ptr<const format::ContainerHeader>> headers_;
  std::vector<std::vector<std::byte>> datas_;
  std::unordered_map<std::uint64_t, std::pair<std::uint32_t, std::uint32_t>> places_;
};

}  // namespace varve::bench
