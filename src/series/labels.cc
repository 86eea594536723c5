// SPDX-License-Identifier: Apache-2.0
#include "series/labels.h"

#include <fmt/core.h>

#include <map>
#include <utility>

#include "base/checksum.h"
#include "base/coding.h"
#include "base/log.h"
#include "catalog/clock_record.h"
#include "catalog/sequence_record.h"
#include "catalog/series_catalog.h"
#include "catalog/series_sequences.h"
#include "meta/schema.h"

namespace varve::series {

namespace {

using format::ManifestRecord;
using maintain::Labels;

// Updates may grow to the size of the labels before them plus kSlackBytes. The slack saves small
// labels from being rewritten as a whole every few changes.
constexpr std::uint64_t kSlackBytes = 4096;

std::uint64_t checksum_of(const std::map<std::string, std::string>& settings) {
  std::string all;
  base::ByteWriter w(all);
  for (const auto& [key, value] : settings) {
    w.sized_text(key);
    w.sized_text(value);
  }
  return base::checksum64(base::as_bytes(all));
}

// Returns whether each update of labels contains a setting, because the setting changes often. All
// other settings are in the labels only, and a change of such a setting rewrites the labels as a
// whole.
bool is_in_updates(std::string_view key) {
  return key == catalog::kClockSetting || key == catalog::kSequenceSetting ||
         key == catalog::kSeriesSequencesSetting;
}

// Returns the settings that every update would repeat.
Result<std::map<std::string, std::string>> settings_in(const meta::Txn& txn) {
  std::map<std::string, std::string> settings;
  VARVE_TRY(
      meta::for_each_prefix(txn, meta::catalog::kSettings, "",
                            [&](std::string_view key, std::string_view value) -> Result<bool> {
                              if (maintain::is_labelled_setting(key) && !is_in_updates(key)) {
                                settings.emplace(key, value);
                              }
                              return true;
                            }));
  return settings;
}

std::map<std::string, std::string> settings_in(const Labels& labels) {
  std::map<std::string, std::string> settings;
  for (const auto& record : labels.records) {
    if (record.what == ManifestRecord::kSetting && !is_in_updates(record.key)) {
      settings.emplace(record.key, record.value);
    }
  }
  if (!labels.catalog_id.empty()) settings.emplace(maintain::kCatalogIdSetting, labels.catalog_id);
  return settings;
}

// Adds the present records of a version, or the fact of its deletion.
Result<void> add_version(const meta::Txn& txn, SeriesId series, VersionNumber number,
                         std::vector<Labels::Record>& records) {
  const auto suffix = base::be32(static_cast<std::uint32_t>(number));
  VARVE_TRY_ASSIGN(const auto version, catalog::find_version(txn, series, number));
  if (!version || version->unfinished) {
    records.push_back({ManifestRecord::kRemoved, suffix, ""});
    return {};
  }
  const auto add = [&](meta::TableIndex table, ManifestRecord what) -> Result<void> {
    VARVE_TRY_ASSIGN(const auto value, txn.get(table, meta::version_key(series, number)));
    if (value) records.push_back({what, suffix, std::string(*value)});
    return {};
  };
  VARVE_TRY(add(meta::catalog::kVersions, ManifestRecord::kVersion));
  VARVE_TRY(add(meta::catalog::kRetention, ManifestRecord::kRetention));
  if (version->state != VersionState::kOpen) return {};
  return add(meta::catalog::kVersionChunks, ManifestRecord::kVersionChunks);
}

}  // namespace

// The commit is already done, so a failure is only logged. The next change, the end of the command
// (O20) and the next opening try again. Until then, a rebuilt catalog would lack the change.
bool LabelsWriter::note(const Result<void>& written) {
  left_ = !written;
  if (written) return true;
  parts_.host->left_behind();
  base::log(base::LogLevel::kWarning,
            fmt::format("the labels of series {} are not up to date: {}",
                        static_cast<std::uint32_t>(parts_.id), written.error().message()));
  return false;
}

bool LabelsWriter::change(const std::vector<VersionNumber>& changed) {
  const std::lock_guard lock(mutex_);
  const auto appended = append(changed);
  if (appended && *appended) return note({});
  return note(write_all());
}

bool LabelsWriter::rewrite() {
  const std::lock_guard lock(mutex_);
  return note(write_all());
}

Result<void> LabelsWriter::write_left() {
  const std::lock_guard lock(mutex_);
  if (!left_) return {};
  VARVE_TRY(parts_.with_reserve([&] { return write_all(); }));
  left_ = false;
  return {};
}

Result<void> LabelsWriter::write_all() {
  known_ = false;
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*parts_.catalog));
  VARVE_TRY_ASSIGN(const auto settings, settings_in(txn));
  VARVE_TRY_ASSIGN(const auto removed,
                   maintain::removed_versions(txn, *parts_.files, parts_.directory(), parts_.id));
  VARVE_TRY_ASSIGN(const auto labels,
                   maintain::encode_labels(txn, parts_.codecs->frames(), parts_.id,
                                           parts_.host->superblock(), {.removed = &removed}));
  // Once the labels have the sequence number, the name of a new folder must be durable too (O43).
  if (parts_.codecs->keys()) VARVE_TRY(parts_.files->make_durable_directory(parts_.directory()));
  VARVE_TRY(maintain::write_labels(*parts_.files, parts_.directory(), labels));
  parts_.metrics->labels.rewrites.add();
  parts_.metrics->labels.written_bytes.add(labels.size());
  base_bytes_ = end_ = labels.size();
  stamp_ = txn.id();
  settings_ = checksum_of(settings);
  known_ = true;
  return tell_sequence(txn);
}

Result<void> LabelsWriter::tell_sequence(const meta::Txn& txn) const {
  if (!parts_.codecs->keys()) return {};
  VARVE_TRY_ASSIGN(const auto sequence, catalog::find_sequence(txn));
  parts_.host->labelled(sequence);  // O43
  return {};
}

// The first change in a process reads the labels. The labels were up to date when the last writer
// closed the repository (O37), but may have lost their end since: a file truncated by another
// program to the length of an update still looks sound. A further update would hide the gap.
Result<bool> LabelsWriter::find_end(const meta::Txn& txn,
                                    const std::vector<VersionNumber>& changed) {
  const auto labels =
      maintain::read_labels(*parts_.files, parts_.codecs->frames(), parts_.directory(), parts_.id);
  if (!labels || !labels->header.grows || labels->torn || labels->header.stamp > txn.id()) {
    return false;
  }
  VARVE_TRY_ASSIGN(
      const bool complete,
      maintain::labels_agree_but(txn, parts_.id, parts_.host->superblock(), *labels, changed));
  if (!complete) return false;
  base_bytes_ = labels->base_bytes;
  end_ = labels->end;
  stamp_ = labels->header.stamp;
  settings_ = checksum_of(settings_in(*labels));
  known_ = true;
  return true;
}

Result<bool> LabelsWriter::append(const std::vector<VersionNumber>& changed) {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*parts_.catalog));
  if (!known_) {
    VARVE_TRY_ASSIGN(const bool found, find_end(txn, changed));
    if (!found) return false;
  }
  VARVE_TRY_ASSIGN(const auto settings, settings_in(txn));
  if (checksum_of(settings) != settings_) return false;
  maintain::LabelsUpdate update;
  update.series = parts_.id;
  update.stamp = txn.id();
  update.at = end_;
  VARVE_TRY_ASSIGN(const auto series, txn.get(meta::catalog::kSeries, meta::series_key(parts_.id)));
  if (!series) return false;
  update.records.push_back({ManifestRecord::kSeries, "", std::string(*series)});
  for (const auto number : changed) {
    VARVE_TRY(add_version(txn, parts_.id, number, update.records));
  }
  for (const auto key :
       {catalog::kClockSetting, catalog::kSequenceSetting, catalog::kSeriesSequencesSetting}) {
    VARVE_TRY_ASSIGN(const auto value, txn.get(meta::catalog::kSettings, key));
    if (value) {
      update.records.push_back({ManifestRecord::kSetting, std::string(key), std::string(*value)});
    }
  }
  std::uint64_t bytes = end_ - base_bytes_;
  for (const auto& record : update.records) bytes += record.key.size() + record.value.size();
  if (bytes > base_bytes_ + kSlackBytes) return false;
  known_ = false;  // Until the update is known to be whole.
  VARVE_TRY_ASSIGN(const auto end, maintain::append_labels(*parts_.files, parts_.codecs->frames(),
                                                           parts_.directory(), update));
  parts_.metrics->labels.appends.add();
  parts_.metrics->labels.written_bytes.add(end - end_);
  end_ = end;
  stamp_ = txn.id();
  known_ = true;
  VARVE_TRY(tell_sequence(txn));
  return true;
}

Result<bool> LabelsWriter::agree(const meta::Txn& txn, const Labels& labels) const {
  if (!labels.header.grows || labels.torn || !labels.notes_removed) return false;
  return maintain::labels_agree(txn, parts_.id, parts_.host->superblock(), labels);
}

std::uint64_t LabelsWriter::stamp() {
  const std::lock_guard lock(mutex_);
  if (known_) return stamp_;
  const auto labels =
      maintain::read_labels(*parts_.files, parts_.codecs->frames(), parts_.directory(), parts_.id);
  return labels ? labels->header.stamp : 0;
}

}  // namespace varve::series
