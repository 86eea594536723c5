// SPDX-License-Identifier: Apache-2.0
// A history of a World in steps. A campaign lets one request fail in each of many worlds. Before
// that request all worlds have the same history, so each world begins at the step of its request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "world.h"

namespace varve::test {

class SteppedHistory {
 public:
  using Step = std::function<void(World& world)>;
  /// Makes a world without a repository, with the settings that all steps need.
  using MakeWorld = std::function<std::unique_ptr<World>(Mishap mishap, std::uint64_t at)>;

  /// Plays all steps without a mishap, and keeps the state before each step.
  SteppedHistory(MakeWorld make_world, std::vector<Step> steps)
      : make_world_(std::move(make_world)),
        steps_(std::move(steps)),
        whole_(make_world_(Mishap::kNone, 0)) {
    for (const auto& step : steps_) {
      moments_.push_back(whole_->moment());
      step(*whole_);
    }
  }

  /// Returns the world of the history without a mishap.
  [[nodiscard]] World& whole() { return *whole_; }

  /// Returns a world after all steps, in which the mishap meets the request `at`.
  [[nodiscard]] std::unique_ptr<World> play(Mishap mishap, std::uint64_t at) const {
    auto world = make_world_(mishap, at);
    const ScopedWhere where(*world);
    std::size_t first = steps_.size() - 1;
    while (first > 0 && moments_[first]->requests > at) --first;
    world->return_to(*moments_[first]);
    for (auto i = first; i < steps_.size(); ++i) steps_[i](*world);
    return world;
  }

 private:
  /// Names the mishap in the failures of the steps.
  struct ScopedWhere {
    explicit ScopedWhere(const World& world) : trace(__FILE__, __LINE__, world.where()) {}
    testing::ScopedTrace trace;
  };

  const MakeWorld make_world_;
  const std::vector<Step> steps_;
  const std::unique_ptr<World> whole_;
  std::vector<std::unique_ptr<const World::Moment>> moments_;
};

}  // namespace varve::test
