// SPDX-License-Identifier: Apache-2.0
// Mending a damaged repository: what is to be done is worked out first, and done on request.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "varve/maintenance.h"
#include "varve/result.h"

namespace varve {

struct RepairOptions {
  /// Read all data and mend it, too; else the superblock and the catalog only.
  bool read_data = true;
  /// A folder with copies of damaged files, whatever their names; "" for none.
  std::string from;
  /// Make the catalog anew even if nothing seems to be wrong with it.
  bool rebuild_catalog = false;
  /// Take the catalog as it is: it was just made anew.
  bool trust_catalog = false;
  /// As in OpenOptions.
  bool trust_owner = false;
};

/// Something that is wrong, and what repairing does about it.
struct RepairStep {
  enum class Kind : std::uint8_t {
    kSuperblock,   ///< varve.repo comes back from a copy.
    kCatalog,      ///< The catalog is made anew.
    kManifest,     ///< A manifest, or labels, are written anew when the repository is opened next.
    kOpenVersion,  ///< An open version is dropped: its staging is gone or damaged.
    kParity,       ///< A damaged container comes back from parity, or damaged parity goes.
    kHead,         ///< A container's head is corrected in place.
    kRehome,       ///< Chunks are stored anew from the same content found elsewhere.
    kQuarantine,   ///< Chunks are lost: reading them fails, and new data is stored without them.
  };
  Kind kind = Kind::kCatalog;
  std::string where;
  std::string what;
};

struct RepairReport {
  std::uint64_t versions = 0;             ///< Sealed ones in a catalog that was made anew.
  std::uint64_t containers_restored = 0;  ///< By parity.
  std::uint64_t chunks_rehomed = 0;
  std::uint64_t chunks_quarantined = 0;
  std::uint64_t bytes_read = 0;
  /// What could not be brought back as it was.
  std::vector<std::string> problems;
  /// Where the catalog was moved to that another one replaces; "" if there was none.
  std::string old_catalog;
};

/// Plans and repairs. Holds the repository's lock from planning on, unless it is only to look.
class Repair {
 public:
  virtual ~Repair() = default;

  /// kLocked if a process writes to the repository; kNoRepository where there is nothing that a
  /// repository leaves. `look_only`: execute() is not going to be called.
  [[nodiscard]] static Result<std::unique_ptr<Repair>> plan(
      const std::string& path, const RepairOptions& options, bool look_only,
      const std::function<void(const CheckProgress&)>& progress);

  /// In the order in which they are to be done; none if nothing is wrong. What is wrong with the
  /// data can only be told with a sound catalog: where that is made anew, plan again afterwards.
  [[nodiscard]] virtual const std::vector<RepairStep>& steps() const = 0;
  /// A crash in between leaves a repository that can be repaired again.
  [[nodiscard]] virtual Result<RepairReport> execute(
      const std::function<void(const CheckProgress&)>& progress) = 0;
};

}  // namespace varve
