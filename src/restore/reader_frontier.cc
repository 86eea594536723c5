// SPDX-License-Identifier: Apache-2.0
#include "restore/reader_frontier.h"

namespace varve::restore {

void ReaderFrontier::advance(std::uint64_t position, std::uint64_t bytes, const StreamFile& file) {
  if (position > position_ + kReorderBytes) steady_since_ = position;
  const std::uint64_t end = position + bytes;
  if (end <= position_) return;
  position_ = end;
  file_ = file.number;
  at_file_end_ = end == file.position + file.bytes;
}

// A request for a different file before the end of the present file comes from a different reader.
bool ReaderFrontier::may_go_on_in(const StreamFile& file, std::uint64_t data_offset) const {
  if (data_offset > kReorderBytes || !at_file_end_) return false;
  return file.number <= file_ + kFilesAhead || file.position <= position_ + kBytesAhead;
}

}  // namespace varve::restore
