// SPDX-License-Identifier: Apache-2.0
// Tests overlays whose environments close and open again. The parameter says whether they are
// encrypted.
#include "version/overlay.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "io/posix_file_system.h"
#include "meta/schema.h"
#include "support/temp_repository.h"
#include "support/test_keys.h"

namespace varve::version {
namespace {

using varve::test::code_of;
using varve::test::must;

class OverlayTest : public testing::TestWithParam<bool> {
 protected:
  // Makes an empty environment, and its overlay.
  std::unique_ptr<Overlay> make(int number, const std::shared_ptr<meta::EnvCache>& cache) {
    const auto folder = directory_.path() + "/" + std::to_string(number);
    std::filesystem::create_directory(folder);
    meta::EnvOptions options;
    options.tables = meta::overlay::kTables;
    if (GetParam()) {
      options.keys = meta::overlay_keys(test::test_keys(), SeriesId{1}, VersionNumber{1});
    }
    must(meta::Env::open(*files_, folder, options));
    return std::make_unique<Overlay>(Overlay::Parts{files_.get(), folder, options.keys, cache});
  }
  static void put(Overlay& overlay, const std::string& key, const std::string& value) {
    const auto env = must(overlay.use());
    auto txn = must(meta::WriteTxn::begin(*env));
    must(txn.put(meta::overlay::kState, key, value));
    must(txn.commit());
  }
  static std::string get(Overlay& overlay, const std::string& key) {
    const auto env = must(overlay.use());
    const auto txn = must(meta::ReadTxn::begin(*env));
    const auto value = must(txn.get(meta::overlay::kState, key));
    return value ? std::string(*value) : "";
  }
  static std::size_t descriptors() {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
  }
  std::string data_of(int number) const {
    return directory_.path() + "/" + std::to_string(number) + "/data.mdb";
  }

  test::TempDirectory directory_;
  std::unique_ptr<io::FileSystem> files_ = io::make_posix_file_system();
};

TEST_P(OverlayTest, EnvironmentsThatAreNotUsedCloseAndKeepTheirRecords) {
  const auto cache = std::make_shared<meta::EnvCache>(2);
  constexpr int kOverlays = 20;
  std::vector<std::unique_ptr<Overlay>> overlays;
  for (int i = 0; i < kOverlays; ++i) overlays.push_back(make(i, cache));
  const auto before = descriptors();
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < kOverlays; ++i) {
      auto& overlay = *overlays[static_cast<std::size_t>(i)];
      if (round != 0) {
        EXPECT_EQ(get(overlay, "key"), std::to_string(i + round - 1));
      }
      put(overlay, "key", std::to_string(i + round));
    }
  }
  constexpr std::size_t kEachMax = 8;
  EXPECT_LE(descriptors(), before + 2 * kEachMax);
  overlays.clear();
  EXPECT_EQ(descriptors(), before);
}

TEST_P(OverlayTest, AnEnvironmentInUseStaysOpen) {
  const auto cache = std::make_shared<meta::EnvCache>(1);
  auto overlay = make(0, cache);
  const auto other = make(1, cache);
  put(*overlay, "key", "old");
  const auto env = must(overlay->use());
  const auto txn = must(meta::ReadTxn::begin(*env));
  put(*other, "key", "value");
  EXPECT_EQ(must(overlay->use()), env);
  put(*overlay, "key", "new");
  EXPECT_EQ(*must(txn.get(meta::overlay::kState, "key")), "old");
  overlay.reset();
  EXPECT_EQ(*must(txn.get(meta::overlay::kState, "key")), "old");
}

TEST_P(OverlayTest, PagesDamagedWhileClosedReturnCorrupt) {
  const auto cache = std::make_shared<meta::EnvCache>(0);
  const auto overlay = make(0, cache);
  put(*overlay, "key", "value");
  const auto bytes = std::filesystem::file_size(data_of(0));
  {
    std::fstream file(data_of(0), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(8192);
    file << std::string(bytes - 8192, '\x5a');
  }
  EXPECT_EQ(code_of(overlay->use()), ErrorCode::kCorrupt);
}

TEST_P(OverlayTest, ACommitOfAnotherProgramWhileClosedReturnsCorrupt) {
  const auto cache = std::make_shared<meta::EnvCache>(0);
  const auto overlay = make(0, cache);
  put(*overlay, "key", "value");
  std::filesystem::copy_file(data_of(0), directory_.path() + "/older");
  put(*overlay, "key", "newer");
  std::filesystem::rename(directory_.path() + "/older", data_of(0));
  const auto used = overlay->use();
  ASSERT_EQ(code_of(used), ErrorCode::kCorrupt);
  EXPECT_NE(used.error().message().find("another program"), std::string::npos);
}

TEST_P(OverlayTest, AChangedTimeAloneIsNoFault) {
  const auto cache = std::make_shared<meta::EnvCache>(0);
  const auto overlay = make(0, cache);
  put(*overlay, "key", "value");
  std::filesystem::last_write_time(data_of(0), std::filesystem::file_time_type::clock::now());
  EXPECT_EQ(get(*overlay, "key"), "value");
}

TEST_P(OverlayTest, TextsOfAbortedTransactionsStayCounted) {
  if (!GetParam()) GTEST_SKIP() << "only encrypted environments count texts";
  constexpr std::uint64_t kAborted = 5000;
  const auto cache = std::make_shared<meta::EnvCache>(0);
  const auto overlay = make(0, cache);
  {
    const auto env = must(overlay->use());
    auto txn = must(meta::WriteTxn::begin(*env));
    for (std::uint64_t i = 0; i < kAborted; ++i) {
      must(txn.put(meta::overlay::kState, std::to_string(i), "value"));
    }
  }
  put(*overlay, "key", "value");
  const auto env = must(overlay->use());
  EXPECT_GE(must(env->texts()->stored(must(meta::ReadTxn::begin(*env)))), kAborted);
}

TEST_P(OverlayTest, EnvironmentsOfIdleOverlaysGiveUpTheirDescriptors) {
  const auto cache = std::make_shared<meta::EnvCache>(100);
  const auto idle = make(0, cache);
  const auto overlay = make(1, cache);
  put(*idle, "key", "value");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{200, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  std::vector<base::UniqueFd> all;
  while (true) {
    base::UniqueFd file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!file.valid()) break;
    all.push_back(std::move(file));
  }
  put(*overlay, "key", "value");
  all.clear();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(get(*idle, "key"), "value");
}

TEST_P(OverlayTest, ThreadsUseOverlaysThatCloseMeanwhile) {
  const auto cache = std::make_shared<meta::EnvCache>(1);
  std::array<std::unique_ptr<Overlay>, 3> overlays;
  for (int i = 0; i < 3; ++i) overlays[static_cast<std::size_t>(i)] = make(i, cache);
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      const auto own = "key" + std::to_string(thread);
      for (int i = 0; i < 60; ++i) {
        auto& overlay = *overlays[static_cast<std::size_t>((i + thread) % 3)];
        put(overlay, own, std::to_string(i));
        if (get(overlay, own) != std::to_string(i)) ++failed;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failed, 0);
}

INSTANTIATE_TEST_SUITE_P(PlainAndEncrypted, OverlayTest, testing::Bool(),
                         [](const auto& about) { return about.param ? "Encrypted" : "Plain"; });

}  // namespace
}  // namespace varve::version
