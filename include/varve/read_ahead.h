// SPDX-License-Identifier: Apache-2.0
// Announcements of coming reads.
#pragma once

namespace varve {

/// A VersionReader that takes advice about reads is also a ReadAhead. Advice changes the time of
/// reads, never the results.
class ReadAhead {
 public:
  virtual ~ReadAhead() = default;
  /// Announces that all files of the version will be read soon, by ascending rank. A version in an
  /// object store then requests the first files together, before the first read.
  virtual void will_read_all() = 0;
};

}  // namespace varve
