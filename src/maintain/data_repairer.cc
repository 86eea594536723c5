// SPDX-License-Identifier: Apache-2.0
#include "maintain/data_repairer.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "base/thread_pool.h"
#include "catalog/alias_table.h"
#include "catalog/birth_table.h"
#include "catalog/layout_records.h"
#include "catalog/pool_records.h"
#include "catalog/series_catalog.h"
#include "ingest/chunker.h"
#include "layout/pool_store.h"
#include "layout/segment_ledger.h"
#include "layout/store_recovery.h"
#include "layout/window.h"
#include "maintain/known_damage.h"
#include "maintain/owners.h"
#include "maintain/parallel_verifier.h"
#include "maintain/place_chooser.h"
#include "maintain/pool_recount.h"
#include "store/segment_files.h"

namespace varve::maintain {

using catalog::LocationRecord;

Result<void> DataRepairer::scan(const std::function<void(std::uint64_t)>& pass) {
  std::vector<VerifyJob> jobs;
  std::map<ContainerNumber, std::vector<LocationRecord>> located;
  std::vector<base::IdRun> present;
  base::IdRuns wanted;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
    VARVE_TRY_ASSIGN(recorded_, catalog::find_quarantine(txn, store_id_));
    VARVE_TRY(catalog::for_each_container(
        txn, store_id_, [&](const format::ContainerRecord& record) -> Result<bool> {
          jobs.push_back({record, VerifyLevel::kChunks});
          return true;
        }));
    VARVE_TRY(catalog::for_each_location(txn, store_id_, ChunkId{},
                                         [&](const LocationRecord& at) -> Result<bool> {
                                           located[at.container].push_back(at);
                                           present.push_back({at.first, at.count});
                                           return true;
                                         }));
    VARVE_TRY_ASSIGN(wanted, needed_chunks(txn, store_id_));
  }
  const auto stored = base::IdRuns::from(std::move(present));
  unknown_ = wanted.subtract(stored).runs();
  // An opening frees unused chunks. The next change of the quarantine drops the chunks from the
  // record.
  recorded_ = recorded_.intersect(stored.unite(wanted));
  std::sort(jobs.begin(), jobs.end(), [](const auto& a, const auto& b) {
    return std::pair(a.record.segment, a.record.offset) <
           std::pair(b.record.segment, b.record.offset);
  });
  store::SegmentReader reader(store_, codecs_.frames().keys());
  Result<void> noted;
  static_cast<void>(verify_containers(codecs_, reader, store_id_, jobs, {},
                                      [&](const VerifyJob& job, const ContainerVerdict& verdict) {
                                        if (!verdict.header || !verdict.faults.empty())
                                          damaged_.push_back(job.record);
                                        if (noted)
                                          noted =
                                              note(job.record, verdict, located[job.record.number]);
                                        pass(verdict.bytes_read);
                                      }));
  return noted;
}

Result<void> DataRepairer::note(const format::ContainerRecord& record,
                                const ContainerVerdict& verdict,
                                const std::vector<LocationRecord>& located) {
  // Temporarily unreadable data is not lost.
  if (verdict.unavailable) return *verdict.unavailable;
  std::vector<base::IdRun> here;
  for (const auto& at : located) here.push_back({at.first, at.count});
  if (!verdict.header) {
    if (verdict.error->code() == ErrorCode::kUnsupported) return *verdict.error;
    auto& faulty = faulty_[record.number];
    faulty.record = record;
    VARVE_TRY_ASSIGN(const auto fix,
                     find_header_fix(store_, codecs_.frames().keys(), store_id_, record));
    if (fix) {
      faulty.fixes.push_back(*fix);
      return {};  // A later plan checks the data, once the header is readable.
    }
    for (const auto& run : here) faulty.unknown += run.count;
    unknown_.insert(unknown_.end(), here.begin(), here.end());
    return {};
  }
  const auto in_use = base::IdRuns::from(std::move(here));
  std::set<ChunkId> bad;
  for (const auto& fault : verdict.faults) {
    if (fault.is_padding && !fault.may_pass) {
      auto& faulty = faulty_[record.number];
      faulty.record = record;
      faulty.has_bad_padding = true;
    }
    for (const auto& run : fault.chunks) {
      for (std::uint32_t i = 0; i < run.count; ++i) bad.insert(run.first.plus(i));
    }
  }
  for (const auto& chunk : verdict.header->chunks) {
    if (!bad.contains(chunk.id) || !in_use.contains(chunk.id)) continue;
    auto& faulty = faulty_[record.number];
    faulty.record = record;
    faulty.lost.push_back({chunk.id, chunk.fingerprint, chunk.raw_bytes});
    missing_[chunk.fingerprint] = chunk.raw_bytes;
  }
  return {};
}

void DataRepairer::found(const Fingerprint& fingerprint, const Source& source) {
  sources_.emplace(fingerprint, source);
  missing_.erase(fingerprint);
}

Result<void> DataRepairer::search_containers(store::SegmentStore& store, SeriesId owner) {
  if (missing_.empty()) return {};
  const StoreId store_id = catalog::store_of(owner);
  store::SegmentReader reader(store, codecs_.frames().keys());
  std::vector<format::ContainerRecord> records;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
    VARVE_TRY(catalog::for_each_container(
        txn, store_id, [&](const format::ContainerRecord& record) -> Result<bool> {
          records.push_back(record);
          return true;
        }));
  }
  for (const auto& record : records) {
    if (missing_.empty()) break;
    const auto header = reader.read_header(store_id, record);
    if (!header) continue;
    for (std::uint32_t i = 0; i < header->chunks.size() && !missing_.empty(); ++i) {
      const auto& chunk = header->chunks[i];
      const auto wanted = missing_.find(chunk.fingerprint);
      if (wanted == missing_.end() || wanted->second != chunk.raw_bytes) continue;
      // The source may be the damaged copy itself, so the content is verified.
      Lost lost{chunk.id, chunk.fingerprint, chunk.raw_bytes};
      const Source source{"", 0, &store, store_id, record.number, i};
      sources_.emplace(chunk.fingerprint, source);
      if (content_of(lost)) {
        missing_.erase(wanted);
      } else {
        sources_.erase(chunk.fingerprint);
      }
    }
  }
  return {};
}

void DataRepairer::search_file(const std::string& path, const RepositoryParameters& parameters) {
  const auto chunker = ingest::make_chunker(parameters.chunker, ingest::chunk_sizes_of(parameters),
                                            codecs_.keys().get());
  const auto file = outside_.open(path, io::OpenMode::kRead);
  if (!chunker || !file) return;
  const auto size = (*file)->size();
  if (!size) return;
  std::vector<std::byte> bytes(std::size_t{parameters.chunk_bytes_max} * 16);
  // Files store no holes, so each range between two holes is chunked separately.
  for (std::uint64_t at = 0; at < *size && !missing_.empty();) {
    const auto data = (*file)->seek_data(at);
    if (!data) return;
    at = *data;
    const auto hole = (*file)->seek_hole(at);
    const std::uint64_t end = hole ? *hole : *size;
    std::size_t have = 0;
    while (at < end) {
      const auto length = std::min<std::uint64_t>(bytes.size(), end - at);
      const auto got = (*file)->read_at(at, std::span(bytes).first(length));
      if (!got || *got == 0) return;
      have = *got;
      std::size_t used = 0;
      while (used < have && (have - used >= parameters.chunk_bytes_max || at + have == end)) {
        const auto rest = std::span<const std::byte>(bytes).subspan(used, have - used);
        const auto chunk = rest.first((*chunker)->next(rest));
        const auto print = codecs_.fingerprinter().fingerprint(chunk);
        if (missing_.contains(print)) found(print, {path, at + used, nullptr, {}, {}, 0});
        used += chunk.size();
      }
      if (used == 0) return;  // The file became shorter.
      at += used;
    }
  }
}

base::IdRuns DataRepairer::quarantine() const {
  auto runs = unknown_;
  for (const auto& [container, faulty] : faulty_) {
    for (const auto& lost : faulty.lost) {
      if (!sources_.contains(lost.fingerprint)) runs.push_back({lost.id, 1});
    }
  }
  return base::IdRuns::from(std::move(runs));
}

std::vector<RepairStep> DataRepairer::steps() const {
  std::vector<RepairStep> steps;
  for (const auto& [container, faulty] : faulty_) {
    const auto where =
        fmt::format("{} container {}", store_.describe(faulty.record.segment), container);
    for (const auto& fix : faulty.fixes) {
      steps.push_back({RepairStep::Kind::kHeader, where,
                       fmt::format("the byte at offset {} is corrected", fix.offset)});
    }
    if (faulty.has_bad_padding) {
      steps.push_back(
          {RepairStep::Kind::kPadding, where, "the padding, which has no data, is written again"});
    }
    const auto rehomed =
        std::count_if(faulty.lost.begin(), faulty.lost.end(),
                      [this](const Lost& lost) { return sources_.contains(lost.fingerprint); });
    if (rehomed != 0) {
      steps.push_back(
          {RepairStep::Kind::kRehome, where,
           fmt::format("{} of {} damaged chunks are stored again", rehomed, faulty.lost.size())});
    }
  }
  const auto lost = quarantine();
  if (!(lost == recorded_)) {
    steps.push_back({RepairStep::Kind::kQuarantine, store_.describe(),
                     lost.size() == 0
                         ? std::string("no chunk is lost any more")
                         : fmt::format("{} chunks are lost; reading them fails, and new data does "
                                       "not refer to them (`varve check` names the files)",
                                       lost.size())});
  }
  return steps;
}

Result<std::vector<std::byte>> DataRepairer::content_of(const Lost& lost) {
  const auto& source = sources_.at(lost.fingerprint);
  std::vector<std::byte> bytes(lost.raw_bytes);
  if (!source.path.empty()) {
    VARVE_TRY_ASSIGN(const auto file, outside_.open(source.path, io::OpenMode::kRead));
    VARVE_TRY_ASSIGN(const auto got, file->read_at(source.offset, bytes));
    bytes.resize(got);
  } else {
    store::SegmentReader reader(*source.store, codecs_.frames().keys());
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
    VARVE_TRY_ASSIGN(const auto record,
                     catalog::find_container(txn, source.store_id, source.container));
    if (!record) return Error(ErrorCode::kStale, "a container was removed");
    VARVE_TRY_ASSIGN(const auto header, reader.read_header(source.store_id, *record));
    if (source.index >= header.chunks.size())
      return Error(ErrorCode::kStale, "a chunk was removed");
    const auto& chunk = header.chunks[source.index];
    const auto& frame = header.frames[chunk.frame];
    std::vector<std::byte> stored(format::extent_bytes(frame));
    std::vector<std::byte> raw(frame.raw_bytes);
    VARVE_TRY(reader.read_data(*record, format::extent_begin(frame), stored));
    VARVE_TRY(format::decode_frame(codecs_.frames(), header, chunk.frame, stored, raw));
    const auto part = std::span(raw).subspan(chunk.frame_offset, chunk.raw_bytes);
    bytes.assign(part.begin(), part.end());
  }
  if (bytes.size() != lost.raw_bytes ||
      codecs_.fingerprinter().fingerprint(bytes) != lost.fingerprint) {
    return Error(ErrorCode::kCorrupt, "the content has changed");
  }
  return bytes;
}

Result<store::Correction> DataRepairer::padding_of(const format::ContainerRecord& record) {
  store::SegmentReader reader(store_, codecs_.frames().keys());
  VARVE_TRY_ASSIGN(const auto header, reader.read_header(store_id_, record));
  VARVE_TRY_ASSIGN(auto padding, codecs_.frames().padding_of(header));
  return store::Correction{record.end() - padding.size(), std::move(padding)};
}

// O24. A file cut at the end gets the recorded length back, with zeros instead of lost frames.
Result<void> DataRepairer::correct_files() {
  std::map<SegmentNumber, std::vector<store::Correction>> corrections;
  for (const auto& [container, faulty] : faulty_) {
    for (const auto& fix : faulty.fixes) {
      corrections[faulty.record.segment].push_back({fix.offset, {fix.value}});
    }
    if (!faulty.has_bad_padding) continue;
    VARVE_TRY_ASSIGN(auto padding, padding_of(faulty.record));
    corrections[faulty.record.segment].push_back(std::move(padding));
  }
  for (const auto& [segment, bytes] : corrections) VARVE_TRY(store_.correct(segment, bytes));
  return {};
}

Result<void> DataRepairer::execute(RepairReport& report) {
  VARVE_TRY(correct_files());
  if (!sources_.empty()) VARVE_TRY(store_again(report));
  const auto lost = quarantine();
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(catalog_));
  VARVE_TRY(catalog::put_quarantine(txn, store_id_, lost));
  VARVE_TRY(txn.commit());
  report.chunks_quarantined += lost.size();
  return {};
}

Result<format::BirthMarks> DataRepairer::marks_of_lost() const {
  std::vector<base::IdRun> ids;
  for (const auto& [container, faulty] : faulty_) {
    for (const auto& lost : faulty.lost) ids.push_back({lost.id, 1});
  }
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
  VARVE_TRY_ASSIGN(const auto births,
                   catalog::births_of(txn, store_id_, base::IdRuns::from(std::move(ids))));
  return catalog::marks_of(births);
}

Result<void> DataRepairer::store_again(RepairReport& report) {
  base::ThreadPool compressors(2, "varve-compress");
  store::NumberSource numbers;
  VARVE_TRY(layout::recover_store(catalog_, store_id_, store_, codecs_.frames().keys(), numbers));
  store::ContainerWriterOptions how;
  how.store = store_id_;
  how.numbers = &numbers;
  if (owner_ == kPoolOwner) {
    layout::begin_pool_numbers(numbers);
    how.file_per_container = true;
  }
  VARVE_TRY_ASSIGN(how.marks, marks_of_lost());
  std::vector<store::WrittenContainer> written;
  // Chunks to move, by present container.
  std::map<ContainerNumber, std::vector<base::IdRun>> moved;
  {
    std::map<ChunkId, std::pair<const Lost*, ContainerNumber>> ordered;
    for (const auto& [container, faulty] : faulty_) {
      for (const auto& lost : faulty.lost) ordered[lost.id] = {&lost, container};
    }
    store::ContainerWriter writer(
        store_, codecs_.frames(), compressors, how,
        [&](store::WrittenContainer one) { written.push_back(std::move(one)); });
    VersionNumber birth{};
    for (const auto& [id, entry] : ordered) {
      if (!sources_.contains(entry.first->fingerprint)) continue;
      const auto content = content_of(*entry.first);
      if (!content) {
        sources_.erase(entry.first->fingerprint);  // The content changed after the search.
        continue;
      }
      // The chunks of a container of the pool have one birth (layout/pool_store.h).
      if (owner_ == kPoolOwner && id.birth() != birth) VARVE_TRY(writer.flush());
      birth = id.birth();
      VARVE_TRY(writer.append(id, entry.first->fingerprint, *content));
      moved[entry.second].push_back({id, 1});
      ++report.chunks_rehomed;
    }
    VARVE_TRY(writer.sync());  // O1.
  }
  return move({numbers.next_container(), numbers.next_segment()}, written, moved);
}

// Moves chunks out of the damaged containers, in the commit that sets the chunks' new locations.
Result<void> DataRepairer::move(const catalog::CounterRecord& counters,
                                const std::vector<store::WrittenContainer>& written,
                                const std::map<ContainerNumber, std::vector<base::IdRun>>& moved) {
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(catalog_));
  layout::SegmentLedger ledger(txn, store_id_);
  store::SegmentReader reader(store_, codecs_.frames().keys());
  for (const auto& [container, runs] : moved) {
    const auto ids = base::IdRuns::from(runs);
    VARVE_TRY_ASSIGN(const auto header,
                     reader.read_header(store_id_, faulty_.at(container).record));
    std::vector<LocationRecord> leaving;
    VARVE_TRY(catalog::for_each_location_of(txn, store_id_, ids,
                                            [&](const LocationRecord& at) -> Result<bool> {
                                              leaving.push_back(at);
                                              return true;
                                            }));
    for (const auto& at : leaving) {
      std::vector<LocationRecord> rest;
      const auto kept = base::IdRuns::from({{at.first, at.count}}).subtract(ids);
      if (at.index + std::uint64_t{at.count} > header.chunks.size()) {
        return Error(ErrorCode::kCorrupt, "a location does not fit its container");
      }
      for (const auto& run : kept.runs()) rest.push_back(part_of(at, run, header));
      VARVE_TRY(ledger.remove(at, rest));
    }
  }
  auto newest = VersionNumber{1};
  if (owner_ != kPoolOwner) {
    VARVE_TRY_ASSIGN(const auto live, layout::live_versions(txn, owner_));
    if (!live.empty()) newest = live.back().number;
  }
  for (const auto& one : written) {
    if (owner_ == kPoolOwner) {
      VARVE_TRY(ledger.add(one, catalog::SegmentRole::kNew, one.record.birth));
    } else {
      VARVE_TRY(ledger.add(one, catalog::SegmentRole::kMerged, newest));
    }
  }
  VARVE_TRY(ledger.finish());
  VARVE_TRY(ledger.apply(txn));
  VARVE_TRY(catalog::raise_counters(txn, store_id_, counters));
  if (owner_ == kPoolOwner) VARVE_TRY(recount_pool(txn));
  VARVE_TRY(txn.commit());
  return layout::free_files(store_, ledger.cuts());
}

}  // namespace varve::maintain
