// SPDX-License-Identifier: Apache-2.0
// A store of sealed containers, damaged in many ways, as the functions see it that repair and check
// containers, with the keys and without.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/coding.h"
#include "format/data_codecs.h"
#include "format/superblock.h"
#include "io/memory_file_system.h"
#include "maintain/container_scan.h"
#include "maintain/container_verifier.h"
#include "maintain/header_fixer.h"
#include "maintain/outer_checker.h"
#include "store/container_rewrite.h"
#include "store/container_writer.h"
#include "store/folder_store.h"
#include "support/faulty_file_system.h"
#include "support/test_keys.h"

namespace varve::maintain {
namespace {

using test::must;

constexpr StoreId kStore{1};
const std::string kRepository = "/r";
const std::string kStoreFolder = "/r/series/00000001";

RepositoryParameters parameters() {
  RepositoryParameters all;
  all.codec = Codec::kNone;
  return all;
}

class SealedStore : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    for (const auto* folder : {"", "/series", "/series/00000001", "/series/00000001/active",
                               "/series/00000001/volumes"}) {
      must(files_->make_directory(kRepository + folder));
    }
    format::Superblock superblock;
    superblock.repository_id = test::kTestRepositoryId;
    put("/r/varve.repo", format::encode_superblock(superblock));
    store_.emplace(*files_, kStoreFolder);
    store::ContainerWriterOptions options;
    options.store = kStore;
    options.numbers = &numbers_;
    options.volume = GetParam();
    options.segment_bytes_max = 64ULL << 20;
    store::ContainerWriter writer(
        *store_, codecs_.frames(), pool_, options,
        [this](store::WrittenContainer one) { records_.push_back(one.record); });
    std::mt19937_64 random(1);
    std::vector<std::byte> raw(9000);
    for (std::uint32_t i = 0; i < 180; ++i) {
      for (auto& b : raw) b = static_cast<std::byte>(random());
      must(writer.append(ChunkId::make(VersionNumber{1}, i),
                         codecs_.fingerprinter().fingerprint(raw), raw));
      if (i % 30 == 29) must(writer.flush());
    }
    must(writer.sync());
    path_ = kStoreFolder + "/" + store::segment_path(records_[0].segment);
    image_ = must(files_->read_file(path_, 64U << 20));
    ASSERT_EQ(records_.size(), 6U);
    ASSERT_EQ(image_.size(), records_.back().end());
    for (const auto& record : records_) ASSERT_TRUE(record.sealed);
  }

  void put(const std::string& path, const std::string& bytes) {
    const auto file = must(files_->open(path, io::OpenMode::kReadWrite));
    must(file->truncate(0));
    must(file->write_at(0, base::as_bytes(bytes)));
  }
  // Writes the file with this byte changed, and returns what it was.
  void flip(std::uint64_t offset) {
    auto bytes = image_;
    bytes[offset] = static_cast<char>(bytes[offset] ^ 0x10);
    put(path_, bytes);
  }
  const format::ContainerKeys* keys() const { return codecs_.frames().keys(); }
  ContainerScan scan(const format::ContainerKeys* keys) {
    return must(scan_containers(*store_, keys, kStore, FoundBySearch::kTake, {}));
  }
  ContainerVerdict verify(const format::ContainerRecord& record) {
    store::SegmentReader reader(*store_, keys());
    return verify_container(codecs_, reader, kStore, record, VerifyLevel::kChunks);
  }
  std::vector<Damage> outer() {
    const auto report = must(OuterChecker(*files_, {}, kRepository, {}, {}).run());
    EXPECT_TRUE(report.finished);
    return report.damages;
  }
  // Offsets inside a container, one for each of its parts.
  static std::vector<std::uint64_t> places_in(const format::ContainerRecord& record) {
    const std::uint64_t data = record.offset + record.header_bytes;
    return {record.offset,
            record.offset + 20,
            record.offset + 30,
            record.offset + 60,
            record.offset + 95,
            record.offset + 112,
            record.offset + 127,
            record.offset + 128,
            record.offset + 1000,
            data - 1,
            data,
            data + record.data_bytes - 1,
            record.end() - 1};
  }

  const std::unique_ptr<test::FaultyFileSystem> files_ =
      std::make_unique<test::FaultyFileSystem>(io::make_memory_file_system());
  base::ThreadPool pool_{1, "test"};
  store::NumberSource numbers_;
  const format::DataCodecs codecs_{parameters(), test::test_keys()};
  std::optional<store::FolderStore> store_;
  std::vector<format::ContainerRecord> records_;
  std::string path_;
  std::string image_;
};

TEST_P(SealedStore, ScanFindsTheContainersWithTheirKeysOnly) {
  const auto found = scan(keys());
  EXPECT_TRUE(found.unread.empty());
  ASSERT_EQ(found.containers.size(), records_.size());
  for (std::size_t i = 0; i < records_.size(); ++i) {
    auto record = found.containers[i].record;
    record.live_bytes = records_[i].live_bytes;
    EXPECT_EQ(record.encode(), records_[i].encode());
  }
  const format::ContainerKeys others(test::test_keys(8));
  const format::ContainerKeys other_repository(test::test_keys(7, std::string(32, 'e')));
  for (const auto* wrong : {&others, &other_repository}) {
    EXPECT_TRUE(scan(wrong).containers.empty());
    EXPECT_EQ(scan(wrong).unread.size(), records_.size()) << "the lengths need no key";
  }
  EXPECT_TRUE(scan(nullptr).containers.empty());
}

TEST_P(SealedStore, ScanGoesOnBehindADamagedHeader) {
  for (const std::uint64_t offset : {20, 60, 112, 127}) {
    flip(records_[2].offset + offset);
    EXPECT_EQ(scan(keys()).containers.size(), records_.size()) << "one byte is corrected";
  }
  flip(records_[2].offset + 300);
  const auto found = scan(keys());
  EXPECT_EQ(found.containers.size(), records_.size() - 1);
  ASSERT_EQ(found.unread.size(), 1U);
  EXPECT_EQ(found.unread[0].offset, records_[2].offset);
  EXPECT_EQ(found.unread[0].bytes, records_[2].end() - records_[2].offset);
  EXPECT_TRUE(found.searched.empty());
  // A worse damage is found by a search.
  auto bytes = image_;
  bytes.replace(records_[2].offset + 10, 80, 80, 'x');
  put(path_, bytes);
  EXPECT_EQ(scan(keys()).containers.size(), records_.size() - 1);
  EXPECT_EQ(scan(keys()).searched.size(), 1U);
}

TEST_P(SealedStore, HeaderFixFindsTheWrongByte) {
  const auto& record = records_[1];
  const auto end = record.header_bytes;
  for (const std::uint64_t at : {0U, 12U, 20U, 33U, 57U, 99U, 115U, 125U, 128U, 700U, end - 1}) {
    flip(record.offset + at);
    const auto fix = must(find_header_fix(*store_, keys(), kStore, record));
    ASSERT_TRUE(fix) << at;
    EXPECT_EQ(fix->offset, record.offset + at);
    EXPECT_EQ(static_cast<char>(fix->value), image_[record.offset + at]);
  }
  put(path_, image_);
  EXPECT_FALSE(must(find_header_fix(*store_, keys(), kStore, record)));
}

TEST_P(SealedStore, EveryPartOfAContainerIsVerified) {
  for (const auto& record : records_) EXPECT_TRUE(verify(record).faults.empty());
  for (const auto offset : places_in(records_[3])) {
    flip(offset);
    const auto verdict = verify(records_[3]);
    EXPECT_TRUE(!verdict.header || verdict.faults.size() == 1) << offset - records_[3].offset;
    EXPECT_TRUE(verify(records_[2]).faults.empty());
  }
}

// Nothing compares the checksum of the whole container, so each byte must be part of something
// else.
TEST_P(SealedStore, EachByteOfTheLastContainerIsVerified) {
  const auto& record = records_[5];
  const std::uint64_t data_end = record.offset + record.header_bytes + record.data_bytes;
  ASSERT_GT(record.end(), data_end + 100);
  const auto is_told = [&](std::uint64_t at) {
    flip(at);
    const auto verdict = verify(record);
    return !verdict.header || verdict.faults.size() == 1;
  };
  for (std::uint64_t at = record.offset; at < record.offset + record.header_bytes; ++at) {
    ASSERT_TRUE(is_told(at)) << at - record.offset;
  }
  for (std::uint64_t at = data_end; at < record.end(); ++at) {
    ASSERT_TRUE(is_told(at)) << at - data_end << " in the padding";
  }
  for (std::uint64_t at = record.offset + record.header_bytes; at < data_end; at += 509) {
    ASSERT_TRUE(is_told(at)) << at - record.offset;
  }
}

TEST_P(SealedStore, ACheckReadsEachByteOnce) {
  for (const auto& record : records_) {
    const auto before = files_->faults.bytes_read.load();
    EXPECT_TRUE(verify(record).faults.empty());
    // Containers of a volume begin inside blocks.
    EXPECT_LE(files_->faults.bytes_read - before,
              record.end() - record.offset + (GetParam() ? 2 * 4096 : 0));
  }
}

TEST_P(SealedStore, PaddingOfAnotherContainerAndACutAreTold) {
  const auto& one = records_[1];
  const auto& other = records_[4];
  const auto padding = one.total_bytes - one.header_bytes - one.data_bytes;
  ASSERT_EQ(padding, other.total_bytes - other.header_bytes - other.data_bytes);
  auto bytes = image_;
  bytes.replace(one.end() - padding, padding, image_, other.end() - padding, padding);
  put(path_, bytes);
  auto verdict = verify(one);
  ASSERT_TRUE(verdict.header);
  ASSERT_EQ(verdict.faults.size(), 1U);
  EXPECT_EQ(verdict.faults[0].what, "the padding is damaged");
  EXPECT_TRUE(verdict.faults[0].chunks.empty());
  put(path_, image_.substr(0, records_[5].end() - 1));
  verdict = verify(records_[5]);
  ASSERT_TRUE(verdict.header);
  ASSERT_EQ(verdict.faults.size(), 1U) << "the frames are whole";
  EXPECT_NE(verdict.faults[0].what.find("ends inside the padding"), std::string::npos);
}

TEST_P(SealedStore, PaddingFollowsFromTheHeader) {
  for (const auto& record : records_) {
    const auto verdict = verify(record);
    ASSERT_TRUE(verdict.header);
    const auto padding = must(codecs_.frames().padding_of(*verdict.header));
    const auto begin = record.offset + record.header_bytes + record.data_bytes;
    ASSERT_EQ(begin + padding.size(), record.end());
    EXPECT_TRUE(std::ranges::equal(padding, base::as_bytes(image_).subspan(begin, padding.size())));
  }
}

TEST_P(SealedStore, SwappedContainersAreRefused) {
  const auto& one = records_[1];
  const auto& other = records_[4];
  const auto length = one.end() - one.offset;
  ASSERT_EQ(length, other.end() - other.offset);
  auto bytes = image_;
  std::swap_ranges(bytes.begin() + static_cast<std::ptrdiff_t>(one.offset),
                   bytes.begin() + static_cast<std::ptrdiff_t>(one.end()),
                   bytes.begin() + static_cast<std::ptrdiff_t>(other.offset));
  put(path_, bytes);
  for (const auto& record : {one, other}) {
    const auto verdict = verify(record);
    ASSERT_FALSE(verdict.header);
    EXPECT_EQ(verdict.error->code(), ErrorCode::kCorrupt);
  }
  EXPECT_TRUE(outer().empty()) << "each is sound by itself";
}

TEST_P(SealedStore, RewritingAfterAFailedSyncWritesTheSameBytes) {
  must(store::rewrite_containers(*store_, codecs_.frames(), records_[0].segment, image_.size()));
  EXPECT_EQ(must(files_->read_file(path_, 64U << 20)), image_);
  flip(records_[5].offset + records_[5].header_bytes);
  const auto done =
      store::rewrite_containers(*store_, codecs_.frames(), records_[0].segment, image_.size());
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), ErrorCode::kCorrupt);
}

TEST_P(SealedStore, OuterCheckFindsDamageWithoutKeys) {
  EXPECT_TRUE(outer().empty());
  for (const auto offset : places_in(records_[3])) {
    flip(offset);
    const auto damages = outer();
    ASSERT_EQ(damages.size(), 1U) << offset - records_[3].offset;
    EXPECT_EQ(damages[0].where, path_);
    EXPECT_NE(damages[0].what.find("offset " + std::to_string(records_[3].offset)),
              std::string::npos)
        << damages[0].what;
  }
  put(path_, image_.substr(0, records_[4].offset + 5000));
  EXPECT_EQ(outer().size(), 1U) << "cut inside a container";
  put(path_, image_ + std::string(4096, '\0'));
  EXPECT_EQ(outer().size(), 1U) << "bytes behind the containers";
  put(path_, image_.substr(0, records_[4].offset));
  EXPECT_TRUE(outer().empty()) << "cut between containers, as by a deletion";
  put("/r/varve.repo", "x");
  EXPECT_EQ(outer().size(), 1U);
  must(files_->remove("/r/varve.repo"));
  EXPECT_EQ(OuterChecker(*files_, {}, kRepository, {}, {}).run().error().code(),
            ErrorCode::kNoRepository);
}

INSTANTIATE_TEST_SUITE_P(Files, SealedStore, testing::Bool(),
                         [](const auto& volume) { return volume.param ? "Volume" : "Segment"; });

}  // namespace
}  // namespace varve::maintain
