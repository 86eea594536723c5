// SPDX-License-Identifier: Apache-2.0
// Reads files of sealed versions in any order, with look-ahead for reads in tree order. All files
// of a repository share one memory budget.
//
// The way of a byte from the disk to the reader:
// 1. FileHandle receives the read. If a Session follows the reader, the Session serves the read;
//    otherwise RandomReader reads single frames.
// 2. LookAheadWindow lists the next chunks in tree order, each with its next use. FileStream and
//    StreamWindow feed the window from the recipes.
// 3. WindowEngine plans the reads of the next area. ChunkResolver finds the container of each
//    chunk.
// 4. plan_slices() joins neighbouring frames into slices. One request reads one slice, by
//    ReadLanes, or several, in advance, by AheadReads.
// 5. SliceReader reads the slice and verifies and decodes its frames.
// 6. ForwardArea copies the chunks of a frame to all their places in the output. RestoreCache keeps
//    the chunks that the window needs later.
// 7. AssemblyArea is the finished part of the output. The Session copies its bytes to readers, or
//    lends them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "format/recipe.h"
#include "layout/layout.h"
#include "restore/read_costs.h"
#include "restore/read_metrics.h"
#include "varve/browse.h"
#include "varve/options.h"
#include "varve/result.h"

namespace varve::restore {

/// A file and its content, for the look-ahead.
struct FileContent {
  std::uint64_t ordinal = 0;  ///< Place in tree order. Ascends, with gaps for entries without data.
  std::shared_ptr<const format::Recipe> recipe;
};

/// Yields the next files in tree order. Used by one thread at a time.
class FutureFiles {
 public:
  virtual ~FutureFiles() = default;
  /// Returns the next file, or nullopt after the last file of the version. May leave out empty
  /// files.
  [[nodiscard]] virtual Result<std::optional<FileContent>> next() = 0;
};

/// A file to read from.
/// Lifetime: the source must outlive every use by the service.
struct ReadableFile {
  std::uint64_t version_key = 0;  ///< Unique key of the file's version.
  FileContent content;
  layout::ChunkSource* source = nullptr;
  /// Returns the next files in tree order.
  std::function<std::unique_ptr<FutureFiles>()> future;
};

/// An open file. Also tracks the access pattern of the reader.
class ReadHandle {
 public:
  virtual ~ReadHandle() = default;
  /// Reads as varve::FileReader::read_as(). Thread-safe.
  [[nodiscard]] virtual Result<ReadBytes> read_as(const ReadRequest& request) = 0;
  /// Reads as varve::FileReader::read(). Thread-safe.
  [[nodiscard]] Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> out) {
    VARVE_TRY_ASSIGN(const ReadBytes got, read_as(request_to_copy(offset, out)));
    return got.copied.value_or(0);
  }
};

struct ReadOptions {
  std::uint64_t cache_bytes = 64ULL << 20;
  std::string engine = OpenOptions().engine;
};

/// Opens files for reading. Thread-safe.
/// Lifetime: handles must be destroyed before the service.
class ReadService {
 public:
  virtual ~ReadService() = default;
  [[nodiscard]] virtual Result<std::unique_ptr<ReadHandle>> open(ReadableFile file) = 0;
  /// Announces that a reader will read all files after `file`, in tree order. A hint that only
  /// serves distant sources. `file` needs no content.
  virtual void will_read_after(const ReadableFile& /*file*/) {}
  /// Sets the costs of requests on the repository's disk, from now on.
  virtual void set_costs(const ReadCosts& costs) = 0;
  [[nodiscard]] virtual const ReadMetrics& metrics() const = 0;
};

/// Creates a service and registers its metrics. Errors: kInvalid for an unknown engine.
/// Lifetime: `registry` must outlive the service.
[[nodiscard]] Result<std::unique_ptr<ReadService>> make_read_service(const ReadOptions& options,
                                                                     base::Metrics& registry);

}  // namespace varve::restore
