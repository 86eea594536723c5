// SPDX-License-Identifier: Apache-2.0
// Compares the stored content of chunks with fingerprints.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "format/fingerprinter.h"
#include "layout/stored_chunks.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::layout {

/// Reads chunks of the pool and compares the content. Keeps the last frame, so that neighbouring
/// chunks cost a single read. Not thread-safe.
class ContentCheck {
 public:
  /// Adds the containers with damaged content to `damaged`.
  /// Lifetime: the arguments outlive the object.
  ContentCheck(StoredChunks& chunks, const format::Fingerprinter& fingerprinter,
               std::set<ContainerNumber>& damaged)
      : chunks_(chunks), fingerprinter_(fingerprinter), damaged_(damaged) {}

  /// A container, and the entry of a chunk in the container's table.
  struct Entry {
    std::shared_ptr<const format::ContainerHeader> header;
    const format::ChunkEntry* chunk = nullptr;
  };
  /// Finds a chunk by the stored id.
  /// Errors: kCorrupt.
  [[nodiscard]] Result<Entry> find(ChunkId id);
  /// Returns whether the chunk's content on disk has the fingerprint; false for unreadable content.
  [[nodiscard]] bool has_content(const Entry& entry, const Fingerprint& fingerprint);

  [[nodiscard]] std::uint64_t bytes_read() const { return bytes_read_; }

 private:
  StoredChunks& chunks_;
  const format::Fingerprinter& fingerprinter_;
  std::set<ContainerNumber>& damaged_;
  std::optional<LocationRun> run_;
  std::shared_ptr<const format::ContainerHeader> header_;
  std::optional<std::pair<ContainerNumber, std::uint32_t>> frame_;  // The frame in raw_.
  std::vector<std::byte> stored_;
  std::vector<std::byte> raw_;
  std::uint64_t bytes_read_ = 0;
};

}  // namespace varve::layout
