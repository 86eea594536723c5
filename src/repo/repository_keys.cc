// SPDX-License-Identifier: Apache-2.0
// The key slots of an encrypted repository. docs/decisions/080 gives the order of writes.
#include <fmt/core.h>

#include <memory>
#include <utility>

#include "catalog/key_record.h"
#include "crypto/key_slots.h"
#include "format/key_slot_text.h"
#include "format/superblock.h"
#include "ingest/parameters.h"
#include "meta/lmdb.h"
#include "repo/key_slots_editor.h"
#include "repo/repository_impl.h"
#include "repo/superblock_file.h"
#include "series/series_parts.h"
#include "store/repository_paths.h"
#include "varve/keys.h"

namespace varve {

namespace repo {

EncryptionInfo RepositoryImpl::key_slots() const { return info_of(folder_.superblock.key_lines()); }

Result<void> RepositoryImpl::change_key_slots(const KeyLinesChange& change) {
  auto lines = folder_.superblock.key_lines();
  VARVE_TRY(change(lines));
  ++lines.key_counter;
  VARVE_TRY(folder_.settled.clear());
  VARVE_TRY(folder_.superblock.set_key_lines(std::move(lines)));  // O42
  VARVE_TRY(note_key_counter());
  series_.write_all_labels();  // The labels have a copy of the counter, for a rebuilt catalog.
  folder_.replicate_soon();
  return {};
}

Result<void> RepositoryImpl::note_key_counter() {
  const auto counter = folder_.superblock.key_lines().key_counter;
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(folder_.catalog));
  VARVE_TRY(catalog::put_key_counter(txn, counter));
  return txn.commit();
}

Result<void> RepositoryImpl::check_key_counter() {
  if (!folder_.codecs.keys()) return {};
  std::uint32_t known = 0;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(folder_.catalog));
    VARVE_TRY_ASSIGN(known, catalog::find_key_counter(txn));
  }
  if (folder_.options.read_only && known > folder_.superblock.key_lines().key_counter) {
    VARVE_TRY(folder_.superblock.read_again());  // A writer may have changed the keys since.
  }
  const auto present = folder_.superblock.key_lines().key_counter;
  if (known > present) {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("{} has the keys of change {}, but the catalog knows change {}: an "
                             "older copy of the file was put back, and removed keys may open the "
                             "repository. Run `varve repair`",
                             folder_.paths.superblock(), present, known));
  }
  if (folder_.options.read_only) return {};
  VARVE_TRY(folder_.superblock.complete_copy());
  return known < present ? note_key_counter() : Result<void>();
}

Result<void> RepositoryImpl::adopt_keys(std::string_view superblock) {
  VARVE_TRY(folder_.check_writable());
  if (!is_encrypted()) {
    return Error(ErrorCode::kNotPermitted, path() + " is not encrypted, and has no keys");
  }
  VARVE_TRY_ASSIGN(const auto changed, ingest::read_superblock(superblock));
  VARVE_TRY(format::authenticate_superblock(superblock, *folder_.codecs.keys()));
  if (changed.repository_id != id() || !changed.encryption) {
    return Error(ErrorCode::kCorrupt, "these keys are those of another repository");
  }
  VARVE_TRY(check_usable(*changed.encryption));
  const std::lock_guard lock(keys_mutex_);
  return change_key_slots([&](format::KeyLines& lines) -> Result<void> {
    if (changed.encryption->key_counter != lines.key_counter + 1) {
      return Error(ErrorCode::kBusy,
                   "the keys of the repository were changed meanwhile; run the command again");
    }
    lines.slots = changed.encryption->slots;
    return {};
  });
}

namespace {

/// Implements KeySlots on an open repository.
class OpenKeySlots final : public KeySlotsEditor {
 public:
  OpenKeySlots(std::unique_ptr<Repository> repository, RepositoryImpl& impl)
      : repository_(std::move(repository)), impl_(impl) {}

  [[nodiscard]] EncryptionInfo info() const override { return impl_.key_slots(); }
  [[nodiscard]] Result<void> close() override { return repository_->close(); }

 private:
  [[nodiscard]] Result<void> change(const KeyLinesChange& change) override {
    return impl_.change_key_slots(change);
  }
  [[nodiscard]] Result<crypto::KeySlot> seal(const NewKey& key, std::uint32_t number) override {
    return impl_.seal_key_slot(key, number);
  }

  std::unique_ptr<Repository> repository_;
  RepositoryImpl& impl_;
};

}  // namespace

Result<crypto::KeySlot> RepositoryImpl::seal_key_slot(const NewKey& key, std::uint32_t number) {
  return crypto::seal_slot(key, number, folder_.clock.now().seconds,
                           folder_.codecs.keys()->master(), folder_.superblock.repository_id());
}

Result<std::unique_ptr<KeySlots>> open_key_slots(const std::string& path,
                                                 const OpenOptions& options) {
  VARVE_TRY_ASSIGN(auto repository, RepositoryImpl::open(path, options));
  auto& impl = static_cast<RepositoryImpl&>(*repository);
  if (!impl.is_encrypted()) {
    VARVE_TRY(repository->close());
    return Error(ErrorCode::kInvalid, path + " is not encrypted, and has no keys");
  }
  return std::unique_ptr<KeySlots>(std::make_unique<OpenKeySlots>(std::move(repository), impl));
}

}  // namespace repo

Result<void> check_passphrase_cost(const PassphraseCost& cost) { return crypto::check_cost(cost); }

Result<std::unique_ptr<KeySlots>> KeySlots::open(const std::string& path,
                                                 const OpenOptions& options) {
  return repo::open_key_slots(path, options);
}

namespace {

struct SuperblockOfFolder {
  std::string text;
  format::Superblock superblock;
};

Result<SuperblockOfFolder> read_superblock_of(const std::string& path, bool trust_owner) {
  VARVE_TRY_ASSIGN(const auto files, repo::open_folder(path, trust_owner));
  VARVE_TRY_ASSIGN(auto text, repo::read_superblock_text(*files, path));
  auto superblock = ingest::read_superblock(text);
  if (superblock) return SuperblockOfFolder{std::move(text), *std::move(superblock)};
  return std::move(superblock).error().with_context(store::RepositoryPaths(path).superblock());
}

}  // namespace

Result<std::optional<EncryptionInfo>> read_encryption(const std::string& path, bool trust_owner) {
  VARVE_TRY_ASSIGN(const auto read, read_superblock_of(path, trust_owner));
  if (!read.superblock.encryption) return std::optional<EncryptionInfo>();
  return std::optional(repo::info_of(*read.superblock.encryption));
}

Result<EncryptionInfo> read_authentic_encryption(const std::string& path, const KeySource& key,
                                                 bool trust_owner) {
  VARVE_TRY_ASSIGN(const auto read, read_superblock_of(path, trust_owner));
  const auto keys = format::unlock_superblock(read.superblock, read.text, key, true);
  if (!keys) return Error(keys.error()).with_context(path);
  return repo::info_of(*read.superblock.encryption);
}

Result<void> check_key(const std::string& path, const UserKey& key, bool trust_owner) {
  VARVE_TRY_ASSIGN(const auto read, read_superblock_of(path, trust_owner));
  const auto& superblock = read.superblock;
  if (!superblock.encryption) {
    return Error(ErrorCode::kInvalid, path + " is not encrypted, and has no keys");
  }
  VARVE_TRY(crypto::open_slots(superblock.encryption->slots, key, superblock.repository_id));
  return {};
}

}  // namespace varve
