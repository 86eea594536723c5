// SPDX-License-Identifier: Apache-2.0
#include "cli/stream_input.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <iterator>
#include <utility>

#include "base/system_error.h"
#include "cli/command.h"
#include "cli/store_source.h"
#include "control/key_source.h"

namespace varve::cli {
namespace {

constexpr const char* kFromCommand = "--stdin-from-command";
constexpr std::chrono::milliseconds kLookEvery{20};
constexpr int kSignalled = 128;

Result<void> check_not_the_key() {
  const auto key = control::key_place_of_environment();
  if (key.passphrase_file != "-" && key.key_file != "-") return {};
  return usage_error("standard input cannot be both the key and the data; name a file of the key");
}

std::string ending_text(int code) {
  if (code < 0) return "ended in an unknown way";
  if (code < kSignalled) return fmt::format("ended with exit code {}", code);
  const char* const name = ::strsignal(code - kSignalled);
  return fmt::format("ended with exit code {} (signal {}: {})", code, code - kSignalled,
                     name == nullptr ? "unknown" : name);
}

}  // namespace

void add_stream_options(Command& command, StreamArguments& arguments,
                        const std::vector<Option>& without) {
  auto name = command
                  .add_option("--stdin", arguments.stdin_name,
                              "Store standard input as the only file of the version, in place of "
                              "a directory")
                  .not_empty()
                  .type_name("NAME");
  auto from_command =
      command
          .add_option(kFromCommand, arguments.command_name,
                      "Store the output of the command behind --, as --stdin does; seal only if "
                      "the command ends with 0")
          .not_empty()
          .type_name("NAME")
          .excludes(name);
  auto tar = command
                 .add_option("--from-tar", arguments.tar,
                             "Store the members of a tar, pax, cpio or zip archive, in place of a "
                             "directory; - is standard input")
                 .type_name("FILE")
                 .excludes(name)
                 .excludes(from_command);
  for (Option option : without) option.excludes(name).excludes(from_command).excludes(tar);
  command.add_flag("--allow-empty", arguments.allow_empty,
                   "Store a stream without a byte, or an archive without a member");
}

std::vector<std::string> take_stored_command(std::vector<std::string>& words) {
  const auto end = std::ranges::find(words, "--");
  const bool is_stored = std::any_of(words.begin(), end, [](const std::string& word) {
    return word == kFromCommand || word.starts_with(std::string(kFromCommand) + "=");
  });
  if (!is_stored || end == words.end()) return {};
  std::vector<std::string> command(std::make_move_iterator(end + 1),
                                   std::make_move_iterator(words.end()));
  words.erase(end, words.end());
  return command;
}

namespace {

/// Opens an archive. The open(2) of a FIFO would wait for a writer and ignore a stop.
/// Errors: kInterrupted after a stop; the errors of open(2).
Result<base::UniqueFd> open_archive(const std::string& path, const control::StopRequest& stop) {
  base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!fd.valid()) return base::system_error(path, errno);
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return base::system_error(path, errno);
  if (S_ISFIFO(status.st_mode)) VARVE_TRY(wait_for_data(fd.get(), stop));
  const int flags = ::fcntl(fd.get(), F_GETFL);
  if (flags < 0 || ::fcntl(fd.get(), F_SETFL, flags & ~O_NONBLOCK) != 0) {
    return base::system_error(path, errno);
  }
  return fd;
}

Result<base::UniqueFd> open_stream(const std::string& path, const control::StopRequest& stop) {
  if (!path.empty() && path != "-") return open_archive(path, stop);
  VARVE_TRY(check_not_the_key());
  base::UniqueFd fd(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));
  if (!fd.valid()) return base::system_error("standard input", errno);
  return fd;
}

}  // namespace

Result<StreamInput> StreamInput::open(const StreamArguments& arguments,
                                      const control::StopRequest& stop) {
  StreamInput stream;
  if (!arguments.command_name.empty()) {
    if (arguments.command.empty() || arguments.command.front().empty()) {
      return usage_error(
          "the command is missing; give it at the end: --stdin-from-command NAME REPO "
          "SERIES/VERSION -- COMMAND");
    }
    stream.command_ = arguments.command;
    return stream;
  }
  VARVE_TRY_ASSIGN(auto input, open_stream(arguments.tar, stop));
  if (::isatty(input.get()) == 1) {
    return usage_error("standard input is a terminal; connect it to a file or a pipe");
  }
  stream.input_ = std::make_shared<const base::UniqueFd>(std::move(input));
  return stream;
}

Result<void> StreamInput::start() {
  if (command_.empty() || child_) return {};
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return base::system_error("pipe", errno);
  input_ = std::make_shared<const base::UniqueFd>(ends[0]);
  const base::UniqueFd write_end(ends[1]);
  VARVE_TRY_ASSIGN(auto child, control::ChildProcess::start(command_, write_end.get(),
                                                            control::ChildInput::kEmpty));
  child_.emplace(std::move(child));
  return {};
}

// A command may close the output long before failing.
Result<void> StreamInput::finish(const control::StopRequest& stop) {
  if (!child_) return {};
  while (!child_->has_ended() && !stop.stopped()) {
    pollfd stopped{.fd = stop.descriptor(), .events = POLLIN, .revents = 0};
    static_cast<void>(::poll(&stopped, 1, static_cast<int>(kLookEvery.count())));
  }
  // A signal to both processes must not look like a failure of the command.
  if (stop.stopped()) return Error(ErrorCode::kInterrupted, "interrupted");
  const int code = child_->wait();
  if (code == 0) return {};
  return Error(ErrorCode::kIo,
               fmt::format("{} {}; nothing was stored", command_.front(), ending_text(code)));
}

}  // namespace varve::cli
