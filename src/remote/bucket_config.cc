// SPDX-License-Identifier: Apache-2.0
#include "remote/bucket_config.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/coding.h"
#include "remote/replica_state.h"

namespace varve::remote {

namespace {

// The share (1/4) of the writer's number for blocks of evicted files.
constexpr std::uint64_t kBlocksShare = 4;
constexpr std::string_view kTitle = "# The object store of this repository.\n";
constexpr std::size_t kBytesMax = 64U << 10;

std::array<std::pair<std::string_view, std::string BucketConfig::*>, 4> fields() {
  return {{{"place", &BucketConfig::place},
           {"endpoint", &BucketConfig::endpoint},
           {"region", &BucketConfig::region},
           {"volume-class", &BucketConfig::volume_class}}};
}

using ByteField = std::optional<std::uint64_t> BucketConfig::*;
std::array<std::pair<std::string_view, ByteField>, 2> byte_fields() {
  return {{{"cache", &BucketConfig::cache_bytes}, {"staging", &BucketConfig::staging_bytes}}};
}

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  std::uint64_t bytes = 0;
  const auto* const end = text.data() + text.size();
  const auto [at, failed] = std::from_chars(text.data(), end, bytes);
  if (failed != std::errc() || at != end) return std::nullopt;
  return bytes;
}

// A folder without the file would count as a local repository.
Result<void> check_unused(io::FileSystem& files, const std::string& root) {
  VARVE_TRY_ASSIGN(const bool is_repository, files.exists(root + "/varve.repo"));
  if (!is_repository) return {};
  VARVE_TRY_ASSIGN(const bool connecting, is_connecting(files, root));
  if (connecting) {
    return Error(ErrorCode::kNoRepository,
                 "the creation of " + root +
                     " was interrupted before the object store had it: `varve init "
                     "s3://BUCKET/PREFIX --local=" +
                     root + "` completes it, or remove the folder");
  }
  VARVE_TRY_ASSIGN(const bool has_any, has_state(files, root));
  if (!has_any) return {};
  return Error(ErrorCode::kCorrupt,
               root + "/" + kConfigName + " is missing, but " + root +
                   "/replica is there, so an object store has data of this repository. Put the "
                   "file back. Its lines are `place = s3://BUCKET/PREFIX`, `role = writer`, and "
                   "`endpoint = URL` unless the store is that of AWS");
}

}  // namespace

Result<void> check_volume_class(std::string_view storage_class) {
  constexpr std::size_t kMax = 64;
  const bool is_word = std::ranges::all_of(storage_class, [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
  if (!is_word || storage_class.size() > kMax) {
    return Error(ErrorCode::kInvalid,
                 "a storage class has capitals, digits and underscores, such as STANDARD_IA");
  }
  if (storage_class == "GLACIER" || storage_class == "DEEP_ARCHIVE") {
    return Error(ErrorCode::kInvalid,
                 "objects of the storage class " + std::string(storage_class) +
                     " cannot be read before hours have passed; use GLACIER_IR or STANDARD_IA");
  }
  return {};
}

std::uint64_t cache_bytes_of(const BucketConfig& config) {
  return config.cache_bytes.value_or(config.reads_only ? kReaderCacheBytes : kWriterCacheBytes);
}

std::uint64_t cached_file_bytes_of(const BucketConfig& config) {
  return cache_bytes_of(config) - cached_block_bytes_of(config);
}

std::uint64_t cached_block_bytes_of(const BucketConfig& config) {
  const auto bytes = cache_bytes_of(config);
  return config.reads_only ? bytes : bytes / kBlocksShare;
}

std::uint64_t staging_bytes_of(const BucketConfig& config) {
  return config.staging_bytes.value_or(kStagingBytes);
}

std::string encode_config(const BucketConfig& config) {
  std::string text(kTitle);
  for (const auto& [name, field] : fields()) {
    if ((config.*field).empty()) continue;
    text.append(name).append(" = ").append(config.*field).append("\n");
  }
  for (const auto& [name, field] : byte_fields()) {
    if (!(config.*field)) continue;
    text.append(name).append(" = ").append(std::to_string(*(config.*field))).append("\n");
  }
  text.append("role = ").append(config.reads_only ? "reader" : "writer").append("\n");
  return text;
}

Result<BucketConfig> decode_config(std::string_view text) {
  const auto invalid = [](const std::string& what) {
    return Error(ErrorCode::kInvalid, "the file `bucket` of the repository: " + what);
  };
  BucketConfig config;
  std::string role;
  while (!text.empty()) {
    const auto end = text.find('\n');
    if (end == std::string_view::npos) return invalid("its last line is incomplete");
    const auto line = text.substr(0, end);
    text.remove_prefix(end + 1);
    if (line.empty() || line.starts_with('#')) continue;
    const auto equals = line.find(" = ");
    if (equals == std::string_view::npos) return invalid("a line is not KEY = VALUE");
    const auto key = line.substr(0, equals);
    const auto value = line.substr(equals + 3);
    if (key == "role") role = value;
    for (const auto& [name, field] : byte_fields()) {
      if (key != name) continue;
      config.*field = parse_bytes(value);
      if (!(config.*field)) return invalid("`" + std::string(name) + "` is a number of bytes");
    }
    for (const auto& [name, field] : fields()) {
      if (key == name) config.*field = value;
    }
  }
  if (config.place.empty()) return invalid("it has no line `place = s3://BUCKET/PREFIX`");
  if (role != "reader" && role != "writer") return invalid("`role` is reader or writer");
  VARVE_TRY(check_volume_class(config.volume_class));
  config.reads_only = role == "reader";
  return config;
}

Result<void> note_connecting(io::FileSystem& files, const std::string& root) {
  VARVE_TRY_ASSIGN(const auto file,
                   files.open(root + "/" + kConnectingName, io::OpenMode::kReadWrite));
  return file->sync();
}

Result<void> note_connected(io::FileSystem& files, const std::string& root) {
  const auto path = root + "/" + kConnectingName;
  VARVE_TRY_ASSIGN(const bool exists, files.exists(path));
  return exists ? files.remove(path) : Result<void>();
}

Result<bool> is_connecting(io::FileSystem& files, const std::string& root) {
  VARVE_TRY_ASSIGN(const bool connected, files.exists(root + "/" + kConfigName));
  if (connected) return false;
  return files.exists(root + "/" + kConnectingName);
}

Result<std::optional<BucketConfig>> read_config(io::FileSystem& files, const std::string& root) {
  const auto path = root + "/" + kConfigName;
  VARVE_TRY_ASSIGN(const bool exists, files.exists(path));
  if (!exists) {
    VARVE_TRY(check_unused(files, root));
    return std::optional<BucketConfig>();
  }
  VARVE_TRY_ASSIGN(const auto text, files.read_file(path, kBytesMax));
  auto config = decode_config(text);
  if (!config) return std::move(config).error().with_context(path);
  return std::optional(*std::move(config));
}

Result<void> write_config(io::FileSystem& files, const std::string& root,
                          const BucketConfig& config) {
  return files.write_file_atomically(root, kConfigName, base::as_bytes(encode_config(config)));
}

}  // namespace varve::remote
