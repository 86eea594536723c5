// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "version/open_version.h"

namespace varve::version {

/// A handle on a file of an open version. Keeps the version alive.
class OpenVersionFile final : public OpenFile {
 public:
  OpenVersionFile(std::shared_ptr<OpenVersion> version, Ino ino, bool writer)
      : version_(std::move(version)), ino_(ino), writer_(writer) {}
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
  [[nodiscard]] Result<OpenInode*> writable(std::unique_lock<std::mutex>& lock);

  const std::shared_ptr<OpenVersion> version_;
  const Ino ino_;
  const bool writer_;
};

}  // namespace varve::version
