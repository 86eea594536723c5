// SPDX-License-Identifier: Apache-2.0
// Confirms permanent damage of chunks, and quarantines the chunks: no new data refers to a chunk in
// quarantine, so new data with the same content is stored again.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/id_runs.h"
#include "base/ids.h"
#include "format/container_record.h"
#include "format/data_codecs.h"
#include "io/file_system.h"
#include "maintain/container_verifier.h"
#include "meta/lmdb.h"
#include "store/folder_store.h"
#include "varve/result.h"

namespace varve::maintain {

/// Damaged chunks, by store. No set is empty. The pool's sets have no aliases.
using LostChunks = std::map<StoreId, base::IdRuns>;

/// Returns the chunks of a store referred to by sealed versions, under the stored ids. Leaves out
/// versions whose chunks the catalog cannot tell: a check reports the versions.
[[nodiscard]] Result<base::IdRuns> needed_chunks(const meta::Txn& txn, StoreId store);

/// Returns the chunks shown as damaged by a verdict; none if the container is of an unsupported
/// format, or if the file could not be read for a temporary reason. `located`: the chunks located
/// by the catalog in the container.
[[nodiscard]] base::IdRuns damaged_chunks(const ContainerVerdict& verdict,
                                          const base::IdRuns& located);

/// The result of a second read. A chunk is in neither set if the read failed for a temporary
/// reason.
struct SecondRead {
  base::IdRuns lost;
  base::IdRuns sound;
  /// Damaged chunks in the container's table that are no suspects. The catalog may locate the
  /// chunks elsewhere.
  base::IdRuns beside;
};
/// Reads a container a second time, past the page cache and with another descriptor. `folder`: the
/// folder of `segments` in `files`.
/// Errors: kUnavailable if a distant store does not answer.
[[nodiscard]] Result<SecondRead> read_again(const format::DataCodecs& codecs, io::FileSystem& files,
                                            const std::string& folder,
                                            store::SegmentStore& segments, StoreId store,
                                            const format::ContainerRecord& record,
                                            const base::IdRuns& suspects);

/// The result of confirm_lost_chunks().
struct Confirmed {
  LostChunks lost;       ///< Damaged, or needed and stored nowhere.
  LostChunks sound;      ///< Sound, or stored nowhere and needed by no version.
  LostChunks undecided;  ///< Chunks that could not be read for a temporary reason.
};
/// Finds out which of the `named` chunks are lost. Reads each container with some of the chunks,
/// and adds the other damaged chunks of the container: who named a chunk may have stopped there.
/// Leaves out ids that no chunk of the store can have. The arranger may be active. `open_store` is
/// empty if all data is on the disk.
/// Errors: the errors of the catalog; kUnavailable.
[[nodiscard]] Result<Confirmed> confirm_lost_chunks(const format::DataCodecs& codecs,
                                                    const meta::Env& catalog, io::FileSystem& files,
                                                    const store::StoreOpener& open_store,
                                                    const std::string& repository_path,
                                                    const LostChunks& named);

/// Returns the number of chunks.
[[nodiscard]] std::uint64_t count_of(const LostChunks& lost);
/// Returns the chunks in quarantine.
[[nodiscard]] Result<LostChunks> find_quarantined(const meta::Env& catalog);
/// Adds `lost` to the quarantine and removes `sound` from the quarantine, in one commit
/// (docs/ORDERING.md O61). Returns the chunks added or removed. Makes no commit without changes.
/// Errors: the errors of the commit.
[[nodiscard]] Result<LostChunks> change_quarantine(const meta::Env& catalog, const LostChunks& lost,
                                                   const LostChunks& sound);
/// Returns the chunks of `some` that are not in `others`.
[[nodiscard]] LostChunks without(const LostChunks& some, const LostChunks& others);

}  // namespace varve::maintain
