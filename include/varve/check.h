// SPDX-License-Identifier: Apache-2.0
// Checks a repository; see Repository::check() and Repository::scrub().
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "varve/object_store.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve {

/// The position of a container in check order: series, then file, then offset.
struct CheckPosition {
  SeriesId series{};
  std::uint32_t segment = 0;  ///< The file's number in the catalog.
  std::uint64_t offset = 0;
  auto operator<=>(const CheckPosition&) const = default;
};

struct CheckOptions {
  bool read_data = true;       ///< Read every frame and verify the frame's checksum.
  bool verify_chunks = false;  ///< Also compare every chunk's SHA-256.
  /// Percentage of containers whose data is read. Each call draws the containers at random.
  unsigned percent = 100;
  std::uint64_t bytes_per_second = 0;  ///< Read limit; 0 = no limit.
  std::stop_token stop;                ///< Ends the check early; the report covers the part done.
  /// Skips the data of all containers up to and including `after`.
  std::optional<CheckPosition> after;
  /// Reports damage if the sequence number of an encrypted repository is less than
  /// `expected_sequence`.
  std::optional<std::uint64_t> expected_sequence{};
};

struct CheckProgress {
  std::uint64_t bytes_done = 0;
  std::uint64_t bytes_total = 0;
  CheckPosition reached;  ///< Position of the last container checked.
};

/// A damaged place. `where` names the repository's file. `affected` lists the files of versions
/// (SERIES/VERSION/path) touched by the damage.
struct Damage {
  std::string where;
  std::string what;
  std::vector<std::string> affected;
};

/// A harmless file or range in the repository's folder, foreign to the repository.
struct CheckNote {
  std::string where;
  std::string what;
};

/// Parity coverage of the segments and volumes not being written by an open version.
struct ParityCoverage {
  std::uint32_t percent = 0;  ///< Configured parity; 0 = none.
  std::uint64_t files = 0;
  std::uint64_t files_protected = 0;  ///< Files whose present content a parity file covers.
};

struct CheckReport {
  std::uint64_t versions = 0;
  std::uint64_t containers = 0;
  std::uint64_t chunks = 0;
  std::uint64_t bytes_read = 0;
  std::vector<Damage> damages;
  std::vector<CheckNote> notes;  ///< Unknown files, and bytes past the ends of files.
  ParityCoverage parity;
  bool finished = true;                     ///< False if the caller stopped the check.
  std::optional<std::uint64_t> sequence{};  ///< See Repository::sequence().
  /// Damaged chunks whose damage a second read confirmed.
  std::uint64_t lost_chunks = 0;
  bool quarantined = false;  ///< All lost chunks are in quarantine.
  /// True if a writer has to call Repository::settle_quarantine(): chunks named by the record of
  /// checks are not in quarantine, or chunks in quarantine were found sound.
  bool quarantine_is_due = false;
};

/// Limit for the file names in a LostFiles.
inline constexpr std::size_t kLostFilesNamed = 10;

/// The files of a version whose content is known to be lost, in whole or in part. A hard-linked
/// file counts once per name.
struct LostFiles {
  std::uint64_t files = 0;
  std::vector<std::string> names;  ///< Paths in the version; the first kLostFilesNamed.
};

/// Defines how much of the repository a check compared. Each depth includes the preceding depths.
enum class CheckDepth : std::uint8_t {
  kStructure = 1,  ///< The catalog, manifests and files, without file data.
  kData = 2,       ///< Also the checksum of every frame.
  kChunks = 3,     ///< Also the SHA-256 of every chunk.
};

/// Returns the word for a depth: "structure", "data" or "chunks".
[[nodiscard]] std::string_view name_of(CheckDepth depth);

/// The result of an earlier check.
struct EarlierCheck {
  CheckDepth depth = CheckDepth::kStructure;
  std::int64_t ended_at = 0;  ///< Unix seconds.
  std::uint64_t damages = 0;  ///< Damaged places found by the check.
  bool operator==(const EarlierCheck&) const = default;
};

struct ScrubOptions {
  std::uint64_t bytes_per_second = 0;  ///< Read limit; 0 = no limit.
  std::stop_token stop;
  bool restart = false;  ///< Begin at the start instead of resuming.
};

struct ScrubReport {
  CheckReport check;  ///< The result of the run. `finished` if the run reached the end.
  bool resumed = false;
  std::uint64_t damages_before = 0;  ///< Damages found by earlier runs of the same pass.
};

/// Options of check_outer().
struct OuterCheckOptions {
  bool trust_owner = false;  ///< As OpenOptions::trust_owner.
  std::stop_token stop;      ///< Ends the check early; the report covers the part done.
  /// As StoreUse::access, for data present only in the object store.
  StoreAccess store_access{};
};

/// Checks a repository without its keys, on the storage host for example. Compares segments,
/// volumes, parity, the values of the catalog and the sealed files of an encrypted repository with
/// their checksums, and the superblock with its copy. Finds damage, but neither forged data nor a
/// missing file, reads no open version, and names no affected files of versions. Works beside a
/// writer. In the report, only containers, bytes_read, damages, notes and finished are set.
/// Errors: kNoRepository; kUnsupported for data of a newer Varve; kIo.
[[nodiscard]] Result<CheckReport> check_outer(
    const std::string& path, const OuterCheckOptions& options,
    const std::function<void(const CheckProgress&)>& progress);

}  // namespace varve
