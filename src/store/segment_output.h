// SPDX-License-Identifier: Apache-2.0
// The files that a ContainerWriter fills.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <vector>

#include "base/ids.h"
#include "format/container.h"
#include "format/container_record.h"
#include "format/frame_codec.h"
#include "store/container_writer_options.h"
#include "store/segment_store.h"
#include "varve/result.h"

namespace varve::store {

/// Appends containers to new segments or volumes, and syncs the files. One thread calls append();
/// any thread may call the other functions.
///
/// Invariant: each file holds whole containers without gaps. A failed append() leaves no bytes
/// behind the file's last container that a record could refer to.
class SegmentOutput {
 public:
  /// Lifetime: `store`, `codec` and `options` outlive the output.
  SegmentOutput(SegmentStore& store, const format::FrameCodec& codec,
                const ContainerWriterOptions& options)
      : store_(store), codec_(codec), options_(options) {}

  /// Checks the space before a container is made final. An admitted writer may use the reserve.
  /// Errors: kNoSpace if only the reserve is left.
  [[nodiscard]] Result<void> check_space();
  /// Appends a container, and returns the container's record. Begins another file if the present
  /// file has no room. A call that fails may be repeated with the same container.
  /// Errors: kTooLarge without a number for the file, and as SegmentAppender::append().
  [[nodiscard]] Result<format::ContainerRecord> append(const format::ContainerHeader& container,
                                                       std::span<const std::byte> header_bytes,
                                                       std::span<const std::byte> data_bytes);
  /// Waits until all appended containers are on disk. Writes the containers of a segment again if
  /// an earlier sync of the segment failed.
  [[nodiscard]] Result<void> sync();

  /// Returns the length of all appended containers.
  [[nodiscard]] std::uint64_t stored_bytes() const;
  /// Returns the numbers of the begun files.
  [[nodiscard]] std::vector<SegmentNumber> segments() const;

 private:
  [[nodiscard]] Result<void> open_segment(std::uint64_t container_bytes);

  SegmentStore& store_;
  const format::FrameCodec& codec_;
  const ContainerWriterOptions& options_;

  mutable std::mutex mutex_;  // Guards the next three members.
  std::uint64_t stored_bytes_ = 0;
  std::vector<SegmentNumber> segments_;
  std::map<SegmentNumber, std::uint64_t> unsynced_;  // End of each segment, by number.

  std::mutex sync_mutex_;                // One sync at a time; taken before mutex_.
  std::set<SegmentNumber> sync_failed_;  // Guarded by sync_mutex_.

  // Accessed only by append().
  SegmentNumber segment_{};
  std::uint64_t segment_offset_ = 0;
  std::unique_ptr<SegmentAppender> file_;
};

}  // namespace varve::store
