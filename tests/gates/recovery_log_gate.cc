// SPDX-License-Identifier: Apache-2.0
// A restore that was killed at any time continues, and writes at most one assembly buffer twice.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "support/temp_repository.h"
#include "unit/transfer/fake_version.h"
#include "unit/transfer/file_tree.h"
#include "varve/restore.h"

namespace varve::testing {
namespace {

// Lines of the log, and pages that /proc counts for it.
constexpr std::uint64_t kLogBytes = 64U << 10;

/// Files of many sizes: below, of and above a buffer.
FakeNodePtr make_tree(std::uint64_t& bytes) {
  auto root = make_directory();
  const auto add = [&](const FakeNodePtr& directory, const std::string& name, std::size_t size) {
    directory->children.emplace_back(name, make_file(test::noise(size, size + bytes)));
    bytes += size;
  };
  add(root, "a-large", 21U << 20);
  auto small = make_directory();
  for (int i = 100; i < 300; ++i) add(small, "f" + std::to_string(i), 20000 + 17 * i);
  root->children.emplace_back("b-small", small);
  for (int i = 0; i < 5; ++i) add(root, "c-middle" + std::to_string(i), (3U << 20) + 1000 * i);
  add(root, "d-large", (9U << 20) + 12345);
  add(root, "e-last", 10);
  return root;
}

/// Runs the restore in a child, which kills itself after `bytes`. Returns the bytes that it wrote.
std::uint64_t restore_in_child(const FakeNodePtr& root, const std::string& target,
                               std::uint64_t bytes, bool& killed) {
  const pid_t child = ::fork();
  if (child == 0) {
    FakeReader version(root);
    RestoreOptions options;
    options.recovery_log = RecoveryLog::kBuffer;
    const auto report = restore_version(version, target, options, [&](const TransferProgress& now) {
      if (now.bytes_done >= bytes) ::kill(::getpid(), SIGKILL);
      return true;
    });
    ::_exit(report && report->problems.empty() ? 0 : 1);
  }
  siginfo_t info{};
  EXPECT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  std::ifstream file("/proc/" + std::to_string(child) + "/io");
  std::uint64_t written = 0;
  for (std::string name; file >> name;) {
    if (name == "wchar:") file >> written;
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  killed = WIFSIGNALED(status);
  EXPECT_TRUE(killed || (WIFEXITED(status) && WEXITSTATUS(status) == 0));
  return written;
}

TEST(RecoveryLogGate, AKilledRestoreWritesAtMostOneBufferAgain) {
  std::uint64_t total = 0;
  const auto root = make_tree(total);
  const TemporaryDirectory place;
  bool killed = false;
  const std::uint64_t all = restore_in_child(root, place / "whole", ~std::uint64_t{0}, killed);
  ASSERT_FALSE(killed);
  ASSERT_GE(all, total);
  ASSERT_LE(all, total + kLogBytes);
  const auto expected = describe_tree(place / "whole");
  for (std::uint64_t at = 1U << 20; at < total; at += (7U << 20) + 54321) {
    SCOPED_TRACE("killed after " + std::to_string(at) + " bytes");
    const std::string target = place / "cut";
    const std::uint64_t first = restore_in_child(root, target, at, killed);
    ASSERT_TRUE(killed);
    const std::uint64_t second = restore_in_child(root, target, ~std::uint64_t{0}, killed);
    ASSERT_FALSE(killed);
    EXPECT_LE(first + second, total + kRecoveryBufferBytes + kLogBytes);
    EXPECT_EQ(describe_tree(target), expected);
    std::filesystem::remove_all(target);
  }
}

TEST(RecoveryLogGate, ARestoreThatIsKilledAgainAndAgainEnds) {
  std::uint64_t total = 0;
  const auto root = make_tree(total);
  const TemporaryDirectory place;
  const std::string target = place / "cut";
  bool killed = true;
  // Each run compares the last buffer, then restores at least one more.
  for (int run = 0; killed; ++run) {
    ASSERT_LE(run, 30);
    static_cast<void>(restore_in_child(root, target, 10U << 20, killed));
  }
  const std::uint64_t size = [&] {
    std::uint64_t sum = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(target)) {
      if (entry.is_regular_file()) sum += entry.file_size();
    }
    return sum;
  }();
  EXPECT_EQ(size, total);
}

}  // namespace
}  // namespace varve::testing
