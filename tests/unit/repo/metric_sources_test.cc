// SPDX-License-Identifier: Apache-2.0
// Metrics that a mount adds to those of the repository.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "support/temp_repository.h"
#include "varve/repository.h"

namespace varve::test {
namespace {

class MetricSourcesTest : public testing::Test {
 protected:
  MetricSourcesTest() {
    must(Repository::create(path_, small_chunks(Codec::kZstd)));
    repository_ = reopen(path_);
  }

  TempDirectory directory_;
  std::string path_ = directory_.path() + "/r";
  std::unique_ptr<Repository> repository_;
};

std::vector<MetricSample> samples_of(const std::vector<std::string>& names) {
  std::vector<MetricSample> samples;
  for (const auto& name : names) samples.emplace_back().name = name;
  return samples;
}

TEST_F(MetricSourcesTest, SamplesOfASourceAreInTheOrderOfNames) {
  const auto own = repository_->metrics().size();
  repository_->add_metrics([] { return samples_of({"varve_z_total", "varve_a_total"}); });
  const auto all = repository_->metrics();
  EXPECT_EQ(all.size(), own + 2);
  EXPECT_TRUE(std::ranges::is_sorted(all, {}, &MetricSample::name));
  EXPECT_EQ(all.front().name, "varve_a_total");
}

TEST_F(MetricSourcesTest, SamplesAboveTheBoundOfAMessageAreLeftOut) {
  repository_->add_metrics([] {
    return samples_of(std::vector<std::string>(base::Metrics::kMetricsMax, "varve_z_total"));
  });
  EXPECT_EQ(repository_->metrics().size(), base::Metrics::kMetricsMax);
}

}  // namespace
}  // namespace varve::test
