// SPDX-License-Identifier: Apache-2.0
// An attack on sizes and ranges: a test that was trained on repositories of the attacker.
#pragma once

#include <string>
#include <vector>

#include "fingerprinting/observer.h"

namespace varve::fingerprinting {

/// Decides whether a repository has a known file.
class SizeAttack {
 public:
  /// Learns from repositories with the file and from such with other files. Repositories of
  /// the attacker differ from the victim's in the key only.
  SizeAttack(const std::vector<Observation>& with, const std::vector<Observation>& without);

  /// Returns how much more likely the observation is with the file: the logarithm of the ratio. 0
  /// if nothing that the attacker saw tells them apart.
  [[nodiscard]] double evidence(const Observation& seen) const;
  /// Returns what tells them apart, the best first.
  [[nodiscard]] std::vector<std::string> clues() const;

 private:
  struct Normal {
    double mean = 0;
    double deviation = 0;
  };
  struct Clue {
    std::string name;
    Normal with;
    Normal without;
    double distance = 0;
  };
  [[nodiscard]] static Normal normal_of(const std::vector<Observation>& all,
                                        const std::string& name);

  std::vector<Clue> clues_;
};

/// A number of right answers of some trials, half of which have the file.
struct Score {
  int trials = 0;
  int right = 0;

  void add(bool is_right) {
    ++trials;
    right += is_right ? 1 : 0;
  }
  /// Returns the advantage over a guess: 0 for chance, 1 for certainty.
  [[nodiscard]] double advantage() const;
  /// The bounds of its 95 % interval (Wilson).
  [[nodiscard]] double low() const;
  [[nodiscard]] double high() const;
  /// Returns how probable it is that guesses are right at least as often.
  [[nodiscard]] double chance() const;
};

}  // namespace varve::fingerprinting
