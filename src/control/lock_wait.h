// SPDX-License-Identifier: Apache-2.0
// Waits for the lock of a repository while another process holds the lock.
//
//   holder of the lock                                   the command waits
//   ---------------------------------------------------  -----------------------------------
//   a command, or a daemon that is starting or ending    yes
//   a daemon that serves a mount and takes requests      no: the daemon does the work
//   a daemon unable to do the command's work, such as    with LockWait::for_mounts
//   a daemon of another user or mount namespace
//   a daemon that hangs or speaks another protocol       no: the error of connecting gives advice
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "varve/result.h"

namespace varve::control {

/// Default wait of a command. umount(8) returns before the daemon has written everything and
/// released the lock.
inline constexpr std::chrono::seconds kEndingMax{10};
/// Wait of a command started by a timer beside other commands.
inline constexpr std::chrono::seconds kTurnMax{600};
/// Time after which a wait is announced on stderr.
inline constexpr std::chrono::seconds kQuietWait{5};
inline constexpr std::chrono::milliseconds kPauseMin{50};
inline constexpr std::chrono::milliseconds kPauseMax{1000};
/// Pause between connections to a refusing daemon, because the daemon logs each refused connection.
inline constexpr std::chrono::seconds kAskAgain{30};

/// How a command waits for the lock.
struct LockWait {
  std::chrono::seconds most = kEndingMax;
  bool for_mounts = false;   ///< Also waits for the end of a mount unable to do the command's work.
  bool reads_files = false;  ///< A daemon would read files for the command, by the same paths.
  /// The command reads the catalog beside a daemon. Beside another user's daemon, that is an error.
  bool reads_catalog = false;
  int stop = -1;  ///< A descriptor. Ends the wait once readable; -1 = none.
  /// Called at the first pause. The wait destroys the result at its end.
  std::function<std::shared_ptr<const void>()> begin{};
  /// Called before each attempt to open the repository, to re-read facts that a writer may change.
  std::function<Result<void>()> prepare{};
};

/// The holder of a lock.
enum class LockHolder : std::uint8_t {
  kPassing,   ///< No mount: a command, or a daemon that starts or ends.
  kServing,   ///< A daemon able to do the command's work, or whose error gives advice.
  kRefusing,  ///< The daemon of a mount, unable to do the command's work.
  kFence,     ///< No process: another folder writes to the repository in the object store.
};

/// The environment of a wait: the clock, the holder of the lock and the terminal. Tests substitute
/// a fake environment.
struct LockScene {
  std::function<LockHolder()> holder;
  std::function<std::string()> process;  ///< As holder_of_lock().
  std::function<std::chrono::steady_clock::time_point()> now;
  std::function<bool(std::chrono::milliseconds)> pause;  ///< False once the user asked to stop.
  std::function<void(const std::string&)> tell;          ///< Prints a line for the user.
};
/// Returns the scene of a real repository.
[[nodiscard]] LockScene lock_scene(const std::string& repository, const LockWait& wait);

/// The wait of one command for the lock of one repository. For one thread.
class LockWaiting {
 public:
  LockWaiting(std::string repository, const LockWait& wait, LockScene scene);

  /// Pauses after an attempt to open the repository failed with kLocked. Returns true for another
  /// attempt, and false if the wait is over. Announces a wait longer than kQuietWait.
  /// Errors: kInterrupted once LockWait::stop is readable.
  [[nodiscard]] Result<bool> goes_on();

 private:
  using Time = std::chrono::steady_clock::time_point;
  [[nodiscard]] LockHolder holder(Time now);
  [[nodiscard]] std::string announcement(LockHolder holder) const;

  const std::string repository_;
  const LockWait wait_;
  const LockScene scene_;
  const Time start_;
  std::optional<Time> refused_at_{};  // Time of the last refused connection.
  std::chrono::milliseconds pause_ = kPauseMin;
  bool is_announced_ = false;
};

/// Calls LockWait::prepare and `open` until the result is no kLocked error or the wait is over.
/// Returns the last result.
/// Errors: also the errors of LockWait::prepare and LockWaiting::goes_on().
template <typename Open>
[[nodiscard]] auto open_when_unlocked(const std::string& repository, const LockWait& wait,
                                      const Open& open) -> decltype(open()) {
  LockWaiting waiting(repository, wait, lock_scene(repository, wait));
  for (;;) {
    const Result<void> prepared = wait.prepare ? wait.prepare() : Result<void>();
    auto opened = prepared ? open() : decltype(open())(prepared.error());
    if (opened || opened.error().code() != ErrorCode::kLocked) return opened;
    VARVE_TRY_ASSIGN(const bool again, waiting.goes_on());
    if (!again) return opened;
  }
}

}  // namespace varve::control
