// SPDX-License-Identifier: Apache-2.0
// The promises of every target of a copy: the repository of this process, and one behind a stream.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "support/temp_repository.h"
#include "support/test_encryption.h"
#include "support/tree_text.h"
#include "varve/copy.h"
#include "varve/retention.h"

namespace varve {
namespace {

using test::must;
using test::noise;

/// Opens the way to a target, and keeps it open.
class Way {
 public:
  virtual ~Way() = default;
  [[nodiscard]] virtual copy::Target* target() = 0;
};

class LocalWay final : public Way {
 public:
  explicit LocalWay(const std::string& path)
      : repository_(test::reopen(path, test::keyed())), target_(copy_target(*repository_)) {}
  ~LocalWay() override { must(repository_->close()); }
  copy::Target* target() override { return target_.get(); }

 private:
  std::unique_ptr<Repository> repository_;
  std::shared_ptr<copy::Target> target_;
};

class StreamWay final : public Way {
 public:
  StreamWay(const std::string& path, Repository& source) {
    ::signal(SIGPIPE, SIG_IGN);
    int to[2];
    int from[2];
    if (::pipe2(to, O_CLOEXEC) != 0 || ::pipe2(from, O_CLOEXEC) != 0) {
      throw std::runtime_error("pipe");
    }
    output_ = base::UniqueFd(to[1]);
    input_ = base::UniqueFd(from[0]);
    server_ = std::thread([path, in = to[0], out = from[1]] {
      base::UniqueFd input(in);
      base::UniqueFd output(out);
      std::unique_ptr<Repository> repository;
      const auto served = serve_copy(
          [&](const TargetSetup&, bool) -> Result<Repository*> {
            VARVE_TRY_ASSIGN(repository, Repository::open(path, test::keyed()));
            return repository.get();
          },
          {.may_prune = true}, in, out);
      EXPECT_TRUE(served) << served.error().message();
      if (repository) must(repository->close());
    });
    connected_ =
        must(connect_target(input_.get(), output_.get(), must(target_setup(source)), false));
  }
  ~StreamWay() override {
    connected_.target.reset();
    output_ = base::UniqueFd();
    server_.join();
  }
  copy::Target* target() override { return connected_.target.get(); }

 private:
  base::UniqueFd input_;
  base::UniqueFd output_;
  std::thread server_;
  ConnectedTarget connected_;
};

class CopyTargetContract : public testing::TestWithParam<std::string> {
 protected:
  CopyTargetContract() {
    must(Repository::create(source_path_, test::small_chunks(Codec::kNone),
                            test::chosen_encryption()));
    must(Repository::create(target_path_, test::small_chunks(Codec::kNone),
                            test::chosen_encryption()));
    source_ = test::reopen(source_path_, test::keyed());
    series_ = must(source_->create_series("s")).id;
  }

  std::unique_ptr<Way> way() {
    if (GetParam() == "local") return std::make_unique<LocalWay>(target_path_);
    return std::make_unique<StreamWay>(target_path_, *source_);
  }
  Result<CopyReport> try_copy(const CopyOptions& options = {}, const CopyObserver& observer = {}) {
    const auto opened = way();
    return copy_versions(*source_, opened->target(), options, observer);
  }
  CopyReport copy(const CopyOptions& options = {}) {
    auto report = must(try_copy(options));
    for (const auto& problem : report.problems) ADD_FAILURE() << problem;
    return report;
  }
  VersionInfo store(const std::string& name, int files, std::size_t bytes, std::uint64_t seed) {
    const auto newest = source_->find_version(series_, "latest");
    if (newest) {
      must(source_->clone_version(series_, newest->number, name + ".partial"));
    } else {
      must(source_->open_version(series_, name + ".partial", test::folder()));
    }
    const auto writer = must(source_->writer(series_));
    for (int i = 0; i < files; ++i) {
      const std::string file = name + std::to_string(i);
      test::write_file(*writer, kRootIno, file, noise(bytes, seed + static_cast<unsigned>(i)));
    }
    return must(source_->seal(series_, writer->info().number, "")).info;
  }
  void expect_equal() {
    const auto target = test::reopen(target_path_, test::keyed());
    const auto series = must(target->find_series("s")).id;
    for (const VersionInfo& original : must(source_->versions(series_))) {
      const auto copied = must(target->find_version(series, original.name));
      EXPECT_EQ(test::tree_text(*must(source_->reader(series_, original.number))),
                test::tree_text(*must(target->reader(series, copied.number))));
      EXPECT_EQ(copied.sealed_at, original.sealed_at);
    }
  }

  const test::TempDirectory place_;
  const std::string source_path_ = place_.path() + "/source";
  const std::string target_path_ = place_.path() + "/target";
  std::unique_ptr<Repository> source_;
  SeriesId series_{};
};

TEST_P(CopyTargetContract, VersionsArriveWhole) {
  store("a", 30, 100000, 1);
  store("b", 3, 3000000, 100);
  EXPECT_EQ(copy().copied, 2U);
  expect_equal();
  EXPECT_EQ(copy().present, 2U);
}

TEST_P(CopyTargetContract, KnownDataIsNotSent) {
  store("a", 5, 200000, 1);
  copy();
  store("b", 5, 200000, 1);  // The same data under other names.
  const auto report = copy();
  EXPECT_EQ(report.data_bytes, 1000000U);
  EXPECT_EQ(report.sent_bytes, 0U);
  expect_equal();
}

TEST_P(CopyTargetContract, InterruptedCopyContinues) {
  store("a", 30, 1U << 20, 1);
  int calls = 0;
  const auto stopped = try_copy({}, {[&](const TransferProgress&) { return ++calls < 4; }, {}});
  EXPECT_EQ(test::code_of(stopped), ErrorCode::kInterrupted);
  const auto report = copy();
  EXPECT_LT(report.sent_bytes, 20U << 20);
  expect_equal();
}

TEST_P(CopyTargetContract, InterruptedCopyContinuesAfterItsSeriesWasRenamed) {
  store("a", 1, 10, 1);
  copy();
  const auto b = store("b", 30, 1U << 20, 1);
  const auto stop = [this] {
    int calls = 0;
    const auto stopped = try_copy({}, {[&](const TransferProgress&) { return ++calls < 4; }, {}});
    EXPECT_EQ(test::code_of(stopped), ErrorCode::kInterrupted);
  };
  const auto has_series = [this](std::string_view name) {
    return test::reopen(target_path_, test::keyed())->find_series(name).has_value();
  };
  stop();
  must(source_->rename_series(series_, "renamed"));
  EXPECT_LT(copy().sent_bytes, 20U << 20);
  EXPECT_TRUE(has_series("renamed") && !has_series("s"));
  must(source_->rename_series(series_, "s"));
  copy();
  expect_equal();

  // The version is deleted before its copy ends.
  store("c", 1, 10, 1);
  copy();
  const auto d = store("d", 30, 1U << 20, 40);
  stop();
  must(source_->delete_versions(series_, {d.number, b.number}));
  must(source_->rename_series(series_, "again"));
  copy();
  EXPECT_TRUE(has_series("again") && !has_series("s"));
}

TEST_P(CopyTargetContract, RenamesLocksAndDeletionsArrive) {
  const auto one = store("one", 1, 10, 1);
  const auto two = store("two", 1, 10, 2);
  const auto three = store("three", 1, 10, 3);
  copy();
  must(source_->rename_version(series_, one.number, "uno"));
  must(source_->lock_version(series_, three.number, {three.sealed_at.seconds + 1000, 0}));
  must(source_->delete_versions(series_, {two.number}));
  EXPECT_EQ(copy({.prune = true}).deleted, 1U);
  expect_equal();
  const auto target = test::reopen(target_path_, test::keyed());
  const auto series = must(target->find_series("s")).id;
  EXPECT_EQ(must(target->versions(series)).size(), 2U);
  EXPECT_EQ(must(target->version_locks(series)).size(), 1U);
}

TEST_P(CopyTargetContract, LockedCopyIsNotDeleted) {
  const auto one = store("one", 1, 10, 1);
  store("two", 1, 10, 2);
  copy();
  {
    const auto target = test::reopen(target_path_, test::keyed());
    const auto series = must(target->find_series("s")).id;
    must(target->lock_version(series, must(target->find_version(series, "one")).number,
                              {one.sealed_at.seconds + 1000, 0}));
    must(target->close());
  }
  must(source_->delete_versions(series_, {one.number}));
  const auto report = must(try_copy({.prune = true}));
  EXPECT_EQ(report.deleted, 0U);
  ASSERT_EQ(report.problems.size(), 1U);
  EXPECT_NE(report.problems[0].find("lock"), std::string::npos) << report.problems[0];
}

TEST_P(CopyTargetContract, EarlierCopiesAreCompared) {
  store("a", 5, 200000, 1);
  copy();
  int checked = 0;
  const auto report = must(try_copy(
      {.check_all = true},
      {{}, [&](const CopyEvent& event) { checked += event.action == CopyAction::kChecked; }}));
  EXPECT_TRUE(report.problems.empty());
  EXPECT_EQ(checked, 1);
}

INSTANTIATE_TEST_SUITE_P(Targets, CopyTargetContract, testing::Values("local", "stream"),
                         [](const auto& of) { return of.param; });

}  // namespace
}  // namespace varve
