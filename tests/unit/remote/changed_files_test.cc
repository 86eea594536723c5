// SPDX-License-Identifier: Apache-2.0
// Segments and volumes that were written again here: a note keeps them on the disk, and the next
// head has them as they are now, also after a crash between the note and the head.
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <memory>
#include <set>
#include <string>

#include "io/posix_file_system.h"
#include "remote/distant_data.h"
#include "remote/local_data.h"
#include "remote/local_notes.h"
#include "remote/replica_state.h"
#include "stepped_history.h"
#include "stored_catalog.h"
#include "world.h"

namespace varve::test {
namespace {

using remote::LocalNote;
using remote::LocalNotes;

std::set<std::string> changed_files(const std::string& folder) {
  const auto files = io::make_posix_file_system();
  return must(LocalNotes::load(*files, folder))->paths(LocalNote::kChanged);
}

void note_change(const std::string& folder, const std::string& path) {
  const auto files = io::make_posix_file_system();
  must(must(LocalNotes::load(*files, folder))->add(LocalNote::kChanged, path));
}

// Returns a segment or volume of the newest head, and its first object.
std::pair<std::string, std::string> a_data_file(World& world) {
  const auto records = records_of_head(world, newest_head(world));
  for (auto at = records.lower_bound({remote::kObjectsTable, ""}); at != records.end(); ++at) {
    const auto record = must(remote::decode_extent(at->first.second, at->second));
    if (record.extent.mark == 0 && record.offset == 0) return {record.path, record.extent.object};
  }
  throw std::runtime_error("the head has no data");
}

std::string object_of(World& world, const std::string& path) {
  const auto records = records_of_head(world, newest_head(world));
  const auto found = records.find({remote::kObjectsTable, remote::extent_key(path, 0)});
  if (found == records.end()) throw std::runtime_error("the head lacks " + path);
  return must(remote::decode_extent(found->first.second, found->second)).extent.object;
}

// Changes a byte of an object, as if the folder had been repaired since its upload.
void damage(World& world, const std::string& object) {
  world.objects().objects.at("p/" + object).bytes.at(5000) ^= std::byte{1};
}

void store_two(World& world) {
  world.run([&] { return world.create(); });
  auto tree = tree_of(10);
  world.store("v1", tree);
  for (auto& [name, content] : tree_of(11)) tree["more-" + name] = content;
  world.store("v2", tree);  // Without lost chunks, no file is moved.
}

// The parameter says whether the repository is encrypted.
class ChangedFiles : public testing::TestWithParam<bool> {};

TEST_P(ChangedFiles, AreUploadedAgain) {
  World world(GetParam(), Mishap::kNone, 0);
  store_two(world);
  const auto [path, object] = a_data_file(world);
  damage(world, object);
  note_change(world.path(), path);
  world.arrange();  // Nothing but the note is new.
  EXPECT_NE(object_of(world, path), object);
  EXPECT_TRUE(changed_files(world.path()).empty());
  expect_store_has_catalog(world);
  world.expect_versions();
}

// The note is on disk, so a killed process does not lose it, wherever the kill happens. A kill
// between the head and the removal of the note uploads the file once more.
TEST_P(ChangedFiles, AreUploadedAgainAfterACrash) {
  std::uint64_t begun = 0;
  SteppedHistory history(
      [](Mishap mishap, std::uint64_t at) {
        return std::make_unique<World>(GetParam(), mishap, at);
      },
      {[&begun](World& world) {
         store_two(world);
         begun = world.requests();
       },
       [](World& world) {
         const auto [path, object] = a_data_file(world);
         note_change(world.path(), path);
         world.arrange();
         EXPECT_NE(object_of(world, path), object);
         EXPECT_TRUE(changed_files(world.path()).empty());
         expect_store_has_catalog(world);
         world.expect_versions();
       }});
  const auto requests = history.whole().requests();
  ASSERT_GT(requests, begun);
  for (const auto mishap :
       {Mishap::kBefore, Mishap::kLost, Mishap::kKilledBefore, Mishap::kKilledAfter}) {
    for (auto at = begun; at < requests; ++at) {
      static_cast<void>(history.play(mishap, at));
      if (HasFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Plain, ChangedFiles, testing::Values(false));
INSTANTIATE_TEST_SUITE_P(Encrypted, ChangedFiles, testing::Values(true));

/// The data of a folder whose head has one segment of four bytes.
class WrittenAgain : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(directory_.path() + "/series/00000001/active");
    const auto file = must(files_->open(full(), io::OpenMode::kCreateNew));
    must(file->write_at(0, base::as_bytes("old!")));
    objects_[kPath] = {{"object", 4, 4, 0, 0}};
    notes_ = must(LocalNotes::load(*files_, directory_.path()));
    const auto load = [this] { return Result<remote::ObjectMap>(objects_); };
    data_ = std::make_unique<remote::DistantData>(bucket_, *files_, directory_.path() + "/cache",
                                                  1 << 20, load);
    local_ =
        std::make_unique<remote::LocalData>(*files_, *data_, notes_.get(), directory_.path(), load);
    must(local_->load());
  }
  [[nodiscard]] std::string full() const { return directory_.path() + "/" + kPath; }
  [[nodiscard]] bool is_noted() const { return changed_files(directory_.path()).contains(kPath); }

  static constexpr const char* kPath = "series/00000001/active/00000001.seg";
  TempDirectory directory_;
  std::unique_ptr<io::FileSystem> files_ = io::make_posix_file_system();
  MemoryBucket bucket_;
  remote::ObjectMap objects_;
  std::unique_ptr<LocalNotes> notes_;
  std::unique_ptr<remote::DistantData> data_;
  std::unique_ptr<remote::LocalData> local_;
};

TEST_F(WrittenAgain, TheNoteIsOnDiskBeforeOldBytesAre) {
  const auto file = must(local_->open(*files_, kPath, io::OpenMode::kReadWrite));
  must(file->write_at(4, base::as_bytes("more")));
  EXPECT_FALSE(is_noted());  // The store's extent stays right.
  must(file->write_at(3, base::as_bytes("?")));
  EXPECT_TRUE(is_noted());
}

TEST_F(WrittenAgain, BytesBehindACutAreNew) {
  const auto file = must(local_->open(*files_, kPath, io::OpenMode::kReadWrite));
  must(file->truncate(2));
  must(file->write_at(2, base::as_bytes("new")));
  EXPECT_FALSE(is_noted());
  must(file->write_at(1, base::as_bytes("n")));
  EXPECT_TRUE(is_noted());
}

TEST_F(WrittenAgain, AFileThatTakesThePlaceOfAnotherIsNoted) {
  const auto fresh = full() + ".new";
  must(must(files_->open(fresh, io::OpenMode::kCreateNew))->write_at(0, base::as_bytes("new!")));
  must(local_->rename(*files_, std::string(kPath) + ".new", kPath));
  EXPECT_TRUE(is_noted());
}

TEST_F(WrittenAgain, ANewFileOfAnOldNameIsNoted) {
  must(files_->remove(full()));
  must(local_->begin(kPath));
  EXPECT_TRUE(is_noted());
}

TEST_F(WrittenAgain, ANotedFileIsNotEvicted) {
  must(must(local_->open(*files_, kPath, io::OpenMode::kReadWrite))
           ->write_at(0, base::as_bytes("new!")));
  EXPECT_EQ(must(local_->evict(0)).files, 0U);
  must(notes_->remove(LocalNote::kChanged, {kPath}));
  EXPECT_EQ(must(local_->evict(0)).files, 1U);
}

}  // namespace
}  // namespace varve::test
