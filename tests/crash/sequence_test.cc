// SPDX-License-Identifier: Apache-2.0
// The power of a repository's disk goes while a machine changes it, and the machine remembers all
// that it wrote. No state of the disk may then seem to be older than the machine remembers: not as
// it is, and not after a repair of a lost catalog.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "disk_model.h"
#include "disk_recorder.h"
#include "support/temp_repository.h"
#include "varve/arrange.h"
#include "varve/keys.h"
#include "varve/repair.h"
#include "varve/retention.h"

namespace varve::test {
namespace {

class SequenceCrash : public testing::Test {
 protected:
  SequenceCrash()
      : root_(std::filesystem::canonical(directory_.path()).string() + "/root"),
        lost_(directory_.path() + "/lost"),
        kept_(directory_.path() + "/kept") {
    std::filesystem::create_directory(root_);
    must(Repository::create(root_ + "/r", small_chunks(Codec::kNone), encrypted()));
  }

  static OpenOptions options(const std::string& memory, bool reads) {
    auto chosen = with_key(quiet_options());
    chosen.memory_folder = memory + "/state";
    chosen.read_only = reads;
    return chosen;
  }
  static VersionNumber seal(Repository& repository, SeriesId id, const std::string& name) {
    const auto version = must(repository.open_version(id, name, folder()));
    write_file(*must(repository.writer(id)), kRootIno, "f", noise(20'000, 1) + name);
    must(repository.seal(id, version.number, name, SealMode::kEnd, SealWriters::kRefuse));
    return version.number;
  }
  // Makes each kind of change that counts.
  void live() const {
    {
      const auto repository = reopen(root_ + "/r", options(root_, false));
      const auto a = must(repository->create_series("a")).id;
      const auto b = must(repository->create_series("b")).id;
      const auto first = seal(*repository, a, "1");
      seal(*repository, b, "1");
      const auto second = seal(*repository, a, "2");
      must(repository->rename_version(a, second, "two"));
      must(repository->lock_version(a, second, {4'000'000'000, 0}));
      must(repository->delete_versions(a, {first}));
      must(repository->set_arrange_settings({.batch = 3}));
      must(repository->arrange(a, {}));
      must(repository->create_series("c"));
      must(repository->remove_series("c"));
      must(repository->close());
    }
    const auto keys = must(KeySlots::open(root_ + "/r", options(root_, false)));
    must(keys->add({.key = test_key('x')}));
    must(keys->close());
  }

  TempDirectory directory_;
  const std::string root_;  // Has the repository and the machine's memory.
  const std::string lost_;
  const std::string kept_;
};

TEST_F(SequenceCrash, NoCrashSeemsToBeAnOlderState) {
  DiskModel model(root_);
  std::vector<DiskCall> calls;
  {
    DiskRecorder disk(root_);
    live();
    calls = disk.take();
  }
  ASSERT_GT(calls.size(), 300U);
  const char* const wanted = std::getenv("VARVE_TEST_CRASHES");
  const std::uint64_t number = wanted == nullptr ? 60 : std::strtoull(wanted, nullptr, 10);
  const std::uint64_t step = number == 0 ? 1 : std::max<std::uint64_t>(calls.size() / number, 1);
  std::uint64_t moments = 0;
  std::uint64_t remembered = 0;
  for (std::uint64_t i = 0; i <= calls.size(); ++i) {
    if (i % step == 0) {
      model.write_image(lost_, i / step % 2 == 0 ? Survives::kNothing : Survives::kSome, i);
      model.write_image(kept_, Survives::kEverything, i);
      SCOPED_TRACE("power cut after " + std::to_string(i) + " of " + std::to_string(calls.size()) +
                   " calls");
      ++moments;
      if (std::filesystem::exists(kept_ + "/state")) ++remembered;
      const auto read = Repository::open(lost_ + "/r", options(kept_, true));
      ASSERT_TRUE(read) << read.error().message();
      must((*read)->close());  // Waits until its number is remembered.
      // A reader remembers what the catalog has, perhaps before the labels have it.
      model.write_image(kept_, Survives::kEverything, i);
      std::filesystem::remove_all(lost_ + "/r/catalog");
      RepairOptions how;
      how.key = with_key({}).key;
      must(must(Repair::plan(lost_ + "/r", how, false, {}))->execute({}));
      const auto repaired = Repository::open(lost_ + "/r", options(kept_, false));
      ASSERT_TRUE(repaired) << "after a repair: " << repaired.error().message();
      must((*repaired)->close());
    }
    if (i < calls.size()) model.apply(calls[i]);
  }
  EXPECT_GT(remembered * 6, moments) << "the machine remembers too little for this test";
}

// The test can fail: a disk that ignores syncs loses what the machine remembers.
TEST_F(SequenceCrash, ADiskThatIgnoresSyncsIsFound) {
  DiskModel model(root_);
  std::vector<DiskCall> calls;
  {
    DiskRecorder disk(root_);
    disk.ignore_syncs();
    live();
    calls = disk.take();
  }
  for (const auto& call : calls) model.apply(call);
  model.write_image(lost_, Survives::kNothing, 1);
  model.write_image(kept_, Survives::kEverything, 1);
  EXPECT_EQ(code_of(Repository::open(lost_ + "/r", options(kept_, true))), ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace varve::test
