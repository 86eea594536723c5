// SPDX-License-Identifier: Apache-2.0
#include "ingest/tail_spill.h"

#include "base/assert.h"
#include "base/checksum.h"

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
    VARVE_TRY(file_->truncate(0));  // A crash may have left the slots of another process.
  }
  Slot slot{next_, static_cast<std::uint32_t>(tail.size()), base::checksum64(tail)};
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
  // A slot is written again and again: seals do not tell an older content from the newest.
  if (base::checksum64(out) != slot.checksum) {
    return Error(ErrorCode::kIo, path_ + " does not have the bytes that were written to it");
  }
  return {};
}

}  // namespace varve::ingest
