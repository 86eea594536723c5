// SPDX-License-Identifier: Apache-2.0
// The superblock of a repository under repair: the choice of the superblock, and of the keys.
#include <algorithm>
#include <utility>

#include "catalog/key_record.h"
#include "ingest/parameters.h"
#include "io/posix_file_system.h"
#include "maintain/manifest_file.h"
#include "maintain/repairer.h"
#include "maintain/superblock_place.h"
#include "store/repository_paths.h"
#include "store/sealed_places.h"

namespace varve::maintain {

void Repairer::use(const format::Superblock& superblock,
                   std::shared_ptr<const crypto::KeyRing> keys) {
  parameters_ = superblock.parameters;
  if (keys) encrypted_ = superblock;
  files_ = store::seal_files(std::move(files_), keys, path_);
  codecs_.emplace(parameters_, std::move(keys));
}

Result<void> Repairer::check_superblock() {
  VARVE_TRY_ASSIGN(const auto raw, io::open_root(path_, {.trust_owner = options_.trust_owner}));
  VARVE_TRY_ASSIGN(const auto own, encrypted_ ? *encrypted_ : ingest::read_superblock(superblock_));
  return check_superblock_place(*raw, *files_, codecs_->frames(), path_, own);
}

// If the copy is the damaged file, the next writer writes a new copy.
Result<bool> Repairer::use_superblock_copy(const std::string& damage) {
  auto copy = read_superblock_copy(*files_, path_);
  if (!copy && copy.error().code() == ErrorCode::kNotFound) return false;
  if (!copy) return std::move(copy).error();
  const auto& [text, superblock] = *copy;
  VARVE_TRY_ASSIGN(auto keys, format::unlock_superblock(superblock, text, options_.key, true));
  superblock_ = format::encode_superblock(superblock);
  use(superblock, std::move(keys));
  superblock_lost_ = true;
  step(RepairStep::Kind::kSuperblock, path_ + "/varve.repo",
       damage + "; the repair writes it again from " + store::RepositoryPaths(path_).keys());
  return true;
}

bool Repairer::has_newer_copy(const format::Superblock& superblock,
                              const crypto::KeyRing* keys) const {
  const auto copy = read_superblock_copy(*files_, path_);
  return copy && superblock.encryption && are_of_one_repository(copy->superblock, superblock) &&
         copy->superblock.encryption->key_counter > superblock.encryption->key_counter &&
         (keys == nullptr || format::authenticate_superblock(copy->text, *keys));
}

Result<void> Repairer::scan_key_counter() {
  if (!encrypted_) return {};
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*catalog_));
  VARVE_TRY_ASSIGN(const auto known, catalog::find_key_counter(txn));
  if (known <= encrypted_->encryption->key_counter) return {};
  encrypted_->encryption->key_counter = known + 1;
  superblock_ = format::encode_superblock(*encrypted_);
  superblock_lost_ = true;
  step(RepairStep::Kind::kSuperblock, path_ + "/varve.repo",
       "its keys are older than those that the catalog knows; the repair keeps these keys: remove "
       "those that should not open the repository with `varve key rm`");
  return {};
}

Result<void> Repairer::scan_superblock() {
  auto text = files_->read_file(path_ + "/varve.repo", format::kSuperblockBytesMax);
  auto superblock =
      text ? ingest::read_superblock(*text) : Result<format::Superblock>(std::move(text).error());
  if (superblock) {
    auto keys =
        format::unlock_superblock(*superblock, *text, options_.key, options_.encrypted_only);
    const bool forged = !keys && keys.error().code() == ErrorCode::kCorrupt;
    if (!keys && !forged) {
      // The key may be in the newer copy alone.
      if (!has_newer_copy(*superblock, nullptr)) return std::move(keys).error();
      VARVE_TRY_ASSIGN(const bool used, use_superblock_copy("it is older than its copy"));
      if (!used) return std::move(keys).error();
      return {};
    }
    if (!forged && *keys && has_newer_copy(*superblock, keys->get())) {
      VARVE_TRY(use_superblock_copy("it is older than its copy"));
      return {};
    }
    if (!forged) {
      superblock_ = *keys ? format::encode_superblock(*superblock) : *text;
      use(*superblock, *std::move(keys));
      return {};
    }
    superblock = std::move(keys).error();
  }
  // Only a newer program may repair a newer format.
  if (superblock.error().code() == ErrorCode::kUnsupported) return std::move(superblock).error();
  VARVE_TRY_ASSIGN(const bool copied, use_superblock_copy(superblock.error().message()));
  if (copied) return {};
  // Labels are readable without the parameters; the labels' copy of the superblock has the
  // parameters.
  const auto plain = format::make_plain_frame_codec({});
  VARVE_TRY_ASSIGN(const auto folders, series_folders(*files_, path_));
  int most_needs = -1;
  for (const auto series : folders) {
    const auto labels =
        read_labels(*files_, *plain, store::RepositoryPaths(path_).series(series), series);
    const auto copy = labels ? ingest::read_superblock(labels->superblock)
                             : Result<format::Superblock>(labels.error());
    // A readable copy in another series may be older than the upgrade to the newer format.
    if (!copy && copy.error().code() == ErrorCode::kUnsupported) return copy.error();
    if (!copy) continue;
    // After a crash, some copies may lack a feature needed by series.
    const int needs = int{copy->needs_pool} + int{copy->needs_aliases} + int{copy->needs_marks} +
                      int{copy->needs_delta} + int{copy->needs_label_parts};
    if (needs > most_needs) superblock_ = labels->superblock;
    most_needs = std::max(most_needs, needs);
    if (superblock_lost_) continue;
    use(*copy, nullptr);
    superblock_lost_ = true;
    step(RepairStep::Kind::kSuperblock, path_ + "/varve.repo",
         superblock.error().message() + "; the repair writes it again from " +
             store::RepositoryPaths(path_).series(series) + "/" + kLabelsName);
  }
  if (superblock_lost_) return {};
  if (folders.empty()) {
    return Error(ErrorCode::kNoRepository, path_ + " is not a Varve repository");
  }
  return std::move(superblock).error().with_context("no series has a copy of the superblock");
}

}  // namespace varve::maintain
