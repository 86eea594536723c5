// SPDX-License-Identifier: Apache-2.0
// Runs a short history of a repository, records what Varve has promised at each moment, and checks
// the promises after a crash.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "varve/placement.h"
#include "varve/repository.h"

namespace varve::test {

/// Content of the files by name, all in the root directory.
using Files = std::map<std::string, std::string>;

/// The expected versions and files of one series over time. A moment is the number of calls that
/// the disk has received.
class History {
 public:
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

  /// `now` returns the present moment. `series` is the name of the series that the history makes.
  explicit History(std::function<std::uint64_t()> now, std::string series = "s",
                   Placement placement = Placement::kLineage)
      : now_(std::move(now)), name_(std::move(series)), placement_(placement) {}

  /// Has arranging make duplicates in the pool aliases, and the pool's index find few of them.
  void make_aliases() { makes_aliases_ = true; }
  /// Adds a history of another series. live() then takes a step of each in turn, and examine()
  /// examines both.
  void add(std::unique_ptr<History> other) { others_.push_back(std::move(other)); }

  /// Executes every kind of change step by step: writing in and out of order, checkpoints, seals,
  /// clones, arranging, deletion, renames. Stops at the first error. With `retry`, first repeats a
  /// failed step once, as users do.
  Result<void> live(Repository& repository, bool retry);

  /// Opens the repository in `path` as left by a crash at this moment. Returns its defects: broken
  /// promises, damage, and work that cannot continue.
  [[nodiscard]] std::vector<std::string> examine(const std::string& path,
                                                 std::uint64_t moment) const;

 private:
  struct Sealed {
    Files files;
    std::uint64_t from = kNever;
    std::uint64_t until = kNever;  // Begin of its deletion.
    std::uint64_t gone = kNever;   // End of its deletion.
  };
  struct Synced {
    std::string name;
    std::string bytes;
    std::uint64_t from = kNever;
    std::uint64_t until = kNever;
  };

  using Step = std::function<Result<void>(Repository&)>;
  std::vector<Step> steps();
  void examine_series(const std::string& path, std::uint64_t moment,
                      std::vector<std::string>& wrong) const;
  Result<void> run(Repository& repository, bool retry, const Step& step);
  Result<void> arrange(Repository& repository);

  Result<void> begin(Repository& repository, const std::string& name);
  Result<void> write(Repository& repository, const std::string& name, const std::string& bytes,
                     std::uint64_t offset = 0);
  Result<void> sync(Repository& repository, const std::string& name);
  Result<void> seal(Repository& repository, SealMode mode = SealMode::kEnd);
  Result<void> remove(Repository& repository, std::vector<std::uint32_t> numbers);
  void change_begins(const std::string& name);

  void examine_sealed(Repository& repository, std::uint64_t moment,
                      std::vector<std::string>& wrong) const;
  void examine_open(Repository& repository, std::uint64_t moment,
                    std::vector<std::string>& wrong) const;

  std::function<std::uint64_t()> now_;
  const std::string name_;
  const Placement placement_;
  bool makes_aliases_ = false;
  std::vector<std::unique_ptr<History>> others_;
  SeriesId series_{};
  std::uint64_t series_from_ = kNever;
  std::map<VersionNumber, Sealed> sealed_;
  std::vector<Synced> synced_;
  VersionNumber open_{};
  Files open_files_;
};

}  // namespace varve::test
