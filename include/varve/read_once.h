// SPDX-License-Identifier: Apache-2.0
// Advice: coming reads do not repeat.
#pragma once

#include "varve/repository.h"

namespace varve {

/// A Repository that takes advice about all reads is also a ReadsOnce.
class ReadsOnce {
 public:
  virtual ~ReadsOnce() = default;
  /// Announces that from now on most stored bytes are read once, as by the restore of a version or
  /// a check. The cache of a folder with an object store then receives only unused bytes of the
  /// store's responses, and keeps its present content. Results do not change.
  virtual void will_read_once() = 0;
};

/// Announces single reads to a repository, if the repository takes the advice.
inline void will_read_once(Repository& repository) {
  if (auto* const advised = dynamic_cast<ReadsOnce*>(&repository)) advised->will_read_once();
}

}  // namespace varve
