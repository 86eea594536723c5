// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/id_runs.h"
#include "index/index_run.h"
#include "index/run_format.h"
#include "io/file_system.h"
#include "varve/result.h"

namespace varve::index {

/// Writes a run. The writer's memory does not grow with the number of entries.
class RunWriter {
 public:
  /// Creates the file of the run `number`; replaces a file left by a crash. The run will have
  /// `entries_max` entries at most.
  [[nodiscard]] static Result<std::unique_ptr<RunWriter>> create(const RunFolder& folder,
                                                                 std::uint32_t number,
                                                                 std::uint64_t entries_max);
  RunWriter(const RunWriter&) = delete;
  RunWriter& operator=(const RunWriter&) = delete;
  /// Removes the file of an unfinished run, because the disk may be full.
  ~RunWriter();

  /// Adds an entry. Tags must ascend, each only once.
  [[nodiscard]] Result<void> add(const Entry& entry);
  /// Ends the run, syncs the file, and opens the run. The caller syncs the directory.
  [[nodiscard]] Result<std::unique_ptr<IndexRun>> finish(const base::IdRuns& covered);

 private:
  RunWriter() = default;
  /// Lays out the present group.
  [[nodiscard]] Result<void> end_group();
  [[nodiscard]] Result<void> put_block(Block& block);
  [[nodiscard]] Result<void> flush();

  const RunFolder* folder_ = nullptr;
  std::unique_ptr<io::File> file_;
  RunHeader header_;
  std::uint64_t group_ = 0;
  std::vector<Entry> waiting_;  // Entries of the group, after the overflow of earlier buckets.
  std::size_t left_over_ = 0;   // Number of overflow entries.
  std::string buffer_;
  std::uint64_t written_ = kBlockBytes;  // Position after the flushed blocks.
  std::uint64_t next_block_ = 1;
};

}  // namespace varve::index
