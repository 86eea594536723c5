// SPDX-License-Identifier: Apache-2.0
// The input of `varve store` that is a stream in place of a directory.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "cli/options.h"
#include "control/child_process.h"
#include "control/stop_request.h"
#include "varve/result.h"

namespace varve::cli {

/// The options of a stream. Exactly one of the first three options is set.
struct StreamArguments {
  std::string stdin_name;    ///< --stdin: the path of the file in the version.
  std::string command_name;  ///< --stdin-from-command: likewise.
  std::string tar;           ///< --from-tar.
  bool allow_empty = false;
  std::vector<std::string> command{};  ///< The words behind `--`.

  [[nodiscard]] bool any() const {
    return !stdin_name.empty() || !command_name.empty() || !tar.empty();
  }
  /// Returns the path of the only file of the version; "" for an archive.
  [[nodiscard]] const std::string& file() const {
    return command_name.empty() ? stdin_name : command_name;
  }
};

/// Adds the options to a command. `without`: options without an effect on streams.
void add_stream_options(Command& command, StreamArguments& arguments,
                        const std::vector<Option>& without);

/// Removes the words behind the first `--` if --stdin-from-command stands before the `--`, and
/// returns the words: a command with its own options.
[[nodiscard]] std::vector<std::string> take_stored_command(std::vector<std::string>& words);

/// An open stream. Not thread-safe.
class StreamInput {
 public:
  /// Opens standard input or an archive. Waits for the writer of a FIFO. A command does not run
  /// yet. Errors: kUsage for a terminal, a missing command, and standard input that is also the
  /// key; kInterrupted after a stop; the errors of open(2).
  [[nodiscard]] static Result<StreamInput> open(const StreamArguments& arguments,
                                                const control::StopRequest& stop);

  /// Runs the command, if the stream is a command's output. Call start() once the repository is
  /// open, so that the command makes no useless dump.
  /// Errors: kIo or kNotFound if the command cannot be run.
  [[nodiscard]] Result<void> start();
  /// Returns the stream, after start().
  [[nodiscard]] const std::shared_ptr<const base::UniqueFd>& descriptor() const { return input_; }
  /// Waits for the end of the command, if there is a command. The stream has ended.
  /// Errors: kIo unless the command exited with 0; kInterrupted after a stop.
  [[nodiscard]] Result<void> finish(const control::StopRequest& stop);

 private:
  StreamInput() = default;

  std::vector<std::string> command_;
  std::optional<control::ChildProcess> child_;
  std::shared_ptr<const base::UniqueFd> input_;
};

}  // namespace varve::cli
