// SPDX-License-Identifier: Apache-2.0
// The neighbour index of an open version: from the parent's snapshot, or from containers.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/log.h"
#include "catalog/location_table.h"
#include "repo/repository_impl.h"

namespace varve::repo {

Result<std::shared_ptr<index::NeighbourIndex>> RepositoryImpl::load_index(
    SeriesState& memory, const catalog::VersionRecord& record) {
  std::optional<VersionNumber> parent;
  base::IdRuns own;
  base::IdRuns parent_chunks;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
    VARVE_TRY_ASSIGN(const auto records, catalog::list_versions(txn, record.series));
    for (const auto& other : records) {
      if (other.state == VersionState::kSealed) parent = other.number;
    }
    if (parent) {
      auto chunks = catalog::version_chunks(txn, record.series, *parent);
      if (chunks) {
        parent_chunks = std::move(*chunks);
      } else {
        base::log(base::LogLevel::kError, chunks.error().message());
      }
    }
    std::vector<base::IdRun> runs;
    VARVE_TRY(catalog::for_each_location(txn, record.series, ChunkId::make(record.number, 0),
                                         [&](const catalog::LocationRecord& at) -> Result<bool> {
                                           if (at.first.birth() == record.number)
                                             runs.push_back({at.first, at.count});
                                           return at.first.birth() == record.number;
                                         }));
    own = base::IdRuns::from(std::move(runs));
  }
  std::shared_ptr<index::NeighbourIndex> index;
  if (parent) {
    auto loaded = index::NeighbourIndex::load(*files_, series_directory(record.series),
                                              record.series, *parent, record.number);
    if (loaded) {
      index = std::move(*loaded);
    } else {
      base::log(base::LogLevel::kWarning,
                loaded.error().message() + "; building the index from containers");
      index = std::make_shared<index::NeighbourIndex>(parent_chunks, record.number);
      VARVE_TRY(add_to_index(memory, *index, record.series, parent_chunks));
    }
  } else {
    index = std::make_shared<index::NeighbourIndex>(base::IdRuns(), record.number);
  }
  VARVE_TRY(add_to_index(memory, *index, record.series, own));
  return index;
}

// Reads fingerprints from the heads of containers. Damage only costs space: what cannot be
// read is not found again.
Result<void> RepositoryImpl::add_to_index(SeriesState& memory, index::NeighbourIndex& index,
                                          SeriesId series, const base::IdRuns& ids) {
  for (const auto& run : ids.runs()) {
    for (std::uint64_t i = 0; i < run.count;) {
      const ChunkId id = run.first.plus(i);
      const auto where = memory.layout->locate(id);
      if (!where) {
        base::log(base::LogLevel::kError, where.error().message());
        break;
      }
      const std::uint64_t skip = id.value - where->first.value;
      const std::uint64_t count = std::min<std::uint64_t>(where->count - skip, run.count - i);
      i += count;
      const auto head = memory.layout->head(where->container);
      if (!head) {
        base::log(base::LogLevel::kError,
                  fmt::format("series {}: {}", static_cast<std::uint32_t>(series),
                              head.error().message()));
        continue;
      }
      for (std::uint64_t j = 0; j < count; ++j) {
        const std::uint64_t at = where->index + skip + j;
        if (at >= (*head)->chunks.size()) break;
        const auto& chunk = (*head)->chunks[at];
        if (!index.find(chunk.fingerprint)) index.insert(chunk.fingerprint, id.plus(j));
      }
    }
  }
  return {};
}

}  // namespace varve::repo
