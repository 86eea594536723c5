// SPDX-License-Identifier: Apache-2.0
// The LMDB environment of an open version, open only while in use.
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
/// environment of an idle version is closed: use() opens the environment, and an EnvCache keeps the
/// environment open for a while.
///
/// The environment reopens only in the state of the last close. Otherwise the stored records would
/// not fit the version's records in memory.
///
/// Thread-safe. The lock of an Overlay is taken after all locks of OpenState. While holding the
/// lock, a thread takes only locks of `meta`.
class Overlay {
 public:
  /// Address space for the map of an open environment.
  static constexpr std::size_t kMapBytes = std::size_t{64} << 30;
  /// The open environment. Lifetime: outlives the user's transactions, and may outlive the Overlay.
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
  /// Closes the environment unless in use.
  ~Overlay();

  /// Returns the environment. Checks the pages first, unless the calling process was the last to
  /// change the file.
  /// Errors: kCorrupt if pages are damaged, or if another program committed to the closed
  /// environment.
  [[nodiscard]] Result<Use> use();
  /// Permits more texts under the environment's key from now on, for a seal: see TextCount.
  void permit_spare_texts();

 private:
  struct State;
  [[nodiscard]] Result<void> check_pages() const;
  [[nodiscard]] Result<Use> open();

  const Parts parts_;
  const std::shared_ptr<State> state_;  // Shared by the uses of the environment.
};

}  // namespace varve::version
