// SPDX-License-Identifier: Apache-2.0
// The power goes, or a call fails, while a damaged file is corrected.
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <vector>

#include "disk_model.h"
#include "disk_recorder.h"
#include "io/posix_file_system.h"
#include "store/folder_store.h"
#include "support/temp_repository.h"

namespace varve::test {
namespace {

constexpr SegmentNumber kSegment{1};
constexpr std::size_t kBytes = (2U << 20) + 5000;

class CorrectionCrash : public testing::Test {
 protected:
  CorrectionCrash()
      : path_(std::filesystem::canonical(directory_.path()).string() + "/s"),
        image_(directory_.path() + "/image"),
        files_(io::make_posix_file_system()),
        damaged_(noise(kBytes, 1)),
        corrected_(damaged_),
        store_(*files_, path_) {
    for (const auto& [offset, bytes] : {std::pair(5000U, 16384U), std::pair(1'500'000U, 700U)}) {
      store::Correction one;
      one.offset = offset;
      one.bytes.assign(bytes, std::byte{0x5a});
      corrected_.replace(offset, bytes, std::string(bytes, '\x5a'));
      corrections_.push_back(std::move(one));
    }
  }
  void damage() {
    std::filesystem::remove_all(path_);
    EXPECT_TRUE(store_.prepare());
    const auto text = std::as_bytes(std::span(damaged_));
    const std::vector<std::span<const std::byte>> parts{text};
    EXPECT_TRUE(store_.put(kSegment, parts));
  }
  // Returns whether the file is the corrected one. It must be that or the damaged one.
  bool is_corrected(const std::string& path) {
    store::FolderStore found(*files_, path);
    EXPECT_TRUE(found.remove_unfinished(store::StoredKind::kSegments));
    const auto names = files_->list(path + "/active");
    EXPECT_TRUE(names && names->size() == 1) << "something is left over";
    const auto text = files_->read_file(found.path(kSegment), 2 * kBytes);
    EXPECT_TRUE(text) << "the file is gone";
    if (!text) return false;
    EXPECT_TRUE(*text == damaged_ || *text == corrected_) << "other bytes have changed";
    return *text == corrected_;
  }

  TempDirectory directory_;
  const std::string path_;
  const std::string image_;
  const std::unique_ptr<io::FileSystem> files_;
  const std::string damaged_;
  std::string corrected_;
  std::vector<store::Correction> corrections_;
  store::FolderStore store_;
};

TEST_F(CorrectionCrash, APowerCutLeavesTheDamagedFileOrTheCorrectedOne) {
  damage();
  DiskModel model(path_);
  std::vector<DiskCall> calls;
  {
    DiskRecorder disk(path_);
    ASSERT_TRUE(store_.correct(kSegment, corrections_));
    calls = disk.take();
  }
  ASSERT_GT(calls.size(), 4U);
  for (std::uint64_t i = 0; i <= calls.size(); ++i) {
    for (const auto survives : {Survives::kNothing, Survives::kSome, Survives::kEverything}) {
      model.write_image(image_, survives, i);
      const bool corrected = is_corrected(image_);
      if (i == calls.size()) {
        EXPECT_TRUE(corrected) << "a finished correction is lost";
      }
      ASSERT_FALSE(HasFailure()) << "power cut after " << i << " of " << calls.size() << " calls";
    }
    if (i < calls.size()) model.apply(calls[i]);
  }
}

TEST_F(CorrectionCrash, AFailedCallHarmsNothing) {
  damage();
  std::uint64_t all = 0;
  {
    DiskRecorder disk(path_);
    ASSERT_TRUE(store_.correct(kSegment, corrections_));
    all = disk.calls();
  }
  for (const int errno_value : {EIO, ENOSPC}) {
    for (std::uint64_t i = 0; i < all; ++i) {
      damage();
      bool told = false;
      {
        DiskRecorder disk(path_);
        disk.fail(i, errno_value, false);
        told = store_.correct(kSegment, corrections_).has_value();
      }
      const bool corrected = is_corrected(path_);
      EXPECT_TRUE(corrected || !told) << "call " << i << " failed unnoticed";
      ASSERT_FALSE(HasFailure()) << "call " << i << " of " << all;
    }
  }
}

}  // namespace
}  // namespace varve::test
