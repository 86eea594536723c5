// SPDX-License-Identifier: Apache-2.0
#include "index/run_set.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "index/run_writer.h"

namespace varve::index {

namespace {

// The number of runs of one level that are merged into one run. A level has runs of up to four
// times the entries of the level below. So each entry is written about once per level, and a lookup
// searches at most three runs per level.
constexpr std::size_t kFan = 4;
constexpr std::uint64_t kLowestLevelEntries = 256;
// Number of entries of unused chunks not worth a merge.
constexpr std::uint64_t kUnusedEntries = 4096;

int level_of(const IndexRun& run) {
  int level = 0;
  for (auto rest = run.header().entries / kLowestLevelEntries; rest != 0; rest /= kFan) ++level;
  return level;
}

}  // namespace

void RunSet::leave_out(Member& member, const Error& error) {
  if (member.damaged) return;
  member.damaged = true;
  base::log(base::LogLevel::kWarning,
            error.message() + "; building this part of the index from containers");
}

void RunSet::open(const std::vector<RunRef>& refs) {
  for (const auto& ref : refs) {
    next_number_ = std::max(next_number_, ref.number + 1);
    auto run = IndexRun::open(folder_, ref);
    if (run) {
      members_.push_back({std::move(*run)});
    } else {
      base::log(base::LogLevel::kWarning,
                run.error().message() + "; building this part of the index from containers");
    }
  }
}

Result<void> RunSet::import(io::File& snapshot, VersionNumber version) {
  std::unique_ptr<RunWriter> writer;
  Entry last;
  const auto add = [&](const Entry& entry, std::uint64_t entries) -> Result<void> {
    if (!writer) {
      VARVE_TRY_ASSIGN(writer, RunWriter::create(folder_, next_number_, entries));
    }
    // A deletion may have hidden a chunk; content stored again afterwards has two entries.
    if (!last.is_empty() && !(last.tag < entry.tag)) return {};
    last = entry;
    return writer->add(entry);
  };
  VARVE_TRY_ASSIGN(const auto covered, scan_snapshot(snapshot, folder_.series, version, add));
  if (!writer) {
    VARVE_TRY_ASSIGN(writer, RunWriter::create(folder_, next_number_, 0));
  }
  VARVE_TRY_ASSIGN(auto run, writer->finish(covered));
  ++next_number_;
  members_.push_back({std::move(run)});
  return {};
}

std::optional<ChunkId> RunSet::find(const Tag& tag, const Check& check) {
  for (auto it = members_.rbegin(); it != members_.rend(); ++it) {
    if (it->damaged) continue;
    const auto found = it->run->find(tag, cache_);
    if (!found) {
      leave_out(*it, found.error());
      continue;
    }
    if (!*found) continue;
    const auto verdict = check(**found, it->is_new);
    if (verdict == Verdict::kTake) return *found;
    if (verdict == Verdict::kWrong) {
      leave_out(*it, Error(ErrorCode::kCorrupt,
                           it->run->path() + ": an entry names a chunk with another content"));
    }
  }
  return std::nullopt;
}

Result<void> RunSet::write(const std::vector<Entry>& entries, const base::IdRuns& covered) {
  if (entries.empty() && covered.size() == 0) return {};
  VARVE_TRY_ASSIGN(const auto writer, RunWriter::create(folder_, next_number_, entries.size()));
  for (const Entry& entry : entries) VARVE_TRY(writer->add(entry));
  VARVE_TRY_ASSIGN(auto run, writer->finish(covered));
  ++next_number_;
  members_.push_back({std::move(run), true});
  return {};
}

void RunSet::drop_damaged() {
  const auto drop = [&](const Member& member) {
    if (member.damaged) lost_ = lost_.unite(member.run->covered());
    return member.damaged;
  };
  if (std::erase_if(members_, drop) != 0) cache_.clear();
}

bool RunSet::has_lost() const {
  return lost_.size() != 0 || std::ranges::any_of(members_, &Member::damaged);
}

base::IdRuns RunSet::take_lost() {
  drop_damaged();
  return std::exchange(lost_, {}).subtract(covered());
}

std::optional<std::size_t> RunSet::merge_start(std::size_t begin) const {
  int highest = 0;
  for (const auto& member : members_) highest = std::max(highest, level_of(*member.run));
  for (int level = 0; level <= highest; ++level) {
    std::size_t first = members_.size();
    std::size_t count = 0;
    for (std::size_t i = first; i > begin && level_of(*members_[i - 1].run) <= level; --i) {
      if (level_of(*members_[i - 1].run) != level) continue;
      first = i - 1;
      ++count;
    }
    if (count >= kFan) return first;
  }
  return std::nullopt;
}

Result<void> RunSet::merge(const base::IdRuns& live) {
  drop_damaged();
  if (unused_entries(0, live) > live.size() + kUnusedEntries) VARVE_TRY(merge_from(0, &live));
  while (const auto first = merge_start(0)) VARVE_TRY(merge_from(*first, &live));
  return {};
}

Result<void> RunSet::merge(const LiveFrom& live_from) {
  drop_damaged();
  while (const auto first = merge_start(0)) {
    VARVE_TRY_ASSIGN(const auto live, live_from(lowest_covered(*first)));
    VARVE_TRY(merge_from(*first, &live));
  }
  return {};
}

ChunkId RunSet::lowest_covered(std::size_t first) const {
  ChunkId lowest{~std::uint64_t{0}};
  for (std::size_t i = first; i < members_.size(); ++i) {
    const auto& runs = members_[i].run->covered().runs();
    if (!runs.empty()) lowest = std::min(lowest, runs.front().first);
  }
  return lowest;
}

Result<void> RunSet::merge_new() {
  drop_damaged();
  const auto begin = static_cast<std::size_t>(
      std::ranges::find_if(members_, [](const Member& member) { return member.is_new; }) -
      members_.begin());
  while (const auto first = merge_start(begin)) VARVE_TRY(merge_from(*first, nullptr));
  return {};
}

Result<bool> RunSet::write_merged(std::size_t first, const base::IdRuns* live, RunWriter& writer) {
  std::vector<RunScanner> scanners;
  std::vector<Entry> heads(members_.size() - first);
  const auto advance = [&](std::size_t i) {
    auto next = scanners[i].next();
    if (!next) leave_out(members_[first + i], next.error());
    if (next) heads[i] = *next;
    return next.has_value();
  };
  for (std::size_t i = 0; i < heads.size(); ++i) {
    scanners.emplace_back(*members_[first + i].run);
    if (!advance(i)) return false;
  }
  while (true) {
    const Entry* lowest = nullptr;
    for (const Entry& head : heads) {
      if (!head.is_empty() && (lowest == nullptr || head.tag < lowest->tag)) lowest = &head;
    }
    if (lowest == nullptr) return true;
    const Tag tag = lowest->tag;
    Entry chosen;
    for (std::size_t i = 0; i < heads.size(); ++i) {
      if (heads[i].is_empty() || heads[i].tag != tag) continue;
      const ChunkId id = heads[i].id();
      const bool stays = is_marker(id) ? chosen.is_empty() || is_marker(chosen.id())
                                       : live == nullptr || live->contains(id);
      if (stays) chosen = heads[i];
      if (!advance(i)) return false;
    }
    if (!chosen.is_empty()) VARVE_TRY(writer.add(chosen));
  }
}

Result<void> RunSet::merge_from(std::size_t first, const base::IdRuns* live) {
  std::uint64_t entries = 0;
  bool is_new = true;
  base::IdRuns covered;
  for (std::size_t i = first; i < members_.size(); ++i) {
    entries += members_[i].run->header().entries;
    is_new = is_new && members_[i].is_new;
    covered = covered.unite(members_[i].run->covered());
  }
  if (live != nullptr) {
    covered = covered.intersect(*live);
    entries -= std::min(entries, unused_entries(first, *live));
  }
  VARVE_TRY_ASSIGN(const auto writer, RunWriter::create(folder_, next_number_, entries));
  VARVE_TRY_ASSIGN(const bool complete, write_merged(first, live, *writer));
  if (!complete) {
    drop_damaged();
    return {};  // The caller searches the next merge again.
  }
  VARVE_TRY_ASSIGN(auto run, writer->finish(covered));
  ++next_number_;
  members_.erase(members_.begin() + static_cast<std::ptrdiff_t>(first), members_.end());
  const bool is_used = covered.size() != 0 || run->header().entries != 0;
  if (is_used) members_.push_back({std::move(run), is_new});
  cache_.clear();
  return {};
}

std::uint64_t RunSet::unused_entries(std::size_t first, const base::IdRuns& live) const {
  std::uint64_t all = 0;
  std::uint64_t unused = 0;
  for (std::size_t i = first; i < members_.size(); ++i) {
    const IndexRun& run = *members_[i].run;
    all += run.header().entries;
    unused += std::min(run.header().entries, run.covered().subtract(live).size());
  }
  // Without markers, more entries than live chunks are unused in any case.
  return is_marker_ != nullptr ? unused : all - std::min(all, live.size());
}

std::vector<std::shared_ptr<const IndexRun>> RunSet::runs() const {
  std::vector<std::shared_ptr<const IndexRun>> runs;
  for (const auto& member : members_) {
    if (!member.damaged) runs.push_back(member.run);
  }
  return runs;
}

void RunSet::drop(const IndexRun& run) {
  for (auto& member : members_) {
    if (member.run.get() == &run) member.damaged = true;
  }
}

std::vector<RunRef> RunSet::refs() const {
  std::vector<RunRef> refs;
  for (const auto& member : members_) {
    if (!member.damaged) refs.push_back(member.run->ref());
  }
  return refs;
}

base::IdRuns RunSet::covered() const {
  base::IdRuns all;
  for (const auto& member : members_) {
    if (!member.damaged) all = all.unite(member.run->covered());
  }
  return all;
}

std::uint64_t RunSet::entries() const {
  std::uint64_t sum = 0;
  for (const auto& member : members_) sum += member.run->header().entries;
  return sum;
}

}  // namespace varve::index
