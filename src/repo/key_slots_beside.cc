// SPDX-License-Identifier: Apache-2.0
// The key slots of a repository opened for writing by another process.
#include <memory>
#include <string>
#include <utility>

#include "base/clock.h"
#include "format/superblock.h"
#include "ingest/parameters.h"
#include "repo/key_slots_editor.h"
#include "store/repository_paths.h"
#include "store/superblock_text.h"
#include "varve/keys.h"

namespace varve {

namespace repo {

namespace {

class KeySlotsBeside final : public KeySlotsEditor {
 public:
  KeySlotsBeside(format::Superblock superblock, std::shared_ptr<const crypto::KeyRing> keys,
                 AdoptKeys adopt)
      : superblock_(std::move(superblock)), keys_(std::move(keys)), adopt_(std::move(adopt)) {}

  [[nodiscard]] EncryptionInfo info() const override { return info_of(*superblock_.encryption); }
  [[nodiscard]] Result<void> close() override { return {}; }

 private:
  [[nodiscard]] Result<void> change(const KeyLinesChange& change) override {
    auto changed = superblock_;
    VARVE_TRY(change(*changed.encryption));
    ++changed.encryption->key_counter;
    VARVE_TRY(adopt_(format::encode_superblock(changed, keys_.get())));
    superblock_ = std::move(changed);
    return {};
  }
  [[nodiscard]] Result<crypto::KeySlot> seal(const NewKey& key, std::uint32_t number) override {
    return crypto::seal_slot(key, number, base::SystemClock().now().seconds, keys_->master(),
                             superblock_.repository_id);
  }

  format::Superblock superblock_;
  const std::shared_ptr<const crypto::KeyRing> keys_;
  const AdoptKeys adopt_;
};

}  // namespace

}  // namespace repo

Result<std::unique_ptr<KeySlots>> KeySlots::open_beside(const std::string& path,
                                                        const OpenOptions& options,
                                                        AdoptKeys adopt) {
  const store::RepositoryPaths paths(path);
  VARVE_TRY_ASSIGN(const auto files, store::open_folder(path, options.trust_owner));
  VARVE_TRY_ASSIGN(const auto text, store::read_superblock_text(*files, path));
  auto superblock = ingest::read_superblock(text);
  if (!superblock) return std::move(superblock).error().with_context(paths.superblock());
  auto keys = format::unlock_superblock(*superblock, text, options.key, options.encrypted_only);
  if (!keys) return std::move(keys).error().with_context(path);
  if (!*keys) return Error(ErrorCode::kInvalid, path + " is not encrypted, and has no keys");
  return std::unique_ptr<KeySlots>(std::make_unique<repo::KeySlotsBeside>(
      *std::move(superblock), *std::move(keys), std::move(adopt)));
}

}  // namespace varve
