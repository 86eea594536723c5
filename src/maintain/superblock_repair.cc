// SPDX-License-Identifier: Apache-2.0
#include "maintain/superblock_repair.h"

#include <algorithm>
#include <utility>

#include "catalog/key_record.h"
#include "ingest/parameters.h"
#include "io/posix_file_system.h"
#include "maintain/manifest_file.h"
#include "maintain/superblock_place.h"
#include "store/repository_paths.h"

namespace varve::maintain {

Result<SuperblockRepair> SuperblockRepair::scan(io::FileSystem& files, const std::string& path,
                                                const RepairOptions& options) {
  SuperblockRepair found(path);
  VARVE_TRY(found.read(files, options));
  return found;
}

Result<void> SuperblockRepair::read(io::FileSystem& files, const RepairOptions& options) {
  auto text = files.read_file(path_ + "/varve.repo", format::kSuperblockBytesMax);
  auto superblock =
      text ? ingest::read_superblock(*text) : Result<format::Superblock>(std::move(text).error());
  if (superblock) {
    auto keys = format::unlock_superblock(*superblock, *text, options.key, options.encrypted_only);
    const bool forged = !keys && keys.error().code() == ErrorCode::kCorrupt;
    if (!keys && !forged) {
      // The key may be in the newer copy alone.
      if (!has_newer_copy(files, *superblock, nullptr)) return std::move(keys).error();
      VARVE_TRY_ASSIGN(const bool used, use_copy(files, options, "it is older than its copy"));
      if (!used) return std::move(keys).error();
      return {};
    }
    if (!forged && *keys && has_newer_copy(files, *superblock, keys->get())) {
      VARVE_TRY(use_copy(files, options, "it is older than its copy"));
      return {};
    }
    if (!forged) {
      text_ = *keys ? format::encode_superblock(*superblock) : *text;
      use(*superblock, *std::move(keys));
      return {};
    }
    superblock = std::move(keys).error();
  }
  // Only a newer program may repair a newer format.
  if (superblock.error().code() == ErrorCode::kUnsupported) return std::move(superblock).error();
  VARVE_TRY_ASSIGN(const bool copied, use_copy(files, options, superblock.error().message()));
  if (copied) return {};
  return use_labels(files, superblock.error());
}

Result<void> SuperblockRepair::use_labels(io::FileSystem& files, const Error& fault) {
  // Labels are readable without the parameters; the labels' copy of the superblock has the
  // parameters.
  const auto plain = format::make_plain_frame_codec({});
  VARVE_TRY_ASSIGN(const auto folders, series_folders(files, path_));
  int most_needs = -1;
  for (const auto series : folders) {
    const auto labels =
        read_labels(files, *plain, store::RepositoryPaths(path_).series(series), series);
    const auto copy = labels ? ingest::read_superblock(labels->superblock)
                             : Result<format::Superblock>(labels.error());
    // A readable copy in another series may be older than the upgrade to the newer format.
    if (!copy && copy.error().code() == ErrorCode::kUnsupported) return copy.error();
    if (!copy) continue;
    // After a crash, some copies may lack a feature needed by series.
    const int needs = int{copy->needs_pool} + int{copy->needs_aliases} + int{copy->needs_marks} +
                      int{copy->needs_delta} + int{copy->needs_label_parts};
    if (needs > most_needs) text_ = labels->superblock;
    most_needs = std::max(most_needs, needs);
    if (is_needed_) continue;
    use(*copy, nullptr);
    is_needed_ = true;
    step(steps_, fault.message() + "; the repair writes it again from " +
                     store::RepositoryPaths(path_).series(series) + "/" + kLabelsName);
  }
  if (is_needed_) return {};
  if (folders.empty()) {
    return Error(ErrorCode::kNoRepository, path_ + " is not a Varve repository");
  }
  return Error(fault).with_context("no series has a copy of the superblock");
}

void SuperblockRepair::use(const format::Superblock& superblock,
                           std::shared_ptr<const crypto::KeyRing> keys) {
  parameters_ = superblock.parameters;
  if (keys) encrypted_ = superblock;
  keys_ = std::move(keys);
}

// If the copy is the damaged file, the next writer writes a new copy.
Result<bool> SuperblockRepair::use_copy(io::FileSystem& files, const RepairOptions& options,
                                        const std::string& damage) {
  auto copy = read_superblock_copy(files, path_);
  if (!copy && copy.error().code() == ErrorCode::kNotFound) return false;
  if (!copy) return std::move(copy).error();
  const auto& [text, superblock] = *copy;
  VARVE_TRY_ASSIGN(auto keys, format::unlock_superblock(superblock, text, options.key, true));
  text_ = format::encode_superblock(superblock);
  use(superblock, std::move(keys));
  is_needed_ = true;
  step(steps_,
       damage + "; the repair writes it again from " + store::RepositoryPaths(path_).keys());
  return true;
}

bool SuperblockRepair::has_newer_copy(io::FileSystem& files, const format::Superblock& superblock,
                                      const crypto::KeyRing* keys) const {
  const auto copy = read_superblock_copy(files, path_);
  return copy && superblock.encryption && are_of_one_repository(copy->superblock, superblock) &&
         copy->superblock.encryption->key_counter > superblock.encryption->key_counter &&
         (keys == nullptr || format::authenticate_superblock(copy->text, *keys));
}

Result<void> SuperblockRepair::check(io::FileSystem& files, const format::FrameCodec& codec,
                                     bool trust_owner) const {
  VARVE_TRY_ASSIGN(const auto raw, io::open_root(path_, {.trust_owner = trust_owner}));
  VARVE_TRY_ASSIGN(const auto own, encrypted_ ? *encrypted_ : ingest::read_superblock(text_));
  return check_superblock_place(*raw, files, codec, path_, own);
}

Result<void> SuperblockRepair::scan_key_counter(const meta::Env& catalog,
                                                std::vector<RepairStep>& steps) {
  if (!encrypted_) return {};
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog));
  VARVE_TRY_ASSIGN(const auto known, catalog::find_key_counter(txn));
  if (known <= encrypted_->encryption->key_counter) return {};
  encrypted_->encryption->key_counter = known + 1;
  text_ = format::encode_superblock(*encrypted_);
  is_needed_ = true;
  step(steps,
       "its keys are older than those that the catalog knows; the repair keeps these keys: remove "
       "those that should not open the repository with `varve key rm`");
  return {};
}

Result<void> SuperblockRepair::execute(io::FileSystem& files) const {
  if (!is_needed_) return {};
  const auto written = encrypted_ ? format::encode_superblock(*encrypted_, keys_.get()) : text_;
  return files.write_file_atomically(path_, "varve.repo", base::as_bytes(written));
}

void SuperblockRepair::step(std::vector<RepairStep>& steps, std::string what) const {
  steps.push_back({RepairStep::Kind::kSuperblock, path_ + "/varve.repo", std::move(what)});
}

}  // namespace varve::maintain
