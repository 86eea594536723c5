// SPDX-License-Identifier: Apache-2.0
// The control socket of a repository, and its protocol's lines of text.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "control/address.h"
#include "varve/result.h"

namespace varve::control {

inline constexpr std::string_view kSocketName = "control.sock";
inline constexpr std::size_t kLineBytesMax = 1 << 20;

/// A listening socket. The destructor removes the socket's file. Not thread-safe.
class Listener {
 public:
  /// Listens on REPO/control.sock (mode 0600); after an error there, on another address of
  /// address.h. Replaces the socket file of a dead daemon, so the caller must hold the repository's
  /// lock.
  [[nodiscard]] static Result<Listener> open(const std::string& repository);
  Listener(Listener&&) noexcept = default;
  Listener& operator=(Listener&&) = delete;
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener();

  [[nodiscard]] int get() const { return socket_.get(); }
  /// Returns the folder of the repository.
  [[nodiscard]] const Folder& repository() const { return repository_; }
  /// Returns the socket's address, for messages.
  [[nodiscard]] const std::string& place() const { return place_; }

 private:
  explicit Listener(Folder repository) : repository_(std::move(repository)) {}
  [[nodiscard]] Result<void> listen_at(int folder, const std::string& name);
  [[nodiscard]] Result<void> listen_at_abstract_name();
  Folder repository_;
  base::UniqueFd socket_;
  base::UniqueFd folder_;  // Folder of the socket's file; unset for the repository's folder.
  std::string name_;       // Name of the socket's file; "" without a file.
  std::string place_;
};

/// A connection of a command to a daemon.
struct Connected {
  base::UniqueFd socket;
  pid_t process = 0;  ///< Process of the daemon; 0 in another process namespace.
  uid_t user = 0;     ///< User of the daemon: root, the caller, or the owner of the repository.
  Folder repository;
};

/// Connects to the daemon of a repository.
/// Errors: kNotFound if no process listens; kNotPermitted if the listening process belongs to
/// another user; kBusy if no process has accepted within `patience`.
[[nodiscard]] Result<Connected> connect_to(const std::string& repository,
                                           std::chrono::milliseconds patience);

/// Sends `line` and a newline. Waits at most `patience` (negative = no limit) for the other end to
/// read. `wake` is a descriptor; -1 = none.
/// Errors: kUnavailable after `patience`; kInterrupted once `wake` is readable.
[[nodiscard]] Result<void> send_line(int socket, std::string_view line,
                                     std::chrono::milliseconds patience, int wake = -1);

/// As send_line(), and passes a descriptor of this process with the first byte.
[[nodiscard]] Result<void> send_line_with(int socket, std::string_view line, int passed,
                                          std::chrono::milliseconds patience);

/// Receives the available bytes, without waiting, into `out`. Returns the number of bytes, 0 at the
/// end; nullopt if no bytes are available. Puts a descriptor received with the bytes into `passed`:
/// the last one, if there are several.
[[nodiscard]] Result<std::optional<std::size_t>> receive_with(int socket, std::span<char> out,
                                                              base::UniqueFd& passed);

/// As send_line(), but never waits. After kBusy, nothing was sent. After kIo, a part may have been
/// sent, and the connection is unusable.
[[nodiscard]] Result<void> send_line_now(int socket, std::string_view line);

/// Receives a line and drops the newline.
/// Errors: kInterrupted once `wake` is readable; kNotFound if the other end closed without a line;
/// kTooLarge over kLineBytesMax; kUnavailable if no complete line arrives within `patience`.
[[nodiscard]] Result<std::string> receive_line(int socket, std::chrono::milliseconds patience,
                                               int wake = -1);

/// Returns true if bytes (or the end) can be received within `patience`.
/// Errors: kInterrupted once `wake` is readable.
[[nodiscard]] Result<bool> wait_to_receive(int socket, std::chrono::milliseconds patience,
                                           int wake = -1);

}  // namespace varve::control
