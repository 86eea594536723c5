// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "varve/types.h"
#include "version/sealed_version.h"

namespace varve::series {

/// The readers of a series' sealed versions, and the counts of their open files. Thread-safe; its
/// mutex is innermost.
class Readers {
 public:
  /// Returns the reader of a version, or null if nobody uses one.
  [[nodiscard]] std::shared_ptr<version::SealedVersion> find(VersionNumber number);
  void add(VersionNumber number, const std::shared_ptr<version::SealedVersion>& reader);
  /// Returns the count of the version's open files. Creates it if needed.
  [[nodiscard]] std::shared_ptr<version::OpenFiles> open_files(VersionNumber number);
  /// Makes the next reader of a version a new one, after a change of its name.
  void forget(VersionNumber number);
  /// Forgets deleted versions with their counts of open files.
  void forget_deleted(const std::vector<VersionNumber>& numbers);

 private:
  std::mutex mutex_;
  std::map<VersionNumber, std::weak_ptr<version::SealedVersion>> readers_;
  std::map<VersionNumber, std::shared_ptr<version::OpenFiles>> open_files_;
};

}  // namespace varve::series
