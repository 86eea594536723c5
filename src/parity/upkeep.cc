// SPDX-License-Identifier: Apache-2.0
#include "parity/upkeep.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "format/container.h"

namespace varve::parity {

namespace {

// Parity for two containers of maximum length at any offset, with an allowance for rounding.
constexpr std::uint64_t kFullParityBytes = 2 * format::kContainerBytesMax + (256U << 10);
// Space to leave free on the disk: parity must not fill the disk.
constexpr std::uint64_t kSpareBytes = 32U << 20;
constexpr std::uint64_t kFileBytesMax =
    std::uint64_t{format::kParityBlocksMax} / 2 * format::kParityBlockBytes;

using Present = std::map<SegmentNumber, DataFile>;

Present by_number(const std::vector<DataFile>& files) {
  Present present;
  for (const auto& file : files) {
    if (file.bytes != 0 && file.bytes <= kFileBytesMax) present[file.segment] = file;
  }
  return present;
}

bool fits(const Group& group, const Present& present) {
  return std::all_of(group.index.members.begin(), group.index.members.end(),
                     [&](const auto& member) {
                       const auto file = present.find(member.segment);
                       return file != present.end() && file->second.bytes == member.bytes;
                     });
}

std::uint64_t bytes_of(const std::vector<format::ParityMember>& members) {
  std::uint64_t bytes = 0;
  for (const auto& member : members) bytes += member.bytes;
  return bytes;
}

bool any_present(const Group& group, const Present& present) {
  return std::any_of(group.index.members.begin(), group.index.members.end(),
                     [&](const auto& member) { return present.contains(member.segment); });
}

bool holds_exactly(const Group& group, const std::vector<DataFile>& files) {
  std::set<SegmentNumber> members;
  for (const auto& member : group.index.members) members.insert(member.segment);
  return members.size() == files.size() &&
         std::all_of(files.begin(), files.end(),
                     [&](const DataFile& file) { return members.contains(file.segment); });
}

std::vector<std::vector<format::ParityMember>> cut_into_groups(std::vector<DataFile> loose,
                                                               std::uint32_t percent) {
  std::sort(loose.begin(), loose.end(), [](const auto& a, const auto& b) {
    return std::tie(a.version, a.segment) < std::tie(b.version, b.segment);
  });
  std::vector<std::vector<format::ParityMember>> groups;
  std::uint64_t bytes = 0;
  for (const auto& file : loose) {
    if (groups.empty() || bytes >= full_group_bytes(percent) ||
        groups.back().size() >= format::kParityMembersMax) {
      groups.emplace_back();
      bytes = 0;
    }
    groups.back().push_back({file.segment, file.bytes});
    bytes += file.bytes;
  }
  return groups;
}

}  // namespace

std::uint64_t full_group_bytes(std::uint32_t percent) {
  return kFullParityBytes * 100 / std::max<std::uint32_t>(percent, 1);
}

std::size_t count_protected(const std::vector<DataFile>& present,
                            const std::vector<Group>& groups) {
  const auto files = by_number(present);
  std::set<SegmentNumber> covered;
  for (const auto& group : groups) {
    if (!fits(group, files)) continue;
    for (const auto& member : group.index.members) covered.insert(member.segment);
  }
  return covered.size();
}

GroupPlan plan_groups(const std::vector<DataFile>& present, const std::vector<Group>& groups,
                      std::uint32_t percent) {
  GroupPlan plan;
  const auto files = by_number(present);
  std::set<SegmentNumber> covered;
  // Groups that are not full: of the active set, and of the volumes.
  std::vector<const Group*> small[2];
  const auto cover = [&](const Group& group) {
    for (const auto& member : group.index.members) covered.insert(member.segment);
  };
  // Newest first, because an interrupted pass may have left an older group of the same files.
  for (auto group = groups.rbegin(); group != groups.rend(); ++group) {
    if (percent == 0 || !any_present(*group, files)) {
      plan.remove.push_back(group->number);
      continue;
    }
    const auto& members = group->index.members;
    const bool doubled = std::any_of(members.begin(), members.end(), [&](const auto& member) {
      return covered.contains(member.segment);
    });
    const bool archived =
        files.contains(members.front().segment) && files.at(members.front().segment).archived;
    const bool alike = std::all_of(members.begin(), members.end(), [&](const auto& member) {
      return files.contains(member.segment) && files.at(member.segment).archived == archived;
    });
    if (group->index.percent != percent || doubled || !alike || !fits(*group, files)) {
      plan.replaced.push_back(group->number);
    } else if (bytes_of(members) >= full_group_bytes(percent)) {
      cover(*group);
    } else {
      small[archived ? 1 : 0].push_back(&*group);
    }
  }
  if (percent == 0) return plan;
  for (const bool archived : {false, true}) {
    auto& kept = small[archived ? 1 : 0];
    std::vector<DataFile> loose;
    for (const auto& [segment, file] : files) {
      if (file.archived == archived && !covered.contains(segment)) loose.push_back(file);
    }
    if (kept.size() == 1 && holds_exactly(*kept.front(), loose)) continue;
    for (const auto* group : kept) plan.replaced.push_back(group->number);
    auto fresh = cut_into_groups(std::move(loose), percent);
    plan.make.insert(plan.make.end(), std::make_move_iterator(fresh.begin()),
                     std::make_move_iterator(fresh.end()));
  }
  return plan;
}

namespace {

/// Brings the parity of one series up to date.
class ParityUpkeep {
 public:
  ParityUpkeep(store::SegmentStore& store, StoreId store_id, const std::vector<DataFile>& present,
               const KeepOptions& options)
      : store_(store), store_id_(store_id), present_(present), options_(options) {}

  [[nodiscard]] Result<KeepReport> run() {
    VARVE_TRY(store_.remove_unfinished(store::StoredKind::kGroups));
    VARVE_TRY_ASSIGN(listing_, list_groups(store_, store_id_));
    for (const auto& damaged : listing_.damaged) VARVE_TRY(remove(damaged.first));
    next_number_ = listing_.next_number;
    // A damaged file keeps its old parity. Each further pass plans without the damaged files found
    // so far.
    while (true) {
      VARVE_TRY_ASSIGN(const bool again, pass());
      if (!again) return std::move(report_);
    }
  }

 private:
  [[nodiscard]] Result<void> remove(GroupNumber number) {
    auto removed = store_.remove(number);
    if (!removed && removed.error().code() != ErrorCode::kNotFound) return removed;
    return {};
  }

  /// Executes one plan. Returns true after finding damage that changes the plan.
  [[nodiscard]] Result<bool> pass() {
    report_.finished = false;
    const auto plan = plan_groups(present_, listing_.groups, options_.percent);
    for (const auto number : plan.remove) VARVE_TRY(remove(number));
    std::erase_if(listing_.groups, [&](const Group& group) {
      return std::find(plan.remove.begin(), plan.remove.end(), group.number) != plan.remove.end();
    });
    for (const auto& members : plan.make) {
      VARVE_TRY_ASSIGN(const auto damaged, make(members));
      if (!damaged.empty()) {
        leave_out(damaged);
        return true;
      }
      if (stopped_) return false;
    }
    for (const auto number : plan.replaced) {
      if (!is_needed(number)) VARVE_TRY(remove(number));
    }
    report_.finished = true;
    return false;
  }

  /// Writes a new group. Returns the damaged members; with damaged members, writes no group.
  [[nodiscard]] Result<std::vector<SegmentNumber>> make(
      const std::vector<format::ParityMember>& members) {
    format::ParityIndex index;
    index.store = store_id_;
    index.percent = options_.percent;
    index.members = members;
    VARVE_TRY(check_space(members));
    if (is_last(next_number_)) {
      return Error(ErrorCode::kTooLarge, "no number is left for another file of parity");
    }
    VARVE_TRY_ASSIGN(const auto known, known_sums(members));
    VARVE_TRY_ASSIGN(auto outcome,
                     write_group(store_, next_number_, index, known, [this](std::uint64_t bytes) {
                       stopped_ = stopped_ || (options_.pass && !options_.pass(bytes));
                       return !stopped_;
                     }));
    report_.bytes_read += outcome.bytes_read;
    if (outcome.written) {
      for (const auto& member : members) index.blocks += member.blocks();
      listing_.groups.push_back({next_number_, std::move(index), outcome.bytes_written});
      next_number_ = number_after(next_number_);
      ++report_.groups_made;
      report_.bytes_written += outcome.bytes_written;
      if (options_.pass && !options_.pass(outcome.bytes_written)) stopped_ = true;
    }
    return std::move(outcome.damaged);
  }

  [[nodiscard]] Result<void> check_space(const std::vector<format::ParityMember>& members) {
    VARVE_TRY_ASSIGN(const auto space, store_.space());
    const auto wanted = bytes_of(members) * options_.percent / 100 + kSpareBytes;
    if (space.available_bytes() >= wanted) return {};
    return Error(ErrorCode::kNoSpace, "the disk is too full for parity");
  }

  // Returns the checksums of the members in existing groups.
  [[nodiscard]] Result<KnownSums> known_sums(const std::vector<format::ParityMember>& members) {
    std::map<SegmentNumber, std::uint64_t> wanted;
    for (const auto& member : members) wanted[member.segment] = member.bytes;
    KnownSums known;
    for (const auto& group : listing_.groups) {
      const auto& old = group.index.members;
      const bool any = std::any_of(old.begin(), old.end(), [&](const auto& member) {
        return wanted.contains(member.segment) && !known.contains(member.segment);
      });
      if (!any) continue;
      const auto sums = load_sums(store_, group);
      if (!sums) continue;  // A group with damaged checksums does not count.
      auto at = sums->data.begin();
      for (const auto& member : old) {
        const auto now = wanted.find(member.segment);
        if (now != wanted.end()) {
          // For a cut file, only the whole blocks.
          const auto whole = now->second == member.bytes
                                 ? member.blocks()
                                 : std::min(now->second, member.bytes) / format::kParityBlockBytes;
          known[member.segment].assign(at, at + static_cast<std::ptrdiff_t>(whole));
        }
        at += member.blocks();
      }
    }
    return known;
  }

  void leave_out(const std::vector<SegmentNumber>& damaged) {
    report_.damaged.insert(report_.damaged.end(), damaged.begin(), damaged.end());
    std::erase_if(present_, [&](const DataFile& file) {
      return std::find(damaged.begin(), damaged.end(), file.segment) != damaged.end();
    });
  }

  // Returns whether the group protects a damaged file. The group stays until the repair of the
  // file.
  [[nodiscard]] bool is_needed(GroupNumber number) const {
    for (const auto& group : listing_.groups) {
      if (group.number != number) continue;
      const auto& members = group.index.members;
      return std::any_of(members.begin(), members.end(), [&](const auto& member) {
        return std::find(report_.damaged.begin(), report_.damaged.end(), member.segment) !=
               report_.damaged.end();
      });
    }
    return false;
  }

  store::SegmentStore& store_;
  const StoreId store_id_;
  std::vector<DataFile> present_;
  const KeepOptions& options_;
  GroupListing listing_;
  GroupNumber next_number_{1};
  bool stopped_ = false;
  KeepReport report_;
};

}  // namespace

Result<KeepReport> keep_parity(store::SegmentStore& store, StoreId store_id,
                               const std::vector<DataFile>& present, const KeepOptions& options) {
  return ParityUpkeep(store, store_id, present, options).run();
}

}  // namespace varve::parity
