// SPDX-License-Identifier: Apache-2.0
#include "repo/repository_folder.h"

#include <utility>

#include "catalog/sequence_record.h"
#include "series/series_parts.h"

namespace varve::repo {

namespace {

OpenOptions without_key(OpenOptions options) {
  options.key = {};  // Needed once, to derive the keys; need not stay in memory.
  options.announce = {};
  return options;
}

}  // namespace

RepositoryFolder::RepositoryFolder(OpenedFolder opened)
    : paths(std::move(opened.path)),
      options(without_key(std::move(opened.options))),
      storage(std::move(opened.storage)),
      files(std::move(opened.files)),
      superblock(*files, paths.root(), std::move(opened.superblock), opened.keys),
      codecs(superblock.parameters(), std::move(opened.keys)),
      lock(std::move(opened.lock)),
      may_follow(opened.may_follow),
      settled(*files, paths.settled()),
      catalog(std::move(opened.catalog)) {
  if (options.read_only) return;
  catalog.before_writes([this]() -> Result<void> {
    if (catalog_replaced) return Error(ErrorCode::kReadOnly, "the repository was closed");
    storage->before_write(catalog);
    return settled.clear();
  });
}

Result<void> RepositoryFolder::check_writable() const {
  if (options.read_only) return series::opened_read_only();
  return {};
}

Result<std::optional<std::uint64_t>> RepositoryFolder::sequence() const {
  if (!codecs.keys()) return std::optional<std::uint64_t>();
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog));
  VARVE_TRY_ASSIGN(const auto present, catalog::find_sequence(txn));
  return std::optional(present);
}

Result<bool> RepositoryFolder::has_used_key() const {
  if (options.read_only || catalog.texts() == nullptr) return false;
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog));
  return catalog.texts()->is_half_used(txn);
}

Result<void> RepositoryFolder::end_replication() const {
  const auto done = options.store.waits ? replication().finish() : Result<void>();
  storage->stop();
  return done;
}

}  // namespace varve::repo
