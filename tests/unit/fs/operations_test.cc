// SPDX-License-Identifier: Apache-2.0
// The operations of a mount, on a repository but without a kernel.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>

#include "fs/errno_map.h"
#include "fs/front_end.h"
#include "varve/repository.h"

namespace varve::fs {
namespace {

constexpr fuse_ino_t kTop = FUSE_ROOT_ID;

class Operations : public testing::Test {
 protected:
  Operations() : path_(testing::TempDir() + "/varve-fs-XXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    const std::string folder = path_ + "/repository";
    if (!Repository::create(folder, {})) throw std::runtime_error("no repository");
    auto opened = Repository::open(folder, {});
    if (!opened) throw std::runtime_error(opened.error().message());
    repository_ = std::move(*opened);
    front_end_ = std::make_unique<FrontEnd>(*repository_, ShowOptions());
  }
  ~Operations() override {
    front_end_->shut_down();
    front_end_.reset();
    repository_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  FrontEnd& fs() { return *front_end_; }
  static Caller root() { return Caller(fuse_ctx{.uid = 0, .gid = 0, .pid = 1, .umask = 0}); }

  /// Runs the rest of an operation that returned Later.
  static Result<Reply> settled(Result<Reply> result) {
    while (result) {
      auto* const later = std::get_if<Later>(&result->content);
      if (later == nullptr) break;
      const auto work = std::move(later->work);
      return settled(work());
    }
    return result;
  }
  /// Returns the reply as one kind; any other outcome ends the test.
  template <typename Kind>
  static Kind must(Result<Reply> result) {
    auto outcome = settled(std::move(result));
    if (!outcome) throw std::runtime_error(outcome.error().message());
    return std::get<Kind>(std::move(outcome->content));
  }
  static ErrorCode code_of(Result<Reply> result) {
    const auto outcome = settled(std::move(result));
    if (outcome) throw std::runtime_error("an error was expected");
    return outcome.error().code();
  }

  fuse_ino_t make_directory(fuse_ino_t parent, std::string_view name) {
    return must<EntryReply>(
               fs().names().mkdir(root(), parent,
                                  {.name = name, .mode = 0755, .rdev = 0, .target = {}}))
        .entry.ino;
  }
  fuse_ino_t look_up(fuse_ino_t parent, std::string_view name) {
    return must<EntryReply>(fs().names().lookup(parent, name)).entry.ino;
  }
  CreateReply create(fuse_ino_t parent, std::string_view name) {
    fuse_file_info info{};
    info.flags = O_RDWR;
    return must<CreateReply>(fs().files().create(root(), parent, name, 0644, info));
  }
  std::string read(fuse_ino_t ino, const fuse_file_info& info) {
    auto outcome = settled(fs().reads().read(root(), ino, {0, 4096}, info));
    if (!outcome) throw std::runtime_error(outcome.error().message());
    const Reply& reply = *outcome;
    std::string text;
    const auto add = [&text](const void* data, std::size_t bytes) {
      text.append(static_cast<const char*>(data), bytes);
    };
    if (const auto* lent = std::get_if<LentReply>(&reply.content)) {
      add(lent->data.bytes.data(), lent->data.bytes.size());
    } else if (const auto* buffer = std::get_if<BufferReply>(&reply.content)) {
      add(buffer->buffer.data(), buffer->bytes);
    } else {
      for (const iovec& part : std::get<GatheredReply>(reply.content).parts) {
        add(part.iov_base, part.iov_len);
      }
    }
    return text;
  }

  std::string path_;
  std::unique_ptr<Repository> repository_;
  std::unique_ptr<FrontEnd> front_end_;
};

TEST_F(Operations, AbsentNameIsAnEntryWithNodeIdZero) { EXPECT_EQ(look_up(kTop, "absent"), 0U); }

TEST_F(Operations, FileKeepsItsNodeIdWhenARenameSealsItsVersion) {
  const fuse_ino_t series = make_directory(kTop, "s");
  const fuse_ino_t version = make_directory(series, "v.partial");
  const CreateReply made = create(version, "f");
  EXPECT_EQ(
      must<WriteReply>(fs().files().write(root(), made.entry.ino, "text", 0, made.info)).bytes, 4U);
  EXPECT_EQ(read(made.entry.ino, made.info), "text");
  must<Done>(fs().files().release(made.info));
  must<Done>(fs().names().rename({series, "v.partial"}, {series, "v"}, 0));

  fuse_file_info info{};
  info.flags = O_RDONLY;
  const auto opened = must<OpenReply>(fs().files().open(made.entry.ino, info));
  EXPECT_EQ(read(made.entry.ino, opened.info), "text");
  EXPECT_EQ(look_up(series, "v"), version);
  EXPECT_EQ(must<LinkReply>(fs().attributes().readlink(look_up(series, "latest"))).target, "v");
}

TEST_F(Operations, SealedVersionRefusesChanges) {
  const fuse_ino_t series = make_directory(kTop, "s");
  const fuse_ino_t version = make_directory(series, "v.partial");
  must<Done>(fs().files().release(create(version, "f").info));
  must<Done>(fs().names().rename({series, "v.partial"}, {series, "v"}, 0));
  const fuse_ino_t file = look_up(version, "f");

  fuse_file_info info{};
  info.flags = O_RDWR;
  EXPECT_EQ(must<Refusal>(fs().files().open(file, info)).errno_value, EROFS);
  EXPECT_EQ(must<Refusal>(fs().names().unlink(root(), version, "f")).errno_value, EROFS);
  EXPECT_EQ(code_of(fs().names().rename({version, "f"}, {version, "g"}, 0)), ErrorCode::kReadOnly);
  EXPECT_EQ(must<Refusal>(fs().names().rmdir(root(), version, "d")).errno_value, EROFS);
}

TEST_F(Operations, SealIsRefusedWhileAFileIsOpenForWriting) {
  const fuse_ino_t series = make_directory(kTop, "s");
  const fuse_ino_t version = make_directory(series, "v.partial");
  const CreateReply made = create(version, "f");
  EXPECT_EQ(code_of(fs().names().rename({series, "v.partial"}, {series, "v"}, 0)),
            ErrorCode::kBusy);
  must<Done>(fs().files().release(made.info));
  must<Done>(fs().names().rename({series, "v.partial"}, {series, "v"}, 0));
}

TEST_F(Operations, WithdrawnHandleIsForgotten) {
  const fuse_ino_t version = make_directory(make_directory(kTop, "s"), "v.partial");
  const CreateReply made = create(version, "f");
  made.withdraw();
  EXPECT_EQ(
      must<Refusal>(fs().files().write(root(), made.entry.ino, "x", 0, made.info)).errno_value,
      EBADF);
  const auto opened = must<OpenReply>(fs().directories().opendir(version, fuse_file_info{}));
  opened.withdraw();
  EXPECT_EQ(
      must<Refusal>(fs().directories().readdir(nullptr, {4096, 0, false}, opened.info)).errno_value,
      EBADF);
}

TEST_F(Operations, ReadingAFileThatIsNotOpenIsEBADF) {
  const fuse_ino_t version = make_directory(make_directory(kTop, "s"), "v.partial");
  const CreateReply made = create(version, "f");
  made.withdraw();
  const auto read = settled(fs().reads().read(root(), made.entry.ino, {0, 10}, made.info));
  ASSERT_FALSE(read);
  EXPECT_EQ(errno_of(read.error()), EBADF);
  const auto sought = fs().reads().lseek(root(), made.entry.ino, 0, SEEK_DATA, made.info);
  ASSERT_FALSE(sought);
  EXPECT_EQ(errno_of(sought.error()), EBADF);
}

TEST_F(Operations, SeekingPastTheEndIsENXIO) {
  const fuse_ino_t version = make_directory(make_directory(kTop, "s"), "v.partial");
  const CreateReply made = create(version, "f");
  const auto sought = fs().reads().lseek(root(), made.entry.ino, 1, SEEK_DATA, made.info);
  ASSERT_FALSE(sought);
  EXPECT_EQ(errno_of(sought.error()), ENXIO);
}

TEST_F(Operations, UnknownNodeIsStale) {
  EXPECT_EQ(code_of(fs().attributes().getattr(pack({.slot = 7, .open = true, .low = 1}))),
            ErrorCode::kStale);
  EXPECT_EQ(code_of(fs().names().lookup(pack({.slot = 7, .open = true, .low = 1}), ".")),
            ErrorCode::kStale);
}

TEST_F(Operations, WriteClearsSetUserIdForOthersButNotForRoot) {
  const fuse_ino_t version = make_directory(make_directory(kTop, "s"), "v.partial");
  const CreateReply made = create(version, "f");
  struct stat values {};
  values.st_mode = 04755;
  must<AttributeReply>(
      fs().attributes().setattr(root(), made.entry.ino, values, FUSE_SET_ATTR_MODE));
  const auto mode = [&] {
    return must<AttributeReply>(fs().attributes().getattr(made.entry.ino)).attributes.st_mode &
           07777;
  };
  must<WriteReply>(fs().files().write(root(), made.entry.ino, "x", 0, made.info));
  EXPECT_EQ(mode(), 04755U);
  const Caller other(fuse_ctx{.uid = 1000, .gid = 1000, .pid = 1, .umask = 0});
  must<WriteReply>(fs().files().write(other, made.entry.ino, "x", 0, made.info));
  EXPECT_EQ(mode(), 0755U);
}

TEST_F(Operations, OwnAttributesAreReadButNotListedOrSet) {
  const fuse_ino_t version = make_directory(make_directory(kTop, "s"), "v.partial");
  EXPECT_EQ(must<ValueReply>(fs().xattrs().getxattr(version, "user.varve.state", 100)).value,
            "open");
  EXPECT_EQ(must<ValueReply>(fs().xattrs().listxattr(root(), version, 100)).value, "");
  EXPECT_EQ(
      must<Refusal>(fs().xattrs().setxattr(root(), version, {"user.varve.state", "sealed"}, 0))
          .errno_value,
      EPERM);
  EXPECT_EQ(must<Refusal>(fs().xattrs().getxattr(version, "user.absent", 100)).errno_value,
            ENODATA);
}

}  // namespace
}  // namespace varve::fs
