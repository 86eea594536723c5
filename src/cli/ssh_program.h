// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <optional>
#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "varve/result.h"

namespace varve::cli {

/// A place on another machine: ssh:HOST:PATH.
struct SshPlace {
  std::string host;  ///< HOST or USER@HOST.
  std::string path;
};

/// Parses a place. Returns nullopt if the text does not begin with "ssh:".
/// Errors: kInvalid for a text without a host or a path, and for a host in the form of an option.
[[nodiscard]] Result<std::optional<SshPlace>> parse_ssh_place(std::string_view text);

/// Returns the text as a single word of a shell's command line.
[[nodiscard]] std::string shell_quoted(std::string_view text);

/// A running ssh, with pipes to the remote command. Not thread-safe.
class SshProgram {
 public:
  /// Starts `program`, optionally with options behind the name, to run `command` on the host.
  /// Messages of the program go to stderr.
  /// Errors: kInvalid for an empty program; kIo if the program cannot be started.
  [[nodiscard]] static Result<SshProgram> start(const std::string& program, const std::string& host,
                                                const std::string& command);
  SshProgram(SshProgram&& other) noexcept;
  SshProgram& operator=(SshProgram&&) = delete;
  /// Closes the pipes and waits for the program's end.
  ~SshProgram();

  [[nodiscard]] int input() const { return input_.get(); }    ///< Reads the command's output.
  [[nodiscard]] int output() const { return output_.get(); }  ///< Writes to the command.
  /// Closes the pipes and waits for the program's end.
  /// Errors: kUnavailable if the program failed, with its exit code.
  [[nodiscard]] Result<void> wait();

 private:
  SshProgram() = default;
  pid_t process_ = -1;
  base::UniqueFd input_;
  base::UniqueFd output_;
};

}  // namespace varve::cli
