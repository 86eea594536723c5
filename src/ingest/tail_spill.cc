// SPDX-License-Identifier: Apache-2.0
#include "ingest/tail_spill.h"

#include "base/assert.h"

namespace varve::ingest {

TailSpill::~TailSpill() {
  if (!file_) return;
  file_.reset();
  static_cast<void>(files_.remove(path_));  // A leftover is harmless, and removed at seal.
}

Result<TailSpill::Slot> TailSpill::put(std::span<const std::byte> tail) {
  VARVE_ASSERT(tail.size() <= slot_bytes_);
  if (!file_) {
    VARVE_TRY_ASSIGN(file_, files_.open(path_, io::OpenMode::kReadWrite));
  }
  Slot slot{next_, static_cast<std::uint32_t>(tail.size())};
  if (!free_.empty()) slot.number = free_.back();
  VARVE_TRY(file_->write_at(std::uint64_t{slot.number} * slot_bytes_, tail));
  if (free_.empty()) {
    ++next_;
  } else {
    free_.pop_back();
  }
  return slot;
}

Result<void> TailSpill::read(const Slot& slot, std::span<std::byte> out) {
  VARVE_TRY_ASSIGN(const std::size_t got,
                   file_->read_at(std::uint64_t{slot.number} * slot_bytes_, out));
  if (got != out.size()) return Error(ErrorCode::kIo, path_ + " is shorter than it was");
  return {};
}

}  // namespace varve::ingest
