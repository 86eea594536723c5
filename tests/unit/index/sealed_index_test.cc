// SPDX-License-Identifier: Apache-2.0
// The Zero-Chunk index on sealed files after crashes.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "index/zero_files.h"
#include "support/sealed_memory.h"
#include "support/temp_repository.h"

namespace varve::index {
namespace {

using test::must;

constexpr const char* kLog = "/p/index-zero-00000001.log";
constexpr const char* kBins = "/p/index-zero-00000001.bins";

class SealedZeroFiles : public testing::Test {
 protected:
  SealedZeroFiles() {
    auto disk = io::make_memory_file_system();
    disk_ = disk.get();
    files_ = test::seal_all(std::move(disk), test::random_keys());
    must(files_->make_directory("/p"));
  }
  std::unique_ptr<ZeroFiles> open() { return ZeroFiles::open(*files_, "/p", 8); }
  /// Returns, and replaces, the bytes on disk.
  std::string raw(const char* path) { return must(disk_->read_file(path, 1U << 20)); }
  void set_raw(const char* path, const std::string& bytes) {
    const auto file = must(disk_->open(path, io::OpenMode::kReadWrite));
    must(file->truncate(0));
    must(file->write_at(0, base::as_bytes(bytes)));
  }
  static base::IdRuns ids(std::uint32_t first, std::uint32_t count) {
    return base::IdRuns::from({{ChunkId::make(VersionNumber{1}, first), count}});
  }

  io::FileSystem* disk_ = nullptr;
  std::unique_ptr<io::FileSystem> files_;
};

TEST_F(SealedZeroFiles, ATornCommitLeavesTheOneBefore) {
  auto zero = open();
  must(zero->write(zero->add(11), test::noise(700, 1)));
  must(zero->commit(ids(0, 5)));
  const auto log = raw(kLog);
  const auto bins = raw(kBins);
  must(zero->write(zero->add(22), test::noise(900, 2)));
  must(zero->write(0, test::noise(50, 3)));
  must(zero->commit(ids(5, 5)));
  const auto log_after = raw(kLog);
  const auto bins_after = raw(kBins);
  ASSERT_TRUE(log_after.starts_with(log)) << "a promised byte was written again";
  ASSERT_TRUE(bins_after.starts_with(bins)) << "a promised byte was written again";
  // A crash leaves some bytes of the second commit, and zeros.
  for (std::size_t kept = log.size(); kept <= log_after.size(); kept += 13) {
    for (const bool zeros : {false, true}) {
      auto torn = log_after.substr(0, kept);
      if (zeros) torn.resize(log_after.size());
      set_raw(kLog, torn);
      set_raw(kBins,
              bins_after.substr(0, bins.size() + (kept * 31) % (bins_after.size() - bins.size())));
      auto again = open();
      const auto parts = again->told() == ids(0, 10) ? 2U : 1U;
      ASSERT_EQ(again->bins().size(), parts) << kept;
      if (parts == 1) {
        EXPECT_EQ(must(again->read(0)), test::noise(700, 1)) << kept;
        EXPECT_EQ(again->told(), ids(0, 5));
      }
      // The next commit works, and stays.
      const auto bin = again->add(33);
      must(again->write(bin, "third"));
      must(again->commit(ids(20, 1)));
      EXPECT_TRUE(raw(kLog).starts_with(log));
      again = open();
      EXPECT_EQ(must(again->read(bin)), "third") << kept;
    }
  }
}

TEST_F(SealedZeroFiles, NothingIsInTheClear) {
  auto zero = open();
  const auto content = test::noise(3000, 4);
  must(zero->write(zero->add(0x1122334455667788), content));
  must(zero->commit(ids(0, 5)));
  for (const char* path : {kLog, kBins}) {
    const auto bytes = raw(path);
    EXPECT_EQ(bytes.find(content.substr(100, 8)), std::string::npos);
    EXPECT_EQ(bytes.find("\x88\x77\x66\x55\x44\x33\x22\x11"), std::string::npos);
  }
}

}  // namespace
}  // namespace varve::index
