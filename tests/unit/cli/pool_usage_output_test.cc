// SPDX-License-Identifier: Apache-2.0
#include "cli/pool_usage_output.h"

#include <gtest/gtest.h>

#include <string>

namespace varve::cli {
namespace {

PoolUsage sample() {
  PoolUsage usage;
  usage.counts = {300, 3U << 20, 20, 1536, 16, 70000, 12};
  usage.containers = 8;
  usage.referenced_bytes = 5000;
  usage.utilisation = {3, 0, 0, 0, 0, 0, 0, 0, 0, 5};
  return usage;
}

TEST(PoolUsageOutput, TextNamesEveryFigure) {
  EXPECT_EQ(pool_usage_text(sample(), true),
            "kept               3145728 in 300 chunks\n"
            "rewritten          1536 in 20 chunks\n"
            "promoted           70000 in 16 chunks\n"
            "sparse containers  12 inherited\n"
            "uses               5000 in 8 containers of the pool\n"
            "\n"
            "UTILISATION  CONTAINERS\n"
            "     0-10 %           3\n"
            "    10-20 %           0\n"
            "    20-30 %           0\n"
            "    30-40 %           0\n"
            "    40-50 %           0\n"
            "    50-60 %           0\n"
            "    60-70 %           0\n"
            "    70-80 %           0\n"
            "    80-90 %           0\n"
            "   90-100 %           5\n");
  EXPECT_NE(pool_usage_text(sample(), false).find("1.5 KiB in 20 chunks"), std::string::npos);
}

TEST(PoolUsageOutput, TextTellsMissingCountsFromAVersionWithoutThePool) {
  EXPECT_EQ(pool_usage_text({}, false), "the version does not use the pool\n");
  auto usage = sample();
  usage.counts.reset();
  const auto text = pool_usage_text(usage, false);
  EXPECT_NE(text.find("not recorded: the catalog was rebuilt"), std::string::npos) << text;
  EXPECT_NE(text.find("in 8 containers"), std::string::npos) << text;
}

TEST(PoolUsageOutput, JsonHasTheCountsOnlyIfTheyAreRecorded) {
  auto usage = sample();
  EXPECT_EQ(pool_usage_json(usage).dump(),
            R"({"containers":8,"kept_bytes":3145728,"kept_chunks":300,"promoted_bytes":70000,)"
            R"("promoted_chunks":16,"referenced_bytes":5000,"rewritten_bytes":1536,)"
            R"("rewritten_chunks":20,"sparse_containers":12,)"
            R"("utilisation":[3,0,0,0,0,0,0,0,0,5]})");
  usage.counts.reset();
  EXPECT_EQ(pool_usage_json(usage).dump(),
            R"({"containers":8,"referenced_bytes":5000,"utilisation":[3,0,0,0,0,0,0,0,0,5]})");
}

}  // namespace
}  // namespace varve::cli
