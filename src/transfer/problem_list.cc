// SPDX-License-Identifier: Apache-2.0
#include "transfer/problem_list.h"

#include <fmt/core.h>

#include <utility>

#include "base/log.h"

namespace varve::transfer {

void ProblemList::add(const std::string& path, const std::string& what) {
  const std::lock_guard lock(mutex_);
  if (messages_.size() >= kMessagesMax) {
    ++dropped_;
    return;
  }
  messages_.push_back(path + ": " + what);
}

void ProblemList::add_shared(const std::string& what, const std::string& path) {
  const std::lock_guard lock(mutex_);
  auto found = shared_.find(what);
  if (found == shared_.end()) {
    // The text may contain names from the repository, so the number of different texts is bounded,
    // too.
    if (shared_.size() >= kMessagesMax) {
      ++dropped_;
      return;
    }
    found = shared_.emplace(what, Shared{path, 0}).first;
  }
  ++found->second.files;
}

void ProblemList::note(const std::string& what) {
  const std::lock_guard lock(mutex_);
  if (notes_.size() >= kMessagesMax || !notes_.insert(what).second) return;
  base::log(base::LogLevel::kWarning, what);
}

void ProblemList::note_shared(const std::string& what, const std::string& path) {
  const std::lock_guard lock(mutex_);
  const auto found = shared_notes_.emplace(what, Shared{path, 0}).first;
  ++found->second.files;
}

std::string ProblemList::text_of(const std::string& what, const Shared& shared) {
  return shared.files == 1
             ? fmt::format("{}: {}", shared.first_path, what)
             : fmt::format("{} ({} files, the first is {})", what, shared.files, shared.first_path);
}

std::vector<std::string> ProblemList::take() {
  const std::lock_guard lock(mutex_);
  for (const auto& [what, shared] : shared_notes_) {
    base::log(base::LogLevel::kWarning, text_of(what, shared));
  }
  shared_notes_.clear();
  for (const auto& [what, shared] : shared_) messages_.push_back(text_of(what, shared));
  if (dropped_ > 0) messages_.push_back(fmt::format("and {} more problems", dropped_));
  shared_.clear();
  dropped_ = 0;
  return std::exchange(messages_, {});
}

}  // namespace varve::transfer
