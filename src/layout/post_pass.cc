// SPDX-License-Identifier: Apache-2.0
#include "layout/post_pass.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/log.h"
#include "catalog/birth_table.h"
#include "catalog/location_table.h"
#include "catalog/pool_records.h"
#include "catalog/series_catalog.h"
#include "layout/content_check.h"

namespace varve::layout {

namespace {

base::IdRuns chunks_of(const std::vector<format::AliasRun>& runs) {
  std::vector<base::IdRun> ids;
  ids.reserve(runs.size());
  for (const auto& run : runs) ids.push_back({run.first, run.count});
  return base::IdRuns::from(std::move(ids));
}

// Returns the births of the aliases and of their targets.
Result<format::Births> births_in(const meta::Env& catalog,
                                 const std::vector<format::AliasRun>& runs) {
  std::vector<base::IdRun> targets;
  for (const auto& run : runs) targets.push_back({run.target, run.count});
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog));
  return catalog::births_of(txn, kPoolStore,
                            chunks_of(runs).unite(base::IdRuns::from(std::move(targets))));
}

// Calls `visit` with the parts of the runs whose aliases are in `chunks`.
template <typename Visit>
Result<void> for_each_part(const std::vector<format::AliasRun>& runs, const base::IdRuns& chunks,
                           const Visit& visit) {
  for (const auto& wanted : chunks.runs()) {
    auto run = std::partition_point(runs.begin(), runs.end(), [&](const format::AliasRun& one) {
      return one.first.value + one.count <= wanted.first.value;
    });
    const auto end = wanted.first.value + wanted.count;
    for (; run != runs.end() && run->first.value < end; ++run) {
      const auto first = std::max(run->first, wanted.first);
      const auto last = std::min(run->first.value + run->count, end);
      VARVE_TRY(visit(format::AliasRun{first, static_cast<std::uint32_t>(last - first.value),
                                       run->target.plus(first.value - run->first.value)}));
    }
  }
  return {};
}

}  // namespace

Result<bool> PostPass::run(const PostPassHooks& hooks) {
  if (stage_ == Stage::kSearch) {
    VARVE_TRY_ASSIGN(const bool more, search(hooks));
    if (!more) return false;
    VARVE_TRY(choose_victims());
    stage_ = Stage::kFile;
  }
  if (victims_.empty()) return true;
  if (hooks.stop && hooks.stop()) return false;
  if (stage_ == Stage::kFile) {
    if (hooks.require_aliases) VARVE_TRY(hooks.require_aliases());
    VARVE_TRY(write_file(hooks));
    stage_ = Stage::kSteps;
  }
  while (next_ != victims_.size()) {
    if (hooks.stop && hooks.stop()) return false;
    std::vector<Victim> taken;
    std::uint64_t bytes = 0;
    for (auto i = next_; i != victims_.size(); ++i) {
      const auto& one = victims_[i];
      const bool fits = taken.empty() || (one.birth == taken.front().birth &&
                                          bytes + one.raw_bytes <= parts_.step_bytes_max);
      if (!fits) break;
      taken.push_back(one);
      bytes += one.raw_bytes;
    }
    VARVE_TRY(step(taken, hooks));
    next_ += taken.size();
  }
  return true;
}

Result<bool> PostPass::search(const PostPassHooks& hooks) {
  DuplicateSearchParts parts;
  parts.pool = parts_.pool;
  parts.catalog = parts_.catalog;
  parts.fingerprinter = parts_.fingerprinter;
  parts.folder = parts_.folder;
  parts.run_chunks_min = parts_.run_chunks_min;
  parts.stop = hooks.stop;
  parts.pass = hooks.pass;
  VARVE_TRY_ASSIGN(births_end_, parts_.pool->complete_below());
  parts.births_end = births_end_;
  parts.lost = parts_.lost;
  VARVE_TRY(parts_.catalog->prepare_write());  // O37: before the first new file.
  VARVE_TRY(store::remove_sorting_files(parts_.folder));
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*parts_.catalog));
    std::vector<base::IdRun> targets;
    VARVE_TRY(catalog::for_each_alias(txn, [&](const catalog::AliasRecord& one) -> Result<bool> {
      targets.push_back(one.targets());
      return true;
    }));
    parts.kept = parts_.kept.unite(base::IdRuns::from(std::move(targets)));
  }
  VARVE_TRY_ASSIGN(auto found, DuplicateSearch(std::move(parts)).run());
  if (!found) return false;
  found_ = std::move(found->runs);
  all_found_ = found->all;
  damaged_ = std::move(found->damaged);
  return true;
}

// Drops the runs outside the victims: chunks whose bytes stay need no alias.
Result<void> PostPass::choose_victims() {
  const auto chunks = chunks_of(found_);
  std::map<ContainerNumber, std::uint64_t> aliased;
  std::vector<base::IdRun> taken;
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*parts_.catalog));
  VARVE_TRY(catalog::for_each_location_of(
      txn, kPoolStore, chunks, [&](const catalog::LocationRecord& at) -> Result<bool> {
        aliased[at.container] += catalog::estimate_part(at, chunks);
        return true;
      }));
  std::set<ContainerNumber> numbers;
  for (const auto& [number, bytes] : aliased) {
    VARVE_TRY_ASSIGN(const auto record, catalog::find_container(txn, kPoolStore, number));
    if (!record || bytes * 1000 < record->raw_bytes * parts_.dead_permille_min ||
        parts_.pool->is_pinned(number)) {
      continue;
    }
    numbers.insert(number);
    victims_.push_back({number, record->birth, record->raw_bytes});
  }
  VARVE_TRY(catalog::for_each_location_of(txn, kPoolStore, chunks,
                                          [&](const catalog::LocationRecord& at) -> Result<bool> {
                                            if (numbers.contains(at.container))
                                              taken.push_back({at.first, at.count});
                                            return true;
                                          }));
  std::vector<format::AliasRun> chosen;
  VARVE_TRY(for_each_part(found_, base::IdRuns::from(std::move(taken)),
                          [&](const format::AliasRun& run) -> Result<void> {
                            chosen.push_back(run);
                            return {};
                          }));
  found_ = std::move(chosen);
  std::stable_sort(victims_.begin(), victims_.end(),
                   [](const Victim& a, const Victim& b) { return a.birth < b.birth; });
  return {};
}

// The file may have more aliases than the catalog gets: a reader without the catalog prefers a
// chunk from a container (docs/FORMAT.md §13).
Result<void> PostPass::write_file(const PostPassHooks& hooks) {
  VARVE_TRY(parts_.catalog->prepare_write());  // O37: before the first new file.
  VARVE_TRY_ASSIGN(const auto numbers, store::list_alias_files(parts_.folder));
  const auto next = numbers.empty() ? 1 : numbers.back() + 1;
  VARVE_TRY_ASSIGN(const auto writer, store::AliasFileWriter::begin(parts_.folder, next));
  std::vector<format::AliasRun> written;
  for (const auto& run : found_) {
    const auto parts = tagged(parts_.pool->chunks(), run);
    if (!parts) {
      base::log(base::LogLevel::kWarning, "post-pass: " + parts.error().message());
      continue;  // A container is damaged, or was freed.
    }
    for (const auto& part : *parts) {
      VARVE_TRY(writer->add(part));
      written.push_back(part.run);
    }
  }
  VARVE_TRY_ASSIGN(const auto births, births_in(*parts_.catalog, written));
  VARVE_TRY_ASSIGN(const auto bytes, writer->finish(births));  // O41: before the first commit.
  found_ = std::move(written);
  if (hooks.pass) hooks.pass(bytes);
  return {};
}

Result<void> PostPass::step(const std::vector<Victim>& victims, const PostPassHooks& hooks) {
  auto& pool = *parts_.pool;
  const PoolStore::Exclusive exclusive(pool);
  std::vector<ContainerNumber> numbers;
  for (const auto& one : victims) numbers.push_back(one.number);
  const auto retired = pool.retire(numbers);
  const auto outcome = move(victims.front().birth, {retired.begin(), retired.end()}, hooks);
  pool.release(retired);
  if (!outcome) return outcome.error();
  if (outcome->aliases != 0 && hooks.after_step) hooks.after_step(*outcome);
  return {};
}

Result<PostPassOutcome> PostPass::move(VersionNumber birth, std::set<ContainerNumber> containers,
                                       const PostPassHooks& hooks) {
  PostPassOutcome outcome;
  if (containers.empty()) return outcome;
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*parts_.catalog));
  VARVE_TRY_ASSIGN(const auto stored, chunks_in(txn, containers, {birth}));
  std::uint64_t bytes_read = 0;
  VARVE_TRY_ASSIGN(auto aliases, verified(stored, bytes_read));
  // Containers without an alias stay: they were freed, or their duplicates failed the comparison.
  std::set<ContainerNumber> losing;
  VARVE_TRY(catalog::for_each_location_of(txn, kPoolStore, aliases.chunks,
                                          [&](const catalog::LocationRecord& at) -> Result<bool> {
                                            losing.insert(at.container);
                                            return true;
                                          }));
  if (losing.empty()) return outcome;
  containers = std::move(losing);
  std::set<VersionNumber> births;
  VARVE_TRY(catalog::for_each_location_of(txn, kPoolStore, aliases.targets,
                                          [&](const catalog::LocationRecord& at) -> Result<bool> {
                                            if (containers.contains(at.container)) return true;
                                            aliases.target_containers.insert(at.container);
                                            births.insert(at.first.birth());
                                            return true;
                                          }));
  VARVE_TRY_ASSIGN(const auto beside, chunks_in(txn, aliases.target_containers, births));
  VARVE_TRY_ASSIGN(const auto use, find_use(txn, containers, birth, beside));
  const auto staying = use.live.subtract(aliases.chunks);
  MoveStep step;
  step.chunks = staying.runs();
  step.dropped = use.chunks.subtract(staying);
  step.role = catalog::SegmentRole::kNew;
  step.version = birth;
  step.before_freeing = hooks.before_freeing;
  step.at_commit = [&](meta::WriteTxn& commit) -> Result<void> {
    for (const auto& record : aliases.records) VARVE_TRY(catalog::put_alias(commit, record));
    return recount(commit, use, containers);
  };
  VARVE_TRY(parts_.catalog->prepare_write());  // O37: before the first new file.
  ChunkMover mover(parts_.pool->store_parts(), step);
  VARVE_TRY_ASSIGN(outcome.moved, mover.run());
  outcome.moved.bytes_read += bytes_read;
  outcome.aliases = aliases.chunks.size();
  for (const auto& record : aliases.records) outcome.aliased_bytes += record.raw_bytes;
  return outcome;
}

// Returns the aliases among `chunks` whose targets have the content on disk that the aliases'
// containers claim. Only verified aliases may lose their bytes.
Result<PostPass::Aliases> PostPass::verified(const base::IdRuns& chunks,
                                             std::uint64_t& bytes_read) {
  auto& stored = parts_.pool->chunks();
  ContentCheck of_alias(stored, *parts_.fingerprinter, damaged_);
  ContentCheck of_target(stored, *parts_.fingerprinter, damaged_);
  Aliases aliases;
  std::vector<base::IdRun> ids;
  std::vector<base::IdRun> targets;
  VARVE_TRY(for_each_part(found_, chunks, [&](const format::AliasRun& run) -> Result<void> {
    bool continues = false;
    for (std::uint32_t i = 0; i < run.count; ++i) {
      const auto alias = of_alias.find(run.first.plus(i));
      const auto target = of_target.find(run.target.plus(i));
      // find() refuses an alias, because no alias leads to another alias.
      const bool is_same = alias && target &&
                           alias->chunk->fingerprint == target->chunk->fingerprint &&
                           alias->chunk->raw_bytes == target->chunk->raw_bytes &&
                           of_target.has_content(*target, alias->chunk->fingerprint);
      if (!is_same) {
        continues = false;
        continue;
      }
      if (!std::exchange(continues, true)) {
        aliases.records.push_back({{run.first.plus(i), 0, run.target.plus(i)}, 0});
      }
      auto& record = aliases.records.back();
      ++record.run.count;
      record.raw_bytes += alias->chunk->raw_bytes;
    }
    return {};
  }));
  for (const auto& record : aliases.records) {
    ids.push_back({record.run.first, record.run.count});
    targets.push_back(record.targets());
  }
  aliases.chunks = base::IdRuns::from(std::move(ids));
  aliases.targets = base::IdRuns::from(std::move(targets));
  bytes_read = of_target.bytes_read();
  return aliases;
}

// Counts the use of the containers again, by the present places of the chunks. A version that uses
// an alias may be a new user of the target's container.
Result<void> PostPass::recount(meta::WriteTxn& txn, const ContainerUse& use,
                               const std::set<ContainerNumber>& containers) {
  std::map<ContainerNumber, std::uint32_t> users;
  for (const auto container : containers) users[container] = 0;
  for (const auto& [owner, before] : use.of) {
    VARVE_TRY_ASSIGN(auto uses, catalog::find_pool_use(txn, owner.series, owner.version));
    std::set<ContainerNumber> known;
    for (const auto& one : uses) known.insert(one.container);
    auto chunks = before;
    const auto other = use.beside.find(owner);
    if (other != use.beside.end()) chunks = chunks.unite(other->second);
    VARVE_TRY_ASSIGN(const auto now, catalog::pool_use_of(txn, chunks));  // Follows the aliases.
    std::set<ContainerNumber> counted = containers;
    for (const auto& one : now) {
      counted.insert(one.container);
      if (containers.contains(one.container) || !known.contains(one.container)) {
        if (!users.contains(one.container)) {
          VARVE_TRY_ASSIGN(users[one.container], catalog::find_pool_users(txn, one.container));
        }
        ++users[one.container];
      }
    }
    std::erase_if(uses, [&](const auto& one) { return counted.contains(one.container); });
    uses.insert(uses.end(), now.begin(), now.end());
    std::sort(uses.begin(), uses.end(),
              [](const auto& a, const auto& b) { return a.container < b.container; });
    VARVE_TRY(catalog::put_pool_use(txn, owner.series, owner.version, uses));
  }
  for (const auto& [container, count] : users) {
    VARVE_TRY(catalog::put_pool_users(txn, container, count));
  }
  return {};
}

Result<std::vector<format::TaggedAliases>> tagged(StoredChunks& chunks,
                                                  const format::AliasRun& run) {
  std::vector<format::TaggedAliases> parts;
  for (std::uint32_t at = 0; at < run.count;) {
    const auto where = chunks.locate(run.target.plus(at));
    if (!where) {
      ++at;
      continue;
    }
    VARVE_TRY_ASSIGN(const auto header, chunks.header(where->container));
    const auto skip = run.target.plus(at).value - where->first.value;
    const auto count = std::min<std::uint64_t>(where->count - skip, run.count - at);
    if (where->index + skip + count > header->chunks.size()) {
      return Error(ErrorCode::kCorrupt, "a container holds fewer chunks than it should");
    }
    const bool follows =
        !parts.empty() && parts.back().run.first.plus(parts.back().run.count) == run.first.plus(at);
    if (!follows) parts.push_back({{run.first.plus(at), 0, run.target.plus(at)}, {}});
    auto& part = parts.back();
    for (std::uint64_t i = 0; i < count; ++i) {
      part.tags.push_back(format::alias_tag(header->chunks[where->index + skip + i].fingerprint));
    }
    part.run.count += static_cast<std::uint32_t>(count);
    at += static_cast<std::uint32_t>(count);
  }
  return parts;
}

Result<void> tidy_alias_files(const meta::Env& catalog, StoredChunks& chunks,
                              const store::FolderPath& folder, std::optional<std::size_t> kept) {
  VARVE_TRY_ASSIGN(const auto numbers, store::list_alias_files(folder));
  if (kept && numbers.size() <= *kept) return {};
  std::vector<catalog::AliasRecord> records;
  {
    VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(catalog));
    std::vector<catalog::AliasRecord> all;
    VARVE_TRY(catalog::for_each_alias(txn, [&](const catalog::AliasRecord& one) -> Result<bool> {
      all.push_back(one);
      return true;
    }));
    for (const auto& one : all) {
      bool leads = false;
      VARVE_TRY(catalog::for_each_location_of(
          txn, kPoolStore, base::IdRuns::from({one.targets()}),
          [&](const catalog::LocationRecord&) -> Result<bool> { return leads = true; }));
      if (leads) {
        records.push_back(one);
      } else {
        VARVE_TRY(catalog::erase_alias(txn, one.run.first));
      }
    }
    VARVE_TRY(txn.commit());
  }
  if (!records.empty()) {
    VARVE_TRY_ASSIGN(const auto writer, store::AliasFileWriter::begin(
                                            folder, numbers.empty() ? 1 : numbers.back() + 1));
    std::vector<format::AliasRun> written;
    for (const auto& record : records) {
      written.push_back(record.run);
      VARVE_TRY_ASSIGN(const auto parts, tagged(chunks, record.run));
      for (const auto& part : parts) VARVE_TRY(writer->add(part));
    }
    VARVE_TRY_ASSIGN(const auto births, births_in(catalog, written));
    VARVE_TRY_ASSIGN(const auto bytes, writer->finish(births));
    static_cast<void>(bytes);
  }
  for (const auto number : numbers) VARVE_TRY(store::remove_alias_file(folder, number));  // O41
  return folder.files->sync_directory(folder.path);
}

}  // namespace varve::layout
