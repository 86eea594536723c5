// SPDX-License-Identifier: Apache-2.0
#include "fs/handles.h"

namespace varve::fs {

Result<FileHandle::Content> FileHandle::content() {
  const std::lock_guard lock(mutex_);
  if (file_ != nullptr && !writable_) {
    const Slot::Tree tree = slot_.tree();
    if (tree.reader != nullptr) {
      const auto rank = slot_.rank_of(file_->ino());
      if (!rank)
        return Error(ErrorCode::kStale, "the file had no name when its version was sealed");
      VARVE_TRY_ASSIGN(reader_, tree.reader->open(*rank));
      file_ = nullptr;
    }
  }
  return Content{file_, reader_};
}

std::string DirHandle::rewind_to(std::uint64_t offset) {
  if (offset <= 2) {
    names_.clear();
    ends_.clear();
    return {};
  }
  const std::uint64_t count = offset - 2;
  if (count < ends_.size()) {
    ends_.resize(count);
    names_.resize(ends_.back());
  }
  if (ends_.empty()) return {};
  const std::uint64_t begin = ends_.size() > 1 ? ends_[ends_.size() - 2] : 0;
  return names_.substr(begin);
}

std::uint64_t DirHandle::remember(std::string_view name) {
  names_.append(name);
  ends_.push_back(names_.size());
  return ends_.size() + 2;
}

}  // namespace varve::fs
