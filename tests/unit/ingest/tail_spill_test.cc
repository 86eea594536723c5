// SPDX-License-Identifier: Apache-2.0
#include "ingest/tail_spill.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "support/sealed_memory.h"
#include "support/temp_repository.h"

namespace varve::ingest {
namespace {

using varve::test::must;
using varve::test::noise;

constexpr std::size_t kSlotBytes = 20000;

std::string read(TailSpill& spill, const TailSpill::Slot& slot) {
  std::string out(slot.bytes, '\0');
  must(spill.read(slot, std::as_writable_bytes(std::span(out))));
  return out;
}

class TailSpillTest : public testing::TestWithParam<bool> {
 protected:
  TailSpillTest() {
    auto disk = io::make_memory_file_system();
    disk_ = disk.get();
    files_ = GetParam() ? varve::test::seal_all(std::move(disk), varve::test::random_keys())
                        : std::move(disk);
  }
  TailSpill::Slot put(TailSpill& spill, const std::string& tail) {
    return must(spill.put(base::as_bytes(tail)));
  }

  io::FileSystem* disk_ = nullptr;
  std::unique_ptr<io::FileSystem> files_;
};

TEST_P(TailSpillTest, SlotsAreUsedAgain) {
  TailSpill spill(*files_, "tails", kSlotBytes);
  const auto one = put(spill, noise(kSlotBytes, 1));
  const auto two = put(spill, noise(10, 2));
  const auto three = put(spill, noise(5000, 3));
  EXPECT_EQ(read(spill, one), noise(kSlotBytes, 1));
  spill.free(two);
  const auto four = put(spill, noise(19000, 4));
  EXPECT_EQ(four.number, two.number);
  EXPECT_EQ(read(spill, four), noise(19000, 4));
  EXPECT_EQ(read(spill, three), noise(5000, 3));
}

TEST_P(TailSpillTest, TheSlotsOfACrashedProcessDoNotMatter) {
  const auto left = must(disk_->open("tails", io::OpenMode::kReadWrite));
  must(left->write_at(0, base::as_bytes(noise(30000, 5))));
  TailSpill spill(*files_, "tails", kSlotBytes);
  EXPECT_EQ(read(spill, put(spill, noise(100, 6))), noise(100, 6));
}

TEST_P(TailSpillTest, AnOlderContentOfASlotIsNotRead) {
  TailSpill spill(*files_, "tails", kSlotBytes);
  spill.free(put(spill, noise(1000, 7)));
  const auto file = must(disk_->open("tails", io::OpenMode::kReadWrite));
  const auto older = must(disk_->read_file("tails", 1U << 20));
  const auto slot = put(spill, noise(1000, 8));
  EXPECT_EQ(read(spill, slot), noise(1000, 8));
  must(file->write_at(0, base::as_bytes(older)));
  std::string out(slot.bytes, '\0');
  EXPECT_FALSE(spill.read(slot, std::as_writable_bytes(std::span(out))));
}

INSTANTIATE_TEST_SUITE_P(Files, TailSpillTest, testing::Bool(),
                         [](const auto& of) { return of.param ? "sealed" : "plain"; });

}  // namespace
}  // namespace varve::ingest
