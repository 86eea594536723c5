// SPDX-License-Identifier: Apache-2.0
#include "layout/file_chunks.h"

#include <set>
#include <utility>

#include "base/log.h"
#include "catalog/location_table.h"

namespace varve::layout {

Result<void> for_each_container_in(
    const meta::Txn& txn, StoreId store, const catalog::SegmentRecord& file,
    const std::function<Result<bool>(const format::ContainerRecord&)>& visit) {
  std::uint32_t seen = 0;
  return catalog::for_each_container_from(
      txn, store, file.first_container, [&](const format::ContainerRecord& record) -> Result<bool> {
        if (record.segment != file.segment) return true;
        VARVE_TRY_ASSIGN(const bool goes_on, visit(record));
        return goes_on && ++seen < file.containers;
      });
}

Result<base::IdRuns> chunks_in_files(CategoryLayout& layout, const meta::Txn& txn,
                                     const std::vector<SegmentNumber>& files) {
  const StoreId store = layout.options().store;
  std::set<ContainerNumber> containers;
  for (const auto number : files) {
    VARVE_TRY_ASSIGN(const auto file, catalog::find_segment(txn, store, number));
    if (!file) continue;
    VARVE_TRY(for_each_container_in(txn, store, *file,
                                    [&](const format::ContainerRecord& record) -> Result<bool> {
                                      if (record.live_bytes != 0) containers.insert(record.number);
                                      return true;
                                    }));
  }
  std::vector<base::IdRun> stored;
  for (const auto container : containers) {
    const auto header = layout.header(container);
    if (!header) {
      base::log(base::LogLevel::kError, "arranging: " + header.error().message());
      continue;
    }
    for (const auto& chunk : (*header)->chunks) base::append_run(stored, {chunk.id, 1});
  }
  std::vector<base::IdRun> located;
  VARVE_TRY(catalog::for_each_location_of(txn, store, base::IdRuns::from(std::move(stored)),
                                          [&](const catalog::LocationRecord& at) -> Result<bool> {
                                            if (containers.contains(at.container))
                                              located.push_back({at.first, at.count});
                                            return true;
                                          }));
  return base::IdRuns::from(std::move(located));
}

}  // namespace varve::layout
