// SPDX-License-Identifier: Apache-2.0
// Checks and repairs a sound repository in a process that may open few more files. A lack of
// descriptors is an error, never a verdict about the repository.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>

#include "base/system_error.h"
#include "base/unique_fd.h"
#include "repair_fixture.h"

namespace varve::test {
namespace {

constexpr unsigned kMoreMax = 64;
constexpr unsigned kSuccesses = 4;  // So many in sequence are enough.

/// Allows the process to open `more` files beyond those that are open. Lifetime: the destructor
/// restores the limit.
class FewDescriptors {
 public:
  explicit FewDescriptors(unsigned more) {
    const base::UniqueFd lowest(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    EXPECT_GE(lowest.get(), 0);
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    rlimit few = before_;
    few.rlim_cur = static_cast<rlim_t>(lowest.get()) + more;
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;
  ~FewDescriptors() { EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before_), 0); }

 private:
  rlimit before_{};
};

class FewDescriptorsTest : public RepairTest {
 protected:
  /// Calls `attempt` with more and more descriptors, until some suffice. Returns the number of
  /// failed attempts. `attempt` returns false after an error of the process.
  static unsigned failures(const std::function<bool(unsigned more)>& attempt) {
    unsigned failed = 0;
    unsigned succeeded = 0;
    for (unsigned more = 0; more <= kMoreMax && succeeded < kSuccesses; ++more) {
      SCOPED_TRACE(std::to_string(more) + " more descriptors");
      const bool sufficed = attempt(more);
      succeeded = sufficed ? succeeded + 1 : 0;
      if (!sufficed) ++failed;
    }
    EXPECT_EQ(succeeded, kSuccesses) << kMoreMax << " descriptors do not suffice";
    return failed;
  }
  static void expect_clean_verdict(const CheckReport& report) {
    for (const auto& damage : report.damages) ADD_FAILURE() << damage.where << ": " << damage.what;
  }
};

TEST_P(FewDescriptorsTest, ACheckFindsNoDamage) {
  repository_.reset();
  OpenOptions options;
  options.read_only = true;
  CheckOptions how;
  how.verify_chunks = true;
  const auto failed = failures([&](unsigned more) {
    const FewDescriptors few(more);
    auto opened = Repository::open(path_, options);
    if (!opened) return false;
    const auto report = (*opened)->check(how, {});
    if (report) expect_clean_verdict(*report);
    return report.has_value();
  });
  EXPECT_GE(failed, 5U);
}

TEST_P(FewDescriptorsTest, ACheckOfAnOpenRepositoryFindsNoDamage) {
  CheckOptions how;
  how.verify_chunks = true;
  const auto failed = failures([&](unsigned more) {
    const FewDescriptors few(more);
    const auto report = repository_->check(how, {});
    if (report) expect_clean_verdict(*report);
    return report.has_value();
  });
  EXPECT_GE(failed, 1U);
}

TEST_P(FewDescriptorsTest, ACheckWithoutKeysFindsNoDamage) {
  repository_.reset();
  const auto failed = failures([&](unsigned more) {
    const FewDescriptors few(more);
    const auto report = check_outer(path_, {}, {});
    if (report) expect_clean_verdict(*report);
    return report.has_value();
  });
  EXPECT_GE(failed, 5U);
}

TEST_P(FewDescriptorsTest, ARepairFindsNothingToRepair) {
  repository_.reset();
  RepairOptions options;
  options.read_data = true;
  const auto failed = failures([&](unsigned more) {
    const FewDescriptors few(more);
    const auto planned = Repair::plan(path_, options, false, {});
    if (!planned) return false;
    for (const auto& step : (*planned)->steps()) ADD_FAILURE() << step.where << ": " << step.what;
    return true;
  });
  EXPECT_GE(failed, 5U);
  expect_whole({"v1", "v2", "v3", "v4"});
}

TEST_P(FewDescriptorsTest, ARebuildOfTheCatalogLosesNothing) {
  repository_.reset();
  const auto catalog = path_ + "/catalog";
  fs::copy(catalog, directory_.path() + "/sound", fs::copy_options::recursive);
  const auto failed = failures([&](unsigned more) {
    fs::remove_all(catalog);
    Result<RepairReport> report(Error(ErrorCode::kIo, "not planned"));
    {
      const FewDescriptors few(more);
      const auto planned = Repair::plan(path_, {}, false, {});
      if (!planned) return false;
      report = (*planned)->execute({});
    }
    if (!report) return false;
    EXPECT_TRUE(report->problems.empty()) << report->problems.front();
    expect_whole({"v1", "v2", "v3", "v4"});
    repository_.reset();
    return true;
  });
  EXPECT_GE(failed, 5U);
}

// Staged bytes of an open version are read by the keys only.
TEST_P(FewDescriptorsTest, ACheckOfAnOpenEncryptedVersionFindsNoDamage) {
  const auto path = directory_.path() + "/encrypted";
  must(Repository::create(path, small_chunks(GetParam()), encrypted()));
  {
    const auto writer = must(Repository::open(path, with_key(quiet_options())));
    const auto series = must(writer->create_series("s")).id;
    must(writer->open_version(series, "v", folder()));
    const auto version = must(writer->writer(series));
    const auto ino = write_file(*version, kRootIno, "a", noise(150000, 1));
    must(version->sync());
    const auto file = must(version->open(ino, true));
    must(file->write(70000, base::as_bytes(noise(50, 2))));
    must(version->sync());
    must(writer->close());
  }
  OpenOptions options = with_key(quiet_options());
  options.read_only = true;
  const auto failed = failures([&](unsigned more) {
    const FewDescriptors few(more);
    auto opened = Repository::open(path, options);
    if (!opened) return false;
    const auto report = (*opened)->check({}, {});
    if (report) expect_clean_verdict(*report);
    return report.has_value();
  });
  EXPECT_GE(failed, 5U);
}

INSTANTIATE_TEST_SUITE_P(Codecs, FewDescriptorsTest, testing::Values(Codec::kNone));

}  // namespace
}  // namespace varve::test
