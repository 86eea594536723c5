// SPDX-License-Identifier: Apache-2.0
// The superblock `varve.repo`: readable text, `key = value` lines, checksum last.
// docs/FORMAT.md §2.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "crypto/key_ring.h"
#include "crypto/key_slots.h"
#include "varve/encryption.h"
#include "varve/options.h"
#include "varve/result.h"

namespace varve::format {

inline constexpr std::uint32_t kFormatVersion = 1;

/// The lines of an encrypted repository. docs/FORMAT.md §14.1.
struct KeyLines {
  crypto::Cipher cipher = crypto::Cipher::kAes256Gcm;
  std::uint32_t key_counter = 0;       ///< Number of changes of the slots.
  std::vector<crypto::KeySlot> slots;  ///< Ascending by number; empty in a copy for labels.
};

/// Maximum size of the text, in bytes.
inline constexpr std::size_t kSuperblockBytesMax = 64U << 10;

struct Superblock {
  std::uint32_t format_version = kFormatVersion;
  std::string repository_id;  ///< 32 hexadecimal digits, random.
  RepositoryParameters parameters;
  /// True if `features_required` has the name `pool`: a series or the default for new series may
  /// have settings that not every version of Varve knows.
  bool needs_pool = false;
  /// True if `features_required` has the name `pool-aliases`: the pool may have aliases.
  bool needs_aliases = false;
  /// True if `features_required` has the name `marks`: births may have marks, and records of
  /// containers may have checksums.
  bool needs_marks = false;
  /// True if `features_required` has the name `delta`: frames of volumes may have prefixes.
  bool needs_delta = false;
  /// True if `features_required` has the name `label-parts`: the labels in the object store may be
  /// in parts.
  bool needs_label_parts = false;
  /// Set if `features_required` has the name `encryption`.
  std::optional<KeyLines> encryption;
  /// Lines with keys unknown to this program, preserved when the file is rewritten.
  std::string information;
};

/// Encodes a superblock. `keys` authenticate the text of an encrypted repository. Without keys, the
/// text is the copy for labels, without the key slots.
[[nodiscard]] std::string encode_superblock(const Superblock& superblock,
                                            const crypto::KeyRing* keys = nullptr);
/// Decodes a superblock. Checks the form of every field and the compression;
/// ingest::read_superblock() also checks the chunker and the chunk sizes.
/// Errors: kCorrupt (truncated, checksum, malformed); kUnsupported (newer version, unknown profile,
/// feature or codec). The message tells the user how to proceed.
[[nodiscard]] Result<Superblock> decode_superblock(std::string_view text);

/// Returns the keys of a repository, or null for a plain repository. `text` is the text of
/// `superblock`. Calls `source` for an encrypted repository only.
/// Errors: kWrongKey without a key, for a key that opens no slot, or for a plain repository if
/// `encrypted_only`; kCorrupt if the text was changed without the keys; the errors of `source`.
[[nodiscard]] Result<std::shared_ptr<const crypto::KeyRing>> unlock_superblock(
    const Superblock& superblock, std::string_view text, const KeySource& source,
    bool encrypted_only);
/// Checks that a program with the keys wrote the text. Errors: kCorrupt.
[[nodiscard]] Result<void> authenticate_superblock(std::string_view text,
                                                   const crypto::KeyRing& keys);

/// Returns the error of a superblock whose parameters are refused with `error`: kUnsupported stays,
/// any other code becomes kCorrupt. The message tells the user how to proceed.
[[nodiscard]] Error superblock_error(const Error& error);

}  // namespace varve::format
