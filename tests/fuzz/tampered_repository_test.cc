// SPDX-License-Identifier: Apache-2.0
// Changes files of an encrypted repository as a hostile storage could, then checks the repository,
// reads everything and works on. A check must see each change, unless nothing reads the bytes or
// may_be_unseen() names the change. No byte may be wrong, no process may crash, hang or take much
// memory.
// VARVE_TEST_TAMPERINGS sets the number of changes, VARVE_TEST_SEED the first, and
// VARVE_TEST_TAMPERING the kind. With VARVE_TEST_DELTA, volumes have frames with prefixes.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "base/log.h"
#include "prefixed_frames.h"
#include "support/prefer_memory.h"
#include "tampered_history.h"
#include "tampered_judge.h"
#include "tamperings.h"

namespace varve::test {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kJudgeSecondsMax = 300;  // Limit for a busy machine.
constexpr long kMemoryKibMax = 512L << 10;

// Returns whether a check need not see a change (docs/decisions/088-tampering.md). Everything was
// read as before, or as of an earlier moment.
bool may_be_unseen(std::string_view kind, const Tampering& done, int outcome) {
  const auto is_of = [&](std::initializer_list<std::string_view> classes) {
    return std::ranges::find(classes, done.of_class) != classes.end();
  };
  const auto is = [&](std::initializer_list<std::string_view> kinds) {
    return std::ranges::find(kinds, kind) != kinds.end();
  };
  if (outcome == kUnreported) return false;
  // The files only save work, or tell of earlier checks.
  if (is_of({"settled", "scrub", "checked"})) return true;
  if (is({"an older catalog with its labels", "an older value"})) return true;
  if (is_of({"catalog", "overlay"}) && is({"an older page or block"})) return true;
  if (is_of({"beside", "overlay", "staged file"}) && is({"an older file"})) return true;
  if (is_of({"beside"}) && is({"a removed file"})) return true;
  // A name in a directory of the base of an open version: no second record counts the name.
  if (is_of({"overlay"}) && is({"an erased value"})) return true;
  if (outcome == kOtherNames) return false;
  // Nothing reads free pages of LMDB, and files without a record.
  if (is_of({"catalog", "overlay"}) &&
      is({"a flipped bit", "a page of zeros", "two ranges swapped", "more bytes", "a cut"})) {
    return true;
  }
  if (is({"a removed file put back"})) return true;
  // A crash leaves bytes behind the log of a staged file, and behind a segment to which an open
  // version may still write (docs/FORMAT.md, 1 and 14.3). Behind the remaining segments, a check
  // has a note, with a separate test.
  if (is_of({"staged file", "segment"}) && is({"more bytes"})) return true;
  // Bytes behind the text of a sealed block: each append begins a block.
  if (is_of({"labels"}) && is({"a flipped bit", "a page of zeros", "two ranges swapped"})) {
    return true;
  }
  // The next seal builds the index again.
  if (is_of({"index snapshot", "index run"}) && is({"a removed file"})) return true;
  // Derived or optional records.
  if (is({"an erased value"})) return true;
  // Only a repair reads parity, and the repair verifies the restored bytes. A writer builds an
  // unreadable index of the pool again.
  if (is_of({"zero-chunk index"})) return true;
  return is_of({"parity"}) && is({"a file of another repository", "a file of one with another key",
                                  "an older file", "two files swapped", "a removed file"});
}

std::uint64_t variable_or(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::stoull(text);
}

class TamperedRepository : public testing::Test {
 protected:
  TamperedRepository() {
    base::set_log_level(base::LogLevel::kError);
    history_.run(true);
    TamperedHistory(path("twin"), 'k', path("twin-states"), has_delta()).run(true);
    TamperedHistory(path("foreign"), 'f', path("foreign-states"), has_delta()).run(true);
    fs::remove_all(path("twin-states"));
    fs::remove_all(path("foreign-states"));
    world_ = {path("changed"), history_.older_states(), path("twin"), path("foreign")};
  }
  static bool has_delta() { return std::getenv("VARVE_TEST_DELTA") != nullptr; }
  std::string path(const std::string& name) const { return directory_.path() + "/" + name; }

  struct Ended {
    int status = 0;
    std::string log;
  };
  Ended judge(bool repairs) {
    const pid_t child = ::fork();
    if (child == 0) {
      const rlimit no_core{0, 0};
      ::setrlimit(RLIMIT_CORE, &no_core);
      if (std::freopen(path("log").c_str(), "w", stderr) == nullptr) ::_exit(1);
      ::alarm(kJudgeSecondsMax);
      const int outcome = Judge(world_.path, history_, repairs).run();
      std::fflush(stderr);
      ::_exit(outcome);
    }
    Ended ended;
    rusage used{};
    EXPECT_EQ(::wait4(child, &ended.status, 0, &used), child);
    EXPECT_LT(used.ru_maxrss, kMemoryKibMax);
    ended.log = bytes_of(path("log"));
    return ended;
  }

  void tamper_number(std::uint64_t number, std::optional<std::uint64_t> only) {
    copy_crashed(path("whole"), world_.path);
    std::optional<Tampering> done;
    std::size_t kind = 0;
    for (std::uint64_t tries = 0; !done; ++tries) {
      kind = static_cast<std::size_t>(only.value_or((number + tries) % tampering_kinds()));
      done = tamper(world_, kind, number + (tries << 32));
      ASSERT_LT(tries, 1000U);
    }
    const auto name = std::string(name_of_tampering(kind));
    const auto ended = judge(number % 4 == 0);
    const auto what = std::to_string(number) + ": " + name + ": " + done->where + ", " + done->what;
    if (!WIFEXITED(ended.status)) {
      ADD_FAILURE() << what << ": signal " << WTERMSIG(ended.status) << "\n" << ended.log;
      return;
    }
    const int outcome = WEXITSTATUS(ended.status);
    ++table_[name][outcome];
    ++classes_[done->of_class][outcome];
    if (outcome == kFound) return;
    if (outcome == kNoted) return;
    if (outcome == kUnseen || outcome == kOtherNames) {
      ++unseen_[name + ": " + done->of_class];
      if (may_be_unseen(name, *done, outcome)) return;
    }
    ADD_FAILURE() << what << ": the check does not see it, outcome " << outcome << "\n"
                  << ended.log.substr(0, 3000);
  }

  static void print(const std::map<std::string, std::map<int, int>>& table) {
    for (const auto& [name, outcomes] : table) {
      std::printf("%-42s", name.c_str());
      for (const auto& [outcome, word] : {std::pair<int, const char*>{kFound, "found"},
                                          {kNoted, "noted"},
                                          {kUnseen, "unused"},
                                          {kOtherNames, "older"},
                                          {kUnreported, "errors"}}) {
        const auto it = outcomes.find(outcome);
        std::printf(" %5d %s", it == outcomes.end() ? 0 : it->second, word);
      }
      std::printf("\n");
    }
  }

  PreferMemory in_memory_;
  TempDirectory directory_;
  TamperedHistory history_{path("whole"), 'k', path("states"), has_delta()};
  TamperedWorld world_;
  std::map<std::string, std::map<int, int>> table_;
  std::map<std::string, std::map<int, int>> classes_;
  std::map<std::string, int> unseen_;
};

TEST_F(TamperedRepository, ShowsEachChangeAndGivesNoWrongByte) {
  ASSERT_EQ(containers_with_prefixes(path("whole")) != 0, has_delta());
  copy_crashed(path("whole"), world_.path);
  const auto sound = judge(true);
  ASSERT_TRUE(WIFEXITED(sound.status)) << sound.log;
  ASSERT_EQ(WEXITSTATUS(sound.status), kUnseen) << sound.log;
  const auto first = variable_or("VARVE_TEST_SEED", 1);
  const auto count = variable_or("VARVE_TEST_TAMPERINGS", 2 * tampering_kinds());
  std::optional<std::uint64_t> only;
  if (std::getenv("VARVE_TEST_TAMPERING") != nullptr) only = variable_or("VARVE_TEST_TAMPERING", 0);
  std::printf("%llu changes from seed %llu\n", static_cast<unsigned long long>(count),
              static_cast<unsigned long long>(first));
  for (auto i = first; i < first + count; ++i) tamper_number(i, only);
  print(table_);
  print(classes_);
  for (const auto& [what, times] : unseen_) std::printf("unseen: %s: %d\n", what.c_str(), times);
}

}  // namespace
}  // namespace varve::test
