// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "fake_version.h"
#include "file_tree.h"
#include "varve/backup.h"
#include "varve/restore.h"

namespace varve::testing {
namespace {

namespace fs = std::filesystem;

void set_mtime(const std::string& path, time_t seconds, long nanoseconds) {
  const struct timespec times[2] = {{1, 1}, {seconds, nanoseconds}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW), 0) << path;
}

void set_xattr(const std::string& path, const char* name, std::string_view value) {
  ASSERT_EQ(::lsetxattr(path.c_str(), name, value.data(), value.size(), 0), 0) << path << name;
}

/// Makes every type of file with every kind of metadata that the tester's rights allow.
void make_rich_tree(const std::string& top) {
  using namespace std::string_literals;
  fs::create_directories(top + "/dir/empty");
  write_file(top + "/dir/file", "content");
  write_file(top + "/empty file", "");
  write_file(top + "/not\xff utf8\n", "x");
  write_file(top + "/" + std::string(255, 'n'), "long");
  write_file(top + "/big", std::string(3'500'000, 'b'));
  write_file(top + "/setuid", "#!");
  fs::create_hard_link(top + "/dir/file", top + "/dir/link");
  fs::create_hard_link(top + "/dir/file", top + "/other link");
  fs::create_symlink("/nowhere/at all", top + "/symlink");
  fs::create_symlink(std::string(4000, 't'), top + "/long symlink");
  ASSERT_EQ(::mkfifo((top + "/fifo").c_str(), 0640), 0);
  ASSERT_EQ(::mknod((top + "/socket").c_str(), S_IFSOCK | 0600, 0), 0);
  fs::create_hard_link(top + "/fifo", top + "/fifo link");
  {
    const int fd = ::open((top + "/sparse").c_str(), O_WRONLY | O_CREAT, 0600);
    ASSERT_EQ(::pwrite(fd, "middle", 6, 1 << 20), 6);
    ASSERT_EQ(::ftruncate(fd, 5 << 20), 0);
    ::close(fd);
  }
  set_xattr(top + "/dir", "user.colour", "blue\0green"s);
  set_xattr(top + "/dir/file", "user.empty", "");
  if (::geteuid() == 0) {
    ASSERT_EQ(::mknod((top + "/null").c_str(), S_IFCHR | 0666, makedev(1, 3)), 0);
    ASSERT_EQ(::mknod((top + "/disk").c_str(), S_IFBLK | 0660, makedev(300, 70000)), 0);
    ASSERT_EQ(::chown((top + "/setuid").c_str(), 12345, 4000000000U), 0);
    ASSERT_EQ(::lchown((top + "/symlink").c_str(), 7, 8), 0);
    set_xattr(top + "/symlink", "trusted.note", "on a link");
    // Version 2, effective, CAP_NET_RAW.
    set_xattr(top + "/big", "security.capability",
              "\x01\0\0\x02\0\x20\0\0\0\0\0\0\0\0\0\0\0\0\0\0"s);
  }
  // user::rwx, user:12345:r--, group::r-x, mask::rwx, other::---; see acl(5).
  const std::string acl =
      "\2\0\0\0\1\0\7\0\377\377\377\377\2\0\4\0\71\60\0\0\4\0\5\0\377\377\377\377\20\0\7\0\377\377"
      "\377\377\40\0\0\0\377\377\377\377"s;
  set_xattr(top + "/empty file", "system.posix_acl_access", acl);
  set_xattr(top + "/dir", "system.posix_acl_default", acl);
  ASSERT_EQ(::chmod((top + "/setuid").c_str(), 06755), 0);
  ASSERT_EQ(::chmod((top + "/dir/empty").c_str(), 01500), 0);
  for (const auto& entry : fs::recursive_directory_iterator(top)) {
    set_mtime(entry.path().string(), 1234567890, 987654321);
  }
  set_mtime(top + "/dir", -5, 999999999);
  ASSERT_EQ(::chmod(top.c_str(), 0751), 0);
  set_mtime(top, 1500000000, 1);
}

TEST(StoreTree, EverythingComesBackFromARestore) {
  const TemporaryDirectory place;
  fs::create_directory(place / "in");
  make_rich_tree(place / "in");
  FakeWriter writer;
  const auto stored = store_tree(writer, place / "in", {});
  ASSERT_TRUE(stored) << stored.error().message();
  EXPECT_TRUE(stored->problems.empty()) << stored->problems[0];

  for (const bool scatter : {false, true}) {
    const std::string out = place / (scatter ? "scattered" : "out");
    RestoreOptions options;
    options.scatter = scatter;
    FakeReader reader(writer.root());
    const auto restored = restore_version(reader, out, options, {});
    ASSERT_TRUE(restored) << restored.error().message();
    EXPECT_TRUE(restored->problems.empty()) << restored->problems[0];
    EXPECT_EQ(describe_tree(out), describe_tree(place / "in"));
    EXPECT_EQ(restored->entries, stored->entries);
  }
}

TEST(StoreTree, OnlyTheRootsOwnAttributesAreLeftOut) {
  const TemporaryDirectory place;
  fs::create_directories(place / "in/dir");
  write_file(place / "in/file", "x");
  for (const char* name : {"in", "in/dir", "in/file"}) {
    set_xattr(place / name, "user.varve.state", "mine");
  }
  FakeWriter writer;
  const auto stored = store_tree(writer, place / "in", {});
  ASSERT_TRUE(stored) << stored.error().message();
  EXPECT_TRUE(writer.root()->xattrs.empty());
  for (const char* name : {"dir", "file"}) {
    ASSERT_EQ(writer.root()->child(name)->xattrs.size(), 1U) << name;
    EXPECT_EQ(writer.root()->child(name)->xattrs[0].name, "user.varve.state");
  }
}

TEST(StoreTree, ADirectoryWithoutItsEntriesIsNamed) {
  const TemporaryDirectory place;
  fs::create_directories(place / "in/a/repository/deep");
  write_file(place / "in/a/repository/file", "x");
  struct stat status {};
  ASSERT_EQ(::stat((place / "in/a/repository").c_str(), &status), 0);
  FakeWriter writer;
  std::vector<std::string> named;
  StoreOptions options;
  options.without_entries = {{status.st_dev, status.st_ino}};
  options.left_out = [&](const std::string& path) { named.push_back(path); };
  const auto stored = store_tree(writer, place / "in", {}, options);
  ASSERT_TRUE(stored) << stored.error().message();
  EXPECT_TRUE(stored->problems.empty());
  EXPECT_EQ(named, std::vector<std::string>{"a/repository"});
  const auto repository = writer.root()->child("a")->child("repository");
  ASSERT_NE(repository, nullptr);
  EXPECT_TRUE(repository->children.empty());
}

TEST(StoreTree, HolesAreNotWritten) {
  const TemporaryDirectory place;
  fs::create_directory(place / "in");
  const int fd = ::open((place / "in/f").c_str(), O_WRONLY | O_CREAT, 0600);
  ASSERT_EQ(::pwrite(fd, "x", 1, 1 << 20), 1);
  ASSERT_EQ(::ftruncate(fd, 64 << 20), 0);
  ::close(fd);
  FakeWriter writer;
  const auto stored = store_tree(writer, place / "in", {});
  ASSERT_TRUE(stored) << stored.error().message();
  EXPECT_EQ(writer.root()->child("f")->attributes.size, 64U << 20);
  // The smallest data range of the file system is one block.
  EXPECT_LE(stored->bytes, 65536U);
}

TEST(StoreTree, ContinuedVersionReplacesFilesAndMergesDirectories) {
  const TemporaryDirectory place;
  fs::create_directories(place / "in/dir");
  write_file(place / "in/dir/new", "new");
  write_file(place / "in/file", "new content");
  fs::create_symlink("target", place / "in/link");
  FakeWriter writer;
  const auto dir = writer.create(kRootIno, "dir", NewFile{S_IFDIR | 0700, 0, 0, 0, {}});
  ASSERT_TRUE(dir);
  ASSERT_TRUE(writer.create(dir->ino, "kept", NewFile{S_IFREG | 0600, 0, 0, 0, {}}));
  ASSERT_TRUE(writer.create(kRootIno, "file", NewFile{S_IFLNK | 0777, 0, 0, 0, "old"}));
  ASSERT_TRUE(writer.create(kRootIno, "link", NewFile{S_IFDIR | 0700, 0, 0, 0, {}}));
  const auto stored = store_tree(writer, place / "in", {});
  ASSERT_TRUE(stored) << stored.error().message();
  EXPECT_TRUE(stored->problems.empty());
  const FakeNodePtr& root = writer.root();
  EXPECT_TRUE(root->child("dir")->child("kept"));
  EXPECT_EQ(root->child("dir")->child("new")->data, "new");
  EXPECT_EQ(root->child("file")->data, "new content");
  EXPECT_EQ(root->child("link")->symlink_target, "target");
}

TEST(StoreTree, DirectoryWithFilesInTheWayIsAProblemAndTheRestIsStored) {
  const TemporaryDirectory place;
  fs::create_directory(place / "in");
  write_file(place / "in/a", "a");
  write_file(place / "in/b", "b");
  FakeWriter writer;
  const auto a = writer.create(kRootIno, "a", NewFile{S_IFDIR | 0700, 0, 0, 0, {}});
  ASSERT_TRUE(writer.create(a->ino, "inside", NewFile{S_IFREG | 0600, 0, 0, 0, {}}));
  const auto stored = store_tree(writer, place / "in", {});
  ASSERT_TRUE(stored) << stored.error().message();
  ASSERT_EQ(stored->problems.size(), 1U);
  EXPECT_EQ(stored->problems[0].substr(0, 3), "a: ");
  EXPECT_EQ(writer.root()->child("b")->data, "b");
}

TEST(StoreTree, FullDiskEndsItAndLeavesNoHalfFile) {
  const TemporaryDirectory place;
  fs::create_directory(place / "in");
  write_file(place / "in/a", std::string(100, 'a'));
  write_file(place / "in/b", std::string(3'000'000, 'b'));
  write_file(place / "in/c", "c");
  FakeWriter writer;
  writer.fail_after(2'000'000, ErrorCode::kNoSpace);
  const auto stored = store_tree(writer, place / "in", {});
  ASSERT_FALSE(stored);
  EXPECT_EQ(stored.error().code(), ErrorCode::kNoSpace);
  EXPECT_TRUE(writer.root()->child("a"));
  EXPECT_FALSE(writer.root()->child("b"));
  EXPECT_FALSE(writer.root()->child("c"));
}

/// Stores a file of which the first byte is written again after each of the first `changes` reads.
Result<TransferReport> store_changing(FakeWriter& writer, const std::string& folder, int changes) {
  const std::string path = folder + "/file";
  write_file(path, std::string(1'500'000, '0'));
  std::uint64_t read = 0;
  return store_tree(writer, folder, [&](const TransferProgress& done) {
    if (done.bytes_done > read && done.bytes_done % 1'500'000 == 0 && changes-- > 0) {
      const int fd = ::open(path.c_str(), O_WRONLY);
      const char digit = static_cast<char>('0' + done.bytes_done / 1'500'000);
      EXPECT_EQ(::pwrite(fd, &digit, 1, 0), 1);
      ::close(fd);
      const struct timespec times[2] = {{1, 1}, {static_cast<time_t>(done.bytes_done), 0}};
      EXPECT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
    }
    read = done.bytes_done;
    return true;
  });
}

TEST(StoreTree, AFileThatChangesWhileItIsReadIsReadAgain) {
  const TemporaryDirectory place;
  FakeWriter writer;
  const auto stored = store_changing(writer, place / "", 3);
  ASSERT_TRUE(stored) << stored.error().message();
  EXPECT_TRUE(stored->problems.empty()) << stored->problems.front();
  EXPECT_EQ(stored->bytes, 1'500'000U);  // Not of all four reads.
  EXPECT_EQ(writer.root()->child("file")->data.front(), '3');
}

TEST(StoreTree, AFileThatChangesInEachOfFourReadsIsNamed) {
  const TemporaryDirectory place;
  FakeWriter writer;
  const auto stored = store_changing(writer, place / "", 100);
  ASSERT_TRUE(stored) << stored.error().message();
  ASSERT_EQ(stored->problems.size(), 1U);
  EXPECT_EQ(stored->bytes, 1'500'000U);
  EXPECT_NE(stored->problems.front().find("file: it changed each time"), std::string::npos);
  EXPECT_EQ(writer.root()->child("file")->data.front(), '3');
}

TEST(StoreTree, BrokenRepositoryEndsIt) {
  const TemporaryDirectory place;
  fs::create_directory(place / "in");
  write_file(place / "in/a", "a");
  write_file(place / "in/b", "b");
  FakeWriter writer;
  writer.fail_after(0, ErrorCode::kIo);
  const auto stored = store_tree(writer, place / "in", {});
  ASSERT_FALSE(stored);
  EXPECT_EQ(stored.error().code(), ErrorCode::kIo);
}

TEST(StoreTree, MissingDirectoryIsAnError) {
  FakeWriter writer;
  const auto stored = store_tree(writer, "/nowhere/at/all", {});
  ASSERT_FALSE(stored);
  EXPECT_EQ(stored.error().errno_value(), ENOENT);
}

TEST(StoreTree, ProgressThatReturnsFalseStops) {
  const TemporaryDirectory place;
  fs::create_directory(place / "in");
  write_file(place / "in/a", "a");
  write_file(place / "in/b", "b");
  FakeWriter writer;
  const auto stored =
      store_tree(writer, place / "in", [](const TransferProgress& p) { return p.files_done < 1; });
  ASSERT_FALSE(stored);
  EXPECT_EQ(stored.error().code(), ErrorCode::kInterrupted);
  EXPECT_FALSE(writer.root()->child("b"));
}

}  // namespace
}  // namespace varve::testing
