// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <csignal>
#include <functional>
#include <map>
#include <memory>

#include "cli/progress.h"
#include "varve/object_store.h"
#include "varve/result.h"

namespace varve::cli {

/// Whether and how a command waits until an object store has the sealed versions.
struct StoreWaits {
  bool wanted = true;           ///< False for --no-wait.
  bool shows_progress = false;  ///< Shows the bytes sent, on a terminal.
  /// Returns whether the user asked to stop. Set by commands that handle signals.
  std::function<bool()> stopped{};
};

/// The wait of a command. Tells the user about the wait, and ends the wait on request. Without
/// StoreWaits::stopped, handles SIGINT, SIGTERM and SIGHUP from the first call of goes_on() on: the
/// first signal ends the wait, a second signal the process. For one thread.
class StoreWaiting {
 public:
  explicit StoreWaiting(StoreWaits waits) : waits_(std::move(waits)) {}
  StoreWaiting(const StoreWaiting&) = delete;
  StoreWaiting& operator=(const StoreWaiting&) = delete;
  ~StoreWaiting();

  /// Returns false once the user asked to stop.
  [[nodiscard]] bool goes_on(const StoreWait& wait);
  /// Returns whether the user asked to stop.
  [[nodiscard]] bool stopped() const;

  /// Returns the part of OpenOptions that makes closing a repository wait as `waits` says.
  [[nodiscard]] static StoreUse use(const StoreWaits& waits, StoreAccess access);

 private:
  void begin();

  const StoreWaits waits_;
  bool began_ = false;
  bool has_told_ = false;
  std::chrono::steady_clock::time_point start_{};
  std::map<int, struct sigaction> former_;  // Former actions of the signals.
  std::unique_ptr<Progress> progress_;
};

/// Returns the error of a wait ended by the user. `folder`: the repository's folder.
[[nodiscard]] Error wait_interrupted(const std::string& folder, const std::string& place);

}  // namespace varve::cli
