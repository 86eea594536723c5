// SPDX-License-Identifier: Apache-2.0
// Opening an environment's files in a folder where other users could exchange them.
#include "meta/env_files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>

#include "io/posix_file_system.h"
#include "meta/lmdb.h"
#include "support/temp_repository.h"

namespace varve::meta {
namespace {

using varve::test::code_of;
using varve::test::must;

constexpr std::array<const char*, 1> kOneTable = {"a"};
constexpr uid_t kOther = 4001;

class EnvFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    files_ = must(io::open_root(directory_.path(), {.trust_owner = true}));
    const auto env = must(Env::open(*files_, directory_.path(), options(false)));
    auto txn = must(WriteTxn::begin(env));
    must(txn.put(0, "key", "value"));
    must(txn.commit());
  }
  EnvOptions options(bool read_only) {
    EnvOptions made;
    made.tables = kOneTable;
    made.read_only = read_only;
    made.writer_lock = path("writer");
    return made;
  }
  std::string path(const char* name) { return directory_.path() + "/" + name; }
  static std::string value_in(const Env& env) {
    const auto txn = must(ReadTxn::begin(env));
    const auto value = must(txn.get(0, "key"));
    return value ? std::string(*value) : "nothing";
  }

  varve::test::TempDirectory directory_;
  std::unique_ptr<io::FileSystem> files_;
};

TEST_F(EnvFilesTest, LmdbReadsTheFileThatWasOpenedWhateverTakesItsPlace) {
  const auto opened = must(EnvFiles::open(*files_, directory_.path(), options(true)));
  std::filesystem::rename(path("data.mdb"), path("moved"));
  std::ofstream(path("data.mdb")) << std::string(100000, 'x');
  EXPECT_EQ(value_in(must(Env::open(opened, options(true)))), "value");
}

TEST_F(EnvFilesTest, LinksAreRefusedAndNothingIsMadeBehindThem) {
  for (const char* name : {"data.mdb", "lock.mdb"}) {
    const auto target = path(name) + ".moved";
    std::filesystem::rename(path(name), target);
    std::filesystem::create_symlink(target, path(name));
    EXPECT_EQ(code_of(Env::open(*files_, directory_.path(), options(false))), ErrorCode::kCorrupt);
    std::filesystem::rename(target, path(name));
  }
  std::filesystem::remove(path("lock.mdb"));
  std::filesystem::create_symlink(path("new"), path("lock.mdb"));
  EXPECT_FALSE(Env::open(*files_, directory_.path(), options(true)).has_value());
  EXPECT_FALSE(std::filesystem::exists(path("new")));
}

TEST_F(EnvFilesTest, AReaderWhoDoesNotOwnItMakesNoFileAndKeepsWritersOut) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files to others";
  ASSERT_EQ(::chown(path("data.mdb").c_str(), kOther, kOther), 0);
  std::filesystem::remove(path("lock.mdb"));
  {
    const auto writer = must(files_->lock(path("writer")));
    EXPECT_EQ(code_of(Env::open(*files_, directory_.path(), options(true))), ErrorCode::kLocked);
  }
  const auto env = must(Env::open(*files_, directory_.path(), options(true)));
  EXPECT_EQ(value_in(env), "value");
  EXPECT_FALSE(std::filesystem::exists(path("lock.mdb")));
  EXPECT_EQ(code_of(files_->lock(path("writer"))), ErrorCode::kLocked);
}

TEST_F(EnvFilesTest, NoTemporaryNameStays) {
  const std::string temporary = testing::TempDir() + "/varve-names";
  std::filesystem::create_directory(temporary);
  ASSERT_EQ(::chmod(temporary.c_str(), 0700), 0);
  ::setenv("XDG_RUNTIME_DIR", temporary.c_str(), 1);
  const auto env = must(Env::open(*files_, directory_.path(), options(false)));
  ::unsetenv("XDG_RUNTIME_DIR");
  EXPECT_TRUE(std::filesystem::is_empty(temporary));
  std::filesystem::remove(temporary);
}

}  // namespace
}  // namespace varve::meta
