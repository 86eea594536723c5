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

/// Whether and how a command waits until an object store has what it sealed.
struct StoreWaits {
  bool wanted = true;           ///< False for --no-wait.
  bool shows_progress = false;  ///< Shows the bytes that were sent, on a terminal.
  /// Returns whether the user asked to stop. Commands that handle signals set it.
  std::function<bool()> stopped{};
};

/// The wait of one command. Tells the user about it, and ends it on request. Without
/// StoreWaits::stopped, it handles SIGINT, SIGTERM and SIGHUP from the first call of goes_on() on:
/// the first one ends the wait, a second one the process. For one thread.
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

  /// Returns the part of OpenOptions that makes the closing of a repository wait so.
  [[nodiscard]] static StoreUse use(const StoreWaits& waits, StoreAccess access);

 private:
  void begin();

  const StoreWaits waits_;
  bool began_ = false;
  bool has_told_ = false;
  std::chrono::steady_clock::time_point start_{};
  std::map<int, struct sigaction> former_;  // What the signals did before.
  std::unique_ptr<Progress> progress_;
};

/// Returns the error of a wait that the user ended. `folder` is the repository's.
[[nodiscard]] Error wait_interrupted(const std::string& folder, const std::string& place);

}  // namespace varve::cli
