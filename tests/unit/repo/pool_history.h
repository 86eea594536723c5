// SPDX-License-Identifier: Apache-2.0
// A random history of series that share a pool.
#pragma once

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>
#include "pool_model.h"
#include "support/pool_oracle.h"
#include "support/temp_repository.h"
#include "varve/arrange.h"
#include "varve/check.h"
#include "varve/repair.h"
#include "varve/retention.h"

namespace varve {

class PoolHistory {
 public:
  explicit PoolHistory(std::uint64_t seed) : random_(seed) {
    must(Repository::create(path_, test::small_chunks(Codec::kNone)));
    repository_ = test::reopen(path_);
    for (const auto placement : {Placement::kLineage, Placement::kLineagePool, Placement::kPool}) {
      add_series(placement);
    }
    for (int i = 0; i < 24; ++i) pieces_.push_back(test::noise(2000 + pick(9000), random_()));
  }

  void step() {
    auto& series = series_[pick(series_.size())];
    const auto kind = pick(100);
    if (kind < 62) return change(series);
    if (kind < 66) return sync(series);
    if (kind < 78) return seal(series);
    if (kind < 80) return abandon(series);
    if (kind < 89) return erase(series);
    if (kind < 92) return arrange(series);
    if (kind < 93) return replace(series);
    if (kind < 94 && pick(4) == 0) return rebuild();
    if (kind < 95) return must(repository_->set_pool_index(any_pool_index(random_)));
    if (kind < 96) return reopen();
    if (kind < 99) return kill();
    pieces_[pick(pieces_.size())] = test::noise(2000 + pick(9000), random_());
  }

  void finish() {
    for (auto& series : series_) {
      if (series.open) must(repository_->abandon_version(series.id, series.open->number, true));
      series.open.reset();
    }
    check_all();
    for (auto& series : series_) {
      std::vector<VersionNumber> all;
      for (const auto& [number, tree] : series.sealed) all.push_back(number);
      erase(series, all);
      series.sealed.clear();
    }
    EXPECT_EQ(test::bytes_below(path_ + "/pool/active"), 0U);
    close();
    const test::PoolOracle oracle(path_);
    EXPECT_EQ(oracle.containers(), 0U);
  }
  [[nodiscard]] const std::string& last() const { return last_; }
  [[nodiscard]] std::size_t shared_max() const { return shared_max_; }
  [[nodiscard]] std::size_t aliases_max() const { return aliases_max_; }

 private:
  static std::uint32_t number(std::size_t n) { return static_cast<std::uint32_t>(n); }
  std::size_t pick(std::size_t n) { return static_cast<std::size_t>(random_() % n); }
  std::string pick_name() { return "f" + std::to_string(pick(14)); }
  Placement pick_placement() { return static_cast<Placement>(pick(3)); }

  void add_series(Placement placement) {
    SeriesOptions options;
    options.placement = placement;
    Series series;
    series.name = "s" + std::to_string(++series_made_);
    series.id = must(repository_->create_series(series.name, options)).id;
    series_.push_back(std::move(series));
  }

  Content content() {
    std::string bytes;
    const auto first = pick(pieces_.size());
    for (auto n = 1 + pick(6), i = first; n > 0; --n, ++i) bytes += pieces_[i % pieces_.size()];
    return std::make_shared<const std::string>(std::move(bytes));
  }

  // ---- Changes of an open version. ----

  void begin(Series& series) {
    const auto name = "v" + std::to_string(++versions_made_);
    Open open;
    if (series.sealed.empty() || pick(3) == 0) {
      open.number = must(repository_->open_version(series.id, name, test::folder())).number;
    } else {
      auto source = std::prev(series.sealed.end());
      if (pick(3) == 0) std::advance(source = series.sealed.begin(), pick(series.sealed.size()));
      open.number = must(repository_->clone_version(series.id, source->first, name)).number;
      if (std::next(source) == series.sealed.end()) open.base = source->first;
      open.tree = source->second;
    }
    for (const auto& [file, bytes] : open.tree) open.since_sync[file].insert(bytes);
    series.open = std::move(open);
  }

  static void set(Open& open, const std::string& name, Content bytes) {
    auto& states = open.since_sync[name];
    if (states.empty()) states.insert(open.tree.contains(name) ? open.tree.at(name) : nullptr);
    states.insert(bytes);
    if (bytes) {
      open.tree[name] = std::move(bytes);
    } else {
      open.tree.erase(name);
    }
  }

  void change(Series& series) {
    if (!series.open) begin(series);
    auto& open = *series.open;
    const auto version = must(repository_->writer(series.id));
    const auto name = pick_name();
    const bool present = open.tree.contains(name);
    const auto kind = pick(10);
    last_ = "change " + std::to_string(kind) + " of " + name + " in " + series.name;
    switch (kind) {
      case 0:
        if (present) {
          must(version->unlink(kRootIno, name));
          set(open, name, nullptr);
        }
        return;
      case 1:
        if (present) return write_inside(*version, open, name);
        break;
      case 2:
        if (present) return truncate(*version, open, name);
        break;
      case 3: {
        const auto to = pick_name();
        if (!present || to == name) break;
        must(version->rename(kRootIno, name, kRootIno, to, RenameMode::kReplace));
        set(open, to, open.tree.at(name));
        return set(open, name, nullptr);
      }
      case 4:
        return clone_file(*version, series, name);
      case 5:
        return clone_range(*version, open, name);
      default:
        break;
    }
    if (present) must(version->unlink(kRootIno, name));
    const auto bytes = content();
    test::write_file(*version, kRootIno, name, *bytes);
    set(open, name, bytes);
  }

  void write_inside(VersionWriter& version, Open& open, const std::string& name) {
    auto bytes = *open.tree.at(name);
    const auto& piece = pieces_[pick(pieces_.size())];
    const auto at = pick(bytes.size() + 1);
    bytes.resize(std::max(bytes.size(), at + piece.size()));
    bytes.replace(at, piece.size(), piece);
    const auto file = must(version.open(must(version.lookup(kRootIno, name)).ino, true));
    must(file->write(at, base::as_bytes(piece)));
    set(open, name, std::make_shared<const std::string>(std::move(bytes)));
  }

  void truncate(VersionWriter& version, Open& open, const std::string& name) {
    auto bytes = *open.tree.at(name);
    AttributeChange change;
    change.size = pick(bytes.size() + 5000);
    bytes.resize(*change.size);
    must(version.set_attributes(must(version.lookup(kRootIno, name)).ino, change));
    set(open, name, std::make_shared<const std::string>(std::move(bytes)));
  }

  // As `rsync --link-dest` does.
  void clone_file(VersionWriter& version, Series& series, const std::string& name) {
    if (series.sealed.empty()) return;
    auto source = series.sealed.begin();
    std::advance(source, pick(series.sealed.size()));
    if (source->second.empty()) return;
    auto file = source->second.begin();
    std::advance(file, pick(source->second.size()));
    const auto reader = must(repository_->reader(series.id, source->first));
    if (series.open->tree.contains(name)) must(version.unlink(kRootIno, name));
    must(version.clone(*reader, test::find(*reader, file->first), kRootIno, name));
    set(*series.open, name, file->second);
  }

  void clone_range(VersionWriter& version, Open& open, const std::string& name) {
    const auto from = pick_name();
    if (from == name || !open.tree.contains(from) || !open.tree.contains(name)) return;
    const auto& source = *open.tree.at(from);
    auto bytes = *open.tree.at(name);
    const auto in = must(version.open(must(version.lookup(kRootIno, from)).ino, false));
    const auto out = must(version.open(must(version.lookup(kRootIno, name)).ino, true));
    const auto copied = out->clone_range(*in, 0, 0, source.size());
    if (!copied) {
      EXPECT_EQ(copied.error().code(), ErrorCode::kOtherVersion);
      return;
    }
    bytes.resize(std::max<std::size_t>(bytes.size(), *copied));
    bytes.replace(0, *copied, source.substr(0, *copied));
    set(open, name, std::make_shared<const std::string>(std::move(bytes)));
  }

  static void synced(Open& open) { open.since_sync.clear(); }

  void sync(Series& series) {
    last_ = "sync of " + series.name;
    if (!series.open) return;
    must(must(repository_->writer(series.id))->sync());
    synced(*series.open);
  }

  // ---- Changes of a series. ----

  void seal(Series& series) {
    last_ = "seal of " + series.name;
    if (!series.open) begin(series);
    const auto number = series.open->number;
    const auto mode = pick(4) == 0 ? SealMode::kKeep : SealMode::kEnd;
    const auto name = "v" + std::to_string(++versions_made_);
    const auto outcome = must(repository_->seal(series.id, number, name, mode));
    series.sealed[number] = series.open->tree;
    if (mode == SealMode::kKeep) {
      series.open->number = outcome.next->number;
      series.open->base = number;
      synced(*series.open);
    } else {
      series.open.reset();
    }
    check(series);
  }

  void abandon(Series& series) {
    last_ = "abandoning in " + series.name;
    if (!series.open) return;
    must(repository_->abandon_version(series.id, series.open->number, true));
    series.open.reset();
    check_all();
  }

  void erase(Series& series) {
    std::vector<VersionNumber> gone;
    const auto some = 1 + pick(4);
    for (const auto& [number, tree] : series.sealed) {
      if (series.open && series.open->base == number) continue;
      if (pick(some) == 0) gone.push_back(number);
    }
    erase(series, gone);
    for (const auto number : gone) series.sealed.erase(number);
    check_all();
  }

  void erase(Series& series, const std::vector<VersionNumber>& gone) {
    // An open version that still chunks what was written may refer to more of the pool meanwhile.
    for (auto& other : series_) sync(other);
    last_ = "deletion in " + series.name;
    const auto forecast = must(repository_->forecast_deletion(series.id, gone));
    const auto before = stored_files(path_);
    const auto done = must(repository_->delete_versions(series.id, gone, {}));
    EXPECT_EQ(forecast.freed_bytes, done.freed_bytes);
    const auto after = stored_files(path_);
    const auto freed = freed_between(before, after);
    EXPECT_EQ(freed, static_cast<std::int64_t>(done.freed_bytes)) << changes(before, after);
  }

  void arrange(Series& series) {
    last_ = "arranging " + series.name;
    ArrangeOptions options;
    options.post_pass = {pick(3) != 0, number(1 + pick(4)), number(1 + pick(400))};
    must(repository_->arrange(series.id, options));
    check(series);
  }

  // Removes a series without versions, and makes another.
  void replace(Series& series) {
    last_ = "removal of " + series.name;
    if (!series.sealed.empty() || series.open) return;
    must(repository_->remove_series(series.name));
    std::erase_if(series_, [&](const Series& one) { return &one == &series; });
    add_series(pick_placement());
  }

  // ---- The end of the process. ----

  void close() {
    must(repository_->close());
    repository_.reset();
    for (auto& series : series_) {
      if (series.open) synced(*series.open);
    }
  }

  void start() {
    if (pick(2) == 0)
      test::set_placement(path_, series_[pick(series_.size())].id, pick_placement());
    repository_ = test::reopen(path_);
  }

  void inspect(bool clean) {
    const test::PoolOracle oracle(path_);
    for (const auto& one : oracle.wrong()) ADD_FAILURE() << one;
    shared_max_ = std::max(shared_max_, oracle.shared());
    aliases_max_ = std::max(aliases_max_, oracle.aliases());
    if (!clean) return;
    for (const auto& one : oracle.unused()) ADD_FAILURE() << one;
  }

  void reopen() {
    last_ = "reopening";
    close();
    inspect(false);
    start();
    close();
    inspect(true);
    start();
    check_all();
  }

  // Loses the catalog, and builds it again.
  void rebuild() {
    for (auto& series : series_) {
      if (series.open) must(must(repository_->writer(series.id))->sync());
      // Without staging, repair cannot know that nothing was written, and reports a loss.
      if (series.open && !has_staging(path_, series.id, series.open->number)) abandon(series);
    }
    last_ = "rebuilding";
    close();
    const auto before = sealed_versions(path_);
    std::filesystem::remove_all(path_ + "/catalog");
    const auto repaired = must(must(Repair::plan(path_, {}, false, {}))->execute({}));
    for (const auto& problem : repaired.problems) ADD_FAILURE() << problem;
    const auto after = sealed_versions(path_);
    EXPECT_EQ(before.size(), after.size());
    for (const auto& [version, held] : before) {
      const auto found = after.find(version);
      EXPECT_TRUE(found != after.end() && found->second == held) << version;
    }
    inspect(false);
    start();
    check_all();
  }

  void kill() {
    last_ = "kill";
    const auto crashed = directory_.path() + "/crashed";
    copy_running(path_, crashed);
    repository_.reset();
    std::filesystem::remove_all(path_);
    std::filesystem::rename(crashed, path_);
    inspect(false);
    start();
    for (auto& series : series_) {
      if (series.open) adopt(series);
    }
    check_all();
  }

  // Takes over the open version that the crash left, after a comparison with what it may be.
  void adopt(Series& series) {
    auto& open = *series.open;
    const auto version = must(repository_->writer(series.id));
    ASSERT_EQ(version->info().number, open.number);
    std::map<std::string, Ino> present;
    must(version->list(kRootIno, "", [&](std::string_view name, const OpenEntry& entry) {
      present[std::string(name)] = entry.ino;
      return true;
    }));
    Tree found;
    for (const auto& [name, ino] : present) {
      found[name] = std::make_shared<const std::string>(test::read_open(*version, ino));
    }
    auto names = open.tree;
    names.insert(found.begin(), found.end());
    for (const auto& [name, states] : open.since_sync) names.try_emplace(name);
    for (const auto& [name, unused] : names) {
      const auto at = found.find(name);
      std::set<Content> may_be = open.since_sync[name];
      if (may_be.empty()) may_be.insert(open.tree.contains(name) ? open.tree.at(name) : nullptr);
      const bool right = std::ranges::any_of(may_be, [&](const Content& one) {
        return one ? at != found.end() && *at->second == *one : at == found.end();
      });
      EXPECT_TRUE(right) << name << " in the open version of " << series.name;
    }
    open.tree = std::move(found);
    synced(open);
  }

  // ---- Comparison with the model. ----

  void check_all() {
    for (auto& series : series_) check(series);
  }

  void check(const Series& series) {
    for (const auto& [number, tree] : series.sealed) {
      const auto reader = must(repository_->reader(series.id, number));
      std::set<std::string> names;
      must(reader->list(0, 0, [&](std::uint64_t, std::string_view name, const SealedEntry&) {
        names.insert(std::string(name));
        return true;
      }));
      EXPECT_EQ(names.size(), tree.size());
      for (const auto& [name, bytes] : tree) {
        ASSERT_TRUE(test::read_sealed(*reader, name) == *bytes)
            << name << " in version " << static_cast<std::uint32_t>(number) << " of "
            << series.name;
      }
    }
    if (!series.open) return;
    const auto version = must(repository_->writer(series.id));
    for (const auto& [name, bytes] : series.open->tree) {
      const auto ino = must(version->lookup(kRootIno, name)).ino;
      ASSERT_TRUE(test::read_open(*version, ino) == *bytes)
          << name << " in the open version of " << series.name;
    }
  }

  const test::TempDirectory directory_;
  const std::string path_ = directory_.path() + "/repo";
  std::mt19937_64 random_;
  std::unique_ptr<Repository> repository_;
  std::vector<Series> series_;
  std::vector<std::string> pieces_;
  int series_made_ = 0;
  int versions_made_ = 0;
  std::size_t shared_max_ = 0;
  std::size_t aliases_max_ = 0;
  std::string last_;
};

}  // namespace varve
