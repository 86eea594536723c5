// SPDX-License-Identifier: Apache-2.0
// The keys of one encrypted repository. docs/ENCRYPTION.md.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "crypto/aead.h"
#include "crypto/hedged_aead.h"
#include "crypto/hmac.h"
#include "crypto/nonce_hedge.h"
#include "crypto/secret_key.h"
#include "varve/result.h"

namespace varve::crypto {

/// The uses of keys. Each purpose has a separate key, so texts of two purposes never share a key.
enum class Purpose : std::uint8_t {
  kContainers,  ///< Headers and frames of containers; each container derives a key.
  kCatalog,     ///< Values of the catalog.
  kOverlay,     ///< Values of an open version's overlay; each overlay derives a key.
  kNames,       ///< Names in keys of the catalog and of overlays, by HMAC.
  kFiles,       ///< Files read and written as sealed blocks; each file derives a key.
  kStaging,     ///< Contents of open versions; each file derives a key.
  kSlots,       ///< Authentication of the key slots.
  kChunker,     ///< Tables of the keyed chunkers.
  kHeads,       ///< Authentication of the heads in an object store.
};

/// The keys of one repository, derived from its master key. Immutable and thread-safe. A plain
/// repository has a null pointer instead.
class KeyRing {
 public:
  /// `repository_id` is the text in the superblock. Errors: kIo without memory.
  [[nodiscard]] static Result<std::shared_ptr<const KeyRing>> make(SecretKey master,
                                                                   std::string repository_id,
                                                                   Cipher cipher);

  [[nodiscard]] Cipher cipher() const { return cipher_; }
  [[nodiscard]] const std::string& repository_id() const { return repository_id_; }
  [[nodiscard]] const SecretKey& master() const { return master_; }
  /// Returns the key of a purpose.
  [[nodiscard]] const SecretKey& key(Purpose purpose) const;
  /// Returns the HMAC under the key of kNames.
  [[nodiscard]] const Hmac& names() const { return *names_; }
  /// Returns the source of nonces and salts.
  [[nodiscard]] const NonceHedge& nonces() const { return *nonces_; }
  /// Returns the cipher under the key that HKDF derives from the purpose's key and a salt. The
  /// purpose is not kContainers. Errors: kIo without memory.
  [[nodiscard]] Result<HedgedAead> salted(Purpose purpose, const Salt& salt) const;
  /// Returns the cipher of the container with the given salt; the cipher's nonces are counted.
  /// Errors: kIo without memory.
  [[nodiscard]] Result<Aead> of_container(const Salt& salt) const;
  /// Returns the cipher under another key of the repository.
  [[nodiscard]] HedgedAead hedged(SecretKey key) const;

 private:
  KeyRing(SecretKey master, std::string repository_id, Cipher cipher)
      : master_(std::move(master)), repository_id_(std::move(repository_id)), cipher_(cipher) {}

  SecretKey master_;
  std::string repository_id_;
  Cipher cipher_;
  std::vector<SecretKey> keys_;  // By purpose.
  std::optional<Hmac> names_;    // Always set, as nonces_ is.
  std::optional<NonceHedge> nonces_;
};

}  // namespace varve::crypto
