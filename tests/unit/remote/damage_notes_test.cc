// SPDX-License-Identifier: Apache-2.0
#include "remote/damage_notes.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "io/posix_file_system.h"
#include "maintain/check_record.h"
#include "remote/replica_state.h"
#include "support/temp_repository.h"
#include "world.h"

namespace varve::test {
namespace {

using NotedNames = std::set<std::string>;

class DamageNotes : public testing::Test {
 protected:
  void SetUp() override { must(files_->make_directory(remote::replica_folder(root_))); }
  void record(bool has_read_all, const NotedNames& damaged) {
    remote::StoreCheckEnd end;
    end.has_read_all = has_read_all;
    end.noted = remote::read_damage_notes(*files_, root_);
    end.damaged = damaged;
    end.damages = damaged.size();
    clock_.seconds += 10;
    remote::record_store_check(*files_, root_, clock_, end);
  }
  std::uint64_t damages(CheckDepth depth) {
    for (const auto& check :
         maintain::read_earlier_checks(*files_, remote::replica_folder(root_))) {
      if (check.depth == depth) return check.damages;
    }
    return 0;
  }

  TempDirectory temp_;
  const std::string root_ = temp_.path();
  std::unique_ptr<io::FileSystem> files_ = io::make_posix_file_system();
  TestClock clock_;
};

TEST_F(DamageNotes, ALaterEndReplacesTheNamesAndKeepsTheTimeOfTheWholeCheck) {
  record(true, {"R/seg/a", "R/vol/b"});
  EXPECT_EQ(remote::read_damage_notes(*files_, root_), (NotedNames{"R/seg/a", "R/vol/b"}));
  EXPECT_EQ(damages(CheckDepth::kData), 2U);
  const auto read_at = clock_.seconds;
  record(false, {"R/vol/b", "R/cat/c"});
  EXPECT_EQ(remote::read_damage_notes(*files_, root_), (NotedNames{"R/vol/b", "R/cat/c"}));
  EXPECT_EQ(damages(CheckDepth::kData), 1U);
  record(false, {});
  EXPECT_TRUE(remote::read_damage_notes(*files_, root_).empty());
  EXPECT_EQ(damages(CheckDepth::kData), 0U);
  EXPECT_EQ(maintain::read_earlier_checks(*files_, remote::replica_folder(root_)).back().ended_at,
            read_at);
}

TEST_F(DamageNotes, EachFlippedByteGivesNoNames) {
  record(true, {"R/seg/a"});
  EXPECT_FALSE(remote::has_unnamed_damage(*files_, root_));
  const auto path = remote::replica_folder(root_) + "/damaged";
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  for (std::size_t at = 0; at < text.str().size(); ++at) {
    auto flipped = text.str();
    flipped[at] = static_cast<char>(flipped[at] ^ 1);
    std::ofstream(path) << flipped;
    EXPECT_TRUE(remote::read_damage_notes(*files_, root_).empty()) << at;
  }
  EXPECT_TRUE(remote::has_unnamed_damage(*files_, root_));
}

}  // namespace
}  // namespace varve::test
