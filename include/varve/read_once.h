// SPDX-License-Identifier: Apache-2.0
// Advice that the reads to come do not repeat.
#pragma once

#include "varve/repository.h"

namespace varve {

/// A Repository that takes advice about all its reads is also a ReadsOnce.
class ReadsOnce {
 public:
  virtual ~ReadsOnce() = default;
  /// Announces that most stored bytes are read once from now on, as by a restore of a version or a
  /// check. The cache of a folder whose data is in an object store then receives only the bytes
  /// that readers left in what was requested, and keeps what it has. Results do not change.
  virtual void will_read_once() = 0;
};

/// Gives that advice to a repository, if it takes it.
inline void will_read_once(Repository& repository) {
  if (auto* const advised = dynamic_cast<ReadsOnce*>(&repository)) advised->will_read_once();
}

}  // namespace varve
