// SPDX-License-Identifier: Apache-2.0
// Checks each implementation against the promises of control::RepositoryControl, and that both give
// the same results, error codes and messages.
#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/coding.h"
#include "control/client.h"
#include "control/control_handlers.h"
#include "control/local_control.h"
#include "control/open_control.h"
#include "control/remote_control.h"
#include "control/server.h"
#include "support/temp_repository.h"
#include "support/test_encryption.h"

namespace varve::control {
namespace {

using test::code_of;
using test::must;

enum class Kind { kLocal, kRemote };

/// A repository with a control of one kind. The server of a remote control is in this process.
class Controlled {
 public:
  explicit Controlled(Kind kind) : path_(directory_.path() + "/r") {
    must(Repository::create(path_, test::small_chunks(Codec::kNone), test::chosen_encryption()));
    repository_ = test::reopen(path_, test::keyed());
    if (kind == Kind::kRemote) {
      Handlers handlers;
      // open_control() takes a daemon without a mount for one that is ending.
      handlers.identify = [](Identity& identity) { identity.mount_device = 1; };
      add_handlers(std::make_shared<LocalControl>(*repository_), handlers);
      server_ = must(Server::start(path_, std::move(handlers)));
    }
    control_ = another();
  }

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] Repository& repository() { return *repository_; }
  [[nodiscard]] RepositoryControl& control() { return *control_; }
  /// Returns a further control of the repository, for another thread.
  [[nodiscard]] std::unique_ptr<RepositoryControl> another() {
    if (server_ == nullptr) return std::make_unique<LocalControl>(*repository_);
    return std::make_unique<RemoteControl>(RemoteControl::Place{path_, {}},
                                           must(Client::connect(path_)));
  }

  VersionInfo open(const std::string& version) {
    return must(control_->open({.version = version, .mode = S_IFDIR | 0750}));
  }
  void write(const std::string& name, std::uint64_t seed) {
    const auto series = must(repository_->find_series("s"));
    const auto writer = must(repository_->writer(series.id));
    test::write_file(*writer, kRootIno, name, test::noise(50'000, seed));
    must(writer->sync());
  }
  /// Opens a version with one file, and seals it.
  VersionInfo seal(const std::string& version, std::uint64_t seed) {
    open(version);
    write("f", seed);
    return must(control_->seal({.version = version}, never_)).sealed;
  }
  [[nodiscard]] const StopRequest& never() const { return never_; }

 private:
  test::TempDirectory directory_;
  std::string path_;
  std::unique_ptr<Repository> repository_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<RepositoryControl> control_;
  StopRequest never_;
};

class RepositoryControlContract : public testing::TestWithParam<Kind> {
 protected:
  Controlled controlled_{GetParam()};
  RepositoryControl& control_ = controlled_.control();
};

TEST_P(RepositoryControlContract, OpeningCreatesTheSeriesAndTheRoot) {
  const VersionInfo version = controlled_.open("s/v.partial");
  EXPECT_EQ(version.series_name, "s");
  EXPECT_EQ(version.name, "v.partial");
  EXPECT_EQ(version.state, VersionState::kOpen);
  const auto writer = must(controlled_.repository().writer(version.series));
  EXPECT_EQ(must(writer->get(kRootIno)).attributes.mode, S_IFDIR | 0750U);
  EXPECT_EQ(code_of(control_.open({.version = "t/latest", .mode = S_IFDIR | 0750})),
            ErrorCode::kExists);
  EXPECT_EQ(must(controlled_.repository().series()).size(), 1U) << "the series of a failure stays";
}

TEST_P(RepositoryControlContract, CallersThatOpenInANewSeriesAtOnceShareIt) {
  constexpr int kSeries = 40;
  const auto other = controlled_.another();
  for (int i = 0; i < kSeries; ++i) {
    const std::string series = "s" + std::to_string(i);
    std::barrier start(2);
    const auto open_in = [&](RepositoryControl& control, const std::string& name) {
      start.arrive_and_wait();
      return control.open({.version = series + "/" + name, .mode = S_IFDIR | 0750});
    };
    auto second = std::async(std::launch::async, [&] { return open_in(*other, "b"); });
    const auto first_opened = open_in(control_, "a");
    const auto second_opened = second.get();
    EXPECT_NE(first_opened.has_value(), second_opened.has_value()) << series;
    for (const auto& opened : {first_opened, second_opened}) {
      // One version is open at a time; an empty one is not sealed for the next.
      if (opened) continue;
      EXPECT_EQ(code_of(opened), ErrorCode::kBusy) << opened.error().message();
    }
  }
}

TEST_P(RepositoryControlContract, SealingDropsTheSuffixOrTakesANewName) {
  EXPECT_EQ(controlled_.seal("s/v.partial", 1).name, "v");
  controlled_.open("s/w");
  const auto sealed = must(control_.seal({.version = "s/w", .new_name = "x"}, controlled_.never()));
  EXPECT_EQ(sealed.sealed.name, "x");
  EXPECT_EQ(sealed.sealed.state, VersionState::kSealed);
  EXPECT_FALSE(sealed.next);
  EXPECT_EQ(code_of(control_.seal({.version = "s/x"}, controlled_.never())), ErrorCode::kReadOnly);
}

TEST_P(RepositoryControlContract, AKeptVersionStaysOpen) {
  controlled_.open("s/v.partial");
  const auto sealed = must(control_.seal(
      {.version = "s/v.partial", .new_name = "day1", .keep = true}, controlled_.never()));
  EXPECT_EQ(sealed.sealed.name, "day1");
  ASSERT_TRUE(sealed.next);
  EXPECT_EQ(sealed.next->name, "v.partial");
  EXPECT_EQ(must(control_.open_versions("s")).size(), 1U);
}

TEST_P(RepositoryControlContract, OnlyForceSealsBesideAWriter) {
  controlled_.open("s/v");
  const auto series = must(controlled_.repository().find_series("s"));
  const auto writer = must(controlled_.repository().writer(series.id));
  const auto entry = must(writer->create(kRootIno, "f", test::regular_file()));
  const auto file = must(writer->open(entry.ino, true));
  const std::string bytes = "written before the seal";
  must(file->write(0, base::as_bytes(bytes)));
  EXPECT_EQ(code_of(control_.seal({.version = "s/v"}, controlled_.never())), ErrorCode::kBusy);
  const auto sealed = must(control_.seal({.version = "s/v", .force = true}, controlled_.never()));
  EXPECT_EQ(sealed.sealed.logical_bytes, bytes.size());
  EXPECT_EQ(code_of(file->write(0, base::as_bytes(bytes))), ErrorCode::kReadOnly);
}

TEST_P(RepositoryControlContract, ACloneOntoItsSourceReopensIt) {
  controlled_.seal("s/v", 1);
  const auto clone = must(control_.clone({.version = "s/w.partial", .source = "s/latest"}));
  EXPECT_EQ(clone.name, "w.partial");
  EXPECT_EQ(must(control_.open_versions("s")).front().entries, 1U);
  EXPECT_EQ(code_of(control_.clone({.version = "s/x", .source = "s/w.partial"})),
            ErrorCode::kInvalid);
  EXPECT_EQ(code_of(control_.clone({.version = "t/x", .source = "s/v"})), ErrorCode::kOtherVersion);
  const auto discarded =
      must(control_.remove({.series = "s", .versions = {clone.number}, .discard = true}));
  EXPECT_EQ(discarded.versions, std::vector<VersionNumber>{clone.number});
  EXPECT_TRUE(must(control_.open_versions("s")).empty());
  const auto reopened = must(control_.clone({.version = "s/latest", .source = "s/latest"}));
  EXPECT_EQ(reopened.state, VersionState::kOpen);
  EXPECT_NE(reopened.name, "latest");
}

TEST_P(RepositoryControlContract, AForecastDeletesNothingAndAgreesWithTheDeletion) {
  const VersionInfo one = controlled_.seal("s/one", 1);
  controlled_.seal("s/two", 2);
  const auto forecast =
      must(control_.remove({.series = "s", .versions = {one.number}, .forecast_only = true}));
  EXPECT_EQ(must(controlled_.repository().versions(one.series)).size(), 2U);
  const auto deleted = must(control_.remove({.series = "s", .versions = {one.number}}));
  EXPECT_EQ(must(controlled_.repository().versions(one.series)).size(), 1U);
  EXPECT_EQ(deleted.versions, forecast.versions);
  EXPECT_EQ(deleted.freed_bytes, forecast.freed_bytes);
  EXPECT_EQ(deleted.dead_bytes, forecast.dead_bytes);
  EXPECT_GT(deleted.chunk_bytes, 0U);
  EXPECT_EQ(code_of(control_.remove({.series = "s", .versions = {one.number}})),
            ErrorCode::kNotFound);
}

TEST_P(RepositoryControlContract, ALockHoldsAVersionAndCanOnlyBeExtended) {
  const VersionInfo version = controlled_.seal("s/v", 1);
  const Timestamp later{.seconds = 4'000'000'000};
  must(control_.lock({.series = "s", .version = version.number, .until = later}));
  EXPECT_EQ(code_of(control_.lock(
                {.series = "s", .version = version.number, .until = {.seconds = 3'900'000'000}})),
            ErrorCode::kNotPermitted);
  EXPECT_EQ(code_of(control_.remove({.series = "s", .versions = {version.number}})),
            ErrorCode::kNotPermitted);
  const auto skipped = must(control_.remove(
      {.series = "s", .versions = {version.number}, .options = {.skip_held = true}}));
  EXPECT_TRUE(skipped.versions.empty());
  ASSERT_EQ(skipped.held.size(), 1U);
  EXPECT_EQ(skipped.held.front().number, version.number);
  EXPECT_FALSE(skipped.held.front().reason.empty());
}

TEST_P(RepositoryControlContract, AClaimedTimeIsThatOfTheSealedVersion) {
  const Timestamp claimed{.seconds = 1'000'000'000, .nanoseconds = 1};
  controlled_.open("s/v");
  must(control_.claim({"s/v", {.seconds = 1}}));
  must(control_.claim({"s/v", claimed}));
  const auto sealed = must(control_.seal({.version = "s/v"}, controlled_.never())).sealed;
  EXPECT_EQ(sealed.claimed_at, claimed);
  EXPECT_EQ(code_of(control_.claim({"s/v", claimed})), ErrorCode::kReadOnly);
  EXPECT_EQ(code_of(control_.claim({"s/w", claimed})), ErrorCode::kNotFound);
}

TEST_P(RepositoryControlContract, SealedVersionsAndSeriesGetNewNames) {
  const VersionInfo version = controlled_.seal("s/v", 1);
  controlled_.open("s/w");
  EXPECT_EQ(code_of(control_.rename({"s/w", "x"})), ErrorCode::kBusy);
  EXPECT_EQ(code_of(control_.rename({"s/v", "w"})), ErrorCode::kExists);
  EXPECT_EQ(code_of(control_.rename({"s", "t"})), ErrorCode::kBusy);
  must(control_.rename({"s/v", "x"}));
  EXPECT_EQ(code_of(control_.rename({"s/v", "y"})), ErrorCode::kNotFound);
  must(control_.seal({.version = "s/w"}, controlled_.never()));
  must(control_.rename({"s", "t"}));
  EXPECT_EQ(code_of(control_.rename({"s", "u"})), ErrorCode::kNotFound);
  auto& repository = controlled_.repository();
  const auto series = must(repository.find_series("t"));
  EXPECT_EQ(must(repository.find_version(series.id, "x")).number, version.number);
}

TEST_P(RepositoryControlContract, SettingsAreStoredOnlyIfTheyAreValid) {
  ArrangeSettings settings = must(control_.arrange_settings(std::nullopt));
  settings.policy = ArrangePolicyKind::kBatched;
  settings.batch = 3;
  EXPECT_EQ(must(control_.arrange_settings(settings)).batch, 3U);
  settings.batch = 0;
  EXPECT_EQ(code_of(control_.arrange_settings(settings)), ErrorCode::kInvalid);
  const auto stored = must(control_.arrange_settings(std::nullopt));
  EXPECT_EQ(stored.policy, ArrangePolicyKind::kBatched);
  EXPECT_EQ(stored.batch, 3U);
}

TEST_P(RepositoryControlContract, SettingsOfASeriesAreReadAndChanged) {
  controlled_.seal("s/v", 1);
  EXPECT_EQ(must(control_.series_settings({.series = "s"})), SeriesSettings());
  const SeriesSettings har{Placement::kLineage, Rewrite::kHar};
  EXPECT_EQ(must(control_.series_settings({.series = "s", .changes = {.rewrite = Rewrite::kHar}})),
            har);
  EXPECT_EQ(must(control_.series_settings({.series = "s"})), har);
  EXPECT_EQ(must(controlled_.repository().find_series("s")).rewrite, Rewrite::kHar);
  EXPECT_EQ(must(control_.series_settings({})), SeriesSettings()) << "new series get others";
}

TEST_P(RepositoryControlContract, SettingsOfNewSeriesApplyToNewSeriesOnly) {
  controlled_.open("s/v");
  const SeriesSettings cap{Placement::kLineage, Rewrite::kCap};
  EXPECT_EQ(must(control_.series_settings({.changes = {.rewrite = Rewrite::kCap}})), cap);
  controlled_.open("t/v");
  EXPECT_EQ(must(control_.series_settings({.series = "s"})), SeriesSettings());
  EXPECT_EQ(must(control_.series_settings({.series = "t"})), cap);
  EXPECT_EQ(must(control_.series_settings({})), cap);
}

TEST_P(RepositoryControlContract, IndexOfThePoolIsChosen) {
  controlled_.open("s/v");
  EXPECT_EQ(must(control_.pool_index({})), PoolIndexChoice());
  const PoolIndexChoice zero{PoolIndexKind::kZeroChunk, 0};
  EXPECT_EQ(must(control_.pool_index({zero})), zero);
  EXPECT_EQ(must(control_.pool_index({})), zero);
  EXPECT_EQ(must(controlled_.repository().pool_index()), zero);
  EXPECT_EQ(must(control_.pool_index({PoolIndexChoice()})), PoolIndexChoice());
  EXPECT_TRUE(must(control_.pool_streams()).empty()) << "no version uses the pool";
}

TEST_P(RepositoryControlContract, DefaultsOfUpkeepAreReadAndChanged) {
  controlled_.open("s/v");
  EXPECT_EQ(must(control_.upkeep({})), UpkeepSettings());
  UpkeepSettings wanted;
  wanted.arrange_bytes_per_second = 50 << 20;
  wanted.keep.daily = 30;
  wanted.keep.within_seconds = 3600;
  wanted.keep.by_claimed = false;
  wanted.guards_sources = false;
  EXPECT_EQ(must(control_.upkeep({wanted})), wanted);
  EXPECT_EQ(must(control_.upkeep({})), wanted);
  EXPECT_EQ(must(controlled_.repository().upkeep_settings()), wanted);
  wanted = {};
  wanted.arrange_bytes_per_second = 0;
  EXPECT_EQ(must(control_.upkeep({wanted})), wanted);
  EXPECT_EQ(must(control_.upkeep({UpkeepSettings()})), UpkeepSettings());
}

TEST_P(RepositoryControlContract, PlacementDoesNotChangeWhileAVersionIsOpen) {
  controlled_.open("s/v");
  const SeriesOptions pool{.placement = Placement::kPool};
  EXPECT_EQ(code_of(control_.series_settings({.series = "s", .changes = pool})), ErrorCode::kBusy);
  must(control_.seal({.version = "s/v"}, controlled_.never()));
  const auto changed = control_.series_settings({.series = "s", .changes = pool});
  if (check_placement(Placement::kPool)) {
    EXPECT_EQ(must(changed).placement, Placement::kPool);
  } else {
    EXPECT_EQ(code_of(changed), ErrorCode::kUnsupported);
  }
}

TEST_P(RepositoryControlContract, ArrangingEndsAtOnceAfterAStopAndCanBeRepeated) {
  ArrangeSettings settings;
  settings.policy = ArrangePolicyKind::kTiered;
  settings.window = 1;
  must(control_.arrange_settings(settings));
  for (int i = 0; i < 4; ++i) {
    controlled_.seal("s/v" + std::to_string(i), static_cast<std::uint64_t>(i));
  }
  StopRequest stop;
  stop.stop();
  const auto stopped = control_.arrange({.series = "s"}, stop, {});
  if (stopped) {
    EXPECT_FALSE(stopped->finished);
  } else {
    EXPECT_EQ(stopped.error().code(), ErrorCode::kInterrupted);
  }
  EXPECT_TRUE(must(control_.arrange({.series = "s"}, controlled_.never(), {})).finished);
  const auto series = must(controlled_.repository().find_series("s"));
  EXPECT_EQ(must(controlled_.repository().arranging_debt(series.id)).departing_bytes, 0U);
}

TEST_P(RepositoryControlContract, OpenVersionsHavePresentSizes) {
  controlled_.open("s/v");
  controlled_.write("f", 1);
  must(control_.sync());
  const auto open = must(control_.open_versions("s"));
  ASSERT_EQ(open.size(), 1U);
  EXPECT_EQ(open.front().entries, 1U);
}

TEST_P(RepositoryControlContract, MetricsAreThoseOfTheProcessThatChanges) {
  const auto value = [&](std::string_view name) {
    const auto samples = must(control_.metrics());
    const auto place = std::ranges::find(samples, name, &MetricSample::name);
    EXPECT_NE(place, samples.end()) << name;
    return place == samples.end() ? 0 : place->value;
  };
  EXPECT_EQ(value("varve_ingest_received_bytes_total"), 0U);
  controlled_.seal("s/v", 1);
  EXPECT_EQ(value("varve_ingest_received_bytes_total"), 50'000U);
  const std::uint64_t chunks = value("varve_ingest_new_chunks_total");
  EXPECT_GT(chunks, 1U);
  controlled_.seal("s/w", 1);
  EXPECT_EQ(value("varve_ingest_received_bytes_total"), 100'000U);
  EXPECT_EQ(value("varve_ingest_new_chunks_total"), chunks);
  EXPECT_EQ(value("varve_ingest_duplicate_chunks_total"), chunks);
  EXPECT_EQ(must(control_.metrics()), controlled_.repository().metrics());
}

INSTANTIATE_TEST_SUITE_P(Controls, RepositoryControlContract,
                         testing::Values(Kind::kLocal, Kind::kRemote), [](const auto& one) {
                           return one.param == Kind::kLocal ? "Local" : "Remote";
                         });

template <typename Value>
std::string outcome(const Result<Value>& result) {
  if (result) return "done";
  return std::to_string(static_cast<int>(result.error().code())) + " " + result.error().message();
}

/// Makes every kind of mistake. Returns the errors.
std::vector<std::string> mistakes(Kind kind) {
  Controlled controlled(kind);
  RepositoryControl& control = controlled.control();
  const VersionInfo sealed = controlled.seal("s/v", 1);
  const VersionInfo open = controlled.open("s/w.partial");
  const std::vector<VersionNumber> none{VersionNumber{99}};
  const auto seal = [&](SealRequest request) { return control.seal(request, controlled.never()); };
  return {
      outcome(seal({.version = "s"})),
      outcome(seal({.version = "none/v"})),
      outcome(seal({.version = "s/none"})),
      outcome(seal({.version = "s/v"})),
      outcome(seal({.version = "s/latest"})),
      outcome(seal({.version = "s/w.partial", .new_name = "v"})),
      outcome(seal({.version = "s/w.partial", .new_name = "latest"})),
      outcome(control.open({.version = "s/x", .mode = S_IFDIR})),
      outcome(control.open({.version = "s/v", .mode = S_IFDIR})),
      outcome(control.open({.version = "s", .mode = S_IFDIR})),
      outcome(control.open({.version = "t/" + std::string(300, 'x'), .mode = S_IFDIR})),
      outcome(control.clone({.version = "s/x", .source = "s/none"})),
      outcome(control.clone({.version = "s/x", .source = "s/w.partial"})),
      outcome(control.clone({.version = "s/x", .source = "s/v"})),
      outcome(control.clone({.version = "t/x", .source = "s/v"})),
      outcome(control.clone({.version = "none/x", .source = "none/latest"})),
      outcome(control.remove({.series = "none", .versions = {sealed.number}})),
      outcome(control.remove({.series = "s", .versions = none})),
      outcome(control.remove({.series = "s", .versions = none, .forecast_only = true})),
      outcome(control.remove({.series = "s", .versions = none, .discard = true})),
      outcome(control.remove({.series = "s", .versions = {open.number}})),
      outcome(control.remove({.series = "s", .versions = {sealed.number}, .discard = true})),
      outcome(control.lock({.series = "none", .version = sealed.number, .until = {1, 0}})),
      outcome(control.lock({.series = "s", .version = none.front(), .until = {1, 0}})),
      outcome(control.lock({.series = "s", .version = open.number, .until = {1, 0}})),
      outcome(control.arrange({.series = "none"}, controlled.never(), {})),
      outcome(control.series_settings({.series = "none"})),
      outcome(control.series_settings({.series = "none", .changes = {.rewrite = Rewrite::kHar}})),
      outcome(control.series_settings({.series = "s", .changes = {.placement = Placement::kPool}})),
      outcome(control.open_versions("none"))};
}

TEST(RepositoryControls, GiveTheSameErrors) {
  const auto local = mistakes(Kind::kLocal);
  EXPECT_EQ(local, mistakes(Kind::kRemote));
  EXPECT_EQ(std::ranges::count(local, "done"), 0) << "one of them is no mistake";
}

TEST(RepositoryControls, OpeningChoosesTheDaemonThatHasTheLock) {
  std::string path;
  {
    Controlled held(Kind::kRemote);
    path = held.path();
    held.open("s/v");
    const auto control = must(open_control(path, test::keyed()));
    EXPECT_TRUE(control->arranges_by_itself());
    EXPECT_EQ(must(control->open_versions("s")).size(), 1U);
    must(control->close());
  }
  test::TempDirectory directory;
  path = directory.path() + "/r";
  must(Repository::create(path, test::small_chunks(Codec::kNone), test::chosen_encryption()));
  const auto control = must(open_control(path, test::keyed()));
  EXPECT_FALSE(control->arranges_by_itself());
  must(control->open({.version = "s/v", .mode = S_IFDIR | 0755}));
  EXPECT_EQ(must(must(control->view())->series()).size(), 1U);
  must(control->close());
  OpenOptions reading = test::keyed();
  reading.read_only = true;
  const auto reader = must(open_control(path, reading));
  EXPECT_EQ(code_of(reader->open({.version = "s/w", .mode = S_IFDIR | 0755})),
            ErrorCode::kReadOnly);
}

}  // namespace
}  // namespace varve::control
