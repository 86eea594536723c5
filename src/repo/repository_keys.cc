// SPDX-License-Identifier: Apache-2.0
// The key slots of an encrypted repository. docs/decisions/80 gives the order of writes.
#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "catalog/key_record.h"
#include "crypto/key_slots.h"
#include "format/key_slot_text.h"
#include "format/superblock.h"
#include "ingest/parameters.h"
#include "meta/lmdb.h"
#include "repo/repository_impl.h"
#include "repo/superblock_file.h"
#include "store/repository_paths.h"
#include "varve/keys.h"

namespace varve {

namespace repo {

namespace {

EncryptionInfo info_of(const format::KeyLines& lines) {
  EncryptionInfo info;
  info.cipher = format::cipher_name(lines.cipher);
  info.key_counter = lines.key_counter;
  for (const auto& slot : lines.slots) info.slots.push_back(slot.info);
  return info;
}

}  // namespace

EncryptionInfo RepositoryImpl::key_slots() const { return info_of(superblock_.key_lines()); }

Result<void> RepositoryImpl::change_key_slots(
    const std::function<Result<void>(format::KeyLines&)>& change) {
  auto lines = superblock_.key_lines();
  VARVE_TRY(change(lines));
  ++lines.key_counter;
  VARVE_TRY(settled_.clear());
  VARVE_TRY(superblock_.set_key_lines(std::move(lines)));  // O42
  VARVE_TRY(note_key_counter());
  write_all_labels();  // They have a copy of the counter, for a rebuilt catalog.
  return {};
}

Result<void> RepositoryImpl::note_key_counter() {
  const auto counter = superblock_.key_lines().key_counter;
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(catalog_));
  VARVE_TRY(catalog::put_key_counter(txn, counter));
  return txn.commit();
}

Result<void> RepositoryImpl::check_key_counter() {
  if (!codecs_.keys()) return {};
  std::uint32_t known = 0;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
    VARVE_TRY_ASSIGN(known, catalog::find_key_counter(txn));
  }
  if (options_.read_only && known > superblock_.key_lines().key_counter) {
    VARVE_TRY(superblock_.read_again());  // A writer may have changed the keys since.
  }
  const auto present = superblock_.key_lines().key_counter;
  if (known > present) {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("{} has the keys of change {}, but the catalog knows change {}: an "
                             "older copy of the file was put back, and removed keys may open the "
                             "repository. Run `varve repair`",
                             paths_.superblock(), present, known));
  }
  if (options_.read_only) return {};
  VARVE_TRY(superblock_.complete_copy());
  return known < present ? note_key_counter() : Result<void>();
}

namespace {

/// Implements KeySlots on a repository that is open.
class OpenKeySlots final : public KeySlots {
 public:
  OpenKeySlots(std::unique_ptr<Repository> repository, RepositoryImpl& impl)
      : repository_(std::move(repository)), impl_(impl) {}

  [[nodiscard]] EncryptionInfo info() const override { return impl_.key_slots(); }

  [[nodiscard]] Result<KeySlotInfo> add(const NewKey& key) override {
    return put(key, std::nullopt);
  }

  [[nodiscard]] Result<KeySlotInfo> replace(std::uint32_t number, const NewKey& key) override {
    return put(key, number);
  }

  [[nodiscard]] Result<void> remove(std::uint32_t number) override {
    return impl_.change_key_slots([&](format::KeyLines& lines) -> Result<void> {
      VARVE_TRY(take_out(lines, number));
      const bool usable = std::ranges::any_of(lines.slots, [](const crypto::KeySlot& slot) {
        return slot.info.kind != KeyKind::kRecovery;
      });
      if (usable) return {};
      return Error(ErrorCode::kNotPermitted,
                   "this is the last key of the repository; add another one first with `varve key "
                   "add`");
    });
  }

  [[nodiscard]] Result<void> close() override { return repository_->close(); }

 private:
  static Result<void> take_out(format::KeyLines& lines, std::uint32_t number) {
    const auto removed = std::erase_if(
        lines.slots, [&](const crypto::KeySlot& slot) { return slot.info.number == number; });
    if (removed != 0) return {};
    return Error(ErrorCode::kNotFound,
                 fmt::format("the repository has no key {}; see `varve key list`", number));
  }

  Result<KeySlotInfo> put(const NewKey& key, std::optional<std::uint32_t> replaced) {
    KeySlotInfo made;
    const auto done = impl_.change_key_slots([&](format::KeyLines& lines) -> Result<void> {
      std::uint32_t number = 1;
      if (!lines.slots.empty()) number = lines.slots.back().info.number + 1;
      if (replaced) VARVE_TRY(take_out(lines, *replaced));
      if (lines.slots.size() == kKeySlotsMax) {
        return Error(
            ErrorCode::kTooLarge,
            fmt::format("the repository has {} keys, the most that it can have; remove one "
                        "with `varve key rm`",
                        kKeySlotsMax));
      }
      VARVE_TRY_ASSIGN(auto slot, impl_.seal_key_slot(key, number));
      made = slot.info;
      lines.slots.push_back(std::move(slot));
      return {};
    });
    if (!done) return done.error();
    return made;
  }

  std::unique_ptr<Repository> repository_;
  RepositoryImpl& impl_;
};

}  // namespace

Result<crypto::KeySlot> RepositoryImpl::seal_key_slot(const NewKey& key, std::uint32_t number) {
  return crypto::seal_slot(key, number, clock_.now().seconds, codecs_.keys()->master(),
                           superblock_.repository_id());
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

Result<format::Superblock> read_superblock_of(const std::string& path, bool trust_owner) {
  VARVE_TRY_ASSIGN(const auto files, repo::open_folder(path, trust_owner));
  VARVE_TRY_ASSIGN(const auto text, repo::read_superblock_text(*files, path));
  auto superblock = ingest::read_superblock(text);
  if (superblock) return superblock;
  return std::move(superblock).error().with_context(store::RepositoryPaths(path).superblock());
}

}  // namespace

Result<std::optional<EncryptionInfo>> read_encryption(const std::string& path, bool trust_owner) {
  VARVE_TRY_ASSIGN(const auto superblock, read_superblock_of(path, trust_owner));
  if (!superblock.encryption) return std::optional<EncryptionInfo>();
  return std::optional(repo::info_of(*superblock.encryption));
}

Result<void> check_key(const std::string& path, const UserKey& key, bool trust_owner) {
  VARVE_TRY_ASSIGN(const auto superblock, read_superblock_of(path, trust_owner));
  if (!superblock.encryption) {
    return Error(ErrorCode::kInvalid, path + " is not encrypted, and has no keys");
  }
  VARVE_TRY(crypto::open_slots(superblock.encryption->slots, key, superblock.repository_id));
  return {};
}

}  // namespace varve
