// SPDX-License-Identifier: Apache-2.0
#include "index/unseen.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <optional>

#include "base/log.h"
#include "index/clp_library.h"

namespace varve::index {

namespace {

// Values that are more frequent in the sample are counted directly.
constexpr std::size_t kSeenMax = 20;
// A rarer value may appear 30 / p times in the stream. Of a more frequent value, a sample with only
// 20 appearances is unlikely.
constexpr double kTimesAtMost = 30;
constexpr double kGridRatio = 1.1;
// Tolerance for the explanation of the sample by the second and third programme.
constexpr double kSlack = 0.5;
constexpr int kIterationsMax = 5000;
// Smaller coefficients would mislead the solver's scaling: a wrong solution would count as optimal.
constexpr double kChanceLeast = 1e-9;

// Possible numbers of appearances of a value in the stream.
std::vector<std::uint64_t> grid_to(std::uint64_t last) {
  std::vector<std::uint64_t> grid;
  for (std::uint64_t times = 1; times <= last;) {
    grid.push_back(times);
    times =
        std::max(times + 1, static_cast<std::uint64_t>(static_cast<double>(times) * kGridRatio));
  }
  return grid;
}

/// A linear programme in the form of the solver: the columns of a sparse matrix.
struct Programme {
  std::vector<CoinBigIndex> starts{0};
  std::vector<int> rows;
  std::vector<double> values;
  std::vector<double> costs;
  std::vector<double> least;  // Lower bound of each row.
  std::vector<double> most;

  void put(std::size_t row, double value) {
    rows.push_back(static_cast<int>(row));
    values.push_back(value);
  }
  void end_column(double cost) {
    starts.push_back(static_cast<CoinBigIndex>(rows.size()));
    costs.push_back(cost);
  }
};

/// The programme for a sample with a share `p` of the stream: the frequencies in the stream of
/// values with at most 20 appearances in the sample.
///
/// Row i: (T H)_i+1 + under_i - over_i = h_i+1. The next row: sum j H_j = mass. The last row bounds
/// the cost, for the programmes after the first.
class UnseenProgramme {
 public:
  UnseenProgramme(const std::array<double, kSeenMax>& seen, double p, double mass)
      : grid_(grid_to(static_cast<std::uint64_t>(std::ceil(std::min(kTimesAtMost / p, mass))))) {
    for (const auto times : grid_) {
      // Binomial probabilities, each computed from the previous probability.
      const auto j = static_cast<double>(times);
      double chance = std::pow(1 - p, j);
      for (std::size_t i = 1; i <= kSeenMax && i <= times; ++i) {
        const auto k = static_cast<double>(i);
        chance *= (j - k + 1) / k * (p / (1 - p));
        if (chance > kChanceLeast) programme_.put(i - 1, chance);
      }
      programme_.put(kMassRow, j);
      programme_.end_column(0);
    }
    for (std::size_t i = 0; i < kSeenMax; ++i) {
      const double cost = 1 / std::sqrt(seen[i] + 1);
      for (const double sign : {1.0, -1.0}) {
        programme_.put(i, sign);
        programme_.put(kCostRow, cost);
        programme_.end_column(cost);
      }
      programme_.least.push_back(seen[i]);
    }
    programme_.least.push_back(mass);
    programme_.most = programme_.least;
    programme_.least.push_back(0);
    programme_.most.push_back(std::numeric_limits<double>::max());  // No bound, to the solver.
  }

  /// Returns the number of values; nullopt if the solver fails.
  [[nodiscard]] std::optional<double> solve() {
    if (!solve_once()) return std::nullopt;
    double cost = 0;
    for (std::size_t i = grid_.size(); i < solution_.size(); ++i) {
      cost += programme_.costs[i] * solution_[i];
    }
    const auto explained = distinct();
    programme_.most.back() = cost + kSlack;
    const auto fewest = bound(1);
    const auto most = bound(-1);
    return fewest && most ? (*fewest + *most) / 2 : explained;
  }

 private:
  static constexpr std::size_t kMassRow = kSeenMax;
  static constexpr std::size_t kCostRow = kSeenMax + 1;

  // Returns the fewest values (sign 1), or the most (-1), within kSlack of the best explanation.
  [[nodiscard]] std::optional<double> bound(double sign) {
    std::ranges::fill(programme_.costs, 0);
    std::fill_n(programme_.costs.begin(), grid_.size(), sign);
    if (!solve_once()) return std::nullopt;
    return distinct();
  }

  [[nodiscard]] double distinct() const {
    double sum = 0;
    for (std::size_t i = 0; i < grid_.size(); ++i) sum += std::max(solution_[i], 0.0);
    return sum;
  }

#ifdef VARVE_STATIC
  [[nodiscard]] static bool solve_once() { return false; }
#else
  // Fails without the library, or when the library throws: the estimate is Chao's then. The
  // estimate only steers a cache.
  [[nodiscard]] bool solve_once() try {
    const ClpLibrary* const clp = clp_library();
    if (clp == nullptr) return false;
    const std::unique_ptr<Clp_Simplex, decltype(&Clp_deleteModel)> model(clp->new_model(),
                                                                         clp->delete_model);
    clp->set_log_level(model.get(), 0);
    clp->set_maximum_iterations(model.get(), kIterationsMax);
    const auto columns = static_cast<int>(programme_.costs.size());
    clp->load_problem(model.get(), columns, static_cast<int>(programme_.least.size()),
                      programme_.starts.data(), programme_.rows.data(), programme_.values.data(),
                      nullptr, nullptr, programme_.costs.data(), programme_.least.data(),
                      programme_.most.data());
    clp->initial_dual_solve(model.get());
    if (clp->status(model.get()) != 0) return false;
    const double* const values = clp->primal_column_solution(model.get());
    solution_.assign(values, values + columns);
    return std::ranges::all_of(solution_, [](double value) { return std::isfinite(value); });
  } catch (...) {
    base::log(base::LogLevel::kWarning, "the solver of linear programmes failed");
    return false;
  }
#endif

  const std::vector<std::uint64_t> grid_;
  Programme programme_;
  std::vector<double> solution_;
};

}  // namespace

std::vector<Frequency> frequencies_of(std::vector<std::uint64_t>& values) {
  std::ranges::sort(values);
  std::vector<std::uint64_t> times;
  for (auto it = values.begin(); it != values.end();) {
    const auto next = std::find_if(it, values.end(), [&](auto other) { return other != *it; });
    times.push_back(static_cast<std::uint64_t>(next - it));
    it = next;
  }
  std::ranges::sort(times);
  std::vector<Frequency> frequencies;
  for (const auto one : times) {
    if (frequencies.empty() || frequencies.back().times != one) frequencies.push_back({one, 0});
    ++frequencies.back().values;
  }
  return frequencies;
}

double chao_estimate(std::span<const Frequency> sample, std::uint64_t arrivals) {
  double seen = 0;
  double once = 0;
  double twice = 0;
  for (const auto& [times, values] : sample) {
    seen += static_cast<double>(values);
    if (times == 1) once = static_cast<double>(values);
    if (times == 2) twice = static_cast<double>(values);
  }
  return std::min(seen + once * (once - 1) / (2 * (twice + 1)), static_cast<double>(arrivals));
}

UnseenEstimate estimate_distinct(std::span<const Frequency> sample, std::uint64_t arrivals) {
  const auto total = static_cast<double>(arrivals);
  double sampled = 0;
  double seen = 0;
  for (const auto& [times, values] : sample) {
    sampled += static_cast<double>(times * values);
    seen += static_cast<double>(values);
  }
  if (sampled == 0 || sampled >= total) return {seen, true};
  const double p = sampled / total;
  std::array<double, kSeenMax> rare{};
  double frequent = 0;
  double mass = total;  // Mass of the rare values.
  double rare_values = 0;
  for (const auto& [times, values] : sample) {
    const auto count = static_cast<double>(values);
    if (times > kSeenMax) {
      frequent += count;
      mass -= count * static_cast<double>(times) / p;
    } else {
      rare[times - 1] = count;
      rare_values += count;
    }
  }
  mass = std::max(mass, rare_values);
  if (mass < 1) return {std::min(frequent, total), true};
  const auto solved = UnseenProgramme(rare, p, mass).solve();
  if (!solved) return {chao_estimate(sample, arrivals), false};
  return {std::clamp(frequent + *solved, seen, total), true};
}

double invented_duplicates(std::uint64_t sampled, std::uint64_t arrivals) {
  const Frequency all_different{1, sampled};
  const auto estimate = estimate_distinct({&all_different, 1}, arrivals);
  return estimate.is_solved ? static_cast<double>(arrivals) - estimate.distinct : 0;
}

}  // namespace varve::index
