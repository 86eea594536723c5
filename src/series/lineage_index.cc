// SPDX-License-Identifier: Apache-2.0
// Loads the neighbour index of an open version from the files of the parent's index, or rebuilds
// the index from containers.
#include "series/lineage_index.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/log.h"
#include "catalog/layout_records.h"
#include "catalog/location_table.h"
#include "catalog/pool_records.h"
#include "index/neighbour_index.h"
#include "layout/category_layout.h"
#include "layout/window.h"
#include "meta/schema.h"
#include "series/container_fingerprints.h"
#include "series/index_files.h"
#include "series/lineage_store.h"
#include "series/staging.h"
#include "store/repository_names.h"

namespace varve::series {

namespace {

constexpr std::uint64_t kMemoryBytesMin = std::uint64_t{1} << 20;

}  // namespace

LineageIndex::LineageIndex(const SeriesParts& parts, LineageStore& store, Manifests& manifests)
    : parts_(parts), store_(store), manifests_(manifests) {}

LineageIndex::~LineageIndex() = default;

void LineageIndex::use(std::shared_ptr<index::NeighbourIndex> index) { index_ = std::move(index); }

void LineageIndex::close() {
  if (index_) index_->stop_counting();
  index_.reset();
}

// Takes the entries from the files of the index of the newest sealed version. Any fault only costs
// time: the caller reads missing fingerprints from containers.
Result<void> LineageIndex::load_files(index::NeighbourIndex& index,
                                      std::optional<VersionNumber> parent) {
  const auto runs = parent ? read_index_snapshot(parts_, *parent)
                           : Result<std::vector<index::RunRef>>(std::vector<index::RunRef>());
  // Runs not named by the snapshot belong to a version that was not sealed.
  VARVE_TRY(remove_other_runs(parts_, runs ? *runs : std::vector<index::RunRef>()));
  if (runs) {
    index.open_runs(*runs);
    return {};
  }
  if (runs.error().code() != ErrorCode::kUnsupported) return runs.error();
  const auto path = parts_.directory() + "/" + store::snapshot_name(*parent);
  VARVE_TRY_ASSIGN(const auto file, parts_.files->open(path, io::OpenMode::kRead));
  auto imported = index.import(*file, *parent);
  if (!imported) return std::move(imported).error().with_context(path);
  return {};
}

Result<std::shared_ptr<index::NeighbourIndex>> LineageIndex::load(
    const catalog::VersionRecord& record) {
  std::optional<VersionNumber> parent;
  base::IdRuns own;
  VARVE_TRY(check_staging(parts_, record));
  VARVE_TRY_ASSIGN(auto window, open_window(record));
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*parts_.catalog));
    VARVE_TRY_ASSIGN(const auto records, catalog::list_versions(txn, parts_.id));
    for (const auto& other : records) {
      if (other.state == VersionState::kSealed) parent = other.number;
    }
    std::vector<base::IdRun> runs;
    VARVE_TRY(catalog::for_each_location(txn, parts_.store, ChunkId::make(record.number, 0),
                                         [&](const catalog::LocationRecord& at) -> Result<bool> {
                                           if (at.first.birth() == record.number)
                                             runs.push_back({at.first, at.count});
                                           return at.first.birth() == record.number;
                                         }));
    VARVE_TRY_ASSIGN(const auto lost, catalog::find_quarantine(txn, parts_.store));
    own = base::IdRuns::from(std::move(runs)).subtract(lost);
    window = window.subtract(lost);  // New occurrences of lost content must be stored again.
  }
  auto fingerprints = std::make_unique<ContainerFingerprints>(
      *store_.layout, fmt::format("series {}", static_cast<std::uint32_t>(parts_.id)));
  index::IndexStorage storage;
  storage.folder = run_folder(parts_);
  storage.stored = fingerprints.get();
  storage.memory_bytes = std::max<std::uint64_t>(parts_.options->index_bytes, kMemoryBytesMin);
  auto index = std::make_shared<index::NeighbourIndex>(window, record.number, std::move(storage));
  const auto loaded = load_files(*index, parent);
  // A deletion may have brought chunks into the window since the runs were written.
  const auto missing = index->missing();
  if (!loaded && missing.size() != 0) {
    // A folder has no files of the index right after a takeover.
    const bool is_absent = loaded.error().code() == ErrorCode::kNotFound;
    base::log(is_absent ? base::LogLevel::kInfo : base::LogLevel::kWarning,
              loaded.error().message() + "; building the index from containers");
  }
  const auto add = [&](const base::IdRuns& ids) {
    for (const auto& run : ids.runs()) {
      for (std::uint64_t i = 0; i < run.count;) {
        const auto found = fingerprints->from(run.first.plus(i), run.count - i,
                                              [&](const Fingerprint& fingerprint, ChunkId id) {
                                                if (!index->find_one(fingerprint))
                                                  index->insert(fingerprint, id);
                                              });
        if (found == 0) break;
        i += found;
      }
    }
    // Damage only costs space: chunks with an unreadable header are not found again.
    index->note_covered(ids);
  };
  add(missing);
  add(own);
  fingerprints_ = std::move(fingerprints);
  return index;
}

// The pool has a separate index, so the neighbour index leaves out the pool's chunks.
Result<base::IdRuns> LineageIndex::own_window(const meta::Txn& txn,
                                              const layout::LiveVersion& version) const {
  VARVE_TRY_ASSIGN(const auto chunks, layout::protected_chunks(txn, parts_.id, version));
  return catalog::own_part(chunks);
}

// Returns the chunks to which the version may refer. Records the chunks before the first reference,
// so that neither arranging nor a deletion removes a referenced chunk.
Result<base::IdRuns> LineageIndex::open_window(const catalog::VersionRecord& record) {
  const layout::LiveVersion version{record.number};
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*parts_.catalog));
    VARVE_TRY_ASSIGN(const auto present, txn.get(meta::catalog::kVersionChunks,
                                                 meta::version_key(parts_.id, record.number)));
    if (present) return own_window(txn, version);
  }
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(*parts_.catalog));
  VARVE_TRY_ASSIGN(auto changed, layout::open_window(txn, parts_.id, parts_.store, record.number));
  VARVE_TRY(txn.commit());
  // The labels contain the window too, and a deletion's forecast counts their bytes.
  changed.push_back(record.number);
  manifests_.labels().change(changed);
  VARVE_TRY_ASSIGN(const auto now, meta::ReadTxn::begin(*parts_.catalog));
  return own_window(now, version);
}

// A side version is a part of the newest main version, and does not become the next version's
// neighbour.
Result<bool> LineageIndex::save_window(const catalog::VersionRecord& record,
                                       const base::IdRuns& chunks) {
  bool is_side = false;
  base::IdRuns window;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*parts_.catalog));
    const auto side = layout::is_side_version(txn, parts_.id, parts_.store,
                                              {record.entries, record.logical_bytes}, chunks);
    if (side) {
      is_side = *side;
    } else {
      // Damaged records of older versions must not prevent the seal.
      base::log(base::LogLevel::kError, side.error().message());
    }
    VARVE_TRY_ASSIGN(window, layout::window_after(txn, parts_.id, chunks, is_side));
    window = catalog::own_part(window);
    VARVE_TRY_ASSIGN(const auto lost, catalog::find_quarantine(txn, parts_.store));
    window = window.subtract(lost);
  }
  VARVE_TRY_ASSIGN(const auto runs, index_->save(window));
  VARVE_TRY(write_index_snapshot(parts_, record.number, runs));
  return is_side;
}

base::IdRuns LineageIndex::retire(const base::IdRuns& ids) { return index_->retire(ids); }

void LineageIndex::restore(const base::IdRuns& ids) {
  if (index_) index_->restore(ids);
}

}  // namespace varve::series
