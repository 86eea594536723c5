// SPDX-License-Identifier: Apache-2.0
#include "cli/store_waiting.h"

#include <unistd.h>

#include <chrono>
#include <string>
#include <utility>

#include "base/log.h"
#include "cli/command.h"
#include "cli/stop_signals.h"

namespace varve::cli {
namespace {

/// A shorter wait is not worth a message.
constexpr std::chrono::seconds kQuietTime{3};

/// The signals received during a wait, global because a signal handler has no other access.
StopSignals& interruptions() {
  static StopSignals signals;
  return signals;
}

void on_signal(int /*signal*/) {
  const auto meaning = interruptions().note(std::chrono::steady_clock::now());
  if (meaning == StopSignals::Meaning::kEnd) ::_exit(kExitInterrupted);
}

}  // namespace

StoreWaiting::~StoreWaiting() {
  for (const auto& [signal, action] : former_) ::sigaction(signal, &action, nullptr);
}

void StoreWaiting::begin() {
  began_ = true;
  start_ = std::chrono::steady_clock::now();
  if (waits_.shows_progress && Progress::terminal()) {
    progress_ = std::make_unique<Progress>("uploading", true);
  }
  if (waits_.stopped) return;
  struct sigaction action {};
  action.sa_handler = on_signal;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction present {};
    // A signal ignored by the caller (nohup, a background job) stays ignored.
    const bool is_default =
        ::sigaction(signal, nullptr, &present) == 0 && present.sa_handler == SIG_DFL;
    if (is_default && ::sigaction(signal, &action, nullptr) == 0) former_[signal] = present;
  }
}

bool StoreWaiting::stopped() const {
  return waits_.stopped ? waits_.stopped() : interruptions().any();
}

bool StoreWaiting::goes_on(const StoreWait& wait) {
  if (!began_) begin();
  if (stopped()) {
    progress_.reset();
    return false;
  }
  const bool is_long = std::chrono::steady_clock::now() - start_ >= kQuietTime;
  if (is_long && !std::exchange(has_told_, true)) {
    if (progress_) progress_->clear();
    base::log(base::LogLevel::kWarning,
              "waiting until " + wait.place +
                  " has all that was sealed and changed here; Ctrl-C ends the wait, "
                  "and loses nothing");
  }
  if (progress_) progress_->update(wait.bytes_sent, 0, 0);
  return true;
}

StoreUse StoreWaiting::use(const StoreWaits& waits, StoreAccess access) {
  StoreUse use{.access = std::move(access), .waits = waits.wanted};
  if (!waits.wanted) return use;
  const auto waiting = std::make_shared<StoreWaiting>(waits);
  use.waiting = [waiting](const StoreWait& wait) { return waiting->goes_on(wait); };
  return use;
}

Error wait_interrupted(const std::string& folder, const std::string& place) {
  return {ErrorCode::kInterrupted, "interrupted; what is sealed in " + folder +
                                       " is safe there, and not all of it is in " + place +
                                       " yet: `varve wait " + folder + "` goes on"};
}

}  // namespace varve::cli
