// SPDX-License-Identifier: Apache-2.0
#include "layout/content_check.h"

namespace varve::layout {

Result<ContentCheck::Entry> ContentCheck::find(ChunkId id) {
  const bool is_near = run_ && id >= run_->first && id.value - run_->first.value < run_->count;
  if (!is_near) {
    run_.reset();
    VARVE_TRY_ASSIGN(const auto run, chunks_.locate(id));
    VARVE_TRY_ASSIGN(header_, chunks_.header(run.container));
    run_ = run;
  }
  const auto index = run_->index + (id.value - run_->first.value);
  if (index >= header_->chunks.size() || header_->chunks[index].id != id) {
    return Error(ErrorCode::kCorrupt, "a container does not hold the chunk that it should");
  }
  return Entry{header_, &header_->chunks[index]};
}

bool ContentCheck::has_content(const Entry& entry, const Fingerprint& fingerprint) {
  const auto& header = *entry.header;
  const auto& chunk = *entry.chunk;
  const std::pair place(header.number, chunk.frame);
  if (frame_ != place) {
    frame_.reset();
    const auto& frame = header.frames[chunk.frame];
    stored_.resize(format::extent_bytes(frame));
    raw_.resize(frame.raw_bytes);
    auto read = chunks_.read_data(header.number, format::extent_begin(frame), stored_);
    bytes_read_ += stored_.size();
    if (read) read = format::decode_frame(chunks_.codec(), header, chunk.frame, stored_, raw_);
    if (!read) {
      chunks_.note_damage(header, chunk.frame, read.error());
      if (damaged_.insert(header.number).second) chunks_.log_damage(header.number, read.error());
      return false;
    }
    frame_ = place;
  }
  const auto bytes = std::span<const std::byte>(raw_).subspan(chunk.frame_offset, chunk.raw_bytes);
  return fingerprinter_.fingerprint(bytes) == fingerprint;
}

}  // namespace varve::layout
