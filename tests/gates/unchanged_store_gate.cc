// SPDX-License-Identifier: Apache-2.0
// Storing a directory again opens and reads no file that has not changed. The kernel counts:
// inotify reports every opening and every read of a file in the directories that it watches.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/unique_fd.h"
#include "support/kernel_tick.h"
#include "support/temp_repository.h"

namespace varve {
namespace {

namespace fs = std::filesystem;
using test::must;

constexpr int kDirectories = 8;
constexpr int kFiles = 25;

struct Opened {
  int files = 0;
  int reads = 0;
};

class UnchangedStoreGate : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(watch_.valid());
    for (int d = 0; d < kDirectories; ++d) {
      const auto directory = source_ + "/d" + std::to_string(d);
      fs::create_directories(directory);
      for (int f = 0; f < kFiles; ++f) {
        write(directory + "/f" + std::to_string(f),
              test::noise(3000, static_cast<std::uint64_t>(d * kFiles + f)));
      }
    }
    for (const auto& entry : fs::recursive_directory_iterator(source_)) {
      if (!entry.is_directory()) continue;
      ASSERT_GE(::inotify_add_watch(watch_.get(), entry.path().c_str(), IN_OPEN | IN_ACCESS), 0);
    }
    must(Repository::create(path_, test::small_chunks(Codec::kNone)));
    repository_ = test::reopen(path_);
  }

  static void write(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }

  TransferReport store(const std::string& version) {
    StoreRequest request;
    request.series = "s";
    request.version = version;
    request.directory = source_;
    request.seals = true;
    request.settle_s = 0;
    // Files count as settled from the kernel's next tick on.
    test::wait_for_kernel_tick();
    (void)take();
    auto stored = must(repository_->store_version(request, {}));
    must(seal_stored(*repository_, stored));
    return stored.report;
  }

  /// Returns what happened to files since the last call.
  Opened take() {
    Opened opened;
    alignas(struct inotify_event) std::array<char, 65536> events{};
    while (true) {
      const ssize_t got = ::read(watch_.get(), events.data(), events.size());
      if (got <= 0) return opened;
      for (ssize_t at = 0; at < got;) {
        struct inotify_event event {};
        std::memcpy(&event, events.data() + at, sizeof event);
        at += static_cast<ssize_t>(sizeof event + event.len);
        if ((event.mask & IN_ISDIR) != 0) continue;
        opened.files += (event.mask & IN_OPEN) != 0 ? 1 : 0;
        opened.reads += (event.mask & IN_ACCESS) != 0 ? 1 : 0;
      }
    }
  }

  // /tmp may be in memory, as on Debian 13, and files of a tmpfs are read each time.
  const test::TempDirectory place_{"/var/tmp"};
  const std::string path_ = place_.path() + "/repo";
  const std::string source_ = place_.path() + "/source";
  const base::UniqueFd watch_{::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)};
  std::unique_ptr<Repository> repository_;
};

TEST_F(UnchangedStoreGate, AnUnchangedDirectoryIsNeitherOpenedNorRead) {
  EXPECT_EQ(store("v1").unchanged, 0U);
  EXPECT_GE(take().files, kDirectories * kFiles);
  const auto report = store("v2");
  const auto opened = take();
  EXPECT_EQ(opened.files, 0);
  EXPECT_EQ(opened.reads, 0);
  EXPECT_EQ(report.bytes, 0U);
  EXPECT_EQ(report.unchanged, static_cast<std::uint64_t>(kDirectories * kFiles));
}

TEST_F(UnchangedStoreGate, OnlyAChangedFileIsRead) {
  store("v1");
  write(source_ + "/d3/f7", test::noise(3000, 999));
  const auto report = store("v2");
  EXPECT_EQ(take().files, 1);
  EXPECT_EQ(report.bytes, 3000U);
  EXPECT_EQ(report.unchanged, static_cast<std::uint64_t>(kDirectories * kFiles - 1));
}

}  // namespace
}  // namespace varve
