// SPDX-License-Identifier: Apache-2.0
// An encrypted repository with a history, and what its versions hold.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "support/temp_repository.h"

namespace varve::test {

/// Path of a file in its version -> bytes.
using Files = std::map<std::string, std::string>;

/// The oracle: the bytes that were written, kept beside the repository.
struct Expected {
  /// Series, version number -> content. Numbers are never used again, so an older state has the
  /// same content under a number.
  std::map<std::pair<std::uint32_t, std::uint32_t>, Files> sealed;
  std::map<std::uint32_t, Files> open;  ///< Series -> files that were synced in its open version.
  /// The same at an earlier moment, of which older_states() has the last copy.
  std::map<std::uint32_t, Files> open_before;
  std::set<std::string> names;  ///< SERIES/VERSION of the last state.
};

/// Makes an encrypted repository with three series of different placements: versions that were
/// renamed and removed, a renamed series, changed keys, volumes, parity, duplicates in the pool,
/// and open versions with staged files. With `delta`, volumes have frames with prefixes. For one
/// use.
class TamperedHistory {
 public:
  /// `key` fills the key file of the repository. `states` is a folder for copies of the
  /// repository, which older_states() lists.
  TamperedHistory(std::string path, char key, std::string states, bool delta)
      : path_(std::move(path)), key_(key), states_(std::move(states)), delta_(delta) {}

  /// Runs the history. The last state is that of a crash if `crashed`, else of a clean end.
  void run(bool crashed);

  [[nodiscard]] const Expected& expected() const { return expected_; }
  /// Returns the folders with older states, ascending. Each was closed cleanly but the last one.
  [[nodiscard]] const std::vector<std::string>& older_states() const { return older_; }
  /// Returns the options to open the repository.
  [[nodiscard]] OpenOptions options() const;

 private:
  void open();
  void close_and_keep();
  void add_round(std::uint64_t n);
  void add_version(const std::string& series, const std::string& name, std::uint64_t n);
  void rename_version(const std::string& series, const std::string& from, const std::string& to);
  void remove_version(const std::string& series, const std::string& name);
  void put_beside(const std::string& text);
  void arrange();
  void change_keys();
  void open_versions();

  const std::string path_;
  const char key_;
  const std::string states_;
  const bool delta_;
  std::vector<std::string> older_;
  std::unique_ptr<Repository> repository_;
  std::vector<std::unique_ptr<OpenFile>> open_files_;
  std::vector<std::shared_ptr<VersionWriter>> writers_;
  Expected expected_;
};

}  // namespace varve::test
