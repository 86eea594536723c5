// SPDX-License-Identifier: Apache-2.0
// The estimate of the unseen part of a stream, against streams whose content is known.
#include "index/unseen.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace varve::index {
namespace {

using Values = std::vector<std::uint64_t>;

// Returns a uniform sample without replacement.
Values sample_of(const Values& stream, double share, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Values sample;
  std::ranges::sample(stream, std::back_inserter(sample),
                      static_cast<std::ptrdiff_t>(static_cast<double>(stream.size()) * share),
                      random);
  return sample;
}

double distinct_of(const Values& stream) {
  return static_cast<double>(std::set<std::uint64_t>(stream.begin(), stream.end()).size());
}

// Returns a stream in which value v appears as often as `times` says.
template <typename Times>
Values stream_of(std::uint64_t length, Times&& times) {
  Values stream;
  for (std::uint64_t value = 0; stream.size() < length; ++value) {
    stream.insert(stream.end(), std::min<std::uint64_t>(times(value), length - stream.size()),
                  value);
  }
  return stream;
}

TEST(Unseen, FrequenciesAgreeWithAMap) {
  std::mt19937_64 random(3);
  Values values;
  for (int i = 0; i < 5000; ++i) values.push_back(random() % (1 + random() % 2000));
  std::map<std::uint64_t, std::uint64_t> counts;
  for (const auto value : values) ++counts[value];
  std::map<std::uint64_t, std::uint64_t> wanted;
  for (const auto& [value, times] : counts) ++wanted[times];
  const auto found = frequencies_of(values);
  ASSERT_EQ(found.size(), wanted.size());
  auto it = wanted.begin();
  for (const auto& one : found) {
    EXPECT_EQ(one, (Frequency{it->first, it->second}));
    ++it;
  }
  Values none;
  EXPECT_TRUE(frequencies_of(none).empty());
}

TEST(Unseen, WholeStreamGivesTheExactNumber) {
  auto stream = stream_of(3000, [](std::uint64_t value) { return 1 + value % 7; });
  const double wanted = distinct_of(stream);
  const auto sample = frequencies_of(stream);
  EXPECT_EQ(estimate_distinct(sample, 3000).distinct, wanted);
  EXPECT_EQ(estimate_distinct({}, 0).distinct, 0);
  EXPECT_EQ(estimate_distinct({}, 100).distinct, 0);
}

// A sample that is just what the histogram of the stream lets expect gives that histogram back.
TEST(Unseen, ExpectedSampleOfAKnownHistogramIsExplained) {
  constexpr double kShare = 0.25;
  const std::map<std::uint64_t, double> histogram{{1, 400000}, {3, 200000}, {8, 50000}};
  double arrivals = 0;
  double distinct = 0;
  std::vector<Frequency> sample;
  for (const auto& [times, values] : histogram) {
    arrivals += static_cast<double>(times) * values;
    distinct += values;
  }
  for (std::uint64_t i = 1; i <= 8; ++i) {
    double expected = 0;
    for (const auto& [times, values] : histogram) {
      if (times < i) continue;
      double chance = std::pow(1 - kShare, static_cast<double>(times - i)) *
                      std::pow(kShare, static_cast<double>(i));
      for (std::uint64_t k = 0; k < i; ++k) {
        chance *= static_cast<double>(times - k) / static_cast<double>(k + 1);
      }
      expected += chance * values;
    }
    sample.push_back({i, static_cast<std::uint64_t>(std::llround(expected))});
  }
  const auto estimate = estimate_distinct(sample, static_cast<std::uint64_t>(arrivals));
  EXPECT_TRUE(estimate.is_solved);
  EXPECT_NEAR(estimate.distinct / distinct, 1, 0.03);
}

struct Case {
  std::string name;
  Values stream;
  double tolerance;  // Of the number of different values, relative to the arrivals.
};

std::vector<Case> cases() {
  std::vector<Case> all;
  constexpr std::uint64_t kLength = 40000;
  all.push_back({"all different", stream_of(kLength, [](std::uint64_t) { return 1; }), 0.03});
  all.push_back({"each twice", stream_of(kLength, [](std::uint64_t) { return 2; }), 0.05});
  all.push_back({"each ten times", stream_of(kLength, [](std::uint64_t) { return 10; }), 0.02});
  all.push_back({"one value", stream_of(kLength, [](std::uint64_t) { return kLength; }), 0.001});
  all.push_back({"half once, half five times",
                 stream_of(kLength, [](std::uint64_t value) { return value % 6 == 0 ? 5 : 1; }),
                 0.11});  // A few values seen twice decide.
  Values zipf;
  std::mt19937_64 random(7);
  for (std::uint64_t i = 0; i < kLength; ++i) {
    const double u = static_cast<double>(random() % 1000000 + 1) / 1000000;
    zipf.push_back(static_cast<std::uint64_t>(1 / (u * u)));
  }
  all.push_back({"heavy tail", zipf, 0.03});
  Values uniform;
  for (std::uint64_t i = 0; i < kLength; ++i) uniform.push_back(random() % 20000);
  all.push_back({"uniform", uniform, 0.05});
  return all;
}

TEST(Unseen, SampleOfAKnownStreamGivesItsNumberOfValues) {
  for (const auto& [name, stream, tolerance] : cases()) {
    for (const double share : {0.15, 0.5}) {
      for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        auto sample = sample_of(stream, share, seed);
        const auto estimate = estimate_distinct(frequencies_of(sample), stream.size());
        const double error =
            (estimate.distinct - distinct_of(stream)) / static_cast<double>(stream.size());
        EXPECT_TRUE(estimate.is_solved) << name;
        EXPECT_LE(std::abs(error), tolerance) << name << ", share " << share << ", seed " << seed;
      }
    }
  }
}

TEST(Unseen, TinyAndOddSamplesGiveNumbersInBounds) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 300; ++round) {
    Values sample;
    for (auto left = 1 + random() % 40; left > 0; --left) {
      sample.push_back(random() % (1 + random() % 30));
    }
    const double seen = distinct_of(sample);
    const auto arrivals = sample.size() + random() % (round % 2 == 0 ? 10 : 1'000'000);
    const auto estimate = estimate_distinct(frequencies_of(sample), arrivals);
    ASSERT_GE(estimate.distinct, seen) << round;
    ASSERT_LE(estimate.distinct, static_cast<double>(arrivals)) << round;
  }
}

TEST(Unseen, ChaoCountsTheValuesSeenOnceAndTwice) {
  const std::vector<Frequency> sample{{1, 30}, {2, 9}, {5, 1}};
  EXPECT_DOUBLE_EQ(chao_estimate(sample, 1000), 40 + 30.0 * 29 / 20);
  EXPECT_DOUBLE_EQ(chao_estimate(sample, 50), 50);
}

}  // namespace
}  // namespace varve::index
