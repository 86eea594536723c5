// SPDX-License-Identifier: Apache-2.0
// Archives that become versions. tests/fuse/store_sources.sh has those of other programs.
#include "transfer/archive_importer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/unique_fd.h"
#include "fake_version.h"
#include "file_tree.h"
#include "varve/restore.h"

namespace varve::testing {
namespace {

namespace fs = std::filesystem;

class ArchiveImporterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string top = place_ / "in";
    fs::create_directories(top + "/dir/empty");
    write_file(top + "/dir/file", "content");
    write_file(top + "/not\xff utf8\n\xc3\xa9", "x");
    write_file(top + "/" + std::string(255, 'n'), std::string(1000, 'l'));
    fs::create_hard_link(top + "/dir/file", top + "/link");
    fs::create_symlink("../../etc/passwd", top + "/symlink");
    ASSERT_EQ(::mkfifo((top + "/fifo").c_str(), 0640), 0);
    const base::UniqueFd sparse(::open((top + "/sparse").c_str(), O_WRONLY | O_CREAT, 0600));
    ASSERT_EQ(::pwrite(sparse.get(), "middle", 6, 1 << 20), 6);
    ASSERT_EQ(::ftruncate(sparse.get(), 3 << 20), 0);
    ASSERT_EQ(::lsetxattr((top + "/dir").c_str(), "user.note", "a\0b", 3, 0), 0);
    ASSERT_EQ(::lsetxattr((top + "/dir").c_str(), "user.a=b%c%3D", "x", 1, 0), 0);
    FakeWriter writer;
    ASSERT_TRUE(store_tree(writer, top, {}));
    FakeReader reader(writer.root());
    const base::UniqueFd out(::open(archive_.c_str(), O_WRONLY | O_CREAT, 0600));
    ASSERT_TRUE(write_tar(reader, out.get(), {}, {}));
  }

  Result<TransferReport> import(const std::string& path, FakeWriter& writer) {
    const base::UniqueFd in(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    EXPECT_TRUE(in.valid());
    return transfer::import_archive(writer, in.get(), {});
  }

  const TemporaryDirectory place_;
  const std::string archive_ = place_ / "a.tar";
};

TEST_F(ArchiveImporterTest, AnExportedVersionComesBack) {
  FakeWriter writer;
  const auto imported = import(archive_, writer);
  ASSERT_TRUE(imported) << imported.error().message();
  EXPECT_TRUE(imported->problems.empty());
  FakeReader reader(writer.root());
  ASSERT_TRUE(restore_version(reader, place_ / "out", {}, {}));
  EXPECT_EQ(describe_tree(place_ / "out"), describe_tree(place_ / "in"));
}

TEST_F(ArchiveImporterTest, EveryTruncationIsAnError) {
  const std::string bytes = read_file(archive_);
  // The end of the last member, before the end mark and the padding.
  const std::size_t end = bytes.find_last_not_of('\0') / 512 * 512 + 512;
  for (std::size_t cut = 0; cut <= end; cut += cut % 512 == 0 && cut < end ? 200 : 312) {
    write_file(place_ / "cut", bytes.substr(0, cut));
    FakeWriter writer;
    const auto imported = import(place_ / "cut", writer);
    ASSERT_FALSE(imported) << cut << " of " << bytes.size();
    EXPECT_EQ(imported.error().code(), ErrorCode::kInvalid) << cut;
  }
}

/// Returns a member of a cpio archive of the portable ASCII format; all members are one inode.
std::string cpio_member(const std::string& name, unsigned mode, unsigned links,
                        const std::string& data) {
  return fmt::format("070707{:06o}{:06o}{:06o}{:06o}{:06o}{:06o}{:06o}{:011o}{:06o}{:011o}", 1, 7,
                     mode, 0, 0, links, 0, 0, name.size() + 1, data.size()) +
         name + '\0' + data;
}

TEST_F(ArchiveImporterTest, TheLastDataOfALinkReplacesTheFirst) {
  // The file became shorter while cpio wrote the archive.
  write_file(place_ / "cpio", cpio_member("first", S_IFREG | 0600, 2, "0123456789") +
                                  cpio_member("second", S_IFREG | 0600, 2, "abc") +
                                  cpio_member("TRAILER!!!", 0, 1, ""));
  FakeWriter writer;
  const auto imported = import(place_ / "cpio", writer);
  ASSERT_TRUE(imported) << imported.error().message();
  ASSERT_NE(writer.root()->child("second"), nullptr);
  EXPECT_EQ(writer.root()->child("second")->data, "abc");
  EXPECT_EQ(writer.root()->child("first"), writer.root()->child("second"));
}

TEST_F(ArchiveImporterTest, DataBehindTheTrailerOfCpioIsAnError) {
  const std::string one =
      cpio_member("first", S_IFREG | 0600, 1, "0123456789") + cpio_member("TRAILER!!!", 0, 1, "");
  const std::string padding(512 - one.size() % 512, '\0');
  const auto code_of = [&](const std::string& bytes, bool by_pipe) {
    write_file(place_ / "cpio", bytes);
    FakeWriter writer;
    base::UniqueFd in(::open((place_ / "cpio").c_str(), O_RDONLY | O_CLOEXEC));
    int ends[2];
    if (by_pipe) {
      EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
      const base::UniqueFd write_end(ends[1]);
      EXPECT_EQ(::write(write_end.get(), bytes.data(), bytes.size()), ssize_t(bytes.size()));
      in = base::UniqueFd(ends[0]);
    }
    const auto imported = transfer::import_archive(writer, in.get(), {});
    return imported ? std::string() : imported.error().message();
  };
  for (const bool by_pipe : {false, true}) {
    EXPECT_EQ(code_of(one, by_pipe), "");
    EXPECT_EQ(code_of(one + padding, by_pipe), "");
    EXPECT_EQ(code_of(one + padding + std::string(30'000, '\0'), by_pipe), "");
    for (const std::string& rest :
         {one, padding + one, padding + std::string(40'000, '\0') + one, std::string("x")}) {
      EXPECT_NE(code_of(one + rest, by_pipe).find("data follows"), std::string::npos);
    }
  }
}

TEST_F(ArchiveImporterTest, OtherDataBehindTheEndMarkOfTarIsAnError) {
  const std::string tar = read_file(archive_);
  for (const std::string& rest : {std::string("x"), std::string(512, 'x'), std::string(5000, 'x'),
                                  std::string(20'000, '\0') + std::string(700, 'x')}) {
    write_file(place_ / "rest", tar + rest);
    FakeWriter writer;
    const auto imported = import(place_ / "rest", writer);
    ASSERT_FALSE(imported) << rest.size();
    EXPECT_EQ(imported.error().code(), ErrorCode::kInvalid);
  }
  write_file(place_ / "joined", tar + std::string(1024, '\0') + tar);
  FakeWriter writer;
  EXPECT_TRUE(import(place_ / "joined", writer));
}

TEST_F(ArchiveImporterTest, AStopEndsTheImport) {
  FakeWriter writer;
  const base::UniqueFd in(::open(archive_.c_str(), O_RDONLY | O_CLOEXEC));
  const auto stopped =
      transfer::import_archive(writer, in.get(), [](const TransferProgress&) { return false; });
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code(), ErrorCode::kInterrupted);
}

TEST_F(ArchiveImporterTest, AStreamBecomesOneFile) {
  FakeWriter writer;
  const base::UniqueFd in(::open(archive_.c_str(), O_RDONLY | O_CLOEXEC));
  const auto stored = transfer::import_stream(writer, "a/b/dump", in.get(), {});
  ASSERT_TRUE(stored) << stored.error().message();
  const auto file = writer.root()->child("a")->child("b")->child("dump");
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(file->data, read_file(archive_));
  EXPECT_EQ(file->attributes.mode, static_cast<std::uint32_t>(S_IFREG | 0600));
  for (const char* bad : {"", ".", "..", "a/..", "/a", "a/"}) {
    EXPECT_FALSE(transfer::import_stream(writer, bad, in.get(), {})) << bad;
  }
}

}  // namespace
}  // namespace varve::testing
