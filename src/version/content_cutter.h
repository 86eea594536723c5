// SPDX-License-Identifier: Apache-2.0
// Cuts a file written out of order into chunks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "index/fingerprint_index.h"
#include "ingest/ingest_pipeline.h"
#include "version/content_reader.h"
#include "version/staged_content.h"
#include "version/staging_file.h"

namespace varve::version {

/// Produces the same recipe as cutting the whole content, but reads only the bytes near a change.
/// Takes over unchanged chunks without reading their bytes, if the version may refer to the chunks.
///
/// Around a change, the cutter cuts bytes from the start of the changed chunk until a new boundary
/// meets an old boundary. From there on, the old boundaries hold, because the chunker examines no
/// byte before the last boundary.
///
/// Not thread-safe, for one use.
class ContentCutter {
 public:
  /// `file` is the staging file; may be null if no range is in a staging file.
  /// Lifetime: every argument must outlive the cutter.
  ContentCutter(ContentReader& reader, const ingest::Chunker& chunker,
                const index::FingerprintIndex& index, ingest::IngestPipeline& pipeline,
                const StagedContent& content, StagingFile* file);

  /// Appends all of the content to `stream`, which must be new. Does not finish the stream.
  [[nodiscard]] Result<void> feed(const ingest::IngestPipeline::StreamPtr& stream);

 private:
  /// Returns the end of the hole at `offset`; `offset` itself if there is data.
  [[nodiscard]] Result<std::uint64_t> hole_end(std::uint64_t offset);
  /// Takes over chunks from `at_` on. Returns false if no chunk can be taken over.
  [[nodiscard]] Result<bool> take_chunks();
  /// Cuts one chunk from the bytes at `at_`.
  [[nodiscard]] Result<void> cut_chunk();
  /// Reads until the buffer holds `bytes` bytes from `at_` on.
  [[nodiscard]] Result<void> fill(std::size_t bytes);
  [[nodiscard]] Result<void> read(std::uint64_t offset, std::span<std::byte> out);
  /// Appends the chunks in the buffer to the stream.
  [[nodiscard]] Result<void> submit();

  ContentReader& reader_;
  const ingest::Chunker& chunker_;
  const index::FingerprintIndex& index_;
  ingest::IngestPipeline& pipeline_;
  const StagedContent& content_;
  StagingFile* const file_;
  ingest::IngestPipeline::StreamPtr stream_;

  std::uint64_t at_ = 0;        // Boundary up to which the content is cut.
  std::uint64_t data_end_ = 0;  // Begin of the next hole, or the content's end, if above at_.
  std::vector<std::byte> buffer_;
  std::size_t cut_ = 0;     // Cut bytes in buffer_, which end at at_.
  std::size_t filled_ = 0;  // Bytes read into buffer_.
  std::size_t ahead_ = 0;   // Bytes to read at once: more while no chunk can be taken over.
  std::vector<std::uint32_t> lengths_;  // Lengths of the chunks in buffer_.
};

}  // namespace varve::version
