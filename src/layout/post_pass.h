// SPDX-License-Identifier: Apache-2.0
// The post-pass: removes duplicates from the pool outside of the writes.
#pragma once

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
  std::uint64_t aliased_bytes = 0;  ///< Their raw size.
};

struct PostPassParts {
  PoolStore* pool = nullptr;
  const meta::Env* catalog = nullptr;
  const format::Fingerprinter* fingerprinter = nullptr;
  store::FolderPath folder;  ///< The pool's folder.
  /// A container is written again if at least this share of it becomes aliases, in thousandths.
  std::uint32_t dead_permille_min = 100;
  /// Raw size of the containers of one step. Seals and deletions wait for a step.
  std::uint64_t step_bytes_max = 32U << 20;
  base::IdRuns kept;  ///< Chunks that must not become aliases, beside the targets of aliases.
  std::function<std::uint32_t(VersionNumber birth)> run_chunks_min;
};

/// The functions that a pass calls while it runs. All may be empty.
struct PostPassHooks {
  std::function<bool()> stop{};  ///< Asked before each step, and often between.
  /// Called with the bytes that the search read.
  std::function<void(std::uint64_t bytes)> pass{};
  /// Makes older programs refuse the repository. Called before the first alias is committed.
  std::function<Result<void>()> require_aliases{};
  /// Called after each commit, before the first file is removed.
  std::function<void()> before_freeing{};
  std::function<void(const PostPassOutcome&)> after_step{};  ///< Called after each step.
};

/// Finds chunks of the pool that are stored several times, makes the younger ones aliases of an
/// older one, and writes the containers that lose enough of their bytes again without them.
///
/// A step takes containers of one birth. In one commit, the rest of their chunks moves to new
/// containers, the duplicates become aliases, and the versions' lists of containers follow. The
/// file of aliases is durable before. A step compares the content of each target with the
/// fingerprint of its alias first. It leaves out containers that an open version pins. So a crash,
/// or the end of the pass, between any two steps leaves a pool without work half done.
class PostPass {
 public:
  explicit PostPass(PostPassParts parts) : parts_(std::move(parts)) {}

  /// Returns false if it was stopped before the end. Another call goes on: a search that was
  /// stopped begins again, steps do not. Errors: kNoSpace; kCorrupt if the records contradict each
  /// other. Nothing is lost then.
  [[nodiscard]] Result<bool> run(const PostPassHooks& hooks);
  /// Returns false if so much was found that another pass may find more.
  [[nodiscard]] bool found_all() const { return all_found_; }
  /// Returns a birth such that the pass has seen all chunks of earlier ones.
  [[nodiscard]] VersionNumber births_end() const { return births_end_; }

 private:
  /// A container that is written again.
  struct Victim {
    ContainerNumber number{};
    VersionNumber birth{};
    std::uint64_t raw_bytes = 0;
  };
  /// The chunks that a step makes aliases.
  struct Aliases {
    std::vector<catalog::AliasRecord> records;
    base::IdRuns chunks;
    base::IdRuns targets;
    std::set<ContainerNumber> target_containers;  ///< Except those of the step.
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
  std::vector<Victim> victims_;          // By birth.
  std::size_t next_ = 0;                 // The first one that no step has taken.
  VersionNumber births_end_{};
  bool all_found_ = true;
};

/// Returns the aliases of a run whose targets are stored, with the tags from their containers.
/// Errors: those of reading a container's header.
[[nodiscard]] Result<std::vector<format::TaggedAliases>> tagged(StoredChunks& chunks,
                                                                const format::AliasRun& run);

/// Removes aliases that lead nowhere from the catalog, and replaces all files of aliases by one
/// that has those of the catalog. Does nothing if there are at most `kept` files.
[[nodiscard]] Result<void> tidy_alias_files(const meta::Env& catalog, StoredChunks& chunks,
                                            const store::FolderPath& folder,
                                            std::optional<std::size_t> kept);

}  // namespace varve::layout
