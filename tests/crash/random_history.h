// SPDX-License-Identifier: Apache-2.0
// A random history of an encrypted repository and a copy of it, with crashes. A model says what
// must be there after each step, and after each crash.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "disk_model.h"
#include "disk_recorder.h"
#include "support/temp_repository.h"
#include "varve/repository.h"
#include "version_tree.h"

namespace varve::test {

/// Any error of a step other than that of a crash, and any difference from the model, throws. For
/// one thread.
class RandomHistory {
 public:
  explicit RandomHistory(std::uint64_t seed);
  ~RandomHistory();

  /// Takes steps, and at the end checks everything.
  void run(std::uint64_t steps);
  /// Returns how often each kind of step succeeded, and how often the power was cut, as a text.
  [[nodiscard]] std::string counts() const;
  /// Returns the number of steps of a kind that succeeded.
  [[nodiscard]] std::uint64_t count(const std::string& kind) const;

 private:
  using States = std::vector<std::optional<TreeNode>>;
  struct Sealed {
    std::string name;
    VersionTree tree;
    bool locked = false;
  };
  struct Open {
    VersionNumber number{};
    VersionTree tree;
    /// The states of a path since the last sync, for paths that changed since. A crash may bring
    /// any of them back.
    std::map<std::string, States> states;
    bool durable = false;  ///< True once a sync has promised that the version survives.
  };
  struct Line {  // A series.
    std::string name;
    Placement placement{};
    SeriesId id{};
    std::map<VersionNumber, Sealed> sealed;
    std::optional<Open> open;
    VersionNumber newest_copied{};
    // The change that a step is making: it may end by a crash.
    std::optional<VersionTree> opening;
    bool sealing = false;
    bool keeping = false;  // The seal opens the next version.
    std::vector<VersionNumber> deleting;
    std::optional<std::pair<VersionNumber, std::string>> renaming;
    std::optional<std::string> new_name;
  };
  struct Kind {
    const char* name;
    unsigned weight;
    Result<void> (RandomHistory::*take)();
    bool syncs = false;
  };
  static const std::vector<Kind>& kinds();

  // Steps. They do nothing where they do not apply.
  Result<void> write();
  Result<void> write_out_of_order();
  Result<void> truncate();
  Result<void> link();
  Result<void> rename();
  Result<void> set_xattr();
  Result<void> remove_file();
  Result<void> clone_file();
  Result<void> sync_file();
  Result<void> checkpoint();
  Result<void> open_version();
  Result<void> clone();
  Result<void> seal();
  Result<void> rename_version();
  Result<void> rename_series();
  Result<void> remove();
  Result<void> lock();
  Result<void> prune();
  Result<void> arrange();
  Result<void> scrub();
  Result<void> reopen_cleanly();
  Result<void> compact();
  Result<void> change_keys();
  Result<void> copy();
  bool may_prune_copy();
  Result<void> rebuild_catalog();
  Result<void> repair_damage();
  Result<void> seal_all();

  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }
  Line& any_line() { return lines_[below(lines_.size())]; }
  std::string any_path();
  std::string any_bytes();
  Line* line_with_open();
  Line* line_without_open();
  Line* line_with_sealed();
  Result<Ino> directory(VersionWriter& version, const std::string& path);
  Result<Ino> file(VersionWriter& version, Line& line, const std::string& path);
  Result<std::string> any_file(Line& line);
  static void changed(Line& line, const std::string& path, std::optional<TreeNode> node);
  Result<void> write_at(Line& line, const std::string& path, std::uint64_t offset,
                        const std::string& bytes);
  Result<void> delete_versions(Line& line, std::vector<VersionNumber> numbers);
  Result<void> seal_now(Line& line, bool keep);

  // The disk.
  void start_disk();
  void stop_disk();
  void apply_calls();
  void arm(std::size_t calls);
  void crash();
  void open();
  Result<void> close();
  [[nodiscard]] bool has_overlay(const Line& line) const;
  void repair(const std::string& path);
  [[nodiscard]] OpenOptions options(char key) const;
  bool opens_with(char key);

  // Checks. random_history_check.cc.
  void settle();
  void settle(Line& line);
  void settle_open(Line& line, std::optional<VersionNumber> just_sealed);
  void check_copy();
  void check_everything();
  [[noreturn]] void fail(const std::string& what) const;

  const std::uint64_t seed_;
  std::mt19937_64 random_;
  TempDirectory directory_;
  std::string root_;  // Has both repositories: r and copy.
  std::string path_;
  std::string copy_path_;
  std::unique_ptr<DiskModel> model_;
  std::unique_ptr<DiskRecorder> disk_;
  std::unique_ptr<Repository> repository_;
  bool armed_ = false;
  bool rebuilding_ = false;  // A repair has begun and not ended.

  std::vector<Line> lines_;
  std::map<std::string, VersionTree> trees_;  // All that was ever sealed, by the content of "id".
  std::set<std::string> copied_;              // Ids in the copy.
  std::set<std::string> pruning_;             // Those that a copy is deleting.
  char key_ = 'k';
  std::optional<char> next_key_;  // Of a change that is going on.
  std::uint64_t content_ = 0;
  std::uint64_t names_ = 0;
  std::uint64_t step_ = 0;
  const char* step_name_ = "";
  std::map<std::string, std::uint64_t> done_;
};

}  // namespace varve::test
