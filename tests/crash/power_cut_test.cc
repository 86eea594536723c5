// SPDX-License-Identifier: Apache-2.0
// Cuts the power at any call that changes the disk, and makes any call fail. Each time, Varve's
// promises must hold, and work must continue without manual help.
//
// VARVE_TEST_CRASHES=N tries about N moments of each kind instead of a few; 0 tries all.
// VARVE_TEST_FROM=N skips the moments before N. VARVE_TEST_ENCRYPTED=1 encrypts the repositories.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "disk_model.h"
#include "disk_recorder.h"
#include "history.h"
#include "support/prefer_memory.h"
#include "support/sparse_reserve.h"
#include "support/temp_repository.h"
#include "support/test_encryption.h"
#include "varve/repair.h"

namespace varve::test {
namespace {

// Selects a sample of `all` moments to try.
class Sample {
 public:
  Sample(std::uint64_t all, std::uint64_t few, std::uint64_t seed) : random_(seed) {
    std::uint64_t wanted = few;
    if (const char* text = std::getenv("VARVE_TEST_CRASHES")) wanted = std::stoull(text);
    stride_ = wanted == 0 || wanted >= all ? 1 : all / wanted;
    at_ = random_() % stride_;
    if (const char* text = std::getenv("VARVE_TEST_FROM")) at_ += std::stoull(text);
  }
  [[nodiscard]] std::uint64_t at() const { return at_; }
  void next() { at_ += stride_; }

 private:
  std::mt19937_64 random_;
  std::uint64_t stride_ = 1;
  std::uint64_t at_ = 0;
};

std::string joined(const std::vector<std::string>& lines) {
  std::string out;
  for (const auto& line : lines) out += "\n  " + line;
  return out;
}

// Threads change the number of calls, so a history may end before the call `at`.
std::string text_of(const std::vector<DiskCall>& calls, std::uint64_t at) {
  if (at >= calls.size()) return "not reached";
  return "kind " + std::to_string(static_cast<int>(calls[at].kind)) + ", " + calls[at].path;
}

// The model of the disk computes the state after a power cut, so the files may be in memory.
const PreferMemory kPreferMemory;

class PowerCut : public testing::Test {
 protected:
  // The record uses the paths that the kernel reports.
  PowerCut()
      : path_(std::filesystem::canonical(directory_.path()).string() + "/r"),
        image_(directory_.path() + "/image") {
    make();
  }

  void make() {
    std::filesystem::remove_all(path_);
    must(Repository::create(path_, small_chunks(Codec::kNone), chosen_encryption()));
    if (has_reserve_) give_reserve(path_);
  }

  virtual std::unique_ptr<History> new_history(DiskRecorder& disk) {
    return std::make_unique<History>([&disk] { return disk.calls(); });
  }

  // A whole history, the disk before the history, and the calls of the history.
  struct Recording {
    DiskModel before;
    std::vector<DiskCall> calls;
  };

  // Records a history in history_. Without `syncs`, all syncs are ignored.
  virtual Recording record(bool syncs) {
    DiskModel before(path_);
    DiskRecorder disk(path_);
    if (!syncs) disk.ignore_syncs();
    history_ = new_history(disk);
    auto repository = reopen(path_, keyed());
    must(history_->live(*repository, false));
    must(repository->close());
    repository.reset();
    return {std::move(before), disk.take()};
  }

  // Cuts the power at sampled moments. Returns the number of moments with a defect.
  std::uint64_t cut(std::uint64_t few, std::uint64_t seed, bool syncs) {
    auto [model, calls] = record(syncs);
    std::uint64_t bad = 0;
    std::uint64_t tried = 0;
    Sample sample(calls.size(), few, seed);
    for (std::uint64_t i = 0; i <= calls.size(); ++i) {
      if (i == sample.at() || i == calls.size()) {
        constexpr Survives kAll[] = {Survives::kNothing, Survives::kSome, Survives::kEverything};
        for (const auto survives : kAll) {
          ++tried;
          model.write_image(image_, survives, seed * 1000 + i);
          const auto wrong = history_->examine(image_, i);
          if (wrong.empty()) continue;
          ++bad;
          if (syncs) {
            ADD_FAILURE() << "power cut after " << i << " of " << calls.size() << " calls, kind "
                          << static_cast<int>(survives) << ", seed " << seed << ":"
                          << joined(wrong);
            if (bad > 5) return bad;
          }
        }
        sample.next();
      }
      if (i < calls.size()) model.apply(calls[i]);
    }
    std::printf("%llu power cuts in a history of %zu calls\n",
                static_cast<unsigned long long>(tried), calls.size());
    return bad;
  }

  // Makes one call of a history fail. The repository must be intact afterwards.
  void fail_at_sampled_calls(std::uint64_t few, int errno_value, bool for_good, bool retry) {
    const std::uint64_t all = record(true).calls.size();
    std::uint64_t failed = 0;
    std::uint64_t tried = 0;
    for (Sample sample(all, few, static_cast<std::uint64_t>(errno_value)); sample.at() < all;
         sample.next()) {
      make();
      DiskModel model(path_);
      DiskRecorder disk(path_);
      disk.fail(sample.at(), errno_value, for_good);
      const auto history = new_history(disk);
      auto opened = Repository::open(path_, keyed());
      if (opened) {
        static_cast<void>(history->live(**opened, retry));
        static_cast<void>((*opened)->close());
        opened = Error(ErrorCode::kNotFound, "let go");
      }
      ++tried;
      failed += disk.has_failed() ? 1 : 0;
      disk.heal();
      const auto calls = disk.take();
      // Data in the page cache at the time of the failed sync may be lost.
      for (const auto& call : calls) model.apply(call);
      for (const auto survives : {Survives::kNothing, Survives::kEverything}) {
        model.write_image(image_, survives, 1);
        const auto wrong = history->examine(image_, calls.size());
        ASSERT_TRUE(wrong.empty())
            << "call " << sample.at() << " of " << all << " (" << text_of(calls, sample.at())
            << ") failed with " << errno_value << joined(wrong);
      }
    }
    std::printf("%llu histories with a failed call\n", static_cast<unsigned long long>(failed));
    EXPECT_GT(2 * failed, tried);
  }

  // Leaves a repository with a whole history, but without the catalog. Returns the moment of the
  // end of the history.
  std::uint64_t lose_catalog() {
    const auto moment = record(true).calls.size();
    std::filesystem::remove_all(path_ + "/catalog");
    return moment;
  }

  // Repeats `varve repair` until no step is left, as a user would.
  static void repair(const std::string& path) {
    for (int i = 0; i < 3; ++i) {
      const auto plan = must(Repair::plan(path, keyed_repair(), false, {}));
      if (plan->steps().empty()) return;
      must(plan->execute({}));
    }
  }

  TempDirectory directory_;
  std::string path_;
  std::string image_;
  std::unique_ptr<History> history_;
  bool has_reserve_ = false;  // The disk has a reserve without blocks before the history begins.
};

TEST_F(PowerCut, KeepsWhatWasPromised) { EXPECT_EQ(cut(60, 1, true), 0U); }

// Proves that the test above can fail.
TEST_F(PowerCut, LosesPromisesOnADiskThatIgnoresSyncs) { EXPECT_GT(cut(20, 2, false), 3U); }

TEST_F(PowerCut, FailedCallHarmsNothing) { fail_at_sampled_calls(20, EIO, false, false); }
TEST_F(PowerCut, FailedCallThatIsTriedAgainHarmsNothing) {
  fail_at_sampled_calls(20, EIO, false, true);
}
TEST_F(PowerCut, FullDiskHarmsNothing) { fail_at_sampled_calls(20, ENOSPC, true, true); }

// Three series with the same files; two series store in the pool.
class PoolPowerCut : public PowerCut {
 protected:
  // PowerCut has the cuts while the reserve is filled, before any series is opened.
  PoolPowerCut() {
    has_reserve_ = true;
    make();
  }

  std::unique_ptr<History> new_history(DiskRecorder& disk) override {
    const auto now = [&disk] { return disk.calls(); };
    auto history = std::make_unique<History>(now, "p", Placement::kPool);
    history->add(std::make_unique<History>(now, "lp", Placement::kLineagePool));
    history->add(std::make_unique<History>(now, "q", Placement::kPool));
    return history;
  }
};

TEST_F(PoolPowerCut, KeepsWhatWasPromised) { EXPECT_EQ(cut(60, 5, true), 0U); }
TEST_F(PoolPowerCut, LosesPromisesOnADiskThatIgnoresSyncs) { EXPECT_GT(cut(20, 6, false), 3U); }
TEST_F(PoolPowerCut, FailedCallHarmsNothing) { fail_at_sampled_calls(20, EIO, false, false); }
TEST_F(PoolPowerCut, FailedCallThatIsTriedAgainHarmsNothing) {
  fail_at_sampled_calls(20, EIO, false, true);
}
TEST_F(PoolPowerCut, FullDiskHarmsNothing) { fail_at_sampled_calls(20, ENOSPC, true, true); }

// The same with duplicates that arranging removes from the pool.
class PostPassPowerCut : public PowerCut {
 protected:
  std::unique_ptr<History> new_history(DiskRecorder& disk) override {
    const auto now = [&disk] { return disk.calls(); };
    auto history = std::make_unique<History>(now, "p", Placement::kPool);
    auto other = std::make_unique<History>(now, "q", Placement::kPool);
    history->make_aliases();
    other->make_aliases();
    history->add(std::move(other));
    return history;
  }
  // Returns the number of files of aliases below a folder.
  static std::size_t alias_files(const std::string& path) {
    std::size_t found = 0;
    for (const auto& at : std::filesystem::directory_iterator(path + "/pool")) {
      found += at.path().extension() == ".als" ? 1 : 0;
    }
    return found;
  }
  // A history may find all duplicates during the writes, so the test tries several histories.
  Recording record(bool syncs) override {
    for (int i = 1;; ++i) {
      auto one = PowerCut::record(syncs);
      if (alias_files(path_) != 0) return one;
      if (i == 20) throw std::runtime_error("arranging made no aliases in 20 histories");
      make();
    }
  }
};

TEST_F(PostPassPowerCut, KeepsWhatWasPromised) { EXPECT_EQ(cut(25, 7, true), 0U); }
TEST_F(PostPassPowerCut, FailedCallHarmsNothing) { fail_at_sampled_calls(6, EIO, false, false); }
TEST_F(PostPassPowerCut, FullDiskHarmsNothing) { fail_at_sampled_calls(6, ENOSPC, true, true); }
// The catalog is lost after the history.
TEST_F(PostPassPowerCut, AliasesComeBackFromTheirFiles) {
  const auto moment = lose_catalog();
  repair(path_);
  const auto wrong = history_->examine(path_, moment);
  EXPECT_TRUE(wrong.empty()) << joined(wrong);
}

TEST_F(PowerCut, RepairThatIsCutShortIsDoneAgain) {
  const auto moment = lose_catalog();
  DiskModel model(path_);
  std::vector<DiskCall> calls;
  {
    DiskRecorder disk(path_);
    repair(path_);
    calls = disk.take();
  }
  Sample sample(calls.size(), 12, 3);
  for (std::uint64_t i = 0; i <= calls.size(); ++i) {
    if (i == sample.at() || i == calls.size()) {
      for (const auto survives : {Survives::kNothing, Survives::kSome, Survives::kEverything}) {
        model.write_image(image_, survives, i);
        repair(image_);
        const auto wrong = history_->examine(image_, moment);
        ASSERT_TRUE(wrong.empty()) << "power cut after " << i << " of " << calls.size()
                                   << " calls of a repair" << joined(wrong);
      }
      sample.next();
    }
    if (i < calls.size()) model.apply(calls[i]);
  }
  EXPECT_GT(calls.size(), 10U);
}

TEST_F(PowerCut, RepairWithAFailedCallIsDoneAgain) {
  const auto moment = lose_catalog();
  const auto lost = directory_.path() + "/lost";
  copy_crashed(path_, lost);
  std::uint64_t all = 0;
  {
    DiskRecorder disk(path_);
    repair(path_);
    all = disk.calls();
  }
  EXPECT_GT(all, 10U);
  for (Sample sample(all, 10, 4); sample.at() < all; sample.next()) {
    copy_crashed(lost, path_);
    {
      DiskRecorder disk(path_);
      disk.fail(sample.at(), EIO, false);
      try {
        repair(path_);
      } catch (const std::exception&) {  // The error was reported.
      }
    }
    repair(path_);
    const auto wrong = history_->examine(path_, moment);
    ASSERT_TRUE(wrong.empty()) << "call " << sample.at() << " of a repair failed" << joined(wrong);
  }
}

}  // namespace
}  // namespace varve::test
