// SPDX-License-Identifier: Apache-2.0
// Loads the neighbour index of an open version from its parent's snapshot, or rebuilds it from
// containers.
#include "series/lineage_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/coding.h"
#include "base/log.h"
#include "catalog/layout_records.h"
#include "catalog/location_table.h"
#include "layout/window.h"
#include "meta/schema.h"
#include "series/staging.h"
#include "store/repository_names.h"

namespace varve::series {

namespace {

std::string snapshot_path(const SeriesParts& parts, VersionNumber number) {
  return parts.directory() + "/" + store::snapshot_name(number);
}

/// Reads the snapshot of version `number` as the index of the version `own`.
/// Errors: kNotFound; kCorrupt.
Result<std::unique_ptr<index::NeighbourIndex>> read_snapshot(const SeriesParts& parts,
                                                             VersionNumber number,
                                                             VersionNumber own) {
  constexpr std::size_t kSnapshotBytesMax = std::size_t{128} << 30;
  const std::string path = snapshot_path(parts, number);
  VARVE_TRY_ASSIGN(const std::string snapshot, parts.files->read_file(path, kSnapshotBytesMax));
  auto index = index::NeighbourIndex::decode(snapshot, parts.id, number, own);
  if (!index) return std::move(index).error().with_context(path);
  return index;
}

}  // namespace

Result<void> LineageIndex::verify(const SeriesParts& parts, VersionNumber number) {
  const auto next = static_cast<VersionNumber>(static_cast<std::uint32_t>(number) + 1);
  VARVE_TRY(read_snapshot(parts, number, next));
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
    window = window.subtract(lost);  // Lost content must be stored again if it comes back.
  }
  std::shared_ptr<index::NeighbourIndex> index;
  if (parent) {
    auto loaded = read_snapshot(parts_, *parent, record.number);
    // The snapshot has the window of the last seal. A deletion may have changed the window since:
    // then only the chunks that entered it are read from containers.
    if (loaded) {
      const auto entered = window.subtract((*loaded)->base());
      index = window == (*loaded)->base() ? std::move(*loaded) : (*loaded)->over(window);
      VARVE_TRY(add(*index, entered));
    } else if (window.size() != 0) {
      base::log(base::LogLevel::kWarning,
                loaded.error().message() + "; building the index from containers");
    }
  }
  if (!index) {
    index = std::make_shared<index::NeighbourIndex>(window, record.number);
    VARVE_TRY(add(*index, window));
  }
  VARVE_TRY(add(*index, own));
  return index;
}

// Returns the chunks that the version may refer to. Records them before the first reference, so
// that neither arranging nor a deletion removes them.
Result<base::IdRuns> LineageIndex::open_window(const catalog::VersionRecord& record) {
  const layout::LiveVersion version{record.number, false, false};
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*parts_.catalog));
    VARVE_TRY_ASSIGN(const auto present, txn.get(meta::catalog::kVersionChunks,
                                                 meta::version_key(parts_.id, record.number)));
    if (present) return layout::protected_chunks(txn, parts_.id, version);
  }
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(*parts_.catalog));
  VARVE_TRY(layout::open_window(txn, parts_.id, parts_.store, record.number));
  VARVE_TRY(txn.commit());
  // The labels contain the window too, and a deletion's forecast counts their bytes.
  manifests_.write_labels();
  VARVE_TRY_ASSIGN(const auto now, meta::ReadTxn::begin(*parts_.catalog));
  return layout::protected_chunks(now, parts_.id, version);
}

// Adds the fingerprints in the headers of containers. Damage only costs space: chunks with an
// unreadable header are not found again.
Result<void> LineageIndex::add(index::NeighbourIndex& index, const base::IdRuns& ids) {
  for (const auto& run : ids.runs()) {
    for (std::uint64_t i = 0; i < run.count;) {
      const ChunkId id = run.first.plus(i);
      auto where = store_.layout->locate(id);
      auto header = where ? store_.layout->header(where->container)
                          : Result<std::shared_ptr<const format::ContainerHeader>>(where.error());
      if (where && !header && header.error().code() == ErrorCode::kStale) {
        where = store_.layout->locate(id);  // The chunk was moved meanwhile.
        if (where) header = store_.layout->header(where->container);
      }
      if (!where) {
        base::log(base::LogLevel::kError, where.error().message());
        break;
      }
      const std::uint64_t skip = id.value - where->first.value;
      const std::uint64_t count = std::min<std::uint64_t>(where->count - skip, run.count - i);
      i += count;
      if (!header) {
        base::log(base::LogLevel::kError,
                  fmt::format("series {}: {}", static_cast<std::uint32_t>(parts_.id),
                              header.error().message()));
        continue;
      }
      for (std::uint64_t j = 0; j < count; ++j) {
        const std::uint64_t at = where->index + skip + j;
        if (at >= (*header)->chunks.size()) break;
        const auto& chunk = (*header)->chunks[at];
        if (!index.find_one(chunk.fingerprint)) index.insert(chunk.fingerprint, id.plus(j));
      }
    }
  }
  return {};
}

// A side version shares so little with its series that it does not become the next one's neighbour.
Result<bool> LineageIndex::save_window(const catalog::VersionRecord& record,
                                       const base::IdRuns& chunks) {
  bool is_side = false;
  base::IdRuns window;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*parts_.catalog));
    const auto side = layout::is_side_version(txn, parts_.id, parts_.store, chunks);
    if (side) {
      is_side = *side;
    } else {
      // Damaged records of older versions must not prevent this seal.
      base::log(base::LogLevel::kError, side.error().message());
    }
    VARVE_TRY_ASSIGN(window, layout::window_after(txn, parts_.id, chunks, is_side));
    VARVE_TRY_ASSIGN(const auto lost, catalog::find_quarantine(txn, parts_.store));
    window = window.subtract(lost);
  }
  const std::string snapshot = index_->encode(parts_.id, record.number, window);
  VARVE_TRY(parts_.files->write_file_atomically(
      parts_.directory(), store::snapshot_name(record.number), base::as_bytes(snapshot)));
  return is_side;
}

base::IdRuns LineageIndex::retire(const base::IdRuns& ids) { return index_->retire(ids); }

void LineageIndex::restore(const base::IdRuns& ids) {
  if (index_) index_->restore(ids);
}

}  // namespace varve::series
