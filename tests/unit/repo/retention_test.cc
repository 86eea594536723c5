// SPDX-License-Identifier: Apache-2.0
// Deleting versions, their sizes, and arranging while they are read.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "support/temp_repository.h"
#include "varve/arrange.h"
#include "varve/backup.h"
#include "varve/check.h"
#include "varve/retention.h"

namespace varve::test {
namespace {

constexpr std::size_t kFiles = 6;
constexpr std::size_t kFileBytes = 120000;

class RetentionTest : public testing::Test {
 protected:
  RetentionTest() : path_(directory_.path() + "/r") {
    must(Repository::create(path_, small_chunks(Codec::kZstd)));
    repository_ = reopen(path_);
    series_ = must(repository_->create_series("s")).id;
  }

  static std::string name_of(std::size_t file) { return "f" + std::to_string(file); }

  // Stores version `round`, which has a new second half in two of its files.
  VersionNumber store(std::uint64_t round) {
    const auto number =
        must(repository_->open_version(series_, "v" + std::to_string(round), folder())).number;
    auto& contents = contents_[number];
    const auto writer = must(repository_->writer(series_));
    for (std::size_t i = 0; i < kFiles; ++i) {
      const std::uint64_t changed = (round + 2 * i) / 3;
      auto bytes = noise(kFileBytes / 2, i) + noise(kFileBytes / 2, 100 + i + 1000 * changed);
      write_file(*writer, kRootIno, name_of(i), bytes);
      contents.push_back(std::move(bytes));
    }
    must(repository_->seal(series_, number, ""));
    return number;
  }
  void store_many(std::uint64_t versions) {
    for (std::uint64_t round = 0; round < versions; ++round) store(round);
  }
  void arrange() {
    const auto report = must(repository_->arrange(series_, {}));
    EXPECT_TRUE(report.finished);
  }
  std::uint64_t series_bytes() const {
    std::uint64_t sum = 0;
    for (const auto& at : std::filesystem::recursive_directory_iterator(path_ + "/series")) {
      if (at.is_regular_file()) sum += at.file_size();
    }
    return sum;
  }
  /// Returns the size without the labels, which exist as long as the series and contain the locks.
  std::uint64_t version_bytes() const {
    return series_bytes() - std::filesystem::file_size(path_ + "/series/00000001/labels");
  }
  void expect_all(Repository& repository) {
    for (const auto& [number, contents] : contents_) {
      const auto reader = must(repository.reader(series_, number));
      for (std::size_t i = 0; i < contents.size(); ++i) {
        ASSERT_TRUE(read_sealed(*reader, name_of(i)) == contents[i]) << name_of(i);
      }
    }
  }
  void expect_no_damage() {
    CheckOptions options;
    options.verify_chunks = true;
    const auto report = must(repository_->check(options, {}));
    for (const auto& damage : report.damages) ADD_FAILURE() << damage.where << ": " << damage.what;
  }
  void remove(const std::vector<VersionNumber>& numbers) {
    const auto before = series_bytes();
    const auto forecast = must(repository_->forecast_deletion(series_, numbers));
    const auto done = must(repository_->delete_versions(series_, numbers));
    EXPECT_EQ(done.freed_bytes, forecast.freed_bytes);
    EXPECT_EQ(before - series_bytes(), forecast.freed_bytes);
    for (const auto number : numbers) contents_.erase(number);
    expect_all(*repository_);
    expect_no_damage();
  }

  TempDirectory directory_;
  std::string path_;
  std::unique_ptr<Repository> repository_;
  SeriesId series_{};
  std::map<VersionNumber, std::vector<std::string>> contents_;
};

TEST_F(RetentionTest, DeletionFreesExactlyWhatWasForecast) {
  for (std::uint64_t round = 0; round < 9; ++round) {
    store(round);
    arrange();
  }
  expect_all(*repository_);
  std::vector<VersionNumber> all;
  for (const auto& entry : contents_) all.push_back(entry.first);
  remove({all[4]});                  // In the middle.
  remove({all[8]});                  // The newest.
  remove({all[0], all[1], all[6]});  // A set.
  store(20);
  expect_all(*repository_);
  arrange();
  const auto catalog = must(repository_->stats()).catalog_bytes;
  EXPECT_GT(catalog, 0U);
  std::vector<VersionNumber> rest;
  for (const auto& entry : contents_) rest.push_back(entry.first);
  remove(rest);
  EXPECT_EQ(version_bytes(), 0U);
  EXPECT_TRUE(must(repository_->versions(series_)).empty());
  must(repository_->remove_series("s"));
}

TEST_F(RetentionTest, OpeningGoesOnWithWhatWasLeftToBeArranged) {
  store_many(5);
  ASSERT_GT(must(repository_->arranging_debt(series_)).departing_bytes, 0U);
  must(repository_->close());
  repository_.reset();
  auto options = quiet_options();
  options.arrange = true;
  repository_ = reopen(path_, options);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (must(repository_->arranging_debt(series_)).departing_bytes != 0) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    std::this_thread::yield();
  }
  expect_all(*repository_);
  expect_no_damage();
}

TEST_F(RetentionTest, UsageSaysWhatDeletingAloneGivesBack) {
  store_many(5);
  arrange();
  const auto usage = must(repository_->version_usage(series_));
  ASSERT_EQ(usage.size(), 5U);
  for (const auto& version : usage) {
    EXPECT_EQ(version.logical_bytes, kFiles * kFileBytes);
    EXPECT_EQ(version.referenced_bytes, kFiles * kFileBytes);
    EXPECT_EQ(version.unique_bytes,
              must(repository_->forecast_deletion(series_, {version.number})).freed_bytes);
    EXPECT_LE(version.shared_bytes, version.referenced_bytes);
    EXPECT_FALSE(version.side);
  }
  std::uint64_t archived = 0;
  std::uint64_t active = 0;
  for (const auto& category : must(repository_->categories(series_))) {
    EXPECT_TRUE(category.live);
    (category.death == VersionNumber{} ? active : archived) += category.chunk_bytes;
    EXPECT_EQ(category.file.empty(), category.death == VersionNumber{});
  }
  EXPECT_GT(archived, 0U);
  EXPECT_EQ(archived + active, must(repository_->stats()).unique_bytes);
  const auto debt = must(repository_->arranging_debt(series_));
  EXPECT_EQ(debt.departing_bytes, 0U);
  EXPECT_EQ(debt.volume_bytes, archived);
  EXPECT_EQ(debt.active_bytes - debt.dead_bytes, active);
}

TEST_F(RetentionTest, ThePartsOfARepositoryAddUpToAllFiles) {
  store_many(3);
  const auto stats = must(repository_->stats());
  EXPECT_GT(stats.manifest_bytes, 0U);
  EXPECT_GE(stats.reserve_bytes, 8U << 20);
  EXPECT_LT(stats.catalog_free_bytes, stats.catalog_bytes);
  const std::uint64_t parts = stats.container_bytes + stats.catalog_bytes + stats.index_bytes +
                              stats.staging_bytes + stats.parity_bytes + stats.manifest_bytes +
                              stats.reserve_bytes;
  EXPECT_LE(parts, stats.repository_bytes);
  EXPECT_LE(stats.repository_bytes, parts + 4096);  // The superblock and the lock.
}

// A text that zstd halves, at least.
std::string compressible(std::size_t bytes, std::uint64_t seed) {
  const std::string digits = noise(bytes / 8, seed);
  std::string text;
  for (const char c : digits) text += fmt::format("{:08b}", static_cast<unsigned char>(c));
  return text;
}

TEST(DeletionForecastTest, WhatArrangingFreesIsForecastInStoredBytes) {
  constexpr std::size_t kBytes = 512U << 10;
  constexpr int kManyFiles = 12;
  // The files that each version changes: many, few, and some that the next one changes again.
  for (const int step : {1, 2, 5}) {
    SCOPED_TRACE(step);
    const TempDirectory directory;
    const std::string path = directory.path() + "/repo";
    must(Repository::create(path, small_chunks(Codec::kZstd)));
    const auto repository = reopen(path);
    ArrangeSettings settings;
    settings.fan = 2;  // Merges the versions' runs.
    settings.dead_permille = 10;
    must(repository->set_arrange_settings(settings));
    const auto series = must(repository->create_series("s")).id;
    std::vector<VersionNumber> numbers;
    for (int number = 0; number < 5; ++number) {
      const auto version =
          must(repository->open_version(series, "v" + std::to_string(number), folder())).number;
      const auto writer = must(repository->writer(series));
      for (int i = 0; i < kManyFiles; ++i) {
        // Lines of the version lie between lines that stay.
        std::string text;
        for (int line = 0; line < 16; ++line) {
          const bool is_new = (line + i) % step == 0;
          text += compressible(kBytes / 16,
                               static_cast<std::uint64_t>(1000 * i + line) +
                                   (is_new ? 1U + static_cast<unsigned>(number) : 0U) * 100000);
        }
        write_file(*writer, kRootIno, "f" + std::to_string(i), text);
      }
      must(repository->seal(series, version, ""));
      must(repository->arrange(series, {}));  // Puts chunks of all births between each other.
      numbers.push_back(version);
    }
    const auto files = [&] {
      const auto stats = must(repository->stats());
      return stats.repository_bytes - stats.catalog_bytes - stats.reserve_bytes -
             stats.manifest_bytes - stats.index_bytes;
    };
    const auto forecast = must(repository->forecast_deletion(series, {numbers.back()}));
    // A version that shares nothing with its predecessor frees all of its chunks at once.
    if (step != 1) {
      EXPECT_GT(forecast.dead_bytes, 0U) << step;
    }
    const auto before = files();
    must(repository->delete_versions(series, {numbers.back()}));
    const auto deleted = files();
    EXPECT_LE(before - deleted, forecast.freed_bytes);  // Also the manifest and the index.
    must(repository->arrange(series, {}));
    const auto arranged = files();
    const double came = static_cast<double>(deleted) - static_cast<double>(arranged);
    const auto expected = static_cast<double>(forecast.dead_bytes);
    EXPECT_LE(std::abs(came - expected), 0.02 * expected + 8192) << came << " of " << expected;
  }
}

TEST_F(RetentionTest, DeletionIsRefusedWithoutDoingAnything) {
  store_many(3);
  const auto numbers = [&] {
    std::vector<VersionNumber> all;
    for (const auto& entry : contents_) all.push_back(entry.first);
    return all;
  }();
  auto before = version_bytes();
  const auto refused = [&](const std::vector<VersionNumber>& gone) {
    const auto code = code_of(repository_->delete_versions(series_, gone));
    EXPECT_EQ(version_bytes(), before);
    EXPECT_EQ(must(repository_->versions(series_)).size(), 3U);
    return code;
  };
  EXPECT_EQ(refused({numbers[0], VersionNumber{77}}), ErrorCode::kNotFound);
  {
    const auto reader = must(repository_->reader(series_, numbers[1]));
    const auto file = must(reader->open(find(*reader, "f0")));
    EXPECT_EQ(refused({numbers[0], numbers[1]}), ErrorCode::kBusy);
    EXPECT_EQ(read_all(*file, kFileBytes), contents_[numbers[1]][0]);
  }
  must(repository_->lock_version(series_, numbers[2], {4000000000, 0}));
  before = version_bytes();  // The manifest contains the lock.
  EXPECT_EQ(refused({numbers[2]}), ErrorCode::kNotPermitted);
  EXPECT_EQ(repository_->lock_version(series_, numbers[2], {3000000000, 0}).error().code(),
            ErrorCode::kNotPermitted);
  must(repository_->lock_version(series_, numbers[1], {1000000000, 0}));
  remove({numbers[0], numbers[1]});  // The lock has ended; open files no longer count.
  const auto open = must(repository_->open_version(series_, "w", folder())).number;
  EXPECT_EQ(code_of(repository_->delete_versions(series_, {open})), ErrorCode::kInvalid);
}

TEST_F(RetentionTest, FilesOfADeletedVersionCannotBeOpenedAnyMore) {
  const auto first = store(0);
  store(1);
  const auto reader = must(repository_->reader(series_, first));
  const auto rank = find(*reader, "f0");
  remove({first});
  EXPECT_FALSE(reader->open(rank));
  EXPECT_EQ(code_of(repository_->reader(series_, first)), ErrorCode::kNotFound);
}

TEST_F(RetentionTest, DeletingBesideAnOpenVersionKeepsWhatItRefersTo) {
  store_many(3);
  arrange();
  const auto open = must(repository_->open_version(series_, "w.partial", folder())).number;
  auto writer = must(repository_->writer(series_));
  write_file(*writer, kRootIno, "f0", contents_.rbegin()->second[0]);
  must(writer->sync());
  std::vector<VersionNumber> all;
  for (const auto& entry : contents_) all.push_back(entry.first);
  const auto kept = contents_.rbegin()->second;
  remove(all);
  arrange();
  writer.reset();
  repository_.reset();
  repository_ = reopen(path_);
  writer = must(repository_->writer(series_));
  write_file(*writer, kRootIno, "f1", kept[1]);
  must(repository_->seal(series_, open, ""));
  const auto reader = must(repository_->reader(series_, open));
  EXPECT_TRUE(read_sealed(*reader, "f0") == kept[0]);
  EXPECT_TRUE(read_sealed(*reader, "f1") == kept[1]);
  EXPECT_EQ(reader->info().unique_bytes, kFileBytes) << "f0 stayed, f1 was freed";
  arrange();
  expect_no_damage();
}

TEST_F(RetentionTest, ReadersGoOnWhileChunksMove) {
  store_many(4);
  ArrangeSettings settings;
  settings.policy = ArrangePolicyKind::kOriginal;
  must(repository_->set_arrange_settings(settings));
  std::atomic<bool> done{false};
  std::thread reading([&] {
    while (!done) {
      for (const auto& [number, contents] : contents_) {
        const auto reader = must(repository_->reader(series_, number));
        for (std::size_t i = 0; i < contents.size(); ++i) {
          EXPECT_TRUE(read_sealed(*reader, name_of(i)) == contents[i]);
        }
      }
    }
  });
  for (int i = 0; i < 6; ++i) {
    settings.policy = i % 2 == 0 ? ArrangePolicyKind::kTiered : ArrangePolicyKind::kOriginal;
    settings.dead_permille = 10;
    must(repository_->set_arrange_settings(settings));
    arrange();
    const auto number =
        must(repository_->open_version(series_, "x" + std::to_string(i), folder())).number;
    write_file(*must(repository_->writer(series_)), kRootIno, "f0", noise(kFileBytes, 900 + i));
    must(repository_->seal(series_, number, ""));
  }
  done = true;
  reading.join();
  expect_all(*repository_);
  expect_no_damage();
}

TEST_F(RetentionTest, AnotherProcessReadsWhileChunksMove) {
  store_many(5);
  repository_.reset();
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    OpenOptions options = quiet_options();
    options.read_only = true;
    auto repository = reopen(path_, options);
    bool same = true;
    for (int round = 0; round < 12; ++round) {
      for (const auto& [number, contents] : contents_) {
        const auto reader = must(repository->reader(series_, number));
        for (std::size_t i = 0; i < contents.size(); ++i) {
          same = same && read_sealed(*reader, name_of(i)) == contents[i];
        }
      }
      if (round == 0) same = same && ::write(ready[1], "x", 1) == 1;
    }
    repository.reset();  // Joins its threads, which sanitizers report otherwise.
    ::_exit(same ? 0 : 1);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  repository_ = reopen(path_);
  arrange();
  ArrangeSettings settings;
  settings.policy = ArrangePolicyKind::kOriginal;
  must(repository_->set_arrange_settings(settings));
  arrange();
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_F(RetentionTest, SealsAreArrangedInTheBackground) {
  repository_.reset();
  auto options = quiet_options();
  options.arrange = true;
  options.arrange_bytes_per_second = 0;
  repository_ = reopen(path_, options);
  store_many(6);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (must(repository_->arranging_debt(series_)).departing_bytes != 0 &&
         std::chrono::steady_clock::now() < until) {
    std::this_thread::yield();
  }
  EXPECT_EQ(must(repository_->arranging_debt(series_)).departing_bytes, 0U);
  EXPECT_GT(must(repository_->arranging_debt(series_)).volume_bytes, 0U);
  expect_all(*repository_);
  must(repository_->close());
  expect_no_damage();
}

// The rate alone determines the minimum time, so a busy machine does not matter.
TEST_F(RetentionTest, ArrangingKeepsToItsRate) {
  store_many(6);
  ArrangeOptions options;
  options.bytes_per_second = 4U << 20;
  const auto begin = std::chrono::steady_clock::now();
  const auto report = must(repository_->arrange(series_, options));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  EXPECT_TRUE(report.finished);
  const auto bytes = report.done.bytes_read + report.done.bytes_written;
  EXPECT_GT(bytes, 100000U);
  constexpr double kRounding = 0.002;  // Seconds.
  EXPECT_GE(took.count() + kRounding, static_cast<double>(bytes) / (4U << 20));
}

TEST_F(RetentionTest, SettingsStayAndImpossibleOnesAreRefused) {
  ArrangeSettings settings;
  settings.policy = ArrangePolicyKind::kBatched;
  settings.batch = 4;
  settings.window = 3;
  must(repository_->set_arrange_settings(settings));
  auto bad = settings;
  bad.fan = 1;
  EXPECT_EQ(repository_->set_arrange_settings(bad).error().code(), ErrorCode::kInvalid);
  bad = settings;
  bad.window = 0;
  EXPECT_EQ(repository_->set_arrange_settings(bad).error().code(), ErrorCode::kInvalid);
  repository_.reset();
  repository_ = reopen(path_);
  EXPECT_EQ(must(repository_->arrange_settings()).batch, 4U);
  EXPECT_EQ(must(repository_->arrange_settings()).window, 3U);
}

}  // namespace
}  // namespace varve::test
