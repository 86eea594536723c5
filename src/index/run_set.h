// SPDX-License-Identifier: Apache-2.0
// The runs of an index: a large run and smaller, newer runs, merged when several have about the
// same size (log-structured merge tree, O'Neil et al. 1996, with tiers).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/id_runs.h"
#include "index/index_run.h"
#include "index/run_format.h"
#include "varve/result.h"

namespace varve::index {

class RunWriter;

/// The runs of one index, oldest first. Not thread-safe.
///
/// From the discovery of damage on, a run is unused and missing in refs().
class RunSet {
 public:
  /// The outcome of a caller's check of an entry.
  enum class Verdict : std::uint8_t {
    kTake,
    kSkip,   ///< The caller may not use the chunk.
    kWrong,  ///< The chunk has different content: the run is damaged.
  };

  /// Returns whether an id is a marker, which stands for no chunk.
  using IsMarker = bool (*)(ChunkId id);
  /// If `marker_test` is null, no entry is a marker. Merges keep the entries of markers, but prefer
  /// a chunk's entry with the same tag.
  RunSet(RunFolder folder, std::size_t cache_bytes, IsMarker marker_test = nullptr)
      : folder_(std::move(folder)), cache_(cache_bytes), is_marker_(marker_test) {}

  /// Opens runs. Logs and leaves out damaged or missing runs.
  void open(const std::vector<RunRef>& refs);
  /// Adds the entries of a snapshot of layout 1 as a run.
  /// Errors: the errors of scan_snapshot(), and of writing a run.
  [[nodiscard]] Result<void> import(io::File& snapshot, VersionNumber version);

  /// Checks a chunk. `is_new`: the entry was written by write() of this object.
  using Check = std::function<Verdict(ChunkId id, bool is_new)>;
  /// Returns the id of the newest entry with this tag accepted by `check`.
  [[nodiscard]] std::optional<ChunkId> find(const Tag& tag, const Check& check);
  /// Writes a run with `entries`, ascending by tag, each tag once.
  [[nodiscard]] Result<void> write(const std::vector<Entry>& entries, const base::IdRuns& covered);
  /// Merges runs until few are left, and most entries have ids in `live`. Drops entries outside
  /// `live` from merged runs.
  [[nodiscard]] Result<void> merge(const base::IdRuns& live);
  /// Returns the chunks in use, from an id on.
  using LiveFrom = std::function<Result<base::IdRuns>(ChunkId from)>;
  /// Merges runs until few are left. Asks for the chunks in use from the first chunk of the merged
  /// runs on, and drops the entries of unused chunks.
  /// Errors: also the errors of `live_from`.
  [[nodiscard]] Result<void> merge(const LiveFrom& live_from);
  /// Merges runs from write() until few of these runs are left. Keeps all entries.
  [[nodiscard]] Result<void> merge_new();

  /// Returns whether a run was lost to damage since take_lost().
  [[nodiscard]] bool has_lost() const;
  /// Drops damaged runs. Returns the chunks that no run covers any more.
  [[nodiscard]] base::IdRuns take_lost();

  /// Returns the sound runs, oldest first.
  /// Lifetime: independent of this object and of merges.
  [[nodiscard]] std::vector<std::shared_ptr<const IndexRun>> runs() const;
  /// Stops using a run of runs() that the caller found damaged. Does nothing after a merge of the
  /// run.
  void drop(const IndexRun& run);
  [[nodiscard]] std::vector<RunRef> refs() const;
  /// Returns the chunks added to the runs.
  [[nodiscard]] base::IdRuns covered() const;
  /// Returns the number of entries, including the entries of unused chunks.
  [[nodiscard]] std::uint64_t entries() const;
  [[nodiscard]] std::uint64_t blocks_read() const { return cache_.blocks_read(); }

 private:
  struct Member {
    std::shared_ptr<const IndexRun> run;
    bool is_new = false;
    bool damaged = false;
  };
  static void leave_out(Member& member, const Error& error);
  void drop_damaged();
  /// Returns the first run, from `begin` on, to merge with all later runs; nullopt if there are
  /// few.
  [[nodiscard]] std::optional<std::size_t> merge_start(std::size_t begin) const;
  /// Returns the first chunk covered by the runs from `first` on; the highest id if there is none.
  [[nodiscard]] ChunkId lowest_covered(std::size_t first) const;
  /// Merges the runs from `first` on. A null `live` keeps all entries.
  [[nodiscard]] Result<void> merge_from(std::size_t first, const base::IdRuns* live);
  /// Returns the approximate number of entries of the runs from `first` on that are neither in
  /// `live` nor markers.
  [[nodiscard]] std::uint64_t unused_entries(std::size_t first, const base::IdRuns& live) const;
  [[nodiscard]] bool is_marker(ChunkId id) const { return is_marker_ != nullptr && is_marker_(id); }
  /// Writes the entries of the runs from `first` on: for each tag, the newest live entry. Returns
  /// false if a run turned out to be damaged.
  [[nodiscard]] Result<bool> write_merged(std::size_t first, const base::IdRuns* live,
                                          RunWriter& writer);

  const RunFolder folder_;
  BlockCache cache_;
  const IsMarker is_marker_;
  std::vector<Member> members_;
  base::IdRuns lost_;  // Chunks of dropped runs.
  std::uint32_t next_number_ = 1;
};

/// Reads a snapshot of layout 1: passes each entry to `visit`, ascending by tag, and then returns
/// the covered chunks. The entries are verified only when scan_snapshot() returns.
/// Errors: kCorrupt for damage, or for a snapshot of a different series or version; the errors of
/// `visit`.
[[nodiscard]] Result<base::IdRuns> scan_snapshot(
    io::File& snapshot, SeriesId series, VersionNumber version,
    const std::function<Result<void>(const Entry&, std::uint64_t entries)>& visit);

}  // namespace varve::index
