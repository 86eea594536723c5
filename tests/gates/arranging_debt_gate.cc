// SPDX-License-Identifier: Apache-2.0
// Continuous backups: versions that are sealed without a pause do not make the work that is left
// for arranging grow without bound.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "support/temp_repository.h"
#include "varve/arrange.h"

namespace varve::test {
namespace {

constexpr std::size_t kFiles = 160;
constexpr std::size_t kFileBytes = 64U << 10;
constexpr std::size_t kChanged = 12;  // Files that each version replaces: 7.5 %.
constexpr std::size_t kVersions = 40;

class ArrangingDebtGate : public testing::Test {
 protected:
  ArrangingDebtGate() : path_(directory_.path() + "/r") {
    must(Repository::create(path_, small_chunks(Codec::kNone)));
    repository_ = must(Repository::open(path_, OpenOptions{}));
    series_ = must(repository_->create_series("s")).id;
    newest_ = must(repository_->open_version(series_, "v0", folder())).number;
    std::vector<std::size_t> all(kFiles);
    for (std::size_t i = 0; i < kFiles; ++i) all[i] = i;
    replace(all);
    must(repository_->seal(series_, newest_, ""));
  }

  void replace(const std::vector<std::size_t>& files) {
    const auto writer = must(repository_->writer(series_));
    for (const auto file : files) {
      const auto name = "f" + std::to_string(file);
      static_cast<void>(writer->unlink(kRootIno, name));
      write_file(*writer, kRootIno, name, noise(kFileBytes, ++contents_));
    }
  }

  /// Stores the next version, as a clone of the newest one with some files replaced.
  void store(std::size_t version) {
    newest_ =
        must(repository_->clone_version(series_, newest_, "v" + std::to_string(version))).number;
    std::vector<std::size_t> files(kChanged);
    for (std::size_t i = 0; i < kChanged; ++i) files[i] = (version * kChanged + i * 7) % kFiles;
    replace(files);
    must(repository_->seal(series_, newest_, ""));
  }

  double debt_share() const {
    const auto debt = must(repository_->arranging_debt(series_));
    return static_cast<double>(debt.dead_bytes + debt.departing_bytes) /
           static_cast<double>(std::max<std::uint64_t>(debt.active_bytes, 1));
  }

  const TempDirectory directory_;
  const std::string path_;
  std::unique_ptr<Repository> repository_;
  SeriesId series_{};
  VersionNumber newest_{};
  std::uint64_t contents_ = 0;
};

TEST_F(ArrangingDebtGate, StaysBelowAQuarterWhileVersionsAreSealedWithoutAPause) {
  double most = 0;
  for (std::size_t version = 1; version <= kVersions; ++version) {
    store(version);
    most = std::max(most, debt_share());
  }
  EXPECT_LE(most, 0.25);
  EXPECT_LE(must(repository_->arranging_debt(series_)).runs, 60U);
}

TEST_F(ArrangingDebtGate, DoesNotDelaySealsWhenArrangingFails) {
  // Each file of the active set is damaged in the middle: nothing can be moved out of it.
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path_ + "/series")) {
    if (entry.path().extension() != ".seg") continue;
    std::filesystem::remove(entry.path());
  }
  const auto began = std::chrono::steady_clock::now();
  for (std::size_t version = 1; version <= 12; ++version) store(version);
  const auto took = std::chrono::steady_clock::now() - began;
  EXPECT_LT(took, std::chrono::seconds(30))
      << "no seal waits for its limit, let alone each of them";
}

}  // namespace
}  // namespace varve::test
