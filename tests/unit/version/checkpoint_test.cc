// SPDX-License-Identifier: Apache-2.0
// When open versions make checkpoints in the background.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "support/temp_repository.h"
#include "varve/backup.h"
#include "varve/metrics.h"
#include "varve/repository.h"

namespace varve::test {
namespace {

/// A repository with an open version, whose changes become durable after ten milliseconds.
class Changed {
 public:
  explicit Changed(const std::string& path) {
    must(Repository::create(path, small_chunks(Codec::kNone)));
    OpenOptions options = quiet_options();
    options.checkpoint_interval_ms = 10;
    repository_ = reopen(path, options);
    const auto series = must(repository_->create_series("s")).id;
    must(repository_->open_version(series, "v", folder()));
    version_ = must(repository_->writer(series));
  }
  [[nodiscard]] std::uint64_t checkpoints() const {
    for (const auto& sample : repository_->metrics()) {
      if (sample.name == "varve_ingest_checkpoints_total") return sample.value;
    }
    return 0;
  }
  /// Changes the version. Returns whether a checkpoint follows.
  [[nodiscard]] bool change(const std::string& name) {
    const auto before = checkpoints();
    must(version_->create(kRootIno, name, regular_file()));
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(5);
    while (checkpoints() == before && std::chrono::steady_clock::now() < end) {
      std::this_thread::yield();
    }
    return checkpoints() != before;
  }

 private:
  std::unique_ptr<Repository> repository_;
  std::shared_ptr<VersionWriter> version_;
};

TEST(Checkpoints, AVersionWithoutChangesMakesNone) {
  const TempDirectory directory;
  Changed idle(directory.path() + "/idle");
  Changed clock(directory.path() + "/clock");
  ASSERT_TRUE(idle.change("a"));
  const auto made = idle.checkpoints();
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(clock.change(std::to_string(i)));
  EXPECT_EQ(idle.checkpoints(), made);
  EXPECT_TRUE(idle.change("b"));
}

}  // namespace
}  // namespace varve::test
