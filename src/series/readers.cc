// SPDX-License-Identifier: Apache-2.0
#include "series/readers.h"

#include "version/sealed_version.h"

namespace varve::series {

std::shared_ptr<version::SealedVersion> Readers::find(VersionNumber number) {
  const std::lock_guard lock(mutex_);
  const auto known = readers_.find(number);
  return known == readers_.end() ? nullptr : known->second.lock();
}

void Readers::add(VersionNumber number, const std::shared_ptr<version::SealedVersion>& reader) {
  const std::lock_guard lock(mutex_);
  readers_[number] = reader;
}

std::shared_ptr<version::OpenFiles> Readers::open_files(VersionNumber number) {
  const std::lock_guard lock(mutex_);
  auto& count = open_files_[number];
  if (!count) count = std::make_shared<version::OpenFiles>();
  return count;
}

void Readers::forget(VersionNumber number) {
  const std::lock_guard lock(mutex_);
  readers_.erase(number);
}

void Readers::forget_deleted(const std::vector<VersionNumber>& numbers) {
  const std::lock_guard lock(mutex_);
  for (const auto number : numbers) {
    readers_.erase(number);
    open_files_.erase(number);
  }
}

}  // namespace varve::series
