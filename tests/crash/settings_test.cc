// SPDX-License-Identifier: Apache-2.0
// The power goes, or a call fails, while the settings of a series change for the first time. No
// record that an older Varve takes for damage may be on disk without its name in the superblock.
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>

#include "disk_model.h"
#include "disk_recorder.h"
#include "format/superblock.h"
#include "support/file_content.h"
#include "support/temp_repository.h"
#include "support/test_encryption.h"
#include "varve/repair.h"

namespace varve::test {
namespace {

class SettingsCrash : public testing::Test {
 protected:
  SettingsCrash()
      : path_(std::filesystem::canonical(directory_.path()).string() + "/r"),
        image_(directory_.path() + "/image") {}

  void make() {
    std::filesystem::remove_all(path_);
    must(Repository::create(path_, small_chunks(Codec::kNone), chosen_encryption()));
    const auto repository = reopen(path_, keyed());
    for (const char* name : {"a", "b", "c"}) must(repository->create_series(name));
    must(repository->close());
  }
  static Result<void> change(Repository& repository) {
    VARVE_TRY_ASSIGN(const auto b, repository.find_series("b"));
    VARVE_TRY(repository.change_series(b.id, {.rewrite = Rewrite::kHar}));
    return {};
  }
  static bool needs_pool(const std::string& path) {
    std::ifstream in(path + "/varve.repo", std::ios::binary);
    const std::string text = varve::test::rest_of(in);
    return must(format::decode_superblock(text)).needs_pool;
  }
  // Examines a repository after a crash. Returns whether it has the change.
  static bool is_changed(const std::string& path) {
    auto reading = keyed();
    reading.read_only = true;
    const auto rewrite = must(reopen(path, reading)->find_series("b")).rewrite;
    const bool changed = rewrite == Rewrite::kHar;
    EXPECT_TRUE(changed || rewrite == Rewrite::kNone);
    EXPECT_TRUE(needs_pool(path) || !changed) << "an older Varve would take the record for damage";
    // The next writer completes the labels: with them, a lost superblock has the name again.
    {
      const auto repository = reopen(path, keyed());
      EXPECT_EQ(must(repository->find_series("b")).rewrite, rewrite);
      must(change(*repository));
      must(repository->close());
    }
    std::filesystem::remove(path + "/varve.repo");
    must(must(Repair::plan(path, keyed_repair(), false, {}))->execute({}));
    EXPECT_TRUE(needs_pool(path)) << "a copy in the labels lacks the name";
    return changed;
  }

  TempDirectory directory_;
  const std::string path_;
  const std::string image_;
};

TEST_F(SettingsCrash, APowerCutLeavesNoRecordWithoutItsFeature) {
  make();
  DiskModel model(path_);
  std::vector<DiskCall> calls;
  std::uint64_t committed = 0;
  {
    DiskRecorder disk(path_);
    const auto repository = reopen(path_, keyed());
    must(change(*repository));
    committed = disk.calls();
    must(repository->close());
    calls = disk.take();
  }
  ASSERT_GT(committed, 8U);
  for (std::uint64_t i = 0; i <= calls.size(); ++i) {
    for (const auto survives : {Survives::kNothing, Survives::kSome, Survives::kEverything}) {
      model.write_image(image_, survives, i);
      const bool changed = is_changed(image_);
      EXPECT_TRUE(changed || i < committed) << "a finished change is lost";
      ASSERT_FALSE(HasFailure()) << "power cut after " << i << " of " << calls.size() << " calls";
    }
    if (i < calls.size()) model.apply(calls[i]);
  }
}

TEST_F(SettingsCrash, AFailedCallHarmsNothing) {
  make();
  std::uint64_t all = 0;
  {
    DiskRecorder disk(path_);
    const auto repository = reopen(path_, keyed());
    must(change(*repository));
    must(repository->close());
    all = disk.calls();
  }
  for (const int errno_value : {EIO, ENOSPC}) {
    for (std::uint64_t i = 0; i < all; ++i) {
      make();
      bool told = false;
      {
        DiskRecorder disk(path_);
        disk.fail(i, errno_value, false);
        auto opened = Repository::open(path_, keyed());
        if (opened) {
          told = change(**opened).has_value();
          static_cast<void>((*opened)->close());
          opened = Error(ErrorCode::kNotFound, "let go");
        }
      }
      const bool changed = is_changed(path_);
      EXPECT_TRUE(changed || !told) << "call " << i << " failed unnoticed";
      ASSERT_FALSE(HasFailure()) << "call " << i << " of " << all << ", errno " << errno_value;
    }
  }
}

}  // namespace
}  // namespace varve::test
