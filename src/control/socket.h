// SPDX-License-Identifier: Apache-2.0
// The Unix socket REPO/control.sock, and lines of text over it.
#pragma once

#include <stop_token>
#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "varve/result.h"

namespace varve::control {

inline constexpr std::string_view kSocketName = "control.sock";
inline constexpr std::size_t kLineBytesMax = 1 << 20;

/// Makes the socket file (mode 0600) and listens on it. A file left over by a daemon that
/// died is replaced, so the caller must hold the repository's lock.
[[nodiscard]] Result<base::UniqueFd> listen_in(const std::string& repository);

/// kNotFound if nobody listens: the repository is not mounted.
[[nodiscard]] Result<base::UniqueFd> connect_to(const std::string& repository);

void remove_socket(const std::string& repository);

/// Sends `line` and a newline.
[[nodiscard]] Result<void> send_line(int socket, std::string_view line);

/// Receives up to a newline, which is dropped. Waits for it without limit, unless `wake` (a
/// descriptor, -1 for none) becomes readable: then kInterrupted. kNotFound if the other end
/// closed without a line, kTooLarge over kLineBytesMax.
[[nodiscard]] Result<std::string> receive_line(int socket, int wake);

}  // namespace varve::control
