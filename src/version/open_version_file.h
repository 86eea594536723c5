// SPDX-License-Identifier: Apache-2.0
// A handle on a file of an open version.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "varve/backup.h"
#include "version/checkpointer.h"
#include "version/clone_sources.h"
#include "version/open_contents.h"
#include "version/open_inode.h"
#include "version/open_state.h"
#include "version/staged_ingest.h"

namespace varve::version {

/// A handle on a file of an open version. Thread-safe. Keeps the version alive.
class OpenVersionFile final : public OpenFile {
 public:
  /// The parts of the version that a handle uses.
  struct Parts {
    OpenState& state;
    OpenContents& contents;
    StagedIngest& ingest;
    CloneSources& clones;
    Checkpointer& checkpointer;
  };

  /// `version` owns the parts. The caller has called OpenContents::add_handle(), and the destructor
  /// calls OpenContents::release().
  OpenVersionFile(std::shared_ptr<const void> version, const Parts& parts, Ino ino, bool writer)
      : version_(std::move(version)), parts_(parts), ino_(ino), writer_(writer) {}
  OpenVersionFile(const OpenVersionFile&) = delete;
  OpenVersionFile& operator=(const OpenVersionFile&) = delete;
  ~OpenVersionFile() override;

  [[nodiscard]] Ino ino() const override { return ino_; }
  [[nodiscard]] Result<void> write(std::uint64_t offset, std::span<const std::byte> data) override;
  [[nodiscard]] Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> out) override;
  [[nodiscard]] Result<std::uint64_t> seek_data(std::uint64_t offset) override;
  [[nodiscard]] Result<std::uint64_t> seek_hole(std::uint64_t offset) override;
  [[nodiscard]] Result<void> allocate(std::uint64_t offset, std::uint64_t bytes,
                                      AllocateMode mode) override;
  [[nodiscard]] Result<std::uint64_t> clone_range(FileReader& source, std::uint64_t source_offset,
                                                  std::uint64_t offset,
                                                  std::uint64_t bytes) override;
  [[nodiscard]] Result<std::uint64_t> clone_range(OpenFile& source, std::uint64_t source_offset,
                                                  std::uint64_t offset,
                                                  std::uint64_t bytes) override;
  [[nodiscard]] Result<void> flush() override;
  [[nodiscard]] Result<void> sync() override;

 private:
  /// Returns the inode if the handle and the version accept changes. `lock` holds OpenState::mutex;
  /// the function may release it for a while.
  [[nodiscard]] Result<OpenInode*> writable(std::unique_lock<std::mutex>& lock);
  [[nodiscard]] SeriesId series() const;

  const std::shared_ptr<const void> version_;
  const Parts parts_;
  const Ino ino_;
  const bool writer_;
};

}  // namespace varve::version
