// SPDX-License-Identifier: Apache-2.0
// The cost of the index follows the change: a seal writes the entries of new chunks, an opening
// reads little, and after a deletion it reads only the headers of containers whose chunks entered
// the window.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>

#include "support/temp_repository.h"
#include "varve/retention.h"

namespace varve {
namespace {

using test::must;

constexpr std::size_t kSharedBytes = 48U << 20;  // 12 containers.
constexpr std::size_t kOwnBytes = 64U << 10;     // Chunks that only one version has.
constexpr int kSeals = 6;
constexpr std::uint64_t kSealBytesMax = 64U << 10;
constexpr std::uint64_t kOpenBytesMax = 64U << 10;
constexpr std::uint64_t kHeadersBytesMax = 3 * 64U << 10;

// Returns the bytes that this process has read so far, from files and the page cache.
std::uint64_t bytes_read() {
  std::ifstream file("/proc/self/io");
  std::string key;
  std::uint64_t value = 0;
  file >> key >> value;
  EXPECT_EQ(key, "rchar:");
  return value;
}

class IndexWindowGate : public testing::Test {
 protected:
  void SetUp() override {
    must(Repository::create(path_, test::small_chunks(Codec::kNone)));
    repository_ = test::reopen(path_);
    series_ = must(repository_->create_series("s")).id;
    for (int i = 1; i <= 5; ++i) back_up(i);
  }

  VersionNumber open(const std::string& name) {
    return must(repository_->open_version(series_, name, test::folder())).number;
  }

  void back_up(int i) {
    const auto number = open("v" + std::to_string(i));
    const auto writer = must(repository_->writer(series_));
    test::write_file(*writer, kRootIno, "shared", shared_);
    test::write_file(*writer, kRootIno, "own",
                     test::noise(kOwnBytes, 100U + static_cast<unsigned>(i)));
    must(repository_->seal(series_, number, ""));
    numbers_[i] = number;
  }

  // Returns the bytes read while a process makes an open version ready.
  std::uint64_t bytes_to_open(const std::string& name) {
    repository_.reset();
    repository_ = test::reopen(path_);
    const std::uint64_t before = bytes_read();
    open(name);
    static_cast<void>(must(repository_->writer(series_)));
    return bytes_read() - before;
  }

  // Returns the bytes that a version takes whose files were all stored before.
  std::uint64_t bytes_stored_again(int first_own, int last_own) {
    const auto before = must(repository_->stats()).unique_bytes;
    const auto writer = must(repository_->writer(series_));
    test::write_file(*writer, kRootIno, "shared", shared_);
    for (int i = first_own; i <= last_own; ++i) {
      test::write_file(*writer, kRootIno, "own" + std::to_string(i),
                       test::noise(kOwnBytes, 100U + static_cast<unsigned>(i)));
    }
    must(repository_->sync());
    return must(repository_->stats()).unique_bytes - before;
  }

  // Returns the sizes of the files of the index, by inode number.
  std::map<ino_t, std::uint64_t> index_files() const {
    std::map<ino_t, std::uint64_t> sizes;
    for (const auto& at : std::filesystem::recursive_directory_iterator(path_)) {
      if (!at.path().filename().string().starts_with("index-")) continue;
      struct stat status {};
      EXPECT_EQ(::stat(at.path().c_str(), &status), 0);
      sizes[status.st_ino] = static_cast<std::uint64_t>(status.st_size);
    }
    return sizes;
  }

  const test::TempDirectory directory_;
  const std::string path_ = directory_.path() + "/repo";
  const std::string shared_ = test::noise(kSharedBytes, 7);
  std::unique_ptr<Repository> repository_;
  SeriesId series_{};
  VersionNumber numbers_[6]{};
};

TEST_F(IndexWindowGate, DeletingInsideTheWindowReadsOnlyWhatEntersIt) {
  must(repository_->delete_versions(series_, {numbers_[3]}, {}));
  EXPECT_LE(bytes_to_open("v6"), kHeadersBytesMax);
  EXPECT_LE(bytes_stored_again(1, 2), 0U);
}

TEST_F(IndexWindowGate, DeletingTheNewestVersionKeepsTheIndex) {
  must(repository_->delete_versions(series_, {numbers_[5]}, {}));
  EXPECT_LE(bytes_to_open("v6"), kHeadersBytesMax);
  EXPECT_LE(bytes_stored_again(1, 4), 0U);
}

TEST_F(IndexWindowGate, OpeningReadsLittleOfTheIndex) {
  EXPECT_LE(bytes_to_open("v6"), kOpenBytesMax);
}

TEST_F(IndexWindowGate, SealWritesAsMuchIndexAsChanged) {
  std::uint64_t written = 0;
  for (int i = 6; i < 6 + kSeals; ++i) {
    const auto before = index_files();
    const auto number = open("v" + std::to_string(i));
    const auto writer = must(repository_->writer(series_));
    test::write_file(*writer, kRootIno, "shared", shared_);
    test::write_file(*writer, kRootIno, "own",
                     test::noise(kOwnBytes, 100U + static_cast<unsigned>(i)));
    must(repository_->seal(series_, number, ""));
    for (const auto& [inode, bytes] : index_files()) {
      if (!before.contains(inode)) written += bytes;
    }
  }
  EXPECT_LE(written / kSeals, kSealBytesMax);
}

}  // namespace
}  // namespace varve
