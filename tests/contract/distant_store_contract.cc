// SPDX-License-Identifier: Apache-2.0
// Checks the segment store of an attached folder: it has the files and bytes of a folder that has
// the same files, with each kind of bucket, and writes nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "bucket_subject.h"
#include "io/memory_file_system.h"
#include "remote/distant_data.h"
#include "remote/distant_store.h"
#include "store/folder_store.h"
#include "store/segment_files.h"

namespace varve::remote {
namespace {

using store::StoredFile;
using Bytes = std::vector<std::byte>;

const std::string kRoot = "r";
const std::string kFolder = "r/series/00000001";
constexpr std::size_t kFileBlock = 4096;
constexpr std::size_t kExtentBytes = 700'000;

/// A folder of segments and volumes, the objects that have the same bytes, and the store that reads
/// them.
class Twins {
 public:
  explicit Twins(bucket::Bucket& bucket) : bucket_(bucket) {
    for (const char* path : {"r", "r/series"}) EXPECT_TRUE(local_->make_directory(path));
    folder_ = std::make_unique<store::FolderStore>(*local_, kFolder);
    EXPECT_TRUE(folder_->prepare());
    std::uint64_t seed = 1;
    for (const std::size_t blocks : {1U, 300U, 33U, 700U}) {
      const auto number = static_cast<std::uint32_t>(seed++);
      add(SegmentNumber{number}, blocks);
      add(as_volume(SegmentNumber{number + 10}), blocks + 7);
    }
    EXPECT_TRUE(folder_->cut(as_volume(SegmentNumber{12}), 1'000'001));
    upload();
    restart();
  }

  // Makes the distant store again, as another process with the same cache would.
  void restart() {
    distant_.reset();
    data_.reset();
    data_ = std::make_unique<DistantData>(bucket_, *cache_, "cache", 64U << 20,
                                          [this]() -> Result<ObjectMap> { return map_; });
    files_ = io::make_memory_file_system();
    distant_ = make_distant_store(*files_, *data_, kRoot, kFolder);
  }
  void restart_without_cache() {
    distant_.reset();
    data_.reset();
    cache_ = io::make_memory_file_system();
    restart();
  }

  [[nodiscard]] store::SegmentStore& folder() { return *folder_; }
  [[nodiscard]] store::SegmentStore& distant() { return *distant_; }
  [[nodiscard]] const std::vector<StoredFile>& names() const { return names_; }

  static Bytes read(store::SegmentStore& from, StoredFile file, std::uint64_t offset,
                    std::size_t bytes) {
    const auto opened = from.open(file, store::ReadMode::kCached);
    EXPECT_TRUE(opened);
    if (!opened) return {};
    Bytes out(bytes);
    const auto got = (*opened)->read_at(offset, out);
    EXPECT_TRUE(got) << got.error().message();
    out.resize(got ? *got : 0);
    return out;
  }

 private:
  void add(SegmentNumber number, std::size_t blocks) {
    Bytes bytes(blocks * kFileBlock);
    std::mt19937_64 random(names_.size());
    for (auto& byte : bytes) byte = static_cast<std::byte>(random());
    const std::array<std::span<const std::byte>, 1> parts{bytes};
    EXPECT_TRUE(folder_->put(number, parts));
    names_.emplace_back(number);
  }
  // Divides each file among objects, of which the last one is longer than the file needs.
  void upload() {
    for (const auto& file : names_) {
      const auto size = *folder_->size(file);
      const auto path = std::get<SegmentNumber>(file);
      auto& extents = map_["series/00000001/" + store::segment_path(path)];
      for (std::uint64_t at = 0; at < size; at += kExtentBytes) {
        Bytes bytes = read(*folder_, file, at, std::min<std::uint64_t>(kExtentBytes, size - at));
        Extent extent;
        extent.object = "id/seg/" + std::to_string(objects_++);
        extent.bytes = bytes.size();
        if (at + kExtentBytes >= size) bytes.insert(bytes.end(), 5000, std::byte{0xee});
        extent.object_bytes = bytes.size();
        const std::array<std::span<const std::byte>, 1> parts{bytes};
        EXPECT_TRUE(bucket_.put(extent.object, parts, {}));
        extents.push_back(extent);
      }
    }
  }

  bucket::Bucket& bucket_;
  std::unique_ptr<io::FileSystem> local_ = io::make_memory_file_system();
  std::unique_ptr<io::FileSystem> cache_ = io::make_memory_file_system();
  std::unique_ptr<store::FolderStore> folder_;
  ObjectMap map_;
  std::vector<StoredFile> names_;
  int objects_ = 0;
  std::unique_ptr<DistantData> data_;
  std::unique_ptr<io::FileSystem> files_;
  std::unique_ptr<store::SegmentStore> distant_;
};

class DistantStoreContract : public testing::TestWithParam<test::BucketSubjectMaker> {
 protected:
  void SetUp() override {
    subject_ = GetParam().make();
    bucket_ = subject_->open("p/");
    ASSERT_TRUE(bucket_);
    twins_ = std::make_unique<Twins>(*bucket_);
  }

  std::unique_ptr<test::BucketSubject> subject_;
  std::unique_ptr<bucket::Bucket> bucket_;
  std::unique_ptr<Twins> twins_;
};

TEST_P(DistantStoreContract, HasTheFilesOfTheFolder) {
  for (const auto kind : {store::StoredKind::kSegments, store::StoredKind::kVolumes}) {
    const auto expected = *twins_->folder().list(kind);
    const auto found = twins_->distant().list(kind);
    ASSERT_TRUE(found);
    EXPECT_EQ(std::set<StoredFile>(found->begin(), found->end()),
              std::set<StoredFile>(expected.begin(), expected.end()));
  }
  for (const auto& file : twins_->names()) {
    EXPECT_EQ(*twins_->distant().size(file), *twins_->folder().size(file));
  }
}

TEST_P(DistantStoreContract, ReadsTheBytesOfTheFolder) {
  for (int round = 0; round < 2; ++round) {
    for (const auto& file : twins_->names()) {
      const auto size = *twins_->folder().size(file);
      EXPECT_EQ(Twins::read(twins_->distant(), file, 0, size + 100),
                Twins::read(twins_->folder(), file, 0, size + 100));
      EXPECT_TRUE(Twins::read(twins_->distant(), file, size, 10).empty());
      EXPECT_TRUE(Twins::read(twins_->distant(), file, size + kFileBlock, 10).empty());
    }
    twins_->restart();
  }
}

TEST_P(DistantStoreContract, ReadsRangesInBatches) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 4; ++round) {
    std::vector<Bytes> room;
    std::vector<store::RangeRead> ranges;
    std::vector<Bytes> expected;
    for (int i = 0; i < 40; ++i) {
      const auto file = twins_->names()[random() % twins_->names().size()];
      const auto size = *twins_->folder().size(file);
      const auto offset = random() % (size + kFileBlock);
      room.emplace_back(random() % 900'000);
      expected.push_back(Twins::read(twins_->folder(), file, offset, room.back().size()));
      const auto opened = twins_->distant().open(file, store::ReadMode::kPlanned);
      ASSERT_TRUE(opened);
      if (i % 3 == 0) (*opened)->will_read(offset, room.back().size());
      ranges.push_back({*opened, offset, {}});
    }
    for (std::size_t i = 0; i < room.size(); ++i) ranges[i].out = room[i];
    std::mutex mutex;
    std::condition_variable ended;
    std::vector<int> completions(room.size());
    std::size_t left = room.size();
    twins_->distant().read_many(ranges, [&](std::size_t at, Result<std::size_t> got) {
      const std::lock_guard lock(mutex);
      EXPECT_TRUE(got);
      ++completions[at];
      room[at].resize(got ? *got : 0);
      if (--left == 0) ended.notify_all();
    });
    std::unique_lock lock(mutex);
    ended.wait(lock, [&] { return left == 0; });
    EXPECT_EQ(completions, std::vector<int>(room.size(), 1));
    EXPECT_EQ(room, expected);
    if (round == 1) twins_->restart();
  }
}

TEST_P(DistantStoreContract, MissingFilesAreNotFound) {
  const SegmentNumber missing{77};
  EXPECT_EQ(twins_->distant().open(missing, store::ReadMode::kCached).error().code(),
            ErrorCode::kNotFound);
  EXPECT_EQ(twins_->distant().size(missing).error().code(), ErrorCode::kNotFound);
}

TEST_P(DistantStoreContract, RefusesToChangeAnything) {
  auto& store = twins_->distant();
  const auto file = twins_->names().front();
  const auto number = std::get<SegmentNumber>(file);
  const auto before = bucket_->traffic()[static_cast<std::size_t>(bucket::RequestKind::kPut)];
  EXPECT_EQ(store.prepare().error().code(), ErrorCode::kReadOnly);
  EXPECT_EQ(store.create(number).error().code(), ErrorCode::kReadOnly);
  EXPECT_EQ(store.put(file, {}).error().code(), ErrorCode::kReadOnly);
  EXPECT_EQ(store.correct(file, {}).error().code(), ErrorCode::kReadOnly);
  EXPECT_EQ(store.cut(file, 0).error().code(), ErrorCode::kReadOnly);
  EXPECT_EQ(store.remove(file).error().code(), ErrorCode::kReadOnly);
  EXPECT_EQ(store.write_again(number, 0, {}).error().code(), ErrorCode::kReadOnly);
  const auto after = bucket_->traffic()[static_cast<std::size_t>(bucket::RequestKind::kPut)];
  EXPECT_EQ(after.requests, before.requests);
  EXPECT_TRUE(store.answers_later());
}

INSTANTIATE_TEST_SUITE_P(Buckets, DistantStoreContract, testing::ValuesIn(test::bucket_subjects()),
                         [](const auto& one) { return one.param.name; });

// A store that does not answer one request: the read fails or has the right bytes, and the next
// process has them.
TEST(DistantStoreFaults, NoRequestThatFailsGivesWrongBytes) {
  test::MemoryBucket bucket;
  Twins twins(bucket);
  std::uint64_t failures = 0;
  for (std::uint64_t request = 0;; ++request) {
    twins.restart_without_cache();
    bucket.fail_at(bucket.requests() + request, test::Fault::kBefore);
    const auto end = bucket.requests() + request;
    for (const auto& file : twins.names()) {
      const auto size = *twins.folder().size(file);
      const auto opened = *twins.distant().open(file, store::ReadMode::kCached);
      Bytes out(size);
      const auto got = opened->read_at(0, out);
      if (!got) {
        EXPECT_EQ(got.error().code(), ErrorCode::kUnavailable);
        ++failures;
        continue;
      }
      EXPECT_EQ(out, Twins::read(twins.folder(), file, 0, size));
    }
    if (bucket.requests() <= end) break;
    twins.restart();
    for (const auto& file : twins.names()) {
      const auto size = *twins.folder().size(file);
      EXPECT_EQ(Twins::read(twins.distant(), file, 0, size),
                Twins::read(twins.folder(), file, 0, size));
    }
  }
  EXPECT_GE(failures, twins.names().size());
}

TEST(DistantStoreFaults, AnObjectThatIsGoneOrShortIsAnError) {
  test::MemoryBucket bucket;
  Twins twins(bucket);
  const std::array<std::span<const std::byte>, 0> nothing{};
  ASSERT_TRUE(bucket.put("id/seg/0", nothing, {}));
  ASSERT_TRUE(bucket.remove("id/seg/1"));
  const auto first = *twins.distant().open(twins.names()[0], store::ReadMode::kCached);
  const auto second = *twins.distant().open(twins.names()[1], store::ReadMode::kCached);
  Bytes out(100);
  EXPECT_EQ(first->read_at(0, out).error().code(), ErrorCode::kCorrupt);
  EXPECT_EQ(second->read_at(0, out).error().code(), ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace varve::remote
