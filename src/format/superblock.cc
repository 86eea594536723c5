// SPDX-License-Identifier: Apache-2.0
#include "format/superblock.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>

#include "base/checksum.h"
#include "base/coding.h"
#include "crypto/authentic.h"
#include "format/compression.h"
#include "format/container.h"
#include "format/key_slot_text.h"
#include "varve/copy_name.h"

namespace varve::format {

namespace {

constexpr std::string_view kFirstLine =
    "# Varve repository. Do not edit: the last line is a checksum.\n";
constexpr std::string_view kNoFeatures = "none";
constexpr std::string_view kPoolFeature = "pool";
constexpr std::string_view kAliasesFeature = "pool-aliases";
constexpr std::string_view kMarksFeature = "marks";
constexpr std::string_view kDeltaFeature = "delta";
constexpr std::string_view kLabelPartsFeature = "label-parts";
constexpr std::string_view kEncryptionFeature = "encryption";
constexpr std::array<std::string_view, 9> kKeys = {
    "format_version",  "repository_id",   "profile",     "chunker",          "chunk_bytes_min",
    "chunk_bytes_avg", "chunk_bytes_max", "compression", "features_required"};
constexpr std::string_view kCipherKey = "encryption";
constexpr std::string_view kCounterKey = "key_counter";
constexpr std::string_view kSlotKeys = "key_slot_";
constexpr std::string_view kAuthenticationKey = "authentication = ";
constexpr std::string_view kChecksumKey = "checksum = ";
constexpr std::size_t kChecksumLineBytes = kChecksumKey.size() + 16 + 1;
constexpr std::size_t kRepositoryIdDigits = 32;

using Fields = std::map<std::string_view, std::string_view>;

Error damaged_superblock(const std::string& what) {
  return {
      ErrorCode::kCorrupt,
      "varve.repo: " + what +
          "; `varve repair` writes it again from varve.keys or labels that are whole; otherwise "
          "restore this file from a copy of the repository"};
}

Error unsupported(const std::string& what) {
  return {ErrorCode::kUnsupported, "varve.repo: " + what + "; use a newer Varve"};
}

std::string checksum_line(std::string_view body) {
  return fmt::format("{}{:016x}\n", kChecksumKey, base::checksum64(base::as_bytes(body)));
}

// Parses the lines between the first and the last line, after the checksum was verified.
Result<Fields> parse_fields(std::string_view text) {
  Fields fields;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    const std::size_t equals = line.find(" = ");
    if (end == std::string_view::npos || equals == std::string_view::npos) {
      return damaged_superblock("a line is not `key = value`");
    }
    if (!fields.emplace(line.substr(0, equals), line.substr(equals + 3)).second) {
      return damaged_superblock("a key occurs twice");
    }
    text.remove_prefix(end + 1);
  }
  return fields;
}

Result<std::string> text_field(const Fields& fields, std::string_view key) {
  const auto field = fields.find(key);
  if (field == fields.end()) return damaged_superblock(fmt::format("`{}` is missing", key));
  return std::string(field->second);
}

Result<std::uint32_t> number_of(std::string_view text, std::string_view key) {
  std::uint32_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) {
    return damaged_superblock(fmt::format("`{}` is not a number", key));
  }
  return value;
}

Result<std::uint32_t> number_field(const Fields& fields, std::string_view key) {
  VARVE_TRY_ASSIGN(const std::string text, text_field(fields, key));
  return number_of(text, key);
}

// Reads "none" or "zstd:LEVEL". A superblock gives the level exactly if the method has levels.
Result<void> read_compression(std::string_view text, RepositoryParameters& parameters) {
  const std::size_t colon = text.find(':');
  const bool has_level = colon != std::string_view::npos;
  const auto method = parse_compression(text.substr(0, colon));
  if (!method) return superblock_error(method.error());
  if (has_level != (method->level != 0))
    return unsupported(fmt::format("unknown codec `{}`", text));
  const auto compression = parse_compression(text);
  if (!compression) return superblock_error(compression.error());
  parameters.codec = compression->codec;
  if (compression->level != 0) parameters.zstd_level = compression->level;
  return {};
}

// Returns the placement with a name, if this build can make series with it.
Result<Placement> known_placement(std::string_view name) {
  const auto placement = parse_placement(name);
  if (!placement) return unsupported(placement.error().message());
  if (const auto made = check_placement(*placement); !made) {
    return unsupported(made.error().message());
  }
  return *placement;
}

// Reads "none", or names separated by spaces.
Result<void> read_features(std::string_view names, Superblock& superblock) {
  if (names == kNoFeatures) return {};
  std::string unknown;
  while (true) {
    const std::size_t space = names.find(' ');
    const std::string_view name = names.substr(0, space);
    const bool is_repeated = (name == kEncryptionFeature && superblock.encryption) ||
                             (name == kPoolFeature && superblock.needs_pool) ||
                             (name == kAliasesFeature && superblock.needs_aliases) ||
                             (name == kMarksFeature && superblock.needs_marks) ||
                             (name == kDeltaFeature && superblock.needs_delta) ||
                             (name == kLabelPartsFeature && superblock.needs_label_parts);
    if (name.empty() || is_repeated) {
      return damaged_superblock("`features_required` is not a list of names");
    }
    if (name == kPoolFeature) {
      superblock.needs_pool = true;
    } else if (name == kAliasesFeature) {
      superblock.needs_aliases = true;
    } else if (name == kMarksFeature) {
      superblock.needs_marks = true;
    } else if (name == kDeltaFeature) {
      superblock.needs_delta = true;
    } else if (name == kLabelPartsFeature) {
      superblock.needs_label_parts = true;
    } else if (name == kEncryptionFeature) {
      superblock.encryption.emplace();
    } else {
      unknown += (unknown.empty() ? "" : " ") + std::string(name);
    }
    if (space == std::string_view::npos) break;
    names.remove_prefix(space + 1);
  }
  if (unknown.empty()) return {};
  return unsupported(fmt::format(
      "the repository needs the features `{}`, which this program does not know", unknown));
}

std::string features_text(const Superblock& superblock) {
  std::string names;
  const auto add = [&](bool is_needed, std::string_view name) {
    if (is_needed) names += (names.empty() ? "" : " ") + std::string(name);
  };
  add(superblock.needs_pool, kPoolFeature);
  add(superblock.needs_aliases, kAliasesFeature);
  add(superblock.needs_marks, kMarksFeature);
  add(superblock.needs_delta, kDeltaFeature);
  add(superblock.needs_label_parts, kLabelPartsFeature);
  add(superblock.encryption.has_value(), kEncryptionFeature);
  return names.empty() ? std::string(kNoFeatures) : names;
}

// Returns the line with the MAC of all lines before.
std::string authentication_line(std::string_view body, const crypto::KeyRing& keys) {
  const auto mac = crypto::hmac_sha256(keys.key(crypto::Purpose::kSlots), base::as_bytes(body));
  return fmt::format("{}{}\n", kAuthenticationKey, hex_text(mac));
}

bool is_encryption_key(std::string_view key) {
  return key == kCipherKey || key == kCounterKey || key.starts_with(kSlotKeys) ||
         key == kAuthenticationKey.substr(0, kAuthenticationKey.find(' '));
}

// Reads the lines of encrypted repositories.
Result<void> read_key_lines(const Fields& fields, KeyLines& lines) {
  VARVE_TRY_ASSIGN(const std::string name, text_field(fields, kCipherKey));
  const auto cipher = parse_cipher(name);
  if (!cipher) return unsupported(fmt::format("unknown cipher `{}`", name));
  lines.cipher = *cipher;
  VARVE_TRY_ASSIGN(lines.key_counter, number_field(fields, kCounterKey));
  for (const auto& [key, value] : fields) {
    if (!key.starts_with(kSlotKeys)) continue;
    VARVE_TRY_ASSIGN(const auto number, number_of(key.substr(kSlotKeys.size()), key));
    auto slot = decode_key_slot(number, value);
    const bool is_canonical = key == fmt::format("{}{}", kSlotKeys, number);
    if (!slot || !is_canonical || lines.slots.size() == kKeySlotsMax) {
      return damaged_superblock(fmt::format("`{}` is not a key slot", key));
    }
    lines.slots.push_back(*std::move(slot));
  }
  std::ranges::sort(lines.slots, {}, [](const auto& slot) { return slot.info.number; });
  return {};
}

}  // namespace

Error superblock_error(const Error& error) {
  return error.code() == ErrorCode::kUnsupported ? unsupported(error.message())
                                                 : damaged_superblock(error.message());
}

std::string encode_superblock(const Superblock& superblock, const crypto::KeyRing* keys) {
  const RepositoryParameters& p = superblock.parameters;
  std::string text(kFirstLine);
  const auto add = [&](std::string_view key, const auto& value) {
    text += fmt::format("{} = {}\n", key, value);
  };
  add("format_version", superblock.format_version);
  add("repository_id", superblock.repository_id);
  add("profile", placement_name(p.placement));
  add("chunker", p.chunker);
  add("chunk_bytes_min", p.chunk_bytes_min);
  add("chunk_bytes_avg", p.chunk_bytes_avg);
  add("chunk_bytes_max", p.chunk_bytes_max);
  add("compression", compression_text(compression_of(p)));
  add("features_required", features_text(superblock));
  if (superblock.encryption) {
    add(kCipherKey, cipher_name(superblock.encryption->cipher));
    add(kCounterKey, superblock.encryption->key_counter);
  }
  if (superblock.encryption && keys != nullptr) {
    for (const auto& slot : superblock.encryption->slots) {
      add(fmt::format("{}{}", kSlotKeys, slot.info.number), encode_key_slot(slot));
    }
  }
  text += superblock.information;
  if (superblock.encryption && keys != nullptr) text += authentication_line(text, *keys);
  return text + checksum_line(text);
}

Result<Superblock> decode_superblock(std::string_view text) {
  if (text.size() > kSuperblockBytesMax || !text.starts_with(kFirstLine)) {
    return damaged_superblock(
        "this is not the superblock of a Varve repository, or it is cut short");
  }
  if (text.size() < kFirstLine.size() + kChecksumLineBytes)
    return damaged_superblock("it is cut short");
  const std::string_view body = text.substr(0, text.size() - kChecksumLineBytes);
  const std::string_view last = text.substr(body.size());
  if (!body.ends_with('\n') || !last.starts_with(kChecksumKey) || !last.ends_with('\n')) {
    return damaged_superblock("its last line is not a checksum: the file is cut short");
  }
  if (last != checksum_line(body)) {
    return damaged_superblock("it does not match its checksum: it was edited or is damaged");
  }
  VARVE_TRY_ASSIGN(const Fields fields, parse_fields(body.substr(kFirstLine.size())));

  Superblock superblock;
  VARVE_TRY_ASSIGN(superblock.format_version, number_field(fields, "format_version"));
  if (superblock.format_version != kFormatVersion) {
    return unsupported(
        fmt::format("the repository has format {}, but this program knows only format {}",
                    superblock.format_version, kFormatVersion));
  }
  VARVE_TRY_ASSIGN(const std::string features, text_field(fields, "features_required"));
  VARVE_TRY(read_features(features, superblock));
  VARVE_TRY_ASSIGN(const std::string placement, text_field(fields, "profile"));
  VARVE_TRY_ASSIGN(superblock.parameters.placement, known_placement(placement));
  VARVE_TRY_ASSIGN(superblock.repository_id, text_field(fields, "repository_id"));
  if (!is_repository_id(superblock.repository_id)) {
    return damaged_superblock("`repository_id` is not 32 hexadecimal digits");
  }
  RepositoryParameters& p = superblock.parameters;
  VARVE_TRY_ASSIGN(p.chunker, text_field(fields, "chunker"));
  VARVE_TRY_ASSIGN(p.chunk_bytes_min, number_field(fields, "chunk_bytes_min"));
  VARVE_TRY_ASSIGN(p.chunk_bytes_avg, number_field(fields, "chunk_bytes_avg"));
  VARVE_TRY_ASSIGN(p.chunk_bytes_max, number_field(fields, "chunk_bytes_max"));
  VARVE_TRY_ASSIGN(const std::string compression, text_field(fields, "compression"));
  VARVE_TRY(read_compression(compression, p));
  if (superblock.encryption) VARVE_TRY(read_key_lines(fields, *superblock.encryption));
  for (const auto& [key, value] : fields) {
    if (std::ranges::find(kKeys, key) != kKeys.end()) continue;
    if (superblock.encryption && is_encryption_key(key)) continue;
    superblock.information += fmt::format("{} = {}\n", key, value);
  }
  return superblock;
}

Result<void> authenticate_superblock(std::string_view text, const crypto::KeyRing& keys) {
  const std::string_view signed_text = text.substr(0, text.size() - kChecksumLineBytes);
  const auto line = signed_text.rfind('\n', signed_text.size() - 2) + 1;
  const auto expected = authentication_line(signed_text.substr(0, line), keys);
  if (crypto::is_authentic(base::as_bytes(signed_text.substr(line)), base::as_bytes(expected))) {
    return {};
  }
  return damaged_superblock("a program without the keys of the repository has changed it");
}

Result<std::shared_ptr<const crypto::KeyRing>> unlock_superblock(const Superblock& superblock,
                                                                 std::string_view text,
                                                                 const KeySource& source,
                                                                 bool encrypted_only) {
  using Keys = std::shared_ptr<const crypto::KeyRing>;
  if (!superblock.encryption && encrypted_only) {
    return Error(ErrorCode::kWrongKey,
                 "a key is given, but the repository is plain: it would store new data in the "
                 "clear. Give no key, unless this should be an encrypted repository");
  }
  if (!superblock.encryption) return Keys();
  if (!source) {
    return Error(ErrorCode::kWrongKey,
                 "the repository is encrypted; give its key with --passphrase-file, --key-file or "
                 "--key-command");
  }
  VARVE_TRY_ASSIGN(const auto key, source());
  VARVE_TRY_ASSIGN(auto master,
                   crypto::open_slots(superblock.encryption->slots, key, superblock.repository_id));
  VARVE_TRY_ASSIGN(auto keys, crypto::KeyRing::make(std::move(master), superblock.repository_id,
                                                    superblock.encryption->cipher));
  VARVE_TRY(authenticate_superblock(text, *keys));
  return keys;
}

}  // namespace varve::format

bool varve::is_repository_id(std::string_view text) {
  return text.size() == format::kRepositoryIdDigits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}
