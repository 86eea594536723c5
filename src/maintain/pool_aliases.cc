// SPDX-License-Identifier: Apache-2.0
#include "maintain/pool_aliases.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "catalog/location_table.h"
#include "catalog/pool_records.h"
#include "store/repository_names.h"
#include "store/segment_files.h"

namespace varve::maintain {

namespace {

std::string name_of(ChunkId id) {
  return fmt::format("{}.{}", static_cast<std::uint32_t>(id.birth()), id.ordinal());
}

// Compares the files of aliases with one snapshot of the catalog.
class AliasFileCheck {
 public:
  AliasFileCheck(const meta::Txn& txn, const store::FolderPath& folder,
                 store::SegmentStore& containers, const format::ContainerKeys* keys)
      : txn_(txn), folder_(folder), reader_(containers, keys) {}

  // Returns nullopt if a file was removed meanwhile.
  Result<std::optional<AliasFileFaults>> run() {
    VARVE_TRY_ASSIGN(const auto numbers, store::list_alias_files(folder_));
    for (const auto number : numbers) {
      const auto where = folder_.path + "/" + store::alias_file_name(number);
      const auto fault =
          store::read_alias_file(folder_, number, [&](const auto&, const auto& aliases) {
            found_.bytes_read += aliases.tags.size() * sizeof(std::uint64_t);
            return compare(aliases);
          });
      if (!fault && fault.error().code() == ErrorCode::kNotFound) {
        return std::optional<AliasFileFaults>();
      }
      if (!fault) return fault.error();
      if (!fault->empty()) {
        found_.faults.push_back(
            {where, *fault + " (the catalog is sound: `varve repair` writes the file again)"});
      }
    }
    VARVE_TRY(find_missing());
    found_.wrong = base::IdRuns::from(wrong_);
    if (found_.wrong.size() != 0) {
      found_.faults.push_back(
          {folder_.path,
           fmt::format("{} aliases lead to chunks with another content; `varve repair` "
                       "removes them, so that reading their files fails",
                       found_.wrong.size())});
    }
    return std::optional(std::move(found_));
  }

 private:
  // Files may also have aliases unknown to the catalog.
  Result<void> compare(const format::TaggedAliases& aliases) {
    const auto& run = aliases.run;
    return catalog::for_each_alias_of(
        txn_, base::IdRuns::from({{run.first, run.count}}),
        [&](const catalog::AliasRecord& record) -> Result<bool> {
          const auto first = std::max(run.first, record.run.first);
          const auto end = std::min(run.first.value + run.count, record.end());
          const auto skip = first.value - run.first.value;
          if (record.stored(first) != run.target.plus(skip)) return true;
          const auto count = static_cast<std::uint32_t>(end - first.value);
          covered_.push_back({first, count});
          VARVE_TRY(compare_tags(first, record.stored(first),
                                 std::span(aliases.tags).subspan(skip, count)));
          return true;
        });
  }

  Result<void> compare_tags(ChunkId first, ChunkId target, std::span<const std::uint64_t> tags) {
    const base::IdRun targets{target, static_cast<std::uint32_t>(tags.size())};
    return catalog::for_each_location_of(
        txn_, kPoolStore, base::IdRuns::from({targets}),
        [&](const catalog::LocationRecord& at) -> Result<bool> {
          VARVE_TRY_ASSIGN(const auto* const header, header_of(at.container));
          if (header == nullptr) return true;  // The check of the containers reports the header.
          const auto begin = std::max(at.first, target);
          const auto end = std::min(at.first.value + at.count, target.value + tags.size());
          for (auto id = begin; id.value < end; id = id.plus(1)) {
            const auto index = at.index + (id.value - at.first.value);
            const auto skip = id.value - target.value;
            if (index >= header->chunks.size() || header->chunks[index].id != id) continue;
            if (format::alias_tag(header->chunks[index].fingerprint) == tags[skip]) continue;
            wrong_.push_back({first.plus(skip), 1});
          }
          return true;
        });
  }

  Result<const format::ContainerHeader*> header_of(ContainerNumber number) {
    constexpr std::size_t kHeadersKept = 64;
    if (headers_.size() > kHeadersKept) headers_.clear();
    auto known = headers_.find(number);
    if (known == headers_.end()) {
      VARVE_TRY_ASSIGN(const auto record, catalog::find_container(txn_, kPoolStore, number));
      std::optional<format::ContainerHeader> header;
      if (record) {
        auto read = reader_.read_header(kPoolStore, *record);
        if (read) header = std::move(*read);
      }
      known = headers_.emplace(number, std::move(header)).first;
    }
    return known->second ? &*known->second : nullptr;
  }

  Result<void> find_missing() {
    const auto covered = base::IdRuns::from(covered_);
    std::uint64_t missing = 0;
    const auto visit = [&](const catalog::AliasRecord& one) -> Result<bool> {
      const auto lacking = base::IdRuns::from({{one.run.first, one.run.count}}).subtract(covered);
      for (const auto& run : lacking.runs()) {
        const base::IdRun targets{one.stored(run.first), run.count};
        VARVE_TRY(catalog::for_each_location_of(
            txn_, kPoolStore, base::IdRuns::from({targets}),
            [&](const catalog::LocationRecord& at) -> Result<bool> {
              missing += base::IdRuns::from({targets})
                             .intersect(base::IdRuns::from({{at.first, at.count}}))
                             .size();
              return true;
            }));
      }
      return true;
    };
    VARVE_TRY(catalog::for_each_alias(txn_, visit));
    if (missing == 0) return {};
    found_.faults.push_back(
        {folder_.path, fmt::format("{} aliases are in no file (the catalog is sound: `varve "
                                   "repair` writes the file again)",
                                   missing)});
    return {};
  }

  const meta::Txn& txn_;
  const store::FolderPath& folder_;
  store::SegmentReader reader_;
  std::map<ContainerNumber, std::optional<format::ContainerHeader>> headers_;
  std::vector<base::IdRun> covered_;
  std::vector<base::IdRun> wrong_;
  AliasFileFaults found_;
};

}  // namespace

Result<void> check_alias_records(const meta::Txn& txn, const RecordDamage& damage) {
  std::uint64_t end = 0;
  VARVE_TRY_ASSIGN(const auto next, catalog::next_pool_birth(txn));
  return catalog::for_each_alias(txn, [&](const catalog::AliasRecord& one) -> Result<bool> {
    const auto of = "the alias " + name_of(one.run.first);
    if (one.run.first.value < end) damage(of + " overlaps the one before");
    end = std::max(end, one.end());
    if (one.run.first.birth() >= next || one.run.target.birth() >= next) {
      damage("the pool would give a birth twice: " + of + " has a later one");
    }
    VARVE_TRY(catalog::for_each_location_of(txn, kPoolStore,
                                            base::IdRuns::from({{one.run.first, one.run.count}}),
                                            [&](const catalog::LocationRecord&) -> Result<bool> {
                                              damage(of + " is stored, too");
                                              return false;
                                            }));
    VARVE_TRY(catalog::for_each_alias_of(txn, base::IdRuns::from({one.targets()}),
                                         [&](const catalog::AliasRecord&) -> Result<bool> {
                                           damage(of + " leads to another alias");
                                           return false;
                                         }));
    return true;
  });
}

Result<AliasFileFaults> check_alias_files(const meta::Env& catalog, const store::FolderPath& folder,
                                          store::SegmentStore& containers,
                                          const format::ContainerKeys* keys) {
  constexpr int kTries = 5;
  for (int tries = kTries;; --tries) {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog));
    VARVE_TRY_ASSIGN(auto found, AliasFileCheck(txn, folder, containers, keys).run());
    if (found) return std::move(*found);
    if (tries == 0) return Error(ErrorCode::kBusy, "the files of aliases change too often");
  }
}

Result<FoundAliases> find_aliases(const store::FolderPath& folder, const ContainerScan& scan,
                                  const StoreBirths& births) {
  FoundAliases found;
  std::vector<catalog::LocationRecord> places;
  std::vector<base::IdRun> ids;
  for (const auto& container : scan.containers) {
    for (const auto& run : container.runs) {
      places.push_back(run);
      ids.push_back({run.first, run.count});
    }
  }
  const auto stored = base::IdRuns::from(std::move(ids));
  std::sort(places.begin(), places.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  const auto bytes_at = [&](ChunkId id) -> std::uint64_t {
    auto after = std::upper_bound(places.begin(), places.end(), id,
                                  [](ChunkId one, const auto& at) { return one < at.first; });
    if (after == places.begin()) return 1;
    const auto& at = *std::prev(after);
    return std::max<std::uint64_t>(at.raw_bytes / std::max<std::uint64_t>(at.count, 1), 1);
  };
  VARVE_TRY_ASSIGN(auto numbers, store::list_alias_files(folder));
  std::reverse(numbers.begin(), numbers.end());
  std::vector<base::IdRun> named;
  base::IdRuns known = stored;
  for (const auto number : numbers) {
    std::vector<base::IdRun> added;
    std::uint64_t of_others = 0;
    const auto fault = store::read_alias_file(
        folder, number,
        [&](const format::Births& of_file, const format::TaggedAliases& aliases) -> Result<void> {
          const auto& run = aliases.run;
          if (!births.may_be(of_file, run.first.birth()) ||
              !births.may_be(of_file, run.target.birth())) {
            of_others += run.count;
            return {};
          }
          named.push_back({run.first, run.count});
          named.push_back({run.target, run.count});
          const auto lacking = base::IdRuns::from({{run.first, run.count}}).subtract(known);
          for (const auto& one : lacking.runs()) {
            const auto target = run.target.plus(one.first.value - run.first.value);
            const auto there = base::IdRuns::from({{target, one.count}}).intersect(stored);
            for (const auto& part : there.runs()) {
              const auto first = one.first.plus(part.first.value - target.value);
              found.records.push_back(
                  {{first, part.count, part.first}, bytes_at(part.first) * part.count});
              added.push_back({first, part.count});
            }
          }
          return {};
        });
    if (!fault) return fault.error();
    const auto path = folder.path + "/" + store::alias_file_name(number);
    if (!fault->empty()) found.problems.push_back(path + ": " + *fault);
    if (of_others != 0) {
      found.problems.push_back(
          fmt::format("{}: {} aliases are those of another history", path, of_others));
    }
    known = known.unite(base::IdRuns::from(std::move(added)));
  }
  found.named = base::IdRuns::from(std::move(named));
  std::sort(found.records.begin(), found.records.end(),
            [](const auto& a, const auto& b) { return a.run.first < b.run.first; });
  return found;
}

}  // namespace varve::maintain
