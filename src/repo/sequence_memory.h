// SPDX-License-Identifier: Apache-2.0
// The sequence number of an encrypted repository, and the local machine's memory of the number.
// docs/decisions/085 gives the order of writes.
#pragma once

#include <atomic>
#include <cstdint>

#include "io/client_memory.h"
#include "repo/repository_folder.h"
#include "varve/result.h"

namespace varve::repo {

/// Compares the sequence number of an open repository with the local machine's memory, and
/// remembers later numbers. Does nothing in a plain repository, but refuses a plain repository in
/// the place of an encrypted one. Thread-safe.
class SequenceMemory {
 public:
  /// Increments the number in each counting commit. Construct the object before other threads use
  /// the catalog. Lifetime: `folder` outlives the object.
  explicit SequenceMemory(RepositoryFolder& folder);

  /// Compares the present number with the memory. Returns whether the repository is older, and the
  /// options accept an older repository.
  /// Errors: kCorrupt for an older repository; kWrongKey for a plain repository remembered as
  /// encrypted; kInvalid if the memory is damaged.
  [[nodiscard]] Result<bool> compare();
  /// Remembers a sequence number of the labels: at once, or, in a replicating folder, once the
  /// object store has the number.
  void remember(std::uint64_t sequence);
  /// Remembers the present sequence number. The labels have the number, or no local writer has the
  /// repository open.
  void remember_present();
  /// Adds the functions that remember the numbers given to remember() once the object store has
  /// their changes. Lifetime: the object outlives the storage's threads.
  void watch(remote::WrittenRepository& repository);
  /// Waits until all remembered numbers are on disk.
  void settle() { memory_.settle(); }

 private:
  /// Refuses a plain repository remembered as encrypted by the local machine. Errors: kWrongKey.
  [[nodiscard]] Result<void> refuse_plain_instead_of_encrypted() const;

  RepositoryFolder& folder_;
  io::ClientMemory memory_;
  std::atomic<std::uint64_t> labelled_ = 0;  // The number to remember with the next head.
};

}  // namespace varve::repo
