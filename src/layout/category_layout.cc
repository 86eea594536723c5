// SPDX-License-Identifier: Apache-2.0
#include "layout/category_layout.h"

#include <utility>

#include "catalog/location_table.h"
#include "layout/store_recovery.h"

namespace varve::layout {

CategoryLayout::Exclusive::Exclusive(CategoryLayout& layout, For what)
    : lock_(layout.arrange_mutex_, std::defer_lock) {
  if (what == For::kArranging) {
    lock_.lock();
    return;
  }
  ++layout.deletions_waiting_;
  lock_.lock();
  --layout.deletions_waiting_;
}

CategoryLayout::CategoryLayout(const meta::Env& catalog, store::SegmentStore& store,
                               const format::FrameCodec& codec, base::ThreadPool* compressors,
                               CategoryLayoutOptions options)
    : catalog_(catalog),
      store_(store),
      compressors_(compressors),
      options_(options),
      chunks_(catalog, store, codec, options_.store, options_.open_files, options_.damage),
      stream_({catalog, store, codec, compressors, chunks_, numbers_, options_.metrics}) {}

Result<std::unique_ptr<CategoryLayout>> CategoryLayout::open(const meta::Env& catalog,
                                                             store::SegmentStore& store,
                                                             const format::FrameCodec& codec,
                                                             base::ThreadPool* compressors,
                                                             const CategoryLayoutOptions& options) {
  std::unique_ptr<CategoryLayout> layout(
      new CategoryLayout(catalog, store, codec, compressors, options));
  if (options.read_only) return layout;
  VARVE_TRY(recover_store(catalog, options.store, store, codec.keys(), layout->numbers_));
  return layout;
}

Result<void> CategoryLayout::on_seal(VersionNumber /*number*/, const base::IdRuns& /*live*/) {
  VARVE_TRY(stream_.sync());
  // The writer's thread, buffers and file end here: a series without an open version needs none. If
  // the seal fails afterwards, the next chunk starts a new writer.
  stream_.end();
  return {};
}

// An abandoned version stored its chunks in separate files, without any further references. The
// records are deleted first, then the space is freed (O7).
Result<void> CategoryLayout::on_delete(VersionNumber number) {
  const Exclusive exclusive(*this, Exclusive::For::kDeleting);
  const auto unsynced = stream_.drop();
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(catalog_));
  SegmentLedger ledger(txn, options_.store);
  const auto remove = [&](const catalog::LocationRecord& record) -> Result<bool> {
    if (record.first.birth() != number) return false;
    auto removed = ledger.remove(record, {});
    if (!removed) return std::move(removed).error();
    return true;
  };
  VARVE_TRY(catalog::for_each_location(txn, options_.store, ChunkId::make(number, 0), remove));
  VARVE_TRY(ledger.finish());
  VARVE_TRY(ledger.apply(txn));
  VARVE_TRY(txn.commit());
  VARVE_TRY(free(ledger.cuts()));
  return free(unsynced);
}

}  // namespace varve::layout
