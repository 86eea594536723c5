// SPDX-License-Identifier: Apache-2.0
// The requests in sequence of a restore, of random reads, of a check and of an upload. A round trip
// is what costs time far from the store, so these counts must stay small.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "repo/repository_impl.h"
#include "repo/store_repository.h"
#include "support/memory_bucket.h"
#include "support/prefer_memory.h"
#include "support/round_trip_bucket.h"
#include "support/temp_repository.h"
#include "varve/check.h"
#include "varve/restore.h"

namespace varve {
namespace {

using test::must;

constexpr std::size_t kFileBytes = 24U << 20;
constexpr std::size_t kFiles = 2;
constexpr std::size_t kContainerBytes = 4U << 20;
constexpr std::size_t kContainers = kFiles * kFileBytes / kContainerBytes;
constexpr std::size_t kReadBytes = 64U << 10;

class DistantRoundTripsGate : public testing::Test {
 protected:
  DistantRoundTripsGate() {
    hooks_.in_background = false;
    hooks_.open = [this](const remote::BucketConfig&) {
      auto memory = std::make_unique<test::MemoryBucket>(objects_, "p/");
      bucket_ = memory.get();
      return Result<std::unique_ptr<bucket::Bucket>>(
          std::make_unique<test::RoundTripBucket>(std::move(memory), trips_));
    };
  }

  void create() {
    RepositoryParameters parameters;
    parameters.codec = Codec::kNone;
    must(repo::create_in_store(place_, here_, parameters, {}, hooks_));
  }
  void store() {
    const auto repository = must(repo::RepositoryImpl::open(here_, test::quiet_options(), hooks_));
    const auto series = must(repository->create_series("s")).id;
    const auto version = must(repository->open_version(series, "v", test::folder())).number;
    {
      const auto writer = must(repository->writer(series));
      for (std::size_t i = 0; i < kFiles; ++i) {
        content_.push_back(test::noise(kFileBytes, i + 1));
        test::write_file(*writer, kRootIno, "f" + std::to_string(i), content_.back());
      }
    }
    must(repository->seal(series, version, ""));
    begin();
    must(repository->close());
  }
  void attach() {
    create();
    store();
    must(repo::attach_to_store(place_, there_, test::quiet_options(), hooks_));
    begin();
  }
  std::unique_ptr<Repository> open_attached(const std::function<void(Repository&)>& announce = {}) {
    auto options = test::quiet_options();
    options.read_only = true;
    options.announce = announce;
    return must(repo::RepositoryImpl::open(there_, options, hooks_));
  }
  static std::shared_ptr<VersionReader> version_of(Repository& repository) {
    const auto series = must(repository.find_series("s")).id;
    return must(repository.reader(series, must(repository.find_version(series, "v")).number));
  }

  /// Counts from here.
  void begin() {
    trips_before_ = trips_.trips();
    requests_before_ = trips_.requests();
  }
  [[nodiscard]] std::uint64_t trips() const { return trips_.trips() - trips_before_; }
  [[nodiscard]] std::uint64_t requests() const { return trips_.requests() - requests_before_; }

  /// Reads a file of the version at random places, and compares.
  void read_at_random(VersionReader& version, int count, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    for (int i = 0; i < count; ++i) {
      const auto which = random() % kFiles;
      read(version, which, random() % (kFileBytes - kReadBytes));
    }
  }
  /// Reads a part of a file, and compares.
  void read(VersionReader& version, std::size_t which, std::size_t offset) {
    std::string out(kReadBytes, '\0');
    const auto rank = must(version.lookup(0, "f" + std::to_string(which))).rank;
    const auto file = must(version.open(rank));
    ASSERT_EQ(must(file->read(offset, std::as_writable_bytes(std::span(out)))), kReadBytes);
    ASSERT_EQ(content_[which].compare(offset, kReadBytes, out), 0) << offset;
  }

  /// Returns the bytes in the cache of the attached folder.
  [[nodiscard]] std::uint64_t cached_bytes() const {
    std::uint64_t bytes = 0;
    const auto cache = there_ + "/cache";
    if (!std::filesystem::exists(cache)) return 0;
    for (const auto& entry : std::filesystem::directory_iterator(cache)) bytes += entry.file_size();
    return bytes;
  }

  const StorePlace place_{.place = "s3://memory/p"};
  test::PreferMemory in_memory_;
  test::TempDirectory temp_;
  const std::string here_ = temp_.path() + "/here";
  const std::string there_ = temp_.path() + "/there";
  std::shared_ptr<test::MemoryObjects> objects_ = std::make_shared<test::MemoryObjects>();
  test::RoundTrips trips_;
  const test::MemoryBucket* bucket_ = nullptr;  // Of the open repository.
  std::uint64_t trips_before_ = 0;
  std::uint64_t requests_before_ = 0;
  std::vector<std::string> content_;
  remote::BucketHooks hooks_;
};

std::string read_all(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream out;
  out << file.rdbuf();
  return out.str();
}

TEST_F(DistantRoundTripsGate, ARestoreAsksForItsFirstDataAtOnce) {
  attach();
  const auto repository = open_attached();
  EXPECT_EQ(trips(), 1U) << "to learn that no newer head exists";
  const auto version = version_of(*repository);
  const auto out = temp_.path() + "/out";
  must(restore_version(*version, out, {}, {}));
  for (std::size_t i = 0; i < kFiles; ++i) {
    EXPECT_EQ(read_all(out + "/f" + std::to_string(i)), content_[i]);
  }
  EXPECT_LE(trips(), 4U) << "all containers fit the first window";
  EXPECT_LE(requests(), kContainers + 8);
}

TEST_F(DistantRoundTripsGate, AnAnnouncedRestoreReadsBesideTheLookAtTheNewestHead) {
  attach();
  const auto repository = open_attached([](Repository& present) {
    present.will_read_once();
    version_of(present)->will_read_all();
  });
  EXPECT_EQ(trips(), 1U);
  EXPECT_GE(requests(), 2U) << "the list, and data";
  const auto out = temp_.path() + "/out";
  must(restore_version(*version_of(*repository), out, {}, {}));
  for (std::size_t i = 0; i < kFiles; ++i) {
    EXPECT_EQ(read_all(out + "/f" + std::to_string(i)), content_[i]);
  }
  EXPECT_LE(trips(), 2U);
  EXPECT_LE(requests(), kContainers + 8);
}

TEST_F(DistantRoundTripsGate, ARestoreWritesLittleButItsTarget) {
  attach();
  auto repository = open_attached();
  repository->will_read_once();
  must(restore_version(*version_of(*repository), temp_.path() + "/out", {}, {}));
  for (std::size_t i = 0; i < kFiles; ++i) {
    EXPECT_EQ(read_all(temp_.path() + "/out/f" + std::to_string(i)), content_[i]);
  }
  EXPECT_LE(requests(), kContainers + 8) << "what was dropped was requested again";
  must(repository->close());
  repository.reset();  // Its cache is written.
  EXPECT_LE(cached_bytes(), kFiles * kFileBytes / 8);
}

TEST_F(DistantRoundTripsGate, AMountKeepsWhatItRead) {
  attach();
  auto repository = open_attached();
  must(restore_version(*version_of(*repository), temp_.path() + "/out", {}, {}));
  must(repository->close());
  repository.reset();  // Its cache is written.
  EXPECT_GE(cached_bytes(), kFiles * kFileBytes);
}

TEST_F(DistantRoundTripsGate, ARandomReadTakesOneRoundTrip) {
  attach();
  const auto repository = open_attached();
  const auto version = version_of(*repository);
  begin();
  for (std::size_t at = kContainerBytes / 2; at < kFileBytes; at += kContainerBytes) {
    for (std::size_t file = 0; file < kFiles; ++file) read(*version, file, at);
  }
  EXPECT_LE(trips(), kContainers + 3U) << "the header and the data are requested together";
  EXPECT_LE(requests(), 2U * kContainers + 3);
}

TEST_F(DistantRoundTripsGate, ManyRandomReadsTakeFewRoundTripsForEachContainer) {
  attach();
  const auto repository = open_attached();
  const auto version = version_of(*repository);
  begin();
  read_at_random(*version, 300, 2);
  EXPECT_LE(trips(), 4U * kContainers);
  EXPECT_LE(requests(), 7U * kContainers);
}

TEST_F(DistantRoundTripsGate, ACheckOfTheDataReadsAhead) {
  attach();
  const auto repository = open_attached();
  begin();
  CheckOptions options;
  options.read_data = true;
  const auto report = must(repository->check(options, {}));
  EXPECT_TRUE(report.damages.empty());
  EXPECT_LE(trips(), 4U);
}

// A request for the padding behind the data would bring a container again.
TEST_F(DistantRoundTripsGate, ACheckRequestsEachByteOnce) {
  attach();
  for (const bool verifies_chunks : {false, true}) {
    std::filesystem::remove_all(there_ + "/cache");
    const auto repository = open_attached();
    repository->will_read_once();
    const auto received = [this] {
      return bucket_->traffic()[static_cast<std::size_t>(bucket::RequestKind::kGet)].bytes_received;
    };
    const auto before = received();
    CheckOptions options;
    options.verify_chunks = verifies_chunks;
    EXPECT_TRUE(must(repository->check(options, {})).damages.empty());
    EXPECT_GE(received() - before, kFiles * kFileBytes);
    EXPECT_LE(received() - before, kFiles * kFileBytes / 100 * 102);
  }
}

TEST_F(DistantRoundTripsGate, AnUploadTakesFewRoundTrips) {
  create();
  store();
  EXPECT_LE(trips(), 9U);
}

}  // namespace
}  // namespace varve
