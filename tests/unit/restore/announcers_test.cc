// SPDX-License-Identifier: Apache-2.0
// Tests the announcements of data that will be needed.
#include <gtest/gtest.h>

#include "restore/header_announcer.h"
#include "restore/read_announcer.h"
#include "support/fake_source.h"

namespace varve::restore {
namespace {

using Announcements = std::vector<std::uint32_t>;

ChunkId chunk_id(std::uint32_t version, std::uint32_t ordinal) {
  return ChunkId::make(VersionNumber{version}, ordinal);
}

TEST(ReadAnnouncer, TellsEachContainerOnceAndAsFarAsAsked) {
  constexpr std::uint32_t kChunks = 400;
  FakeSource source(Codec::kNone, 1U << 20);
  const Bytes chunk(10000, std::byte{1});
  LookAheadWindow window(1024);
  for (std::uint32_t i = 0; i < kChunks; ++i) {
    source.place(chunk_id(1, i), chunk);
    window.push(chunk_id(1, i));
  }
  source.end_container();
  const auto in_first =
      static_cast<std::uint32_t>((*source.header(ContainerNumber{0}))->chunks.size());
  ASSERT_GT(source.containers(), 3U);
  ReadAnnouncer announcer(&source, nullptr);
  announcer.announce(window, 10, in_first + 1);
  EXPECT_EQ(source.announced, (Announcements{0, 1}));
  announcer.announce(window, 20, in_first);
  EXPECT_EQ(source.announced.size(), 2U);
  announcer.announce(window, 20, 1000);
  EXPECT_EQ(source.announced.size(), source.containers());
  announcer.announce(window, kChunks, 1000);
  EXPECT_EQ(source.announced.size(), source.containers());
}

TEST(ReadAnnouncer, ContainersThatTakeTurnsAreToldOnce) {
  constexpr std::uint32_t kChunks = 10;
  FakeSource source;
  for (std::uint32_t i = 0; i < kChunks; ++i) source.place(chunk_id(1, i), Bytes(100));
  source.end_container();
  source.place(chunk_id(2, 0), Bytes(100));
  source.place(chunk_id(2, 1), Bytes(100));
  source.end_container();
  LookAheadWindow window(16);
  for (std::uint32_t i = 2; i < kChunks; ++i) {
    const bool is_changed = i == 4 || i == 7;
    window.push(is_changed ? chunk_id(2, i == 4 ? 0 : 1) : chunk_id(1, i));
  }
  ReadAnnouncer announcer(&source, nullptr);
  announcer.announce(window, 0, 1000);
  EXPECT_EQ(source.announced, (Announcements{0, 1}));
}

TEST(ReadAnnouncer, StopsAtAChunkThatIsNotStored) {
  FakeSource source;
  LookAheadWindow window(16);
  source.place(chunk_id(1, 0), Bytes(100, std::byte{1}));
  source.end_container();
  for (const std::uint32_t i : {0U, 7U, 0U}) window.push(chunk_id(1, i));
  ReadAnnouncer announcer(&source, nullptr);
  announcer.announce(window, 0, 1000);
  EXPECT_EQ(source.announced.size(), 1U);
}

TEST(ReadAnnouncer, WorkersDoWhatWasAskedForBeforeTheyEnd) {
  FakeSource source;
  LookAheadWindow window(16);
  source.place(chunk_id(1, 0), Bytes(100, std::byte{1}));
  source.end_container();
  window.push(chunk_id(1, 0));
  {
    base::ThreadPool workers(1, "test");
    ReadAnnouncer announcer(&source, &workers);
    announcer.announce(window, 0, 1000);
  }
  EXPECT_EQ(source.announced, (Announcements{0}));
}

class HeaderAnnouncerTest : public testing::Test {
 protected:
  // The recipe has one chunk per container.
  HeaderAnnouncerTest() : recipe_(std::make_shared<format::Recipe>()) {
    for (std::uint32_t i = 0; i < kContainers; ++i) {
      source_.place(chunk_id(1, i), Bytes(100, std::byte{1}));
      source_.end_container();
      recipe_->append_chunk(chunk_id(1, i), 100);
      recipe_->append_hole(5);
    }
  }

  /// Returns the number of containers announced after this many reads.
  std::size_t announced_after(std::uint32_t reads) {
    ReadableFile file;
    file.content.recipe = recipe_;
    file.source = &source_;
    const auto announcer = std::make_shared<HeaderAnnouncer>(file);
    for (std::uint32_t i = 0; i < reads; ++i) {
      // The destructor waits for the queued tasks.
      base::ThreadPool workers(1, "test");
      announcer->on_read(workers);
    }
    return source_.announced.size();
  }

  static constexpr std::uint32_t kContainers = HeaderAnnouncer::kHeadersPerRead * 2 + 3;
  FakeSource source_;
  std::shared_ptr<format::Recipe> recipe_;
};

TEST_F(HeaderAnnouncerTest, FewReadsAnnounceNothing) {
  EXPECT_EQ(announced_after(HeaderAnnouncer::kReadsMin), 0U);
}

TEST_F(HeaderAnnouncerTest, EachFurtherReadAnnouncesSomeHeaders) {
  EXPECT_EQ(announced_after(HeaderAnnouncer::kReadsMin + 1), HeaderAnnouncer::kHeadersPerRead);
}

TEST_F(HeaderAnnouncerTest, EveryHeaderIsAnnouncedOnceInTheOrderOfTheFile) {
  EXPECT_EQ(announced_after(HeaderAnnouncer::kReadsMin + 20), kContainers);
  for (std::uint32_t i = 0; i < kContainers; ++i) {
    EXPECT_EQ(source_.announced[i], i);
  }
}

TEST_F(HeaderAnnouncerTest, AContainerThatTheFileComesBackToIsAnnouncedOnce) {
  recipe_ = std::make_shared<format::Recipe>();
  for (const std::uint32_t i : {5U, 3U, 5U, 3U, 5U, 4U}) {
    recipe_->append_chunk(chunk_id(1, i), 100);
    recipe_->append_hole(1);
  }
  EXPECT_EQ(announced_after(HeaderAnnouncer::kReadsMin + 20), 3U);
}

TEST_F(HeaderAnnouncerTest, AChunkThatIsNotStoredEndsIt) {
  recipe_ = std::make_shared<format::Recipe>();
  recipe_->append_chunk(chunk_id(1, 0), 100);
  recipe_->append_chunk(chunk_id(9, 9), 100);
  recipe_->append_chunk(chunk_id(1, 1), 100);
  EXPECT_EQ(announced_after(HeaderAnnouncer::kReadsMin + 20), 1U);
}

class RandomReadTest : public testing::Test {
 protected:
  /// Reads a file that has one chunk from each container, in the order of `containers`.
  void read_file(const std::vector<std::uint32_t>& containers) {
    std::vector<ChunkId> chunks;
    for (std::size_t i = 0; i < containers.size(); ++i) {
      chunks.push_back(world_.new_chunk(9000));
      world_.finish();
    }
    World::File& file = world_.add_file();
    for (const std::uint32_t container : containers) world_.append(file, chunks[container]);
    world_.source.recorded = &reads_;
    world_.source.before_read = [this](std::uint32_t) {
      announced_before_.push_back(world_.source.announced_data.size());
    };
    handle_ = open_file(*service_, world_, 0);
    read_again();
  }
  void read_again() {
    const Bytes& content = world_.files[0].content;
    Bytes got(content.size() - 200);  // Only parts of the first and the last chunk.
    ASSERT_EQ(*handle_->read(100, got), got.size());
    EXPECT_TRUE(std::equal(got.begin(), got.end(), content.begin() + 100));
  }
  using Reads = std::vector<FakeSource::Read>;
  [[nodiscard]] Reads reads_behind_first() const { return {reads_.begin() + 1, reads_.end()}; }

  World world_{40};
  const std::unique_ptr<ReadService> service_ = make_service();
  std::unique_ptr<ReadHandle> handle_;
  Reads reads_;
  std::vector<std::size_t> announced_before_;  // For each read, the containers announced before it.
};

TEST_F(RandomReadTest, TellsOfAllContainersButTheFirstBeforeItReads) {
  read_file({0, 1, 2});  // One run.
  ASSERT_EQ(reads_.size(), 3U);
  EXPECT_EQ(world_.source.announced_data, reads_behind_first());
  EXPECT_EQ(announced_before_.front(), 2U);
}

TEST_F(RandomReadTest, TellsOfAllRunsButTheFirst) {
  read_file({2, 0, 3, 1});
  ASSERT_EQ(reads_.size(), 4U);
  EXPECT_EQ(world_.source.announced_data, reads_behind_first());
  EXPECT_EQ(announced_before_.front(), 3U);
}

TEST_F(RandomReadTest, DoesNotTellOfWhatItHas) {
  read_file({1, 0});
  ASSERT_EQ(world_.source.announced_data.size(), 1U);
  read_again();
  EXPECT_EQ(reads_.size(), 2U);
  EXPECT_EQ(world_.source.announced_data.size(), 1U);
}

TEST_F(RandomReadTest, OneContainerIsNotTold) {
  read_file({0});
  EXPECT_EQ(reads_.size(), 1U);
  EXPECT_TRUE(world_.source.announced_data.empty());
}

}  // namespace
}  // namespace varve::restore
