// SPDX-License-Identifier: Apache-2.0
// Opens the key slots of encrypted repositories.
#include <memory>
#include <utility>

#include "crypto/key_slots.h"
#include "format/superblock.h"
#include "ingest/parameters.h"
#include "repo/key_ring_editor.h"
#include "repo/key_slots_editor.h"
#include "repo/repository_impl.h"
#include "repo/superblock_file.h"
#include "store/repository_paths.h"
#include "store/superblock_text.h"
#include "varve/keys.h"

namespace varve {

namespace repo {

namespace {

/// Implements KeySlots on an open repository.
class OpenKeySlots final : public KeySlotsEditor {
 public:
  OpenKeySlots(std::unique_ptr<Repository> repository, KeyRingEditor& keys)
      : repository_(std::move(repository)), keys_(keys) {}

  [[nodiscard]] EncryptionInfo info() const override { return keys_.info(); }
  [[nodiscard]] Result<void> close() override { return repository_->close(); }

 private:
  [[nodiscard]] Result<void> change(const KeyLinesChange& change) override {
    return keys_.change(change);
  }
  [[nodiscard]] Result<crypto::KeySlot> seal(const NewKey& key, std::uint32_t number) override {
    return keys_.seal_slot(key, number);
  }

  std::unique_ptr<Repository> repository_;
  KeyRingEditor& keys_;  // Of the repository.
};

}  // namespace

Result<std::unique_ptr<KeySlots>> open_key_slots(const std::string& path,
                                                 const OpenOptions& options) {
  VARVE_TRY_ASSIGN(auto repository, RepositoryImpl::open_itself(path, options));
  auto& keys = repository->key_ring();
  if (!keys.is_encrypted()) {
    VARVE_TRY(repository->close());
    return Error(ErrorCode::kInvalid, path + " is not encrypted, and has no keys");
  }
  return std::unique_ptr<KeySlots>(std::make_unique<OpenKeySlots>(std::move(repository), keys));
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
  VARVE_TRY_ASSIGN(const auto files, store::open_folder(path, trust_owner));
  VARVE_TRY_ASSIGN(auto text, store::read_superblock_text(*files, path));
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
