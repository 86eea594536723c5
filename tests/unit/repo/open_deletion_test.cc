// SPDX-License-Identifier: Apache-2.0
// Deleting versions while the series has an open one. The deletion frees chunks that the open
// version may refer to but does not, and keeps those that it refers to. This holds for any order of
// writing, cloning, sealing and crashing.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "support/temp_repository.h"
#include "varve/backup.h"
#include "varve/check.h"
#include "varve/retention.h"

namespace varve::test {
namespace {

using Files = std::map<std::string, std::string>;

constexpr std::size_t kPieceBytes = 20000;
constexpr std::uint64_t kPieces = 60;  // So few pieces that versions share many of them.

class OpenDeletion : public testing::Test {
 protected:
  OpenDeletion() : path_(directory_.path() + "/r0") {
    must(Repository::create(path_, small_chunks(Codec::kNone)));
    repository_ = reopen(path_);
    series_ = must(repository_->create_series("s")).id;
  }

  std::uint64_t pick(std::uint64_t below) { return random_() % below; }
  std::string some_bytes() {
    std::string bytes;
    for (std::uint64_t i = 1 + pick(4); i > 0; --i) bytes += noise(kPieceBytes, pick(kPieces));
    return bytes;
  }
  VersionNumber open(const std::string& name) {
    open_ = must(repository_->open_version(series_, name, folder())).number;
    files_.clear();
    return *open_;
  }
  VersionNumber store(const std::string& name, const Files& files) {
    const auto number = open(name);
    const auto writer = must(repository_->writer(series_));
    for (const auto& [file, bytes] : files) write_file(*writer, kRootIno, file, bytes);
    must(repository_->seal(series_, number, ""));
    open_.reset();
    sealed_[number] = files;
    return number;
  }
  std::uint64_t series_bytes() const {
    std::uint64_t sum = 0;
    for (const auto& at : std::filesystem::recursive_directory_iterator(path_ + "/series")) {
      if (at.is_regular_file()) sum += at.file_size();
    }
    return sum;
  }
  /// Waits until all files of the open version are cut into chunks and on disk.
  void bring_to_rest() {
    const auto writer = must(repository_->writer(series_));
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (bool rests = false; !rests;) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline);
      must(writer->sync());
      rests = true;
      for (const auto& folder : std::filesystem::directory_iterator(path_ + "/staging")) {
        rests = rests && std::filesystem::is_empty(folder.path() / "files");
      }
    }
  }
  /// Deletes the versions that are not held. The forecast, the outcome and the disk must agree.
  DeletionForecast remove(const std::vector<VersionNumber>& numbers) {
    DeletionOptions options;
    options.skip_held = true;
    // Otherwise the writer may cut a file in between, or have a container on its way to the disk.
    const bool at_rest = !open_ || in_nobodys_memory_ || pick(2) == 0;
    if (open_ && at_rest && !in_nobodys_memory_) bring_to_rest();
    const auto before = series_bytes();
    const auto forecast = must(repository_->forecast_deletion(series_, numbers, options));
    EXPECT_TRUE(!at_rest || series_bytes() == before);
    const auto outcome = must(repository_->delete_versions(series_, numbers, options));
    if (at_rest) {
      EXPECT_EQ(forecast.freed_bytes, outcome.freed_bytes);
      EXPECT_EQ(forecast.waiting_bytes, outcome.waiting_bytes);
      EXPECT_EQ(before - series_bytes(), outcome.freed_bytes);
    }
    for (const auto number : outcome.versions) sealed_.erase(number);
    return outcome;
  }
  void expect_files(const Files& files,
                    const std::function<std::string(const std::string&)>& read) {
    for (const auto& [name, bytes] : files) ASSERT_TRUE(read(name) == bytes) << name;
  }
  void expect_all() {
    for (const auto& [number, files] : sealed_) {
      const auto reader = must(repository_->reader(series_, number));
      expect_files(files, [&](const std::string& name) { return read_sealed(*reader, name); });
    }
    if (!open_) return;
    const auto writer = must(repository_->writer(series_));
    expect_files(files_, [&](const std::string& name) {
      return read_open(*writer, must(writer->lookup(kRootIno, name)).ino);
    });
  }
  void expect_no_damage() {
    CheckOptions options;
    options.verify_chunks = true;
    const auto report = must(repository_->check(options, {}));
    for (const auto& damage : report.damages) ADD_FAILURE() << damage.where << ": " << damage.what;
  }
  void expect_all_after_seal() {
    must(repository_->seal(series_, *open_, ""));
    sealed_[*open_] = files_;
    open_.reset();
    expect_all();
    expect_no_damage();
  }
  /// Sets `files_` to the present content of the open version, all of which must be readable.
  void adopt_open_files() {
    const auto writer = must(repository_->writer(series_));
    files_.clear();
    std::vector<std::pair<std::string, Ino>> names;
    must(writer->list(kRootIno, "", [&](std::string_view name, const OpenEntry& entry) {
      names.emplace_back(name, entry.ino);
      return true;
    }));
    for (const auto& [name, ino] : names) files_[name] = read_open(*writer, ino);
  }

  void write_some();
  void step(int at);

  TempDirectory directory_;
  std::string path_;
  std::unique_ptr<Repository> repository_;
  SeriesId series_{};
  std::mt19937_64 random_{1};
  std::map<VersionNumber, Files> sealed_;
  std::optional<VersionNumber> open_;
  Files files_;  // The content of the open version.
  int crashes_ = 0;
  bool in_nobodys_memory_ = false;
};

// Makes one change of the open version.
void OpenDeletion::write_some() {
  const auto writer = must(repository_->writer(series_));
  const std::string name = "f" + std::to_string(pick(6));
  const auto known = files_.find(name);
  const auto kind = pick(8);
  if (known == files_.end()) {
    if (kind < 3 && !sealed_.empty()) {
      auto from = sealed_.begin();
      std::advance(from, pick(sealed_.size()));
      if (!from->second.contains(name)) return;
      const auto reader = must(repository_->reader(series_, from->first));
      must(writer->clone(*reader, find(*reader, name), kRootIno, name));
      files_[name] = from->second.at(name);
      return;
    }
    files_[name] = some_bytes();
    write_file(*writer, kRootIno, name, files_[name]);
    return;
  }
  const auto ino = must(writer->lookup(kRootIno, name)).ino;
  if (kind == 0) {
    must(writer->unlink(kRootIno, name));
    files_.erase(known);
    return;
  }
  const auto file = must(writer->open(ino, true));
  const auto bytes = some_bytes();
  if (kind < 4) {
    const auto at = pick(known->second.size() + 1);
    must(file->write(at, base::as_bytes(bytes)));
    known->second.resize(std::max(known->second.size(), at + bytes.size()));
    known->second.replace(at, bytes.size(), bytes);
  } else {
    must(file->write(known->second.size(), base::as_bytes(bytes)));
    known->second += bytes;
  }
}

void OpenDeletion::step(int at) {
  const auto name = "v" + std::to_string(at);
  const auto kind = pick(20);
  if (!open_) {
    if (sealed_.size() < 2 || kind < 8) {
      open(name);
    } else {
      auto from = std::prev(sealed_.end());
      if (kind < 12) from = std::next(sealed_.begin(), static_cast<long>(pick(sealed_.size())));
      open_ = must(repository_->clone_version(series_, from->first, name)).number;
      files_ = from->second;
    }
    return;
  }
  if (kind < 11) return write_some();
  if (kind < 15) {
    std::vector<VersionNumber> numbers;
    for (const auto& [number, files] : sealed_) {
      if (pick(3) == 0) numbers.push_back(number);
    }
    remove(numbers);
    expect_all();
  } else if (kind == 15) {
    must(must(repository_->writer(series_))->sync());
  } else if (kind == 16) {
    const bool keep = pick(2) == 0;
    const auto outcome = must(repository_->seal(series_, *open_, keep ? name : std::string(),
                                                keep ? SealMode::kKeep : SealMode::kEnd));
    sealed_[*open_] = files_;
    open_.reset();
    if (outcome.next) open_ = outcome.next->number;
  } else if (kind == 17) {
    must(repository_->abandon_version(series_, *open_, true));
    open_.reset();
  } else if (kind == 18) {
    must(repository_->close());
    repository_.reset();
    repository_ = reopen(path_);
  } else {
    const auto copy = directory_.path() + "/r" + std::to_string(++crashes_);
    copy_crashed(path_, copy);
    repository_.reset();
    std::filesystem::remove_all(path_);
    path_ = copy;
    repository_ = reopen(path_);
    adopt_open_files();
  }
}

TEST_F(OpenDeletion, RandomHistoriesLoseNothing) {
  const char* const seed = std::getenv("VARVE_TEST_SEED");
  const std::uint64_t first = seed != nullptr ? std::strtoull(seed, nullptr, 10) : 1;
  for (std::uint64_t round = first; round < first + 4; ++round) {
    SCOPED_TRACE("VARVE_TEST_SEED=" + std::to_string(round));
    random_.seed(round);
    for (int i = 0; i < 120; ++i) {
      SCOPED_TRACE(i);
      step(static_cast<int>(round * 1000) + i);
      if (HasFatalFailure()) return;
    }
    expect_all();
    expect_no_damage();
    if (HasFailure()) return;
  }
}

TEST_F(OpenDeletion, AnEmptyOpenVersionKeepsNothing) {
  const auto first = store("v1", {{"a", noise(300000, 100)}});
  store("v2", {{"a", noise(300000, 101)}});
  open("v3");
  const auto outcome = remove({first});
  EXPECT_GT(outcome.freed_bytes, 290000U);
  EXPECT_EQ(outcome.waiting_bytes, 0U);
  // The writer must store the deleted chunks again, not refer to them.
  files_["a"] = noise(300000, 100);
  write_file(*must(repository_->writer(series_)), kRootIno, "a", files_["a"]);
  expect_all();
  expect_all_after_seal();
}

TEST_F(OpenDeletion, NobodyHasItInMemoryAndItKeepsNothing) {
  const auto first = store("v1", {{"a", noise(300000, 100)}});
  store("v2", {{"a", noise(300000, 101)}});
  open("v3");
  must(repository_->close());
  repository_.reset();
  repository_ = reopen(path_);
  in_nobodys_memory_ = true;
  EXPECT_GT(remove({first}).freed_bytes, 290000U);
  files_["a"] = noise(300000, 100);
  write_file(*must(repository_->writer(series_)), kRootIno, "a", files_["a"]);
  expect_all();
  expect_no_damage();
}

TEST_F(OpenDeletion, AVersionThatGoesOnKeepsNothingOfThoseBeforeItsBase) {
  const auto first = store("v1", {{"a", noise(300000, 100)}});
  const auto base = store("v2", {{"a", noise(300000, 101)}});
  open_ = must(repository_->clone_version(series_, base, "v3")).number;
  files_ = sealed_.at(base);
  EXPECT_GT(remove({first}).freed_bytes, 290000U);
  const auto outcome = remove({base});
  ASSERT_EQ(outcome.held.size(), 1U);
  EXPECT_NE(outcome.held.front().reason.find("v3 is based on v2"), std::string::npos);
  expect_all();
}

TEST_F(OpenDeletion, WhatTheOpenVersionTookOverWaitsAndIsNamed) {
  const auto first = store("v1", {{"a", noise(300000, 100)}, {"b", noise(300000, 102)}});
  store("v2", {{"a", noise(300000, 101)}});
  open("v3");
  files_["copy"] = noise(300000, 100);
  write_file(*must(repository_->writer(series_)), kRootIno, "copy", files_["copy"]);
  const auto outcome = remove({first});
  EXPECT_GT(outcome.freed_bytes + outcome.dead_bytes, 290000U);
  EXPECT_LT(outcome.freed_bytes + outcome.dead_bytes, 350000U);
  EXPECT_GT(outcome.waiting_bytes, 290000U);
  EXPECT_EQ(outcome.waiting_for, "s/v3");
  expect_all();
  must(repository_->close());
  repository_.reset();
  repository_ = reopen(path_);
  expect_all();
  expect_no_damage();
}

// The writer repeatedly stores the content of the versions that are being deleted.
TEST_F(OpenDeletion, WritingGoesOnMeanwhile) {
  for (std::uint64_t i = 0; i < 12; ++i) {
    store("v" + std::to_string(i), {{"a", noise(100000, i % 3)}, {"b", noise(100000, 100 + i)}});
  }
  open("open");
  std::atomic<bool> done = false;
  std::thread writing([&] {
    const auto writer = must(repository_->writer(series_));
    for (std::uint64_t i = 0; i < 4 || !done; ++i) {
      const auto name = "n" + std::to_string(i % 20);
      auto bytes = noise(100000, i % 3) + noise(100000, 100 + i % 12);
      if (files_.contains(name)) must(writer->unlink(kRootIno, name));
      write_file(*writer, kRootIno, name, bytes);
      files_[name] = std::move(bytes);
    }
  });
  auto numbers = sealed_;
  for (const auto& [number, files] : numbers) {
    if (number != numbers.rbegin()->first) {
      must(repository_->delete_versions(series_, {number}));
      sealed_.erase(number);
    }
  }
  done = true;
  writing.join();
  expect_all();
  expect_all_after_seal();
}

TEST_F(OpenDeletion, ReadersOfADeletedVersionGetAnErrorAndNoOtherBytes) {
  const auto first = store("v1", {{"a", noise(300000, 100)}});
  store("v2", {{"a", noise(300000, 101)}});
  const auto reader = must(repository_->reader(series_, first));
  const auto file = must(reader->open(find(*reader, "a")));
  std::vector<std::byte> some(1000);
  must(file->read(0, some));
  EXPECT_EQ(code_of(repository_->delete_versions(series_, {first})), ErrorCode::kBusy);
  must(file->read(0, some));
  DeletionOptions options;
  options.force = true;
  must(repository_->delete_versions(series_, {first}, options));
  sealed_.erase(first);
  EXPECT_EQ(code_of(file->read(0, some)), ErrorCode::kStale);
  EXPECT_EQ(code_of(reader->open(find(*reader, "a"))), ErrorCode::kStale);
  expect_all();
}

TEST_F(OpenDeletion, ASealThatCutsWritersOffHasWhatTheyWrote) {
  open("v1");
  const auto writer = must(repository_->writer(series_));
  const auto streamed = must(writer->create(kRootIno, "a", regular_file())).ino;
  const auto staged = must(writer->create(kRootIno, "b", regular_file())).ino;
  const auto a = must(writer->open(streamed, true));
  const auto b = must(writer->open(staged, true));
  files_["a"] = noise(200000, 1);
  files_["b"] = noise(200000, 2);
  must(a->write(0, base::as_bytes(files_["a"])));
  must(b->write(100000, base::as_bytes(files_["b"].substr(100000))));
  must(b->write(0, base::as_bytes(files_["b"].substr(0, 100000))));
  EXPECT_EQ(code_of(repository_->seal(series_, *open_, "")), ErrorCode::kBusy);
  must(a->write(200000, base::as_bytes(std::string("end"))));
  files_["a"] += "end";
  must(repository_->seal(series_, *open_, "", SealMode::kEnd, SealWriters::kCutOff));
  EXPECT_FALSE(a->write(0, base::as_bytes(std::string("late"))));
  EXPECT_FALSE(b->write(0, base::as_bytes(std::string("late"))));
  sealed_[*open_] = files_;
  open_.reset();
  expect_all();
  expect_no_damage();
}

}  // namespace
}  // namespace varve::test
