// SPDX-License-Identifier: Apache-2.0
// Labels name the sequence numbers of all series: a rebuild sees one that was set back.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "sequence_fixture.h"
#include "support/temp_repository.h"
#include "varve/retention.h"

namespace varve::test {
namespace {

namespace fs = std::filesystem;

class SeriesSequences : public SequenceTest {};

TEST_F(SeriesSequences, ARebuildReportsASeriesThatWasTakenAway) {
  use([](Repository& repository) { add_version(repository, "one", "a"); });
  use([](Repository& repository) {
    const auto version = add_version(repository, "one", "b");
    must(repository.lock_version(series_named(repository, "b"), version, {4'000'000'000, 0}));
  });
  use([](Repository& repository) { add_version(repository, "two", "a"); });
  fs::remove_all(path_ + "/catalog");
  fs::remove_all(path_ + "/series/00000002");
  const auto problems = repair();
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_NE(problems.front().find("series/00000002: the series is missing"), std::string::npos);
  fs::remove_all(path_ + "/catalog");
  EXPECT_TRUE(repair().empty()) << "the user knows it";
}

TEST_F(SeriesSequences, ARebuildReportsLabelsThatAreOlderThanOthersKnow) {
  use([](Repository& repository) {
    add_version(repository, "one", "a");
    add_version(repository, "one", "b");
  });
  copy_crashed(path_, old_);
  use([](Repository& repository) { add_version(repository, "two", "b"); });
  use([](Repository& repository) { add_version(repository, "two", "a"); });
  fs::remove_all(path_ + "/catalog");
  put_labels_back("/series/00000002");
  ASSERT_TRUE(fs::remove(path_ + "/series/00000002/manifests/00000002.man"));
  const auto problems = repair();
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_NE(problems.front().find("labels of the series b are older"), std::string::npos);
}

TEST_F(SeriesSequences, ARebuildReportsALockThatWasTakenAway) {
  use([](Repository& repository) {
    add_version(repository, "one", "a");
    add_version(repository, "one", "b");
  });
  copy_crashed(path_, old_);
  use([](Repository& repository) {
    must(repository.lock_version(series_named(repository, "b"), VersionNumber{1},
                                 {4'000'000'000, 0}));
  });
  use([](Repository& repository) { add_version(repository, "two", "a"); });
  fs::remove_all(path_ + "/catalog");
  put_labels_back("/series/00000002");
  const auto problems = repair();
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_NE(problems.front().find("labels of the series b are older"), std::string::npos);
  // The manifest still has the lock.
  const auto repository = reopen(path_, options());
  const auto locks = must(repository->version_locks(series_named(*repository, "b")));
  ASSERT_EQ(locks.size(), 1U);
  EXPECT_EQ(locks.front().locked_until.seconds, 4'000'000'000);
}

TEST_F(SeriesSequences, ARebuildAfterAnyHonestUseReportsNothing) {
  const auto nothing_is_reported = [this](const char* after) {
    copy_crashed(path_, old_);
    fs::remove_all(path_ + "/catalog");
    const auto problems = repair();
    EXPECT_TRUE(problems.empty()) << after << ": " << (problems.empty() ? "" : problems.front());
    copy_crashed(old_, path_);
  };
  use([](Repository& repository) {
    for (const auto* name : {"a", "b", "c"}) add_version(repository, "one", name);
  });
  nothing_is_reported("seals");
  use([](Repository& repository) {
    const auto id = series_named(repository, "b");
    must(repository.rename_version(id, VersionNumber{1}, "other"));
    must(repository.rename_series(id, "renamed"));
    must(repository.change_series(id, {.rewrite = Rewrite::kHar}));
  });
  nothing_is_reported("other names");
  use([](Repository& repository) {
    must(repository.delete_versions(series_named(repository, "renamed"), {VersionNumber{1}}));
  });
  nothing_is_reported("a deletion");
  use([](Repository& repository) { must(repository.remove_series("renamed")); });
  nothing_is_reported("a removed series");
  use([](Repository& repository) { must(repository.create_series("new")); });
  nothing_is_reported("a new series");
}

TEST_F(SeriesSequences, LabelsThatACrashLeftBehindAreWrittenAtTheNextOpening) {
  use([](Repository& repository) {
    add_version(repository, "one", "a");
    add_version(repository, "one", "b");
  });
  copy_crashed(path_, old_);
  use([](Repository& repository) {
    const auto id = series_named(repository, "b");
    must(repository.lock_version(id, VersionNumber{1}, {1, 0}));
  });
  // The commit is there, its labels are not.
  put_labels_back("/series/00000002");
  fs::remove(path_ + "/settled");
  use([](Repository& repository) { add_version(repository, "two", "a"); });
  fs::remove_all(path_ + "/catalog");
  EXPECT_TRUE(repair().empty());
}

}  // namespace
}  // namespace varve::test
