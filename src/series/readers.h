// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "varve/types.h"

namespace varve::version {
class OpenFiles;
class SealedVersion;
}  // namespace varve::version

namespace varve::series {

/// The readers of a series' sealed versions, and the counts of open files. Thread-safe; the mutex
/// is innermost.
class Readers {
 public:
  /// Returns the reader of a version, or null if no reader is in use.
  [[nodiscard]] std::shared_ptr<version::SealedVersion> find(VersionNumber number);
  void add(VersionNumber number, const std::shared_ptr<version::SealedVersion>& reader);
  /// Returns the count of the version's open files. Creates the count if needed.
  [[nodiscard]] std::shared_ptr<version::OpenFiles> open_files(VersionNumber number);
  /// Forgets the reader of a version after a change of the version's name; the next reader is new.
  void forget(VersionNumber number);
  /// Forgets deleted versions with their counts of open files.
  void forget_deleted(const std::vector<VersionNumber>& numbers);

 private:
  std::mutex mutex_;
  std::map<VersionNumber, std::weak_ptr<version::SealedVersion>> readers_;
  std::map<VersionNumber, std::shared_ptr<version::OpenFiles>> open_files_;
};

}  // namespace varve::series
