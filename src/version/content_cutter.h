// SPDX-License-Identifier: Apache-2.0
// From a file that was written out of order to its recipe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "index/fingerprint_index.h"
#include "ingest/ingest_pipeline.h"
#include "io/file_system.h"
#include "version/content_reader.h"
#include "version/staged_content.h"

namespace varve::version {

/// Gives the recipe that the whole content would be cut to, at the cost of what changed:
/// chunks that are as they were, and that this version may refer to, are taken over without
/// being read. Around a change, bytes are cut from the chunk before it on until a boundary
/// meets an old one again; from there on all following boundaries would be the same, since
/// the chunker looks at nothing before the last one.
///
/// One use. `file` may be null if no range is of the staging file. All must outlive it.
class ContentCutter {
 public:
  ContentCutter(ContentReader& reader, const ingest::Chunker& chunker,
                const index::FingerprintIndex& index, ingest::IngestPipeline& pipeline,
                const StagedContent& content, io::File* file);

  /// Feeds all of the content to `stream`, which must be new; does not finish it.
  [[nodiscard]] Result<void> feed(const ingest::IngestPipeline::StreamPtr& stream);

 private:
  [[nodiscard]] Result<std::uint64_t> hole_end(std::uint64_t offset);
  /// Takes over chunks from `at_` on; false if the first cannot be.
  [[nodiscard]] Result<bool> take_chunks();
  /// Cuts one chunk from the bytes at `at_`.
  [[nodiscard]] Result<void> cut_chunk();
  [[nodiscard]] Result<void> fill(std::size_t bytes);
  [[nodiscard]] Result<void> read(std::uint64_t offset, std::span<std::byte> out);
  [[nodiscard]] Result<void> submit();

  ContentReader& reader_;
  const ingest::Chunker& chunker_;
  const index::FingerprintIndex& index_;
  ingest::IngestPipeline& pipeline_;
  const StagedContent& content_;
  io::File* const file_;
  ingest::IngestPipeline::StreamPtr stream_;

  std::uint64_t at_ = 0;        // All before has been fed or waits in buffer_; a boundary.
  std::uint64_t data_end_ = 0;  // The next hole, or the end, if above at_.
  std::vector<std::byte> buffer_;
  std::size_t cut_ = 0;     // Of buffer_: bytes that are cut, before at_,
  std::size_t filled_ = 0;  // and bytes that are read.
  std::size_t ahead_ = 0;   // How much to read at once: more while nothing can be taken over.
  std::vector<std::uint32_t> lengths_;
};

}  // namespace varve::version
