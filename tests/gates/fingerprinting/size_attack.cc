// SPDX-License-Identifier: Apache-2.0
#include "fingerprinting/size_attack.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <utility>

namespace varve::fingerprinting {
namespace {

// Numbers are bytes and counts; training may see too few of the values that they take.
constexpr double kDeviationLeast = 0.3;
// Of a hundred numbers that say nothing, less than one is a clue by chance.
constexpr double kErrorsApart = 3.0;
constexpr double kMissing = -1;

double value_in(const Observation& seen, const std::string& name) {
  const auto found = seen.find(name);
  return found == seen.end() ? kMissing : found->second;
}

double wilson(const Score& score, double sign) {
  constexpr double kZ = 1.96;
  if (score.trials == 0) return 0;
  const double n = score.trials;
  const double p = score.right / n;
  const double centre = p + kZ * kZ / (2 * n);
  const double width = kZ * std::sqrt(p * (1 - p) / n + kZ * kZ / (4 * n * n));
  return 2 * (centre + sign * width) / (1 + kZ * kZ / n) - 1;
}

}  // namespace

SizeAttack::Normal SizeAttack::normal_of(const std::vector<Observation>& all,
                                         const std::string& name) {
  double sum = 0;
  for (const auto& one : all) sum += value_in(one, name);
  const double mean = sum / static_cast<double>(all.size());
  double squares = 0;
  for (const auto& one : all) squares += std::pow(value_in(one, name) - mean, 2);
  const double deviation = std::sqrt(squares / static_cast<double>(all.size() - 1));
  return {mean, std::max(deviation, kDeviationLeast)};
}

SizeAttack::SizeAttack(const std::vector<Observation>& with,
                       const std::vector<Observation>& without) {
  std::set<std::string> names;
  for (const auto* all : {&with, &without}) {
    for (const auto& one : *all) {
      for (const auto& [name, value] : one) names.insert(name);
    }
  }
  for (const auto& name : names) {
    Clue clue{name, normal_of(with, name), normal_of(without, name), 0};
    const double error =
        std::sqrt(std::pow(clue.with.deviation, 2) / static_cast<double>(with.size()) +
                  std::pow(clue.without.deviation, 2) / static_cast<double>(without.size()));
    clue.distance = std::abs(clue.with.mean - clue.without.mean) / error;
    // A file of which all repositories look alike is told from files that differ.
    const double spread = std::abs(std::log(clue.with.deviation / clue.without.deviation));
    if (clue.distance >= kErrorsApart || spread >= 1.5) clues_.push_back(std::move(clue));
  }
  std::ranges::sort(clues_, std::greater<>(), &Clue::distance);
}

double SizeAttack::evidence(const Observation& seen) const {
  // Student's distribution with four degrees of freedom: training saw few repositories, so far
  // values are not as rare as in a normal distribution.
  const auto log_density = [](const Normal& normal, double value) {
    const double z = (value - normal.mean) / normal.deviation;
    return -std::log(normal.deviation) - 2.5 * std::log1p(z * z / 4);
  };
  double sum = 0;
  for (const auto& clue : clues_) {
    const double value = value_in(seen, clue.name);
    // No number decides alone: training did not see all of its values.
    sum += std::clamp(log_density(clue.with, value) - log_density(clue.without, value), -4.0, 4.0);
  }
  return sum;
}

std::vector<std::string> SizeAttack::clues() const {
  std::vector<std::string> names;
  for (const auto& clue : clues_) names.push_back(clue.name);
  return names;
}

double Score::advantage() const { return trials == 0 ? 0 : 2.0 * right / trials - 1; }
double Score::low() const { return wilson(*this, -1); }
double Score::high() const { return wilson(*this, 1); }
double Score::chance() const {
  double sum = 0;
  for (int k = right; k <= trials; ++k) {
    sum += std::exp(std::lgamma(trials + 1) - std::lgamma(k + 1) - std::lgamma(trials - k + 1) -
                    trials * std::log(2.0));
  }
  return sum;
}

}  // namespace varve::fingerprinting
