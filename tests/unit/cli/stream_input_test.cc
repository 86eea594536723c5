// SPDX-License-Identifier: Apache-2.0
#include "cli/stream_input.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/temp_repository.h"

namespace varve::cli {
namespace {

using test::code_of;
using test::must;
using CommandWords = std::vector<std::string>;

StreamInput started(CommandWords command) {
  StreamArguments arguments;
  arguments.command_name = "dump";
  arguments.command = std::move(command);
  auto stream = must(StreamInput::open(arguments, {}));
  must(stream.start());
  return stream;
}

/// Reads the stream to its end.
std::string text_of(const StreamInput& stream) {
  std::string text;
  std::array<char, 4096> buffer{};
  while (true) {
    const auto got = ::read(stream.descriptor()->get(), buffer.data(), buffer.size());
    if (got <= 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

TEST(StoredCommand, WordsBehindTheDashesAreItsOwn) {
  CommandWords words{"store", "--stdin-from-command", "f", "r", "s/v", "--", "pg_dump", "--", "-q"};
  EXPECT_EQ(take_stored_command(words), (CommandWords{"pg_dump", "--", "-q"}));
  EXPECT_EQ(words, (CommandWords{"store", "--stdin-from-command", "f", "r", "s/v"}));
  words = {"backup", "--stdin-from-command=f", "--", "a"};
  EXPECT_EQ(take_stored_command(words), CommandWords{"a"});
}

TEST(StoredCommand, OtherCommandLinesKeepTheirDashes) {
  for (const CommandWords& line :
       {CommandWords{"store", "r", "s/v", "--", "-dir"}, CommandWords{"ls"},
        CommandWords{"store", "--", "--stdin-from-command", "x"}}) {
    CommandWords words = line;
    EXPECT_TRUE(take_stored_command(words).empty());
    EXPECT_EQ(words, line);
  }
}

TEST(StoredCommand, ArgumentsReachTheProgramWithoutAShell) {
  const control::StopRequest never;
  auto stream = started({"printf", "%s|", "a b", "$HOME", "*"});
  EXPECT_EQ(text_of(stream), "a b|$HOME|*|");
  EXPECT_TRUE(stream.finish(never));
}

TEST(StoredCommand, AnyOtherEndThanZeroIsAFailure) {
  const control::StopRequest never;
  // The output ends before the command does.
  auto failed = started({"sh", "-c", "echo half; exec >&-; exit 7"});
  EXPECT_EQ(text_of(failed), "half\n");
  const auto ended = failed.finish(never);
  ASSERT_FALSE(ended);
  EXPECT_NE(ended.error().message().find("sh ended with exit code 7"), std::string::npos);
  auto killed = started({"sh", "-c", "echo half; kill -9 $$"});
  EXPECT_EQ(text_of(killed), "half\n");
  const auto by_signal = killed.finish(never);
  ASSERT_FALSE(by_signal);
  EXPECT_NE(by_signal.error().message().find("signal 9"), std::string::npos);
}

TEST(StoredCommand, InheritedIgnoringOfChildrenDoesNotHideAFailure) {
  ::signal(SIGCHLD, SIG_IGN);
  const control::StopRequest never;
  auto failed = started({"false"});
  EXPECT_EQ(text_of(failed), "");
  EXPECT_FALSE(failed.finish(never));
}

TEST(StoredCommand, AStopEndsTheWaitAndTheCommand) {
  control::StopRequest stop;
  auto waiting = started({"sh", "-c", "exec >&-; exec sleep 1000"});
  EXPECT_EQ(text_of(waiting), "");
  std::thread stopper([&] { stop.stop(); });
  EXPECT_EQ(code_of(waiting.finish(stop)), ErrorCode::kInterrupted);
  stopper.join();
}

TEST(StoredCommand, ItsInputIsEmpty) {
  const control::StopRequest never;
  auto stream = started({"cat"});
  EXPECT_EQ(text_of(stream), "");
  EXPECT_TRUE(stream.finish(never));
}

TEST(StoredCommand, AMissingProgramOrCommandIsAnError) {
  StreamArguments arguments;
  arguments.command_name = "dump";
  EXPECT_EQ(code_of(StreamInput::open(arguments, {})), ErrorCode::kUsage);
  arguments.command = {"/nonexistent/program"};
  auto stream = must(StreamInput::open(arguments, {}));
  const auto begun = stream.start();
  ASSERT_FALSE(begun);
  EXPECT_NE(begun.error().message().find("/nonexistent/program"), std::string::npos);
}

}  // namespace
}  // namespace varve::cli
