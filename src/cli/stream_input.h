// SPDX-License-Identifier: Apache-2.0
// The stream that `varve store` stores in place of a directory.
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

/// The options of a stream. Exactly one of the first three is set.
struct StreamArguments {
  std::string stdin_name;    ///< --stdin: the path of the file in the version.
  std::string command_name;  ///< --stdin-from-command: likewise.
  std::string tar;           ///< --from-tar.
  bool allow_empty = false;
  std::vector<std::string> command{};  ///< The words behind `--`.

  [[nodiscard]] bool any() const {
    return !stdin_name.empty() || !command_name.empty() || !tar.empty();
  }
  /// Returns the path of the one file of the version; "" for an archive.
  [[nodiscard]] const std::string& file() const {
    return command_name.empty() ? stdin_name : command_name;
  }
};

/// Adds the options to a command. `without`: an option that has no effect on streams.
void add_stream_options(Command& command, StreamArguments& arguments,
                        const std::vector<Option>& without);

/// Removes the words behind the first `--` if --stdin-from-command stands before it, and returns
/// them: they are a command with options of its own.
[[nodiscard]] std::vector<std::string> take_stored_command(std::vector<std::string>& words);

/// An open stream. Not thread-safe.
class StreamInput {
 public:
  /// Opens standard input or an archive. A command does not run yet.
  /// Errors: kUsage for a terminal, a missing command, and standard input that is also the key;
  /// those of open(2).
  [[nodiscard]] static Result<StreamInput> open(const StreamArguments& arguments);

  /// Runs the command, if the stream is the output of one. Call it once the repository is open, so
  /// that no dump is made for nothing.
  /// Errors: kIo or kNotFound if it cannot be run.
  [[nodiscard]] Result<void> start();
  /// Returns the stream, after start().
  [[nodiscard]] const std::shared_ptr<const base::UniqueFd>& descriptor() const { return input_; }
  /// Waits for the end of the command, if there is one. The stream has ended.
  /// Errors: kIo unless the command ended with 0; kInterrupted if `stop` asked for it.
  [[nodiscard]] Result<void> finish(const control::StopRequest& stop);

 private:
  StreamInput() = default;

  std::vector<std::string> command_;
  std::optional<control::ChildProcess> child_;
  std::shared_ptr<const base::UniqueFd> input_;
};

}  // namespace varve::cli
