// SPDX-License-Identifier: Apache-2.0
// The default restore engine reads no more than any other one, with whole containers and with
// planned slices, on streams of many kinds and with any amount of memory.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/container_traces.h"

namespace varve::restore {
namespace {

constexpr const char* kDefault = "alacc";

void expect_fewest(ContainerTrace& trace) {
  for (const std::size_t containers : {1U, 2U, 4U, 9U, 20U}) {
    for (const bool is_whole : {true, false}) {
      SCOPED_TRACE(trace.name() + ", " + std::to_string(containers) +
                   (is_whole ? " containers, whole containers" : " containers, slices"));
      const std::uint64_t ours = replay(trace, kDefault, containers, is_whole).bytes_read;
      for (const EngineInfo& engine : engine_infos()) {
        const std::string name(engine.name);
        if (name == kDefault) continue;
        EXPECT_LE(ours, replay(trace, name, containers, is_whole).bytes_read) << name;
      }
    }
  }
}

TEST(DefaultEngineGate, ReadsTheFewestBytesInOrderWithDrift) {
  expect_fewest(*sequential_with_drift(120));
}

TEST(DefaultEngineGate, ReadsTheFewestBytesOfNearScatteredRuns) {
  expect_fewest(*scattered(120, 20));
}

TEST(DefaultEngineGate, ReadsTheFewestBytesOfFarScatteredRuns) {
  expect_fewest(*scattered(120, 60));
}

TEST(DefaultEngineGate, ReadsTheFewestBytesOfRepeatedContainers) { expect_fewest(*cyclic(25, 5)); }

TEST(DefaultEngineGate, ReadsTheFewestBytesOfLongRandomRuns) {
  expect_fewest(*random_chunks(40, 80, 7));
}

TEST(DefaultEngineGate, ReadsTheFewestBytesOfShortRandomRuns) {
  expect_fewest(*random_chunks(24, 100, 2));
}

TEST(DefaultEngineGate, ReadsTheFewestBytesOfPopularContainers) { expect_fewest(*skewed(60, 150)); }

TEST(DefaultEngineGate, ReadsTheFewestBytesOfPhases) { expect_fewest(*phases()); }

TEST(DefaultEngineGate, ReadsTheFewestBytesAfterSmallScatteredEdits) {
  expect_fewest(*small_edits(100, 12));
}

TEST(DefaultEngineGate, ReadsTheFewestBytesOfADiskImage) { expect_fewest(*disk_image(120)); }

TEST(DefaultEngineGate, ReadsTheFewestBytesOfManySmallFiles) { expect_fewest(*small_files(120)); }

TEST(DefaultEngineGate, ReadsTheFewestBytesOfMergedRuns) { expect_fewest(*merged_runs(120, 5)); }

}  // namespace
}  // namespace varve::restore
