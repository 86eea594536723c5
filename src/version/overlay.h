// SPDX-License-Identifier: Apache-2.0
// The LMDB environment of an open version, which is open only while it is used.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "crypto/key_ring.h"
#include "io/file_system.h"
#include "meta/env_cache.h"
#include "meta/lmdb.h"
#include "varve/result.h"

namespace varve::version {

/// The overlay of one open version. A daemon may have thousands of open versions, so the
/// environment of an idle one is closed: use() opens the environment, and an EnvCache keeps it open
/// for a while.
///
/// The environment opens again only as it closed. Otherwise its records would not fit those that
/// the version has in memory.
///
/// Thread-safe. The lock of an Overlay is taken after all locks of OpenState. While a thread holds
/// the lock, it takes no other lock but those of `meta`.
class Overlay {
 public:
  /// Address space for the map of an open environment.
  static constexpr std::size_t kMapBytes = std::size_t{64} << 30;
  /// The open environment. Lifetime: outlives the transactions of its user, and may outlive the
  /// Overlay.
  using Use = std::shared_ptr<const meta::Env>;

  struct Parts {
    io::FileSystem* files = nullptr;  ///< Outlives the last use().
    std::string directory;            ///< Has data.mdb.
    meta::EnvKeys keys{};
    std::shared_ptr<meta::EnvCache> cache;
  };
  explicit Overlay(Parts parts);
  Overlay(const Overlay&) = delete;
  Overlay& operator=(const Overlay&) = delete;
  /// Closes the environment unless it is in use.
  ~Overlay();

  /// Returns the environment. Checks its pages first, unless the file is as this process left it.
  /// Errors: kCorrupt if pages are damaged, or if another program committed to the environment
  /// while it was closed.
  [[nodiscard]] Result<Use> use();
  /// Permits more texts under the environment's key from now on, for a seal: see TextCount.
  void permit_spare_texts();

 private:
  struct State;
  [[nodiscard]] Result<void> check_pages() const;
  [[nodiscard]] Result<Use> open();

  const Parts parts_;
  const std::shared_ptr<State> state_;  // Uses of the environment share it.
};

}  // namespace varve::version
