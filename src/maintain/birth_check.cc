// SPDX-License-Identifier: Apache-2.0
#include "maintain/birth_check.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "catalog/birth_table.h"
#include "catalog/series_catalog.h"
#include "store/segment_files.h"

namespace varve::maintain {

namespace {

std::uint32_t number_of(VersionNumber birth) { return static_cast<std::uint32_t>(birth); }

format::BirthMark mark_in(const FoundContainer& found, VersionNumber birth) {
  const auto its = found.marks.find(birth);
  return its == found.marks.end() ? format::kNoMark : its->second;
}

/// A run with the wanted chunks of the run.
struct WantedRun {
  FoundRun run;
  base::IdRuns chunks;
};

// Returns the chunks contained in several runs.
base::IdRuns find_twice(const std::vector<WantedRun>& runs) {
  base::IdRuns all;
  base::IdRuns twice;
  for (const auto& one : runs) {
    twice = twice.unite(one.chunks.intersect(all));
    all = all.unite(one.chunks);
  }
  return twice;
}

/// Adds up the digests of chunks by the tables of containers.
class DigestSum {
 public:
  /// `twice`: the chunks contained in several runs.
  DigestSum(const ScannedStore& from, const format::ContainerKeys* keys, base::IdRuns twice)
      : reader_(from.store, keys), store_id_(from.id), twice_(std::move(twice)) {}

  /// Returns the sum over the chunks of all runs, each once; nullopt if a table cannot be read.
  /// `differ` becomes true if two containers have different contents of a chunk.
  Result<std::optional<std::uint64_t>> sum(const std::vector<WantedRun>& runs, bool& differ) {
    std::uint64_t sum = 0;
    std::map<ChunkId, std::uint64_t> of_twice;
    for (const auto& [run, chunks] : runs) {
      const auto& place = run.place();
      if (chunks.size() == place.count && chunks.intersect(twice_).size() == 0) {
        sum += run.found->digests[run.index];
        continue;
      }
      const auto header = reader_.read_header(store_id_, run.found->record);
      if (!header && header.error().code() != ErrorCode::kCorrupt) return header.error();
      if (!header || header->chunks.size() < std::size_t{place.index} + place.count) {
        return std::optional<std::uint64_t>();
      }
      for (const auto& part : chunks.runs()) {
        for (std::uint32_t i = 0; i < part.count; ++i) {
          const auto id = part.first.plus(i);
          const auto& chunk = header->chunks[place.index + (id.value - place.first.value)];
          const auto digest = format::chunk_digest(id, chunk.fingerprint, chunk.raw_bytes);
          if (twice_.contains(id)) {
            const auto [its, is_new] = of_twice.try_emplace(id, digest);
            differ = differ || its->second != digest;
            if (!is_new) continue;
          }
          sum += digest;
        }
      }
    }
    return std::optional(sum);
  }

 private:
  store::SegmentReader reader_;
  const StoreId store_id_;
  const base::IdRuns twice_;
};

// Returns whether the chunks of a birth have another digest than recorded in `birth`, as far as the
// chunks can be read. `ids`: the chunks referred to by the birth's version.
Result<bool> has_other_digest(const format::ContainerKeys* keys, const ScannedStore& from,
                              VersionNumber number, const base::IdRuns& ids,
                              const format::Birth& birth) {
  const auto its = from.runs.find(number);
  if (!birth.digest || ids.size() == 0 || its == from.runs.end()) return false;
  std::vector<WantedRun> wanted;
  std::vector<base::IdRun> all;
  std::uint64_t chunks = 0;
  for (const auto& run : its->second) {
    WantedRun one{run, base::IdRuns::from({{run.place().first, run.place().count}}).intersect(ids)};
    chunks += one.chunks.size();
    all.insert(all.end(), one.chunks.runs().begin(), one.chunks.runs().end());
    if (one.chunks.size() != 0) wanted.push_back(std::move(one));
  }
  if (base::IdRuns::from(std::move(all)).size() != ids.size()) return false;
  const bool any_twice = chunks != ids.size();
  DigestSum tables(from, keys, any_twice ? find_twice(wanted) : base::IdRuns());
  bool differ = false;
  VARVE_TRY_ASSIGN(const auto sum, tables.sum(wanted, differ));
  return differ || (sum && *sum != *birth.digest);
}

}  // namespace

void StoreBirths::note(const format::Births& births) {
  for (const auto& [number, birth] : births) noted_[number].insert(birth.mark);
}

std::vector<std::string> StoreBirths::choose(ContainerScan& scan) {
  std::map<VersionNumber, std::map<format::BirthMark, std::uint64_t>> bytes;
  for (const auto& found : scan.containers) {
    for (const auto& run : found.runs) {
      const auto birth = run.first.birth();
      bytes[birth][mark_in(found, birth)] += run.raw_bytes;
    }
  }
  for (auto& [birth, of_mark] : bytes) {
    const auto noted = noted_.find(birth);
    if (noted != noted_.end()) {
      std::erase_if(of_mark,
                    [&](const auto& entry) { return !noted->second.contains(entry.first); });
    }
    if (of_mark.empty()) continue;
    chosen_[birth] = std::ranges::max_element(of_mark, {}, [](const auto& entry) {
                       return entry.second;
                     })->first;
  }
  std::map<VersionNumber, std::uint64_t> of_others;
  for (auto& found : scan.containers) {
    for (std::size_t i = found.runs.size(); i-- > 0;) {
      const auto birth = found.runs[i].first.birth();
      const auto chosen = chosen_.find(birth);
      if (chosen != chosen_.end() && mark_in(found, birth) == chosen->second) continue;
      if (!found.by_search) of_others[birth] += found.runs[i].raw_bytes;
      found.runs.erase(found.runs.begin() + static_cast<std::ptrdiff_t>(i));
      found.digests.erase(found.digests.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  std::erase_if(scan.containers, [](const FoundContainer& found) { return found.runs.empty(); });
  std::vector<std::string> faults;
  for (const auto& [birth, others] : of_others) {
    faults.push_back(fmt::format("{} bytes of chunks of the birth {} belong to another history",
                                 others, number_of(birth)));
  }
  return faults;
}

const format::BirthMark* StoreBirths::mark_of(VersionNumber birth) const {
  const auto chosen = chosen_.find(birth);
  if (chosen != chosen_.end()) return &chosen->second;
  const auto named = named_.find(birth);
  return named == named_.end() ? nullptr : &named->second.mark;
}

std::string StoreBirths::fault_of(const format::Births& births) const {
  for (const auto& [number, birth] : births) {
    const auto* const mark = mark_of(number);
    const auto named = named_.find(number);
    const bool is_same_mark = mark == nullptr || *mark == birth.mark;
    const bool is_same_digest = named == named_.end() || !named->second.digest || !birth.digest ||
                                named->second.digest == birth.digest;
    const auto rejected = rejected_.find(number);
    if (is_same_mark && is_same_digest &&
        (rejected == rejected_.end() || rejected->second != birth)) {
      continue;
    }
    return fmt::format("what it has of the birth {} belongs to another history", number_of(number));
  }
  return "";
}

void StoreBirths::add(const format::Births& births, SeriesId series, VersionNumber version) {
  for (const auto& [number, birth] : births) {
    const bool is_own = birth.series == series && birth.version == version;
    const auto [its, is_new] = named_.try_emplace(number, birth);
    if (!is_new && (is_own || !its->second.digest)) its->second = birth;
  }
}

bool StoreBirths::may_be(const format::Births& births, VersionNumber birth) const {
  const auto* const mark = mark_of(birth);
  const auto its = births.find(birth);
  return mark == nullptr || its == births.end() || its->second.mark == *mark;
}

Result<void> StoreBirths::put(const meta::Env& catalog, StoreId store) const {
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(catalog));
  for (const auto& [number, birth] : named_) {
    VARVE_TRY(catalog::put_birth(txn, store, number, birth));
  }
  for (const auto& [number, mark] : chosen_) {
    if (named_.contains(number) || mark == format::kNoMark) continue;
    format::Birth birth;
    birth.mark = mark;
    if (store != kPoolStore) {
      birth.series = static_cast<SeriesId>(static_cast<std::uint32_t>(store));
      birth.version = number;
    }
    VARVE_TRY(catalog::put_birth(txn, store, number, birth));
  }
  return txn.commit();
}

RunsByBirth runs_by_birth(const ContainerScan& scan) {
  RunsByBirth runs;
  for (const auto& found : scan.containers) {
    for (std::size_t i = 0; i < found.runs.size(); ++i) {
      runs[found.runs[i].first.birth()].push_back({&found, i});
    }
  }
  return runs;
}

Result<std::string> check_births(const format::ContainerKeys* keys, const VersionBirths& version,
                                 const ScannedStore& own, const ScannedStore& pool) {
  const ScannedStore* const stores[] = {&own, &pool};
  format::Births parts[2];
  for (const auto& [number, birth] : version.births) {
    const bool in_pool = catalog::store_of_birth(own.id, number) == kPoolStore;
    parts[in_pool ? 1 : 0].emplace(number, birth);
  }
  for (int i = 0; i < 2; ++i) {
    const auto& from = *stores[i];
    auto fault = from.births.fault_of(parts[i]);
    if (!fault.empty()) return fault;
    for (const auto& [number, birth] : parts[i]) {
      if (birth.series != version.series || birth.version != version.number) continue;
      const auto chunks = version.chunks.intersect(catalog::ids_of_birth(number));
      VARVE_TRY_ASSIGN(const bool differs, has_other_digest(keys, from, number, chunks, birth));
      if (!differs) continue;
      from.births.reject(number, birth);
      return fmt::format("the containers have other chunks of the birth {} than the version stored",
                         number_of(number));
    }
  }
  for (int i = 0; i < 2; ++i) stores[i]->births.add(parts[i], version.series, version.number);
  return std::string();
}

}  // namespace varve::maintain
