// SPDX-License-Identifier: Apache-2.0
// What versions cost, what deleting them gives back, and how stored data is kept in order.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "varve/types.h"

namespace varve {

/// How a deletion treats versions that something holds.
struct DeletionOptions {
  /// Deletes the versions that nothing holds and lists the others in DeletionForecast::held.
  /// Otherwise one held version makes the whole call fail and nothing is deleted.
  bool skip_held = false;
  /// Deletes versions with open files too. Their readers get errors from then on. Locks and open
  /// versions that are based on a version hold it all the same.
  bool force = false;
  /// Believes the clock where it says that a lock has ended, however far the clock has jumped.
  bool force_clock = false;
};

/// A version that a deletion leaves in place.
struct HeldVersion {
  VersionNumber number{};
  std::string reason;  ///< A sentence that names the version and what to do.
};

/// What deleting a set of versions does. The plan of the deletion itself gives these figures, so
/// they are exact as long as nothing else changes the series in between.
struct DeletionForecast {
  std::vector<VersionNumber> versions;  ///< The versions that go. Ascending, each once.
  std::vector<HeldVersion> held;        ///< Ascending. Empty without DeletionOptions::skip_held.
  /// Bytes of file sizes below series/ that come back when the deletion returns. Parity files are
  /// not counted: they follow when arranging is done.
  std::uint64_t freed_bytes = 0;
  /// Of the segments of the active set: raw bytes that nobody needs any more, and that arranging
  /// gives back later.
  std::uint64_t dead_bytes = 0;
  std::uint64_t chunks = 0;       ///< That go.
  std::uint64_t chunk_bytes = 0;  ///< Their raw bytes.
  /// Raw bytes of chunks that only the deleted versions and the series' open version use. They
  /// come back when that version no longer needs them: when it is sealed without them, or dropped.
  std::uint64_t waiting_bytes = 0;
  std::string waiting_for;  ///< Name of the open version; empty if nothing waits.
};

/// What one sealed version takes. All in bytes.
struct VersionUsage {
  VersionNumber number{};
  std::uint64_t logical_bytes = 0;     ///< File data without holes; hard links once.
  std::uint64_t referenced_bytes = 0;  ///< Raw bytes of the distinct chunks that it refers to.
  /// What deleting this version alone would give back: DeletionForecast::freed_bytes.
  std::uint64_t unique_bytes = 0;
  /// Raw bytes of the chunks that at least one other version refers to as well.
  std::uint64_t shared_bytes = 0;
  /// A version so unlike its neighbours that it does not count for the window (a partial or an
  /// empty backup); see docs/GLOSSARY.md.
  bool side = false;
  Timestamp locked_until;  ///< Zero if it is not locked.
  /// The lock keeps the version from being deleted: its end lies ahead, or the clock that says
  /// otherwise has jumped (docs/ORDERING.md O32).
  bool lock_holds = false;
  /// Name of the open version that is based on this one and keeps it from being deleted, or empty.
  std::string base_of;
};

/// The chunks that exactly the versions `birth` to `death` refer to, as far as one volume has
/// them; or, in the active set, those of one birth.
struct CategoryInfo {
  VersionNumber birth{};
  VersionNumber death{};    ///< 0 in the active set: it is still in use.
  std::string file;         ///< Below the series' folder; empty in the active set.
  std::uint64_t bytes = 0;  ///< Stored, with heads and padding; an estimate in the active set.
  std::uint64_t chunk_bytes = 0;  ///< Raw.
  std::uint64_t chunks = 0;
  bool live = true;  ///< A version from birth to death is there.
};

/// How far the stored data is from what the arranging policy wants. Raw bytes.
struct ArrangingDebt {
  std::uint64_t active_bytes = 0;     ///< In the segments of the active set, dead ones included.
  std::uint64_t dead_bytes = 0;       ///< Of these, chunks that are gone or were copied out.
  std::uint64_t departing_bytes = 0;  ///< Of these, chunks that have yet to go to their volume.
  std::uint64_t runs = 0;             ///< Of segments that were written one after the other.
  std::uint64_t volume_bytes = 0;     ///< Of the archived categories.
};

/// When chunks that fall out of use move, and when the active set is written anew.
enum class ArrangePolicyKind : std::uint8_t {
  kOriginal = 1,  ///< The whole active set after each seal (MFDedup, FAST'21).
  kBatched = 2,   ///< The whole active set, after every `batch` versions.
  kTiered = 3,    ///< Departing chunks at once; runs are merged by levels, dead space is bounded.
};

inline constexpr std::uint32_t kParityPercentMax = 25;

/// Kept in the catalog; may be changed at any time. Every policy reads what any other wrote.
struct ArrangeSettings {
  ArrangePolicyKind policy = ArrangePolicyKind::kTiered;
  std::uint32_t batch = 10;          ///< Versions between two arrangings; 1 or more; batched.
  std::uint32_t dead_permille = 70;  ///< Dead share of the active set that is let be; tiered.
  std::uint32_t fan = 20;            ///< Runs of a level that are merged; 2 or more; tiered.
  std::uint32_t window = 4;          ///< Main versions that must do without a chunk; 1 or more.
  /// Parity, in hundredths of what it protects; 0 = none, at most kParityPercentMax.
  std::uint32_t parity_percent = 0;
};

struct ArrangeProgress {
  std::uint64_t bytes_written = 0;  ///< Since the call began.
  std::uint64_t bytes_read = 0;
  std::uint64_t steps = 0;
};

/// How one call of arrange() goes about it.
struct ArrangeOptions {
  std::uint64_t bytes_per_second = 0;  ///< Read and written together; 0 = no limit.
  std::stop_token stop;
  /// Called after each step.
  std::function<void(const ArrangeProgress&)> progress;
};

struct ArrangeReport {
  ArrangeProgress done;
  bool finished = false;  ///< False if it was stopped, or the disk is full.
};

}  // namespace varve
