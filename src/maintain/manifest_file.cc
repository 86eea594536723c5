// SPDX-License-Identifier: Apache-2.0
#include "maintain/manifest_file.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/coding.h"
#include "base/log.h"
#include "base/padding.h"
#include "catalog/birth_table.h"
#include "catalog/clock_record.h"
#include "catalog/disk_record.h"
#include "catalog/location_table.h"
#include "catalog/object_store.h"
#include "catalog/series_catalog.h"
#include "meta/schema.h"
#include "store/repository_names.h"

namespace varve::maintain {

using format::ManifestRecord;

namespace {

constexpr std::string_view kSuffix = ".man";

std::string version_suffix(VersionNumber number) {
  return base::be32(static_cast<std::uint32_t>(number));
}

format::ManifestHeader identity(format::ManifestKind kind, SeriesId series, VersionNumber number) {
  format::ManifestHeader header;
  header.kind = kind;
  header.series = series;
  header.number = number;
  return header;
}

// Adds the version's record in a table, if there is one.
Result<void> add_of_version(const meta::Txn& txn, meta::TableIndex table, ManifestRecord what,
                            SeriesId series, VersionNumber number,
                            format::ManifestEncoder& encoder) {
  VARVE_TRY_ASSIGN(const auto value, txn.get(table, meta::version_key(series, number)));
  if (!value) return {};
  return encoder.add(what, version_suffix(number), *value);
}

Result<void> add_series(const meta::Txn& txn, SeriesId series, format::ManifestEncoder& encoder) {
  VARVE_TRY_ASSIGN(const auto value, txn.get(meta::catalog::kSeries, meta::series_key(series)));
  if (!value) return Error(ErrorCode::kNotFound, "no such series");
  return encoder.add(ManifestRecord::kSeries, "", *value);
}

}  // namespace

std::optional<SeriesId> series_of_folder(std::string_view name) {
  const auto number = base::parse_hex32(name);
  // The number 0 stands for the pool.
  if (!number || *number == 0) return std::nullopt;
  return static_cast<SeriesId>(*number);
}

Result<std::vector<SeriesId>> series_folders(io::FileSystem& files, const std::string& path) {
  std::vector<SeriesId> all;
  VARVE_TRY_ASSIGN(const bool present, files.exists(path + "/series"));
  if (!present) return all;
  VARVE_TRY_ASSIGN(const auto names, files.list(path + "/series"));
  for (const auto& name : names) {
    const auto series = series_of_folder(name);
    if (!series) continue;
    const auto inside = files.list(path + "/series/" + name);  // May be a user's file.
    const bool is_file = !inside && inside.error().code() == ErrorCode::kNotDirectory;
    if (!is_file) all.push_back(*series);
  }
  std::sort(all.begin(), all.end());
  return all;
}

std::string manifest_path(const std::string& series_directory, VersionNumber number) {
  return fmt::format("{}/{}/{:08x}{}", series_directory, kManifestFolder,
                     static_cast<std::uint32_t>(number), kSuffix);
}

std::optional<std::uint32_t> number_of_manifest(std::string_view name) {
  if (!name.ends_with(kSuffix)) return std::nullopt;
  const auto number = base::parse_hex32(name.substr(0, name.size() - kSuffix.size()));
  return number && *number != 0 ? number : std::nullopt;
}

Result<std::vector<ManifestFile>> list_manifests(io::FileSystem& files,
                                                 const std::string& series_directory) {
  std::vector<ManifestFile> found;
  const auto folder = series_directory + "/" + kManifestFolder;
  VARVE_TRY_ASSIGN(const bool present, files.exists(folder));
  if (!present) return found;
  VARVE_TRY_ASSIGN(const auto names, files.list(folder));
  for (const auto& name : names) {
    const auto number = number_of_manifest(name);
    if (!number) continue;
    const auto version = static_cast<VersionNumber>(*number);
    const auto bytes = files.tree_bytes(manifest_path(series_directory, version));
    if (!bytes && bytes.error().code() == ErrorCode::kNotFound) continue;  // Just removed.
    if (!bytes) return bytes.error();
    found.push_back({version, *bytes});
  }
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.number < b.number; });
  return found;
}

ManifestWriter::ManifestWriter(io::FileSystem& files, const format::FrameCodec& codec,
                               const std::string& series_directory, SeriesId series,
                               VersionNumber number)
    : files_(files),
      series_directory_(series_directory),
      series_(series),
      number_(number),
      encoder_(identity(format::ManifestKind::kVersion, series, number), codec,
               format::kManifestCompression,
               [this](std::string_view bytes) { return append(bytes); }) {}

Result<std::unique_ptr<ManifestWriter>> ManifestWriter::begin(io::FileSystem& files,
                                                              const format::FrameCodec& codec,
                                                              const std::string& series_directory,
                                                              SeriesId series,
                                                              VersionNumber number) {
  std::unique_ptr<ManifestWriter> writer(
      new ManifestWriter(files, codec, series_directory, series, number));
  const auto folder = series_directory + "/" + kManifestFolder;
  VARVE_TRY_ASSIGN(const bool present, files.exists(folder));
  if (!present) {
    VARVE_TRY(files.make_directory(series_directory));
    VARVE_TRY(files.make_directory(folder));
    VARVE_TRY(files.sync_directory(series_directory));
  }
  const auto path = manifest_path(series_directory, number) + std::string(store::kTemporarySuffix);
  VARVE_TRY_ASSIGN(writer->file_, files.open(path, io::OpenMode::kReadWrite));
  VARVE_TRY(writer->file_->truncate(0));  // A crash may have left a longer file.
  return writer;
}

ManifestWriter::~ManifestWriter() {
  if (!file_) return;
  file_.reset();
  static_cast<void>(files_.remove(manifest_path(series_directory_, number_) +
                                  std::string(store::kTemporarySuffix)));
}

Result<void> ManifestWriter::append(std::string_view bytes) {
  VARVE_TRY(file_->write_at(end_, base::as_bytes(bytes)));
  end_ += bytes.size();
  return {};
}

Result<void> ManifestWriter::add_table(const meta::Txn& txn, meta::TableIndex table,
                                       ManifestRecord what, std::uint64_t count, bool tolerant) {
  const auto first = std::uint64_t{static_cast<std::uint32_t>(number_)} << 32;
  const auto prefix = meta::series_key(series_);
  VARVE_TRY_ASSIGN(auto cursor, meta::Cursor::open(txn, table));
  auto at = cursor.seek(meta::object_key(series_, first));
  while (true) {
    // A value with a wrong checksum stops the cursor; the values after it are left out.
    if (!at && tolerant) {
      base::log(base::LogLevel::kWarning, "manifest: " + at.error().message());
      return {};
    }
    if (!at) return std::move(at).error();
    const auto& entry = *at;
    if (!entry || !entry->key.starts_with(prefix) || entry->key.size() != 12) return {};
    const auto id = base::load_be64(entry->key.substr(4));
    if (id - first >= count) return {};
    const auto raw =
        catalog::decode_object(format::NodeId{id}, entry->value, catalog::object_bytes_max(table));
    if (raw) {
      VARVE_TRY(encoder_.add(what, entry->key.substr(4), *raw));
    } else if (tolerant) {
      base::log(base::LogLevel::kWarning, "manifest: " + raw.error().message());
    } else {
      return raw.error();
    }
    at = cursor.next();
  }
}

Result<void> ManifestWriter::add_objects(const meta::Txn& txn, std::uint64_t count, bool tolerant) {
  VARVE_TRY(add_table(txn, meta::catalog::kNodes, ManifestRecord::kNode, count, tolerant));
  return add_table(txn, meta::catalog::kRecipes, ManifestRecord::kRecipe, count, tolerant);
}

Result<void> ManifestWriter::add_records(const meta::Txn& txn) {
  VARVE_TRY(add_series(txn, series_, encoder_));
  const auto add = [&](meta::TableIndex table, ManifestRecord what) {
    return add_of_version(txn, table, what, series_, number_, encoder_);
  };
  VARVE_TRY(add(meta::catalog::kVersions, ManifestRecord::kVersion));
  VARVE_TRY(add(meta::catalog::kVersionChunks, ManifestRecord::kVersionChunks));
  VARVE_TRY(add(meta::catalog::kVersionLinks, ManifestRecord::kVersionLinks));
  VARVE_TRY(add_births(txn));
  return add(meta::catalog::kRetention, ManifestRecord::kRetention);
}

Result<void> ManifestWriter::add_births(const meta::Txn& txn) {
  VARVE_TRY_ASSIGN(const auto births, catalog::births_named_by(txn, series_, number_));
  if (births.empty()) return {};
  return encoder_.add(ManifestRecord::kBirths, version_suffix(number_),
                      format::encode_births(births));
}

Result<void> ManifestWriter::sync() { return file_->sync(); }

Result<void> ManifestWriter::commit(const meta::Txn& txn) {
  VARVE_TRY(add_records(txn));
  VARVE_TRY_ASSIGN(const auto header, encoder_.finish());
  VARVE_TRY(file_->write_at(0, base::as_bytes(format::encode_manifest_header(header))));
  const auto padded = base::padded_file_bytes(end_, file_->append_unit());
  if (padded != end_) VARVE_TRY(file_->truncate(padded));
  VARVE_TRY(file_->sync());
  const auto path = manifest_path(series_directory_, number_);
  VARVE_TRY(files_.rename(path + std::string(store::kTemporarySuffix), path));
  file_.reset();
  return files_.sync_directory(series_directory_ + "/" + kManifestFolder);
}

}  // namespace varve::maintain
