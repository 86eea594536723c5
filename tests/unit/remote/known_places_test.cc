// SPDX-License-Identifier: Apache-2.0
// Which folders of a machine belong to a place: the file only proposes them.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "io/posix_file_system.h"
#include "remote/bucket_config.h"
#include "support/temp_repository.h"
#include "varve/replication.h"

namespace varve::test {
namespace {

class KnownPlaces : public testing::Test {
 protected:
  /// Makes a folder that says that it belongs to a place.
  std::string folder(const std::string& name, const std::string& place, bool reads_only) {
    const auto path = folder_.path() + "/" + name;
    std::filesystem::create_directory(path);
    std::ofstream(path + "/varve.repo") << "not read";
    const auto files = io::make_posix_file_system();
    EXPECT_TRUE(remote::write_config(*files, path, {.place = place, .reads_only = reads_only}));
    return path;
  }
  std::vector<std::string> known(std::string_view place) {
    std::vector<std::string> names;
    for (const auto& one :
         known_store_folders(memory_, place, [](const std::string&) { return false; })) {
      names.push_back(std::filesystem::path(one.folder).filename());
    }
    return names;
  }
  void write_places(const std::string& text) { std::ofstream(memory_ + "/places") << text; }

  const TempDirectory folder_;
  const std::string memory_ = folder_.path() + "/state/varve";
};

using Names = std::vector<std::string>;

TEST_F(KnownPlaces, WriterComesFirst) {
  remember_store_folder(memory_, "s3://bucket/a/", folder("writer", "s3://bucket/a", false));
  remember_store_folder(memory_, "s3://bucket/a", folder("reader", "s3://bucket/a/", true));
  remember_store_folder(memory_, "s3://bucket/b", folder("other", "s3://bucket/b", false));
  EXPECT_EQ(known("s3://bucket/a/"), (Names{"writer", "reader"}));
  EXPECT_EQ(known("s3://bucket/b"), (Names{"other"}));
  EXPECT_EQ(known("s3://bucket/c"), Names());
}

TEST_F(KnownPlaces, FoldersThatSaySomethingElseAreNotUsed) {
  const auto path = folder("one", "s3://bucket/a", false);
  remember_store_folder(memory_, "s3://bucket/b", path);
  EXPECT_EQ(known("s3://bucket/b"), Names());
  remember_store_folder(memory_, "s3://bucket/a", path);
  EXPECT_EQ(known("s3://bucket/a"), (Names{"one"}));
  std::filesystem::remove(path + "/varve.repo");
  EXPECT_EQ(known("s3://bucket/a"), Names());
}

TEST_F(KnownPlaces, HostileLinesAreSkipped) {
  const auto path = folder("one", "s3://bucket/a", false);
  remember_store_folder(memory_, "s3://bucket/a", path);
  std::string text = "s3://bucket/a\trelative\n\n\t\ns3://bucket/a\n" + std::string(70'000, 'x') +
                     "\ns3://../x\t/etc\ns3://bucket/a\t/etc\ns3://bucket/a\t" + path;
  write_places(text);  // The last line has no end.
  EXPECT_EQ(known("s3://bucket/a"), (Names{"one"}));
  write_places(std::string(2U << 20, 'x'));  // Longer than any such file.
  EXPECT_EQ(known("s3://bucket/a"), Names());
}

TEST_F(KnownPlaces, FileThatOthersMayWriteIsNotRead) {
  remember_store_folder(memory_, "s3://bucket/a", folder("one", "s3://bucket/a", false));
  ASSERT_EQ(::chmod((memory_ + "/places").c_str(), 0666), 0);
  EXPECT_EQ(known("s3://bucket/a"), Names());
}

TEST_F(KnownPlaces, FoldersWithOddNamesAreNotRemembered) {
  remember_store_folder(memory_, "s3://bucket/a", folder("a\nb", "s3://bucket/a", false));
  remember_store_folder(memory_, "s3://bucket/a", folder("a\tb", "s3://bucket/a", false));
  EXPECT_EQ(known("s3://bucket/a"), Names());
}

}  // namespace
}  // namespace varve::test
