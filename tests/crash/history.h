// SPDX-License-Identifier: Apache-2.0
// A short life of a repository, what it was promised at each moment, and whether what is found
// after a crash keeps the promises.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "varve/repository.h"

namespace varve::test {

/// Content by name, all in the root directory.
using Files = std::map<std::string, std::string>;

/// Versions and files of one series, with moments: numbers of calls that the disk has seen.
class History {
 public:
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

  /// `now` tells the moment.
  explicit History(std::function<std::uint64_t()> now) : now_(std::move(now)) {}

  /// Everything that changes a repository, step by step: versions written in and out of order,
  /// checkpoints, seals, clones, arranging, deletion, renames. An error ends it, unless
  /// `retry`: then the step is tried once more, as users do.
  Result<void> live(Repository& repository, bool retry);

  /// Opens the repository found in `path` after a crash at this moment, and names what is
  /// wrong with it: promises that are broken, damage, work that cannot go on.
  [[nodiscard]] std::vector<std::string> examine(const std::string& path,
                                                 std::uint64_t moment) const;

 private:
  struct Sealed {
    Files files;
    std::uint64_t from = kNever;
    std::uint64_t until = kNever;  // A deletion began.
    std::uint64_t gone = kNever;   // It returned.
  };
  struct Synced {
    std::string name;
    std::string bytes;
    std::uint64_t from = kNever;
    std::uint64_t until = kNever;
  };

  using Step = std::function<Result<void>(Repository&)>;
  Result<void> run(Repository& repository, bool retry, const Step& step);

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
  SeriesId series_{};
  std::uint64_t series_from_ = kNever;
  std::map<VersionNumber, Sealed> sealed_;
  std::vector<Synced> synced_;
  VersionNumber open_{};
  Files open_files_;
};

}  // namespace varve::test
