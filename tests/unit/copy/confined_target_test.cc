// SPDX-License-Identifier: Apache-2.0
// A hostile source against serve_copy(): each operation on a series of its own, of another source
// and of the target's user, and on locked versions.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "copy/confined_source.h"
#include "copy/local_target.h"
#include "copy/raw_source.h"
#include "support/temp_repository.h"
#include "varve/beside.h"
#include "varve/copy.h"
#include "varve/copy_name.h"

namespace varve::copy {
namespace {

using test::must;
using test::RawSource;

/// A request about a series and one of its versions.
struct Operation {
  std::string name;
  std::function<Request(SeriesId series, VersionNumber version)> request;
  std::optional<ErrorCode> on_own;     ///< The refusal for a series of the source.
  std::optional<ErrorCode> on_locked;  ///< The refusal for a locked version of that series.
};

const std::vector<Operation> kOperations = {
    {"list", [](SeriesId series, VersionNumber) { return VersionsRequest{series}; }, {}, {}},
    {"rename a series",
     [](SeriesId series, VersionNumber) {
       return RenameSeriesRequest{series, "renamed"};
     },
     {},
     {}},
    {"rename a version",
     [](SeriesId series, VersionNumber version) {
       return RenameVersionRequest{
           series, version, "renamed-" + std::to_string(static_cast<std::uint32_t>(version))};
     },
     {},
     {}},
    {"call a version latest",
     [](SeriesId series, VersionNumber version) {
       return RenameVersionRequest{series, version, "latest"};
     },
     ErrorCode::kExists, ErrorCode::kExists},
    {"call a version partial",
     [](SeriesId series, VersionNumber version) {
       return RenameVersionRequest{series, version, "v.partial"};
     },
     ErrorCode::kNotPermitted, ErrorCode::kNotPermitted},
    {"lock",
     [](SeriesId series, VersionNumber version) {
       return LockRequest{series, version, {std::int64_t{1} << 40, 0}};
     },
     {},
     {}},
    {"end a lock",
     [](SeriesId series, VersionNumber version) {
       return LockRequest{series, version, {1, 0}};
     },
     ErrorCode::kNotPermitted, ErrorCode::kNotPermitted},
    {"delete",
     [](SeriesId series, VersionNumber version) {
       return DeleteRequest{series, {version}};
     },
     ErrorCode::kNotPermitted, ErrorCode::kNotPermitted},
    {"replace files beside versions",
     [](SeriesId series, VersionNumber) {
       return BesideRequest{series, {beside_file("log", S_IFREG)}};
     },
     {},
     {}},
    {"replace the link latest",
     [](SeriesId series, VersionNumber) {
       return BesideRequest{series, {beside_file("latest", S_IFLNK)}};
     },
     ErrorCode::kNotPermitted, ErrorCode::kNotPermitted},
    {"take the name of an open version",
     [](SeriesId series, VersionNumber) {
       return BesideRequest{series, {beside_file("v3.partial", S_IFREG)}};
     },
     ErrorCode::kNotPermitted, ErrorCode::kNotPermitted},
    {"compare",
     [](SeriesId series, VersionNumber version) {
       return CheckRequest{series, version, true, content()};
     },
     {},
     {}},
    {"add a version again",
     [](SeriesId series, VersionNumber) { return begin_in(series, kSource, 2); },
     ErrorCode::kNotPermitted, ErrorCode::kNotPermitted},
    {"add a version",
     [](SeriesId series, VersionNumber version) { return begin_in(series, kSource, 3, version); },
     {},
     {}},
    {"add a version of another source",
     [](SeriesId series, VersionNumber version) { return begin_in(series, kOther, 4, version); },
     ErrorCode::kNotPermitted, ErrorCode::kNotPermitted},
};

TEST_F(ConfinedSource, EachOperationReachesOwnCopiesOnly) {
  const auto foreign = store_copies("foreign", kOther);
  const auto local = store_versions("local");
  const auto foreign_state = state_of(foreign);
  const auto local_state = state_of(local);
  for (const Operation& operation : kOperations) {
    SCOPED_TRACE(operation.name);
    EXPECT_EQ(refusal(operation.request(own_, kFirst)), operation.on_own);
    EXPECT_EQ(refusal(operation.request(own_, kLocked)), operation.on_locked);
    for (const SeriesId series : {foreign, local, SeriesId{99}}) {
      EXPECT_EQ(refusal(operation.request(series, kFirst)), ErrorCode::kNotFound);
      EXPECT_EQ(refusal(operation.request(series, kLocked)), ErrorCode::kNotFound);
    }
    EXPECT_EQ(state_of(foreign), foreign_state);
    EXPECT_EQ(state_of(local), local_state);
  }
  EXPECT_EQ(must(repository_->series()).size(), 3U);
  const auto own = must(repository_->versions(own_));
  EXPECT_EQ(std::ranges::count(own, VersionState::kSealed, &VersionInfo::state), 2);
}

TEST_F(ConfinedSource, SeriesOfOthersAreNotListed) {
  store_copies("foreign", kOther);
  store_versions("local");
  const auto source = connect();
  const auto listed = source->expect<std::vector<TargetSeries>>(SeriesRequest());
  EXPECT_EQ(listed, (std::vector<TargetSeries>{{own_, "own"}}));
  EXPECT_EQ(source->expect<std::vector<TargetVersion>>(VersionsRequest{own_}).size(), 2U);
  EXPECT_EQ(source->refusal(CreateSeriesRequest{"foreign", {}}), ErrorCode::kExists);
  EXPECT_EQ(source->refusal(CreateSeriesRequest{"local", {}}), ErrorCode::kExists);
}

TEST_F(ConfinedSource, LocksEndAtTheLimit) {
  const SourceRights rights{.origin = kSource, .lock_seconds_max = 1000};
  const Timestamp locked = lock_of(own_, kLocked);
  for (const std::int64_t seconds : {std::int64_t{1} << 40, INT64_MAX}) {
    EXPECT_EQ(refusal(LockRequest{own_, kFirst, {seconds, 0}}, rights), std::nullopt);
    EXPECT_LE(lock_of(own_, kFirst), after_now(1000));
    EXPECT_GT(lock_of(own_, kFirst), after_now(500));
    EXPECT_EQ(refusal(LockRequest{own_, kLocked, {seconds, 0}}, rights), std::nullopt);
    EXPECT_EQ(lock_of(own_, kLocked), locked);
  }
  EXPECT_EQ(refusal(LockRequest{own_, kFirst, {INT64_MAX, 0}}), std::nullopt);
  EXPECT_LE(lock_of(own_, kFirst), after_now(5 * kYear));
  EXPECT_GT(lock_of(own_, kFirst), after_now(4 * kYear));
}

TEST_F(ConfinedSource, WithoutLocksNoneIsSet) {
  const SourceRights rights{.origin = kSource, .lock_seconds_max = 0};
  EXPECT_EQ(refusal(LockRequest{own_, kFirst, after_now(kYear)}, rights), std::nullopt);
  EXPECT_EQ(lock_of(own_, kFirst), Timestamp{});
}

TEST_F(ConfinedSource, PermittedDeletionSparesLockedVersionsAndOthers) {
  const auto foreign = store_copies("foreign", kOther);
  const SourceRights rights{.origin = kSource, .may_prune = true};
  const auto source = connect(rights);
  EXPECT_EQ(source->refusal(DeleteRequest{foreign, {kFirst}}), ErrorCode::kNotFound);
  const auto held = source->expect<ReasonsAnswer>(DeleteRequest{own_, {kFirst, kLocked}});
  EXPECT_EQ(held.reasons.size(), 1U);
  EXPECT_EQ(source->refusal(DeleteRequest{own_, {kFirst}}), ErrorCode::kNotFound);
  EXPECT_EQ(must(repository_->versions(own_)).size(), 1U);
  EXPECT_EQ(must(repository_->versions(foreign)).size(), 2U);
}

// The copier removes a copy again whose number of entries is wrong.
TEST_F(ConfinedSource, VersionOfTheSameConnectionCanBeDeleted) {
  const auto source = connect();
  source->expect<NumberAnswer>(begin_in(own_, kSource, 3));
  const auto sealed = source->expect<TargetVersion>(CopySeal{"v3", {}, true, 0});
  EXPECT_EQ(source->refusal(DeleteRequest{own_, {sealed.number, kFirst}}),
            ErrorCode::kNotPermitted);
  EXPECT_TRUE(source->expect<ReasonsAnswer>(DeleteRequest{own_, {sealed.number}}).reasons.empty());
  EXPECT_EQ(must(repository_->versions(own_)).size(), 2U);
}

TEST_F(ConfinedSource, ReservedNamesAreNotSealed) {
  const auto source = connect();
  source->expect<NumberAnswer>(begin_in(own_, kSource, 3));
  for (const char* const name : {"latest", "v3.partial", "", ".", "..", "a/b"}) {
    EXPECT_TRUE(source->refusal(CopySeal{name, {}, true, 0})) << name;
  }
  source->expect<TargetVersion>(CopySeal{"v3", {}, true, 0});
}

// Such a copy would be of the future for all rules of the target.
TEST_F(ConfinedSource, AVersionThatWasSealedInTheFutureIsRefused) {
  const auto source = connect();
  CopyBegin begin = begin_in(own_, kSource, 3);
  begin.origin.sealed_at = {std::int64_t{1} << 61, 0};
  EXPECT_EQ(source->refusal(begin), ErrorCode::kNotPermitted);
}

TEST_F(ConfinedSource, TheFirstCopyDecidesWhoseCopiesFollow) {
  EXPECT_EQ(refusal(begin_in(own_, kOther, 3), {}), ErrorCode::kNotPermitted);
  const auto source = connect({});
  const auto other = source->expect<NumberAnswer>(CreateSeriesRequest{"new", {}}).number;
  EXPECT_EQ(source->refusal(begin_in(static_cast<SeriesId>(other), kOther, 1)),
            ErrorCode::kNotPermitted);
  EXPECT_EQ(source->refusal(begin_in(static_cast<SeriesId>(other), kSource, 1)), std::nullopt);
}

// A version without an origin is not one of a source that is not known yet.
TEST_F(ConfinedSource, BeforeTheFirstCopyNoSeriesIsTheSources) {
  make_new_target();
  const auto local = store_versions("local");
  const auto state = state_of(local);
  EXPECT_TRUE(connect({})->expect<std::vector<TargetSeries>>(SeriesRequest()).empty());
  for (const Operation& operation : kOperations) {
    SCOPED_TRACE(operation.name);
    EXPECT_EQ(refusal(operation.request(local, kFirst), {}), ErrorCode::kNotFound);
    EXPECT_EQ(state_of(local), state);
  }
}

TEST_F(ConfinedSource, TheFirstUnfinishedCopyDecidesToo) {
  make_new_target();
  const auto create = CreateSeriesRequest{"s", {}};
  {
    const auto source = connect({});
    const auto made = source->expect<NumberAnswer>(create).number;
    source->expect<NumberAnswer>(begin_in(static_cast<SeriesId>(made), kSource, 1));
    EXPECT_EQ(source->refusal(begin_in(static_cast<SeriesId>(made), kOther, 1)),
              ErrorCode::kNotPermitted);
  }
  const auto source = connect({});
  const auto listed = source->expect<std::vector<TargetSeries>>(SeriesRequest());
  ASSERT_EQ(listed.size(), 1U);
  EXPECT_EQ(source->refusal(begin_in(listed[0].id, kOther, 1)), ErrorCode::kNotPermitted);
  EXPECT_EQ(source->refusal(begin_in(listed[0].id, kSource, 1)), std::nullopt);
}

TEST_F(ConfinedSource, CopiesOfSeveralRepositoriesNeedTheOriginOfTheCommand) {
  store_copies("foreign", kOther);
  RawSource undecided(*repository_, SourceRights());
  EXPECT_EQ(undecided.refusal(HelloRequest()), ErrorCode::kInvalid);
  EXPECT_TRUE(undecided.refusal(SeriesRequest()));
  RawSource decided(*repository_, {.origin = kOther});
  decided.expect<HelloAnswer>(HelloRequest());
  EXPECT_EQ(decided.expect<std::vector<TargetSeries>>(SeriesRequest()).size(), 1U);
}

TEST_F(ConfinedSource, TheRepositoryTakesNoCopyOfItself) {
  EXPECT_EQ(refusal(begin_in(own_, repository_->id(), 3), {.origin = repository_->id()}),
            ErrorCode::kNotFound);
  const auto source = connect({.origin = repository_->id()});
  const auto made = source->expect<NumberAnswer>(CreateSeriesRequest{"new", {}}).number;
  EXPECT_EQ(source->refusal(begin_in(static_cast<SeriesId>(made), repository_->id(), 1)),
            ErrorCode::kNotPermitted);
}

// A copy that ends before its first version leaves such a series.
TEST_F(ConfinedSource, SeriesWithoutVersionsIsTakenButKeepsItsFilesAndName) {
  const auto empty = must(repository_->create_series("empty")).id;
  const auto beside = must(repository_->beside(empty));
  must(beside->create(kRootIno, "config", test::regular_file()));
  const auto source = connect();
  EXPECT_EQ(source->refusal(begin_in(empty, kSource, 1)), ErrorCode::kNotFound);
  const auto taken = source->expect<NumberAnswer>(CreateSeriesRequest{"empty", {}}).number;
  EXPECT_EQ(static_cast<SeriesId>(taken), empty);
  EXPECT_EQ(source->refusal(BesideRequest{empty, {}}), ErrorCode::kExists);
  EXPECT_EQ(source->refusal(RenameSeriesRequest{empty, "x"}), ErrorCode::kNotFound);
  EXPECT_TRUE(beside->lookup(kRootIno, "config"));
  EXPECT_EQ(source->refusal(begin_in(empty, kSource, 1)), std::nullopt);
}

TEST_F(ConfinedSource, SeriesAreLimitedAcrossConnections) {
  store_copies("foreign", kOther);
  const SourceRights rights{.origin = kSource, .series_max = 3};
  EXPECT_EQ(refusal(CreateSeriesRequest{"one", {}}, rights), std::nullopt);
  const auto source = connect(rights);
  const auto two = source->expect<NumberAnswer>(CreateSeriesRequest{"two", {}}).number;
  EXPECT_EQ(source->refusal(CreateSeriesRequest{"three", {}}), ErrorCode::kNotPermitted);
  EXPECT_EQ(source->refusal(CreateSeriesRequest{"one", {}}), std::nullopt);
  EXPECT_EQ(source->refusal(begin_in(static_cast<SeriesId>(two), kSource, 1)), std::nullopt);
  EXPECT_EQ(refusal(CreateSeriesRequest{"three", {}}, rights), ErrorCode::kNotPermitted);
  EXPECT_EQ(must(repository_->series()).size(), 4U);
}

TEST_F(ConfinedSource, SeriesWithAVersionFromElsewhereIsNotOwn) {
  const auto info = must(repository_->open_version(own_, "mine", test::folder()));
  EXPECT_EQ(refusal(VersionsRequest{own_}), std::nullopt);
  EXPECT_EQ(refusal(begin_in(own_, kSource, 3)), ErrorCode::kBusy);
  EXPECT_EQ(must(repository_->open_versions(own_)).size(), 1U);
  must(repository_->seal(own_, info.number, ""));
  EXPECT_EQ(refusal(VersionsRequest{own_}), ErrorCode::kNotFound);
}

TEST_F(ConfinedSource, UnfinishedCopyOfAnotherSourceIsNotDropped) {
  LocalTarget target(*repository_);
  const auto foreign = must(target.create_series("foreign", {}));
  must(target.begin(begin_in(foreign, kOther, 1)));
  must(target.settle());
  EXPECT_EQ(refusal(begin_in(foreign, kSource, 1)), ErrorCode::kNotFound);
  EXPECT_EQ(connect()->refusal(CreateSeriesRequest{"foreign", {}}), ErrorCode::kExists);
  const auto open = must(repository_->open_versions(foreign));
  ASSERT_EQ(open.size(), 1U);
  EXPECT_EQ(receiving_repository(open[0].name), kOther);
}

// The pool is one store for all series: its answers would tell what others have.
class ConfinedPoolSource : public ConfinedSource {
 protected:
  /// Returns whether the target asks for the bytes of kContent in a new series of the pool.
  bool asks_for_content() {
    const auto source = connect();
    const auto made =
        source
            ->expect<NumberAnswer>(CreateSeriesRequest{"guess", {Placement::kPool, Rewrite::kNone}})
            .number;
    source->expect<NumberAnswer>(begin_in(static_cast<SeriesId>(made), kSource, 1));
    const auto wanted = source->expect<std::vector<bool>>(content());
    return wanted == std::vector<bool>{true};
  }
};

TEST_F(ConfinedPoolSource, GuessedContentOfOthersIsUnknown) {
  settings_.placement = Placement::kPool;
  store_copies("foreign", kOther);
  EXPECT_TRUE(asks_for_content());
}

TEST_F(ConfinedPoolSource, OwnContentIsKnown) {
  settings_.placement = Placement::kPool;
  store_copies("pool", kSource);
  EXPECT_FALSE(asks_for_content());
}

}  // namespace
}  // namespace varve::copy
