// SPDX-License-Identifier: Apache-2.0
// Files that state a size of 0 but have content.
#include "transfer/data_importer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/unique_fd.h"
#include "fake_version.h"
#include "file_tree.h"
#include "varve/backup.h"

namespace varve::transfer {
namespace {

constexpr std::uint64_t kLimit = 2U << 20;

class UnsizedFileTest : public ::testing::Test {
 protected:
  UnsizedFileTest() {
    NewFile file;
    file.mode = S_IFREG | 0600;
    auto made = writer_.create(kRootIno, "file", file);
    ino_ = made ? made->ino : 0;
  }

  /// Stores the file `fd` with a status whose size is 0.
  Result<void> store(int fd) {
    DataImporter importer(
        writer_, errors_, [](std::uint64_t /*bytes*/) { return true; }, kLimit);
    return importer.store(fd, {}, ino_);
  }
  [[nodiscard]] const std::string& stored() const { return writer_.root()->child("file")->data; }

  varve::testing::FakeWriter writer_;
  VersionErrors errors_;
  Ino ino_ = 0;
};

TEST_F(UnsizedFileTest, IsReadToItsEnd) {
  const varve::testing::TemporaryDirectory place;
  const std::string content(kLimit, 'c');
  varve::testing::write_file(place / "file", content);
  const base::UniqueFd fd(::open((place / "file").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  const auto done = store(fd.get());
  ASSERT_TRUE(done) << done.error().message();
  EXPECT_EQ(stored(), content);
}

TEST_F(UnsizedFileTest, WithoutAnEndIsAnErrorAtTheLimit) {
  const base::UniqueFd fd(::open("/dev/zero", O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  const auto done = store(fd.get());
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), ErrorCode::kInvalid);
  EXPECT_NE(done.error().message().find("no end within 2 MiB"), std::string::npos);
}

TEST_F(UnsizedFileTest, ThatWaitsForMoreIsAnError) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
  const base::UniqueFd reader(ends[0]);
  const base::UniqueFd writer(ends[1]);
  ASSERT_EQ(::write(writer.get(), "log", 3), 3);
  const auto done = store(reader.get());
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), ErrorCode::kInvalid);
  EXPECT_FALSE(errors_.ends(done.error()));
}

TEST(StoreTree, FilesOfProcAreStoredWithTheirContent) {
  const std::string source = "/proc/sys/fs/inotify";
  if (!std::filesystem::exists(source)) GTEST_SKIP() << source << " is missing";
  varve::testing::FakeWriter writer;
  const auto stored = store_tree(writer, source, {});
  ASSERT_TRUE(stored) << stored.error().message();
  EXPECT_TRUE(stored->problems.empty()) << stored->problems.front();
  for (const auto& entry : std::filesystem::directory_iterator(source)) {
    const auto file = writer.root()->child(entry.path().filename().native());
    ASSERT_TRUE(file) << entry.path();
    EXPECT_FALSE(file->data.empty()) << entry.path();
    EXPECT_EQ(file->data, varve::testing::read_file(entry.path().native()));
  }
}

}  // namespace
}  // namespace varve::transfer
