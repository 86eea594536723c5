// SPDX-License-Identifier: Apache-2.0
// Compares the heat of slots with the published scan, which looks at every slot at each access.
#include "index/slot_heat.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

namespace varve::index {
namespace {

/// The scan: an access heats one slot, and cools each other one.
class Scan {
 public:
  explicit Scan(std::uint32_t step) : step_(step) {}
  void use(Slot slot, bool is_new) {
    for (auto& [other, heat] : heat_) {
      if (other != slot && heat > 0) --heat;
    }
    auto& heat = heat_[slot];
    heat = is_new ? step_ : std::min(SlotHeat::kStepsMax * step_, heat + step_);
  }
  void remove(Slot slot) { heat_.erase(slot); }
  [[nodiscard]] std::size_t cold() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(heat_, [](const auto& one) { return one.second == 0; }));
  }
  [[nodiscard]] const std::map<Slot, std::uint32_t>& heat() const { return heat_; }

 private:
  const std::uint32_t step_;
  std::map<Slot, std::uint32_t> heat_;
};

void compare(std::uint32_t step, std::uint64_t accesses, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::exponential_distribution<double> near(1 / 8.0);
  SlotHeat heat(step);
  Scan scan(step);
  for (std::uint64_t i = 0; i < accesses; ++i) {
    const auto slot =
        random() % 4 != 0 ? static_cast<Slot>(near(random)) % 60 : static_cast<Slot>(random() % 60);
    const bool is_new = !scan.heat().contains(slot);
    if (is_new) heat.add(slot, 0);
    heat.use(slot, is_new);
    scan.use(slot, is_new);
    ASSERT_EQ(heat.cold(), scan.cold()) << "access " << i;
    if (random() % 50 == 0 && heat.cold() != 0) {
      const Slot cold = heat.coldest();
      ASSERT_EQ(scan.heat().at(cold), 0U);
      heat.remove(cold);
      scan.remove(cold);
    }
    if (i % 97 != 0) continue;
    for (const auto& [one, its] : scan.heat()) ASSERT_EQ(heat.heat(one), its) << "access " << i;
  }
}

TEST(SlotHeatTest, EqualsTheScanOfAllSlots) {
  compare(255, 400'000, 1);
  compare(7, 400'000, 2);
  compare(63, 100'000, 3);
  compare(1, 100'000, 4);
}

TEST(SlotHeatTest, SlotKeepsTheHeatThatItIsAddedWith) {
  SlotHeat heat(3);
  heat.add(0, 2);
  heat.add(1, 0);
  heat.add(2, 1000);
  EXPECT_EQ(heat.heat(0), 2U);
  EXPECT_EQ(heat.heat(2), 3 * SlotHeat::kStepsMax);
  EXPECT_EQ(heat.cold(), 1U);
  EXPECT_EQ(heat.coldest(), 1U);
  heat.use(2);
  heat.use(2);
  EXPECT_EQ(heat.heat(0), 0U);
  EXPECT_EQ(heat.cold(), 2U);
  heat.remove(0);
  EXPECT_EQ(heat.cold(), 1U);
}

}  // namespace
}  // namespace varve::index
