// SPDX-License-Identifier: Apache-2.0
// Sizes of versions, deletion, and the arranging of stored data.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "varve/types.h"

namespace varve {

/// How a deletion treats held versions.
struct DeletionOptions {
  /// Deletes the versions that nothing holds and lists the others in DeletionForecast::held.
  /// Otherwise one held version makes the whole call fail and nothing is deleted.
  bool skip_held = false;
  /// Deletes versions with open files too; their readers then get errors. Still holds locked
  /// versions and the bases of open versions.
  bool force = false;
  /// Treats a lock as ended once the clock says so, even if the clock has jumped.
  bool force_clock = false;
};

/// A version that a deletion leaves in place.
struct HeldVersion {
  VersionNumber number{};
  std::string reason;  ///< A sentence that names the version and what to do.
};

/// The effect of deleting a set of versions. The figures come from the deletion's own plan, so they
/// are exact unless something else changes the series first.
struct DeletionForecast {
  std::vector<VersionNumber> versions;  ///< Versions to delete. Ascending, each once.
  std::vector<HeldVersion> held;        ///< Ascending. Empty without DeletionOptions::skip_held.
  /// Decrease in file sizes below series/ when the deletion returns, in bytes. Excludes parity
  /// files, which shrink only once arranging is done.
  std::uint64_t freed_bytes = 0;
  /// Raw bytes in segments of the active set that become unused. Arranging frees them later.
  std::uint64_t dead_bytes = 0;
  std::uint64_t chunks = 0;       ///< Deleted chunks.
  std::uint64_t chunk_bytes = 0;  ///< Raw size of the deleted chunks.
  /// Raw bytes of chunks that only the deleted versions and the series' open version use. They are
  /// freed when the open version is sealed without them, or dropped.
  std::uint64_t waiting_bytes = 0;
  std::string waiting_for;  ///< Name of that open version; empty if `waiting_bytes` is 0.
};

/// The sizes of one sealed version, in bytes.
struct VersionUsage {
  VersionNumber number{};
  std::uint64_t logical_bytes = 0;     ///< File data without holes; hard links once.
  std::uint64_t referenced_bytes = 0;  ///< Raw bytes of the distinct chunks that it refers to.
  /// DeletionForecast::freed_bytes for deleting this version alone.
  std::uint64_t unique_bytes = 0;
  /// Raw bytes of the chunks that at least one other version also refers to.
  std::uint64_t shared_bytes = 0;
  /// True if the window skips this version because it is too unlike its neighbours (a partial or an
  /// empty backup); see docs/GLOSSARY.md.
  bool side = false;
  Timestamp locked_until;  ///< Zero if it is not locked.
  /// True while the lock prevents deletion: the lock has not ended, or it has ended only by a clock
  /// that has jumped (docs/ORDERING.md O27).
  bool lock_holds = false;
  /// Name of the open version that is based on this one and prevents its deletion, or empty.
  std::string base_of;
};

/// The chunks of one volume that exactly the versions `birth` to `death` refer to. In the active
/// set: the chunks of one birth.
struct CategoryInfo {
  VersionNumber birth{};
  VersionNumber death{};  ///< 0 in the active set, whose chunks are still in use.
  std::string file;       ///< Path below the series' folder; empty in the active set.
  std::uint64_t bytes =
      0;  ///< Stored bytes with headers and padding; an estimate in the active set.
  std::uint64_t chunk_bytes = 0;  ///< Raw bytes.
  std::uint64_t chunks = 0;
  bool live = true;  ///< True if a version from `birth` to `death` exists.
};

/// The work left for the arranging policy. Sizes in raw bytes.
struct ArrangingDebt {
  std::uint64_t active_bytes = 0;     ///< In the segments of the active set, including dead bytes.
  std::uint64_t dead_bytes = 0;       ///< Deleted and copied chunks in `active_bytes`.
  std::uint64_t departing_bytes = 0;  ///< Chunks in `active_bytes` still to be moved to a volume.
  std::uint64_t runs = 0;             ///< Sequences of segments written one after the other.
  std::uint64_t volume_bytes = 0;     ///< In the archived categories.
};

/// When the arranger moves chunks that fall out of use, and when it rewrites the active set.
enum class ArrangePolicyKind : std::uint8_t {
  kOriginal = 1,  ///< Rewrites the whole active set after each seal (MFDedup, FAST'21).
  kBatched = 2,   ///< Rewrites the whole active set after every `batch` versions.
  kTiered = 3,    ///< Moves departing chunks at once, merges runs by levels, and bounds dead space.
};

inline constexpr std::uint32_t kParityPercentMax = 25;

/// Settings of the arranger, kept in the catalog. They may change at any time: every policy reads
/// the files that any other policy wrote.
struct ArrangeSettings {
  ArrangePolicyKind policy = ArrangePolicyKind::kTiered;
  std::uint32_t batch = 10;          ///< Versions between two arrangings; 1 or more; batched.
  std::uint32_t dead_permille = 70;  ///< Tolerated dead share of the active set, per mille; tiered.
  std::uint32_t fan = 20;  ///< Runs of one level that the arranger merges; 2 or more; tiered.
  /// Main versions in a row without a chunk before it departs; 1 or more.
  std::uint32_t window = 4;
  /// Parity as a percentage of the data it protects; 0 = none, at most kParityPercentMax.
  std::uint32_t parity_percent = 0;
};

struct ArrangeProgress {
  std::uint64_t bytes_written = 0;  ///< Bytes written since the call began.
  std::uint64_t bytes_read = 0;
  std::uint64_t steps = 0;
};

/// Options of one call of arrange().
struct ArrangeOptions {
  std::uint64_t bytes_per_second = 0;  ///< Limit on bytes read plus bytes written; 0 = no limit.
  std::stop_token stop;
  /// Called after each step.
  std::function<void(const ArrangeProgress&)> progress;
};

struct ArrangeReport {
  ArrangeProgress done;
  bool finished = false;  ///< False if the caller stopped it, or the disk is full.
};

}  // namespace varve
