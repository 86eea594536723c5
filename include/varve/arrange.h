// SPDX-License-Identifier: Apache-2.0
// Arranges stored data; see Repository::arrange().
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "varve/types.h"

namespace varve {

/// The chunks of one birth in a volume. Versions from `birth` to `death` refer to the chunks. In
/// the active set: the chunks of one birth.
struct CategoryInfo {
  VersionNumber birth{};
  /// The last version that refers to a chunk of the volume. For a volume coalesced from several
  /// small volumes, the last death of all. 0 in the active set, whose chunks are still in use.
  VersionNumber death{};
  std::string file;  ///< Path below the series' folder; empty in the active set.
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
  std::uint64_t runs = 0;             ///< Sequences of segments written consecutively.
  std::uint64_t volume_bytes = 0;     ///< In the archived categories.
};

/// The stored bytes that the setting ArrangeSettings::delta saves in one series. All sizes are of
/// the files that were created as volumes. A frame has a prefix if the frame was compressed
/// together with chunks like its own chunks.
struct DeltaSavings {
  std::uint64_t volume_bytes = 0;        ///< Stored bytes of all volumes, headers included.
  std::uint64_t raw_bytes = 0;           ///< Raw bytes of all volumes.
  std::uint64_t frames = 0;              ///< Frames with a prefix.
  std::uint64_t frame_raw_bytes = 0;     ///< Raw bytes of the frames with a prefix.
  std::uint64_t frame_stored_bytes = 0;  ///< Stored bytes of the frames with a prefix.
  /// Estimated stored bytes of the same frames without a prefix: each frame compressed as well as
  /// the first frame of its chain, which has no prefix, and chunks like those of the frame.
  std::uint64_t frame_plain_bytes = 0;
  std::uint64_t containers_left_out = 0;  ///< Containers with an unreadable header.
};

/// Decides when the arranger moves departing chunks, and when the arranger rewrites the active set.
enum class ArrangePolicyKind : std::uint8_t {
  kOriginal = 1,  ///< Rewrites the whole active set after each seal (MFDedup, FAST'21).
  kBatched = 2,   ///< Rewrites the whole active set after every `batch` versions.
  kTiered = 3,    ///< Moves departing chunks at once, merges runs by levels, and bounds dead space.
};

/// A policy's name in commands and messages, and an explaining phrase.
struct ArrangePolicyName {
  ArrangePolicyKind kind;
  std::string_view name;
  std::string_view help;
};
/// All policies known to the build.
inline constexpr std::array<ArrangePolicyName, 3> kArrangePolicies = {{
    {ArrangePolicyKind::kOriginal, "original", "all data after each seal"},
    {ArrangePolicyKind::kBatched, "batched", "all data after some seals"},
    {ArrangePolicyKind::kTiered, "tiered", "only what a bound on dead space requires"},
}};
/// Returns the policy's name; "?" for a number without a policy.
[[nodiscard]] constexpr std::string_view name_of(ArrangePolicyKind policy) {
  for (const auto& one : kArrangePolicies) {
    if (one.kind == policy) return one.name;
  }
  return "?";
}
/// Returns the policy with the name; nullopt if there is none.
[[nodiscard]] constexpr std::optional<ArrangePolicyKind> arrange_policy(std::string_view name) {
  for (const auto& one : kArrangePolicies) {
    if (one.name == name) return one.kind;
  }
  return std::nullopt;
}

inline constexpr std::uint32_t kParityPercentMax = 25;

/// Settings of the arranger, kept in the catalog. Settings may change at any time: every policy
/// reads the files written by any policy.
struct ArrangeSettings {
  ArrangePolicyKind policy = ArrangePolicyKind::kTiered;
  std::uint32_t batch = 10;          ///< Versions between two arrangings; 1 or more; batched.
  std::uint32_t dead_permille = 70;  ///< Tolerated dead share of the active set, per mille; tiered.
  std::uint32_t fan = 20;  ///< Runs of one level merged by the arranger; 2 or more; tiered.
  /// Main versions in a row without a chunk, after which a new version stores the chunk again; 1 or
  /// more.
  std::uint32_t window = 4;
  /// Parity as a percentage of the protected data; 0 = none, at most kParityPercentMax.
  std::uint32_t parity_percent = 0;
  /// 1: arranging compresses the chunks of older volumes together with chunks like them. An earlier
  /// Varve cannot read such volumes. 0: each frame is compressed by itself.
  std::uint32_t delta = 0;
};

struct ArrangeProgress {
  std::uint64_t bytes_written = 0;  ///< Bytes written since the call began.
  std::uint64_t bytes_read = 0;
  std::uint64_t steps = 0;
  /// Containers in which arranging found damaged chunks: the chunks stay where they are, and so do
  /// their duplicates in the pool. A container counts once for each step that reads the container.
  /// Chunks in quarantine are not read.
  std::uint64_t damaged = 0;
};

/// Decides when duplicates in the pool become aliases. The defaults are the arranger's defaults.
struct PostPassOptions {
  /// True to compare even a small amount of new data in the pool. Otherwise a pass waits until the
  /// pool's index may have missed many duplicates.
  bool any_new = false;
  /// Shorter runs of duplicates stay, so that reads remain sequential; 0 = default.
  std::uint32_t run_chunks_min = 0;
  /// A container is written again without its duplicates if the duplicates' share of its bytes is
  /// at least the threshold, in thousandths; 0 = default.
  std::uint32_t duplicate_permille_min = 0;
  /// True to compare the whole pool again, and to keep one copy of every duplicate, also of short
  /// runs and in containers with few duplicates. The members above have no effect then.
  bool everything = false;
};

/// Options of arrange(). Unless post_pass.any_new is set, work with large downloads may wait.
struct ArrangeOptions {
  std::uint64_t bytes_per_second = 0;  ///< Limit on bytes read plus bytes written; 0 = no limit.
  PostPassOptions post_pass{};
  std::stop_token stop;
  /// Called after each step.
  std::function<void(const ArrangeProgress&)> progress;
};

/// The length of the catalog's file.
struct CatalogCompaction {
  std::uint64_t bytes_before = 0;
  std::uint64_t bytes_after = 0;
};

struct ArrangeReport {
  ArrangeProgress done;
  bool finished = false;  ///< False if the caller stopped arranging, or the disk is full.
};

}  // namespace varve
