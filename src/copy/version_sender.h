// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "copy/change.h"
#include "copy/target.h"
#include "varve/browse.h"
#include "varve/result.h"

namespace varve::copy {

/// Counts of a version, or of all versions.
struct SentCounts {
  std::uint64_t changes = 0;
  std::uint64_t data_bytes = 0;
  std::uint64_t sent_bytes = 0;
};

/// Sends a version to a target, as changes of an earlier version. Not thread-safe.
class VersionSender {
 public:
  struct Options {
    bool incomplete = false;  ///< Leaves out unreadable files.
    /// Called after each batch with the number of bytes in the batch's chunks. Returns false to
    /// stop.
    std::function<bool(std::uint64_t bytes)> progress;
  };

  /// `before` may be null. Lifetime: all arguments outlive the object.
  VersionSender(Target& target, VersionReader& now, VersionReader* before, const Options& options)
      : target_(target), now_(now), before_(before), options_(options) {}

  /// Sends the changes and has the target compare the result with the changes. The target then has
  /// an open version for the caller to seal.
  /// Errors: kCorrupt if the copy differs from the source; the errors of the versions and the
  /// target.
  [[nodiscard]] Result<void> send(const CopyBegin& begin);
  /// Has the target compare a sealed copy with the version. Appends the differences to `problems`.
  [[nodiscard]] Result<void> check_sealed(SeriesId series, VersionNumber number,
                                          std::vector<std::string>& problems);

  [[nodiscard]] const SentCounts& counts() const { return counts_; }
  /// Returns the left-out files, with the reasons.
  [[nodiscard]] const std::vector<std::string>& problems() const { return problems_; }
  /// Returns true if an error of send() came from the source's data.
  [[nodiscard]] bool is_source_damaged() const { return source_damaged_; }
  /// Returns true if send() failed because the version was deleted at the source.
  [[nodiscard]] bool is_source_gone() const { return source_gone_; }

 private:
  [[nodiscard]] Result<void> send_changes(std::uint64_t skipped);
  [[nodiscard]] Result<void> compare(SeriesId series, std::optional<VersionNumber> sealed,
                                     std::vector<std::string>& differences);
  [[nodiscard]] bool leave_out(const std::string& path, const Error& error);
  [[nodiscard]] Result<void> passed(Result<void> on);
  [[nodiscard]] Result<void> listed(Result<void> all);
  [[nodiscard]] Result<void> add(Change&& change);
  [[nodiscard]] Result<void> offer();
  [[nodiscard]] Result<void> complete_oldest();
  [[nodiscard]] Result<void> complete_all();
  /// A chunk wanted by the target.
  struct WantedData {
    const Change* change = nullptr;
    const ChunkRef* chunk = nullptr;
    std::uint64_t offset = 0;
    std::string bytes;
    [[nodiscard]] bool follows(const WantedData& other) const {
      return change->rank == other.change->rank && offset == other.offset + other.chunk->bytes;
    }
  };
  void read_pieces(std::span<WantedData> wanted);
  [[nodiscard]] Result<void> read_run(std::span<WantedData> run, std::size_t bytes);

  Target& target_;
  VersionReader& now_;
  VersionReader* const before_;
  const Options options_;
  SentCounts counts_;
  std::vector<std::string> problems_;
  std::set<Rank> left_out_;
  bool source_damaged_ = false;
  bool source_gone_ = false;
  bool has_failed_ = false;  // A failure of the target, or of reading for the target.
  ChangeBatch batch_;
  std::size_t batch_bytes_ = 0;
  std::deque<ChangeBatch> in_flight_;
  std::optional<Rank> rank_;
  std::shared_ptr<FileReader> file_;
};

}  // namespace varve::copy
