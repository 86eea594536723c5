// SPDX-License-Identifier: Apache-2.0
// Repairs a damaged repository. plan() finds the steps; execute() carries them out.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "varve/check.h"
#include "varve/encryption.h"
#include "varve/object_store.h"
#include "varve/result.h"

namespace varve {

struct RepairOptions {
  /// Also read and repair all data; otherwise only the superblock and the catalog.
  bool read_data = true;
  /// A folder with copies of damaged files, under any names; "" = none.
  std::string from;
  /// Also read all data objects of a repository in an object store, not only the catalog's objects.
  bool read_store = false;
  /// Rebuild the catalog even if the catalog seems to be sound.
  bool rebuild_catalog = false;
  /// Decision while the catalog is rebuilt: true to take containers that only a search behind a
  /// damaged header finds, false to give such containers up. A stored file that is itself a
  /// repository also contains containers. nullopt: if there are any, execute() fails with kInvalid,
  /// and changes nothing.
  std::optional<bool> take_found{};
  /// Leave out versions, manifests, labels and containers of another history of the repository
  /// than most of the data. If false, plan() or execute() fails with kInvalid, and changes nothing,
  /// if there are any.
  bool skip_mixed = false;
  /// Skip the check of the catalog, because the catalog was just rebuilt.
  bool trust_catalog = false;
  /// As in OpenOptions.
  bool trust_owner = false;
  KeySource key{};
  bool encrypted_only = false;
  std::string memory_folder;
  bool accept_older = false;
  /// As StoreUse::access, for data present only in the object store.
  StoreAccess store_access{};
};

/// A defect, and the step to repair the defect.
struct RepairStep {
  enum class Kind : std::uint8_t {
    kSuperblock,   ///< Restore varve.repo from a copy.
    kCatalog,      ///< Rebuild the catalog.
    kManifest,     ///< Rewrite a manifest, or labels, at the next open of the repository.
    kBeside,       ///< Put a damaged file of names beside versions away, under another name.
    kDerived,      ///< Remove a damaged file or note: the next backup makes it again if needed.
    kAliases,      ///< Write the files of the pool's aliases again from the catalog.
    kOpenVersion,  ///< Drop an open version whose staging is missing or damaged.
    kParity,       ///< Restore a damaged container from parity, or remove damaged parity.
    kHeader,       ///< Correct a container's header in place.
    kPadding,      ///< Write the padding behind a container's data again. Nothing was lost.
    kRehome,       ///< Store chunks again from the same content found elsewhere.
    kStore,        ///< Upload again data that the object store lacks and the folder has.
    /// Mark chunks as lost: reads fail, and new data is stored without reference to the chunks.
    kQuarantine,
  };
  Kind kind = Kind::kCatalog;
  std::string where;
  std::string what;
};

struct RepairReport {
  std::uint64_t versions = 0;  ///< Sealed versions in a rebuilt catalog.
  /// True if files of a later state were put away and the catalog stayed. Nothing has compared the
  /// catalog with the data yet: the next plan must not trust the catalog.
  bool catalog_stays = false;
  std::uint64_t containers_restored = 0;  ///< Containers restored from parity.
  std::uint64_t chunks_rehomed = 0;
  std::uint64_t chunks_quarantined = 0;
  std::uint64_t bytes_read = 0;
  /// Parts of the repository not restored to their former state.
  std::vector<std::string> problems;
  /// Further notes for the user.
  std::vector<std::string> notes;
  /// New path of the replaced catalog; "" if there was none.
  std::string old_catalog;
};

/// Plans and executes a repair. Holds the repository's lock from plan() on, except with
/// `scan_only`.
class Repair {
 public:
  virtual ~Repair() = default;

  /// Finds the repair steps. With `scan_only`, the caller must not call execute().
  /// Errors: kLocked if a process writes to the repository; kNoRepository if the folder has no
  /// trace of a repository; kCorrupt if an encrypted repository is older than the recorded sequence
  /// number; kInvalid if the folder has files of two histories (RepairOptions::skip_mixed).
  [[nodiscard]] static Result<std::unique_ptr<Repair>> plan(
      const std::string& path, const RepairOptions& options, bool scan_only,
      const std::function<void(const CheckProgress&)>& progress);

  /// Returns the steps in the order of execution; empty if nothing is wrong. Checking the data
  /// needs a sound catalog: if a step rebuilds the catalog, plan again afterwards.
  [[nodiscard]] virtual const std::vector<RepairStep>& steps() const = 0;
  /// Returns how many chunks stay lost after execute(): no copy of their content was found.
  /// Includes chunks quarantined by an earlier repair or a check, although such chunks are no
  /// steps.
  [[nodiscard]] virtual std::uint64_t lost_chunks() const = 0;
  /// Returns how many of the lost chunks lost the fingerprints with the table of their container:
  /// no search can recognize the content of such a chunk.
  [[nodiscard]] virtual std::uint64_t unrecognizable_chunks() const { return 0; }
  /// Returns what earlier repairs have left out because it belongs to another history of the
  /// repository, or to a later state. Each text names a file that such a repair kept. These are no
  /// steps.
  [[nodiscard]] virtual const std::vector<std::string>& left_out() const = 0;
  /// Returns the parts of versions' trees that neither the catalog nor a manifest has. Each text
  /// names the version. No repair brings these parts back, so they are no steps. Empty if the plan
  /// rebuilds the catalog, or does not check it (RepairOptions::trust_catalog).
  [[nodiscard]] virtual const std::vector<std::string>& lost_parts() const = 0;
  /// Executes the steps. After a crash during execution, the repository can be repaired again.
  /// Errors: kNoSpace; kIo; kCorrupt if a step meets new damage.
  [[nodiscard]] virtual Result<RepairReport> execute(
      const std::function<void(const CheckProgress&)>& progress) = 0;
};

}  // namespace varve
