// SPDX-License-Identifier: Apache-2.0
// The post-pass: removes duplicates from the pool outside of the writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/id_runs.h"
#include "base/ids.h"
#include "catalog/alias_table.h"
#include "format/fingerprinter.h"
#include "layout/chunk_mover.h"
#include "layout/container_use.h"
#include "layout/duplicate_search.h"
#include "layout/pool_store.h"
#include "meta/lmdb.h"
#include "store/alias_files.h"
#include "varve/result.h"

namespace varve::layout {

struct PostPassOutcome {
  MoveOutcome moved;
  std::uint64_t aliases = 0;        ///< Chunks that became aliases.
  std::uint64_t aliased_bytes = 0;  ///< Raw size of the chunks that became aliases.
};

struct PostPassParts {
  PoolStore* pool = nullptr;
  const meta::Env* catalog = nullptr;
  const format::Fingerprinter* fingerprinter = nullptr;
  store::FolderPath folder;  ///< The pool's folder.
  /// A container is written again if at least this share of the container becomes aliases, in
  /// thousandths.
  std::uint32_t dead_permille_min = 100;
  /// Raw size of the containers of one step. Seals and deletions wait for a step.
  std::uint64_t step_bytes_max = 32U << 20;
  base::IdRuns kept;  ///< Chunks that must not become aliases, beside the targets of aliases.
  base::IdRuns lost;  ///< Chunks in quarantine, which stay as they are and get no alias.
  std::function<std::uint32_t(VersionNumber birth)> run_chunks_min;
};

/// The functions called during a pass. All may be empty.
struct PostPassHooks {
  std::function<bool()> stop{};  ///< Called before each step, and often between steps.
  /// Called with the bytes read by the search.
  std::function<void(std::uint64_t bytes)> pass{};
  /// Makes older programs refuse the repository. Called before the first alias is committed.
  std::function<Result<void>()> require_aliases{};
  /// Called after each commit, before the first file is removed.
  std::function<void()> before_freeing{};
  std::function<void(const PostPassOutcome&)> after_step{};  ///< Called after each step.
  /// Called at the end of a pass with the number of containers found damaged, unless 0.
  std::function<void(std::uint64_t containers)> found_damage{};
};

/// Finds chunks of the pool that are stored several times, and makes the younger copies aliases of
/// an older copy. Writes containers that lose enough bytes again without the aliases.
///
/// A step takes containers of one birth. In one commit, the rest of the chunks moves to new
/// containers, the duplicates become aliases, and the versions' lists of containers are updated.
/// The file of aliases is durable before the commit. A step first compares the content of each
/// target with the fingerprint of its alias. Containers pinned by an open version are left out. So
/// a crash, or the end of the pass, between any two steps leaves no work half done.
class PostPass {
 public:
  explicit PostPass(PostPassParts parts) : parts_(std::move(parts)) {}

  /// Returns false if stopped before the end. A further call continues: a stopped search begins
  /// again, finished steps do not.
  /// Errors: kNoSpace; kCorrupt if the records contradict each other. No data is lost then.
  [[nodiscard]] Result<bool> run(const PostPassHooks& hooks);
  /// Returns false if the search reached its limit and a further pass may find more.
  [[nodiscard]] bool found_all() const { return all_found_; }
  /// Returns the number of containers found damaged. Their duplicates stay as they are.
  [[nodiscard]] std::size_t damaged() const { return damaged_.size(); }
  /// Returns a birth such that the pass has searched all chunks of earlier births.
  [[nodiscard]] VersionNumber births_end() const { return births_end_; }

 private:
  /// A container to be written again.
  struct Victim {
    ContainerNumber number{};
    VersionNumber birth{};
    std::uint64_t raw_bytes = 0;
  };
  /// The chunks that become aliases in a step.
  struct Aliases {
    std::vector<catalog::AliasRecord> records;
    base::IdRuns chunks;
    base::IdRuns targets;
    std::set<ContainerNumber> target_containers;  ///< Except the containers of the step.
  };

  [[nodiscard]] Result<bool> search(const PostPassHooks& hooks);
  [[nodiscard]] Result<void> choose_victims();
  [[nodiscard]] Result<void> write_file(const PostPassHooks& hooks);
  [[nodiscard]] Result<void> step(const std::vector<Victim>& victims, const PostPassHooks& hooks);
  [[nodiscard]] Result<PostPassOutcome> move(VersionNumber birth,
                                             std::set<ContainerNumber> containers,
                                             const PostPassHooks& hooks);
  [[nodiscard]] Result<Aliases> verified(const base::IdRuns& chunks, std::uint64_t& bytes_read);
  [[nodiscard]] static Result<void> recount(meta::WriteTxn& txn, const ContainerUse& use,
                                            const std::set<ContainerNumber>& containers);

  const PostPassParts parts_;
  enum class Stage : std::uint8_t { kSearch, kFile, kSteps };
  Stage stage_ = Stage::kSearch;
  std::vector<format::AliasRun> found_;  // Ascending.
  std::vector<Victim> victims_;          // Ascending by birth.
  std::size_t next_ = 0;                 // The first victim without a step.
  std::set<ContainerNumber> damaged_;
  VersionNumber births_end_{};
  bool all_found_ = true;
};

/// Returns the aliases of a run with stored targets, with the tags from the targets' containers.
/// Errors: the errors of reading a container's header.
[[nodiscard]] Result<std::vector<format::TaggedAliases>> tagged(StoredChunks& chunks,
                                                                const format::AliasRun& run);

/// Removes aliases without a stored target from the catalog, and replaces all files of aliases by a
/// single file with the aliases of the catalog. Does nothing if there are at most `kept` files.
[[nodiscard]] Result<void> tidy_alias_files(const meta::Env& catalog, StoredChunks& chunks,
                                            const store::FolderPath& folder,
                                            std::optional<std::size_t> kept);

}  // namespace varve::layout
