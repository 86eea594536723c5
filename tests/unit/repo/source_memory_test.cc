// SPDX-License-Identifier: Apache-2.0
// store_version() of a directory that was stored before: what it reads, and that the version is
// equal to the directory in every case.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>

#include "io/file_system.h"
#include "repo/open_store.h"
#include "repo/source_memory.h"
#include "store/superblock_text.h"
#include "support/file_content.h"
#include "support/kernel_tick.h"
#include "support/temp_repository.h"
#include "varve/backup.h"
#include "varve/check.h"
#include "varve/repair.h"
#include "varve/repository.h"
#include "varve/restore.h"
#include "varve/retention.h"

namespace varve::test {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kSourceFiles =
    6;  // Names of the source that are no directories; two are of one file.

std::string content_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return varve::test::rest_of(in);
}

/// Returns one line for each entry: type, mode, times, links and content.
std::map<std::string, std::string> describe(const std::string& top) {
  std::map<std::string, std::string> lines;
  std::map<std::pair<dev_t, ino_t>, std::string> first;
  for (const auto& entry : fs::recursive_directory_iterator(top)) {
    struct stat status {};
    EXPECT_EQ(::lstat(entry.path().c_str(), &status), 0);
    const auto name = fs::relative(entry.path(), top).string();
    std::string line = std::to_string(status.st_mode) + " " +
                       std::to_string(status.st_mtim.tv_sec) + "." +
                       std::to_string(status.st_mtim.tv_nsec);
    if (S_ISLNK(status.st_mode)) line += " -> " + fs::read_symlink(entry.path()).string();
    if (S_ISREG(status.st_mode)) line += " " + content_of(entry.path());
    if (!S_ISDIR(status.st_mode)) {
      line += " " + std::to_string(status.st_nlink);
      auto& group = first[{status.st_dev, status.st_ino}];
      if (group.empty() || name < group) group = name;
    }
    char value[64] = {};
    const auto bytes = ::lgetxattr(entry.path().c_str(), "user.note", value, sizeof value);
    if (bytes >= 0) line.append(" note ").append(value, static_cast<std::size_t>(bytes));
    lines[name] = line;
  }
  return lines;
}

class SourceMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(source_ + "/folder/deep");
    write("a", "first");
    write("b", "second");
    write("folder/c", "third");
    write("folder/deep/d", "fourth");
    fs::create_symlink("target", source_ + "/link");
    fs::create_hard_link(source_ + "/a", source_ + "/folder/a2");
    must(Repository::create(path_, small_chunks(Codec::kZstd)));
    repository_ = reopen(path_);
  }

  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(at(name), std::ios::binary) << bytes;
  }
  [[nodiscard]] std::string at(const std::string& name) const { return source_ + "/" + name; }

  [[nodiscard]] StoreRequest request(const std::string& version) const {
    StoreRequest request;
    request.series = "s";
    request.version = version;
    request.directory = source_;
    request.seals = true;
    request.settle_s = 0;
    return request;
  }
  TransferReport store(const StoreRequest& request) {
    wait_for_kernel_tick();
    const auto stored = must(repository_->store_version(request, {}));
    const auto sealed = must(seal_stored(*repository_, stored));
    newest_ = must(repository_->reader(sealed.info.series, sealed.info.number));
    wait_for_kernel_tick();
    return stored.report;
  }
  TransferReport store(const std::string& version) { return store(request(version)); }

  /// Ends a store of the source after its first file.
  void interrupt_store(const std::string& version) {
    const auto stop = [](const TransferProgress& done) { return done.files_done < 1; };
    EXPECT_EQ(code_of(repository_->store_version(request(version), stop)), ErrorCode::kInterrupted);
  }

  void expect_equal() {
    const auto out = directory_.path() + "/out";
    fs::remove_all(out);
    const auto report = must(restore_version(*newest_, out, {}, {}));
    EXPECT_TRUE(report.problems.empty());
    EXPECT_EQ(describe(out), describe(source_));
  }

  // On a disk: a store reads all files of a file system in memory, whose times say too little.
  TempDirectory directory_{"/var/tmp"};
  const std::string source_ = directory_.path() + "/source";
  const std::string path_ = directory_.path() + "/r";
  std::unique_ptr<Repository> repository_;
  std::shared_ptr<VersionReader> newest_;
};

TEST_F(SourceMemoryTest, UnchangedFilesAreKeptAndAllOthersRead) {
  const std::map<std::string, std::function<void()>> changes{
      {"1 none", [] {}},
      {"2 content of the same size and mtime",
       [&] {
         struct stat before {};
         ASSERT_EQ(::stat(at("b").c_str(), &before), 0);
         write("b", "SECOND");
         const struct timespec times[2] = {before.st_atim, before.st_mtim};
         ASSERT_EQ(::utimensat(AT_FDCWD, at("b").c_str(), times, 0), 0);
       }},
      {"3 another file of the same name", [&] { fs::rename(at("folder/c"), at("b")); }},
      {"4 mode", [&] { ASSERT_EQ(::chmod(at("folder/deep/d").c_str(), 0600), 0); }},
      {"5 removed folder", [&] { fs::remove_all(at("folder")); }},
      {"6 a folder in place of a file",
       [&] {
         fs::remove(at("b"));
         fs::create_directories(at("b/inner"));
         write("b/inner/x", "x");
       }},
      {"7 a file in place of a folder",
       [&] {
         fs::remove_all(at("b"));
         write("b", "file");
       }},
      {"8 a new link", [&] { fs::create_hard_link(at("b"), at("z")); }},
      {"9 a changed link", [&] { write("z", "both"); }},
      {"A a link less", [&] { fs::remove(at("b")); }},
      {"B attributes of a folder",
       [&] {
         fs::create_directory(at("noted"));
         ASSERT_EQ(::setxattr(at("noted").c_str(), "user.note", "n", 1, 0), 0);
       }},
      {"C attributes removed",
       [&] { ASSERT_EQ(::removexattr(at("noted").c_str(), "user.note"), 0); }},
      {"D another target",
       [&] {
         fs::remove(at("link"));
         fs::create_symlink("TARGET", at("link"));
       }},
  };
  EXPECT_EQ(store("0").unchanged, 0U);
  expect_equal();
  for (const auto& [name, change] : changes) {
    SCOPED_TRACE(name);
    change();
    const auto report = store(name);
    EXPECT_TRUE(report.problems.empty());
    expect_equal();
    const auto group = std::string("0124").find(name[0]);
    constexpr std::uint64_t kUnchanged[] = {0, kSourceFiles - 1, kSourceFiles - 2,
                                            kSourceFiles - 3};
    if (group != std::string::npos) {
      EXPECT_EQ(report.unchanged, kUnchanged[group]);
    }
  }
}

TEST_F(SourceMemoryTest, AFileChangedShortlyBeforeTheStoreIsReadAgain) {
  auto first = request("1");
  first.settle_s = 3600;
  store(first);
  EXPECT_EQ(store("2").unchanged, 0U);
  EXPECT_EQ(store("3").unchanged, kSourceFiles - 1);
}

TEST_F(SourceMemoryTest, ReadAllReadsEveryFile) {
  store("1");
  auto all = request("2");
  all.read_all = true;
  EXPECT_EQ(store(all).unchanged, 0U);
  expect_equal();
}

TEST_F(SourceMemoryTest, AnInterruptedStoreContinuesAndRemovesWhatTheSourceLost) {
  store("1");
  write("b", "changed");
  fs::remove_all(at("folder/deep"));
  interrupt_store("2");
  repository_.reset();
  repository_ = reopen(path_);
  EXPECT_GT(store("2").unchanged, 0U);
  expect_equal();
}

TEST_F(SourceMemoryTest, AStoreUnderTheNameOfTheNewestVersionIsRefused) {
  store("1");
  store("2");
  write("b", "changed");
  EXPECT_EQ(code_of(repository_->store_version(request("2"), {})), ErrorCode::kExists);
  EXPECT_EQ(code_of(repository_->store_version(request("1"), {})), ErrorCode::kExists);
  const auto series = must(repository_->find_series("s")).id;
  EXPECT_TRUE(must(repository_->open_versions(series)).empty());
  EXPECT_EQ(must(repository_->find_version(series, "2")).number, newest_->info().number);
  EXPECT_EQ(read_sealed(*newest_, "b"), "second");
}

TEST_F(SourceMemoryTest, AStoreUnderAnotherNameContinuesAnInterruptedOne) {
  store("1");
  write("b", "changed");
  fs::remove_all(at("folder/deep"));
  interrupt_store("2");
  repository_.reset();
  repository_ = reopen(path_);
  EXPECT_GT(store("3").unchanged, 0U);
  expect_equal();
  const auto series = must(repository_->find_series("s")).id;
  EXPECT_EQ(must(repository_->versions(series)).size(), 2U);
  EXPECT_EQ(code_of(repository_->find_version(series, "2")), ErrorCode::kNotFound);
}

TEST_F(SourceMemoryTest, NothingSealsTheVersionOfAnInterruptedStore) {
  interrupt_store("1");
  const auto series = must(repository_->find_series("s")).id;
  EXPECT_EQ(code_of(repository_->open_version(series, "2", {})), ErrorCode::kBusy);
  auto other = request("2");
  other.directory = source_ + "/folder";
  EXPECT_EQ(code_of(repository_->store_version(other, {})), ErrorCode::kBusy);
  other.version = "1";
  EXPECT_EQ(code_of(repository_->store_version(other, {})), ErrorCode::kBusy);
  auto kept_open = request("2");
  kept_open.seals = false;
  EXPECT_EQ(code_of(repository_->store_version(kept_open, {})), ErrorCode::kBusy);
  store("1");
  expect_equal();
  must(repository_->open_version(series, "2", {}));
}

TEST_F(SourceMemoryTest, AnEmptyVersionOfAnInterruptedStoreStopsNoOtherSource) {
  {
    const auto killed = request("1");
    const auto files = must(store::open_folder(path_, true));
    repo::SourceMemory memory(*repository_, *files, killed, source_);
    must(repo::open_or_continue(*repository_, *files, killed, memory, {}));
  }
  const auto series = must(repository_->find_series("s")).id;
  ASSERT_EQ(must(repository_->open_versions(series)).size(), 1U);
  repository_.reset();
  repository_ = reopen(path_);
  auto other = request("2");
  other.directory = source_ + "/folder";
  const auto stored = must(repository_->store_version(other, {}));
  must(seal_stored(*repository_, stored));
  ASSERT_EQ(must(repository_->versions(series)).size(), 1U);
  EXPECT_EQ(must(repository_->versions(series)).front().name, "2");
  // An empty version that a user has opened stays.
  must(repository_->open_version(series, "3", {}));
  other.version = "4";
  EXPECT_EQ(code_of(repository_->store_version(other, {})), ErrorCode::kBusy);
}

TEST_F(SourceMemoryTest, ACrashAfterTheCloneLeavesAVersionThatTheStoreContinues) {
  store("1");
  fs::remove_all(at("folder"));
  // The file of the new version cannot be written, so the store ends between the two steps.
  const auto states = path_ + "/series/00000001/sources-00000002.dat.tmp";
  fs::create_directory(states);
  EXPECT_FALSE(repository_->store_version(request("2"), {}));
  repository_.reset();
  fs::remove(states);
  repository_ = reopen(path_);
  auto other = request("2");
  other.directory = directory_.path() + "/other";
  fs::create_directory(other.directory);
  EXPECT_EQ(code_of(repository_->store_version(other, {})), ErrorCode::kBusy);
  EXPECT_GT(store("2").unchanged, 0U);
  expect_equal();
  EXPECT_FALSE(fs::exists(path_ + "/series/00000001/sources-00000000.dat.tmp"));
}

TEST_F(SourceMemoryTest, AUsersCloneKeepsItsOtherFiles) {
  store("1");
  const auto series = must(repository_->find_series("s")).id;
  must(repository_->clone_version(series, newest_->info().number, "2"));
  write_file(*must(repository_->writer(series)), kRootIno, "own", "own");
  const auto report = store("2");
  EXPECT_EQ(report.unchanged, 0U);
  EXPECT_EQ(read_sealed(*newest_, "own"), "own");
  // The states of such a version are unknown.
  EXPECT_EQ(store("3").unchanged, 0U);
  expect_equal();
}

TEST_F(SourceMemoryTest, AFileThatAnotherProgramChangedInTheVersionIsReadAgain) {
  store("1");
  interrupt_store("2");
  const auto series = must(repository_->find_series("s")).id;
  {
    const auto writer = must(repository_->writer(series));
    const auto entry = must(writer->lookup(kRootIno, "b"));
    ASSERT_TRUE(entry.as_in_base);
    must(must(writer->open(entry.ino, true))->write(0, base::as_bytes("SECOND")));
    AttributeChange change;
    change.mtime = entry.attributes.mtime;
    must(writer->set_attributes(entry.ino, change));
  }
  store("2");
  expect_equal();
}

TEST_F(SourceMemoryTest, AChangeThroughAnOldSharedMappingIsRead) {
  const int fd = ::open(at("b").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  void* const mapped = ::mmap(nullptr, 6, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  auto* const bytes = static_cast<char*>(mapped);
  bytes[0] = 'S';  // The kernel sets the ctime now, and not again while the page stays changed.
  store("1");
  bytes[1] = 'E';
  store("2");
  expect_equal();
  bytes[2] = 'C';
  store("3");
  expect_equal();
  ::munmap(mapped, 6);
  ::close(fd);
}

TEST_F(SourceMemoryTest, DamagedStatesAreNotUsed) {
  store("1");
  for (int round = 0; round < 3; ++round) {
    const auto number = std::to_string(round + 1);
    const auto file = path_ + "/series/00000001/sources-0000000" + number + ".dat";
    auto bytes = content_of(file);
    ASSERT_EQ(bytes.size(), 8192U);
    bytes[round == 0 ? 20U : round == 1 ? 4096U + 30U : 4096U + 8 * 400] ^= 1;
    std::ofstream(file, std::ios::binary) << (round == 2 ? bytes.substr(0, 5000) : bytes);
    EXPECT_EQ(store("after " + number).unchanged, 0U);
    expect_equal();
  }
}

TEST_F(SourceMemoryTest, DamagedStatesAreNotedByACheckAndRemovedByARepair) {
  store("1");
  EXPECT_TRUE(must(repository_->check({}, {})).notes.empty());
  const auto file = path_ + "/series/00000001/sources-00000001.dat";
  auto bytes = content_of(file);
  bytes[4096 + 30] ^= 1;
  std::ofstream(file, std::ios::binary) << bytes;
  const auto report = must(repository_->check({}, {}));
  EXPECT_TRUE(report.damages.empty());
  ASSERT_EQ(report.notes.size(), 1U);
  EXPECT_EQ(report.notes[0].where, file);
  newest_.reset();
  repository_.reset();
  const auto planned = must(Repair::plan(path_, {}, false, {}));
  ASSERT_EQ(planned->steps().size(), 1U);
  EXPECT_EQ(planned->steps()[0].kind, RepairStep::Kind::kDerived);
  must(planned->execute({}));
  EXPECT_FALSE(fs::exists(file));
}

TEST_F(SourceMemoryTest, ExcludedEntriesGoAndTheOthersAreNotRead) {
  store("1");
  auto without = request("2");
  without.options.excludes = {"b", "/folder/deep/"};
  const auto report = store(without);
  EXPECT_EQ(report.unchanged, kSourceFiles - 3);  // Without b, d and the second name of a.
  EXPECT_EQ(report.removed, 2U);
  EXPECT_EQ(newest_->info().entries, 5U);
  fs::rename(at("b"), directory_.path() + "/b");
  fs::rename(at("folder/deep"), directory_.path() + "/deep");
  const struct timespec times[2] = {{1, 1}, {0, UTIME_OMIT}};
  ASSERT_EQ(::utimensat(AT_FDCWD, at("folder").c_str(), times, 0), 0);
  EXPECT_EQ(store("3").unchanged, kSourceFiles - 3);
  expect_equal();
  // Without the pattern, all files are stored again.
  fs::rename(directory_.path() + "/b", at("b"));
  fs::rename(directory_.path() + "/deep", at("folder/deep"));
  EXPECT_EQ(store("4").unchanged, kSourceFiles - 3);
  expect_equal();
  EXPECT_EQ(store("5").unchanged, kSourceFiles - 1);
}

TEST_F(SourceMemoryTest, OnlyUnchangedDirectoriesHaveTheSameContentId) {
  store("1");
  const auto first = newest_;
  fs::remove(at("folder/c"));
  store("2");
  const auto id = [](VersionReader& version, Rank directory, const char* name) {
    return must(version.lookup(directory, name)).content_id;
  };
  const Rank before = must(first->lookup(0, "folder")).rank;
  const Rank after = must(newest_->lookup(0, "folder")).rank;
  EXPECT_NE(id(*first, before, "deep"), 0U);
  EXPECT_EQ(id(*first, before, "deep"), id(*newest_, after, "deep"));
  EXPECT_NE(id(*first, 0, "folder"), id(*newest_, 0, "folder"));
  EXPECT_EQ(id(*first, 0, "a"), 0U);
}

TEST_F(SourceMemoryTest, AWrongPatternOpensNoVersion) {
  auto wrong = request("1");
  wrong.options.excludes = {"["};
  EXPECT_EQ(code_of(repository_->store_version(wrong, {})), ErrorCode::kInvalid);
  EXPECT_EQ(code_of(repository_->find_series("s")), ErrorCode::kNotFound);
}

TEST_F(SourceMemoryTest, AnotherSourceAndARemovedVersionAreNoHelp) {
  store("1");
  const auto other = directory_.path() + "/other";
  fs::create_directory(other);
  std::ofstream(other + "/a") << "first";
  auto from_other = request("2");
  from_other.directory = other;
  EXPECT_EQ(store(from_other).unchanged, 0U);
  EXPECT_EQ(must(newest_->get(0)).attributes.size, 1U);
  EXPECT_EQ(store("3").unchanged, 0U);
  expect_equal();
  const auto info = newest_->info();
  newest_.reset();
  must(repository_->delete_versions(info.series, {info.number}));
  EXPECT_EQ(store("4").unchanged, 0U);
  expect_equal();
}

}  // namespace
}  // namespace varve::test
