// SPDX-License-Identifier: Apache-2.0
#include "maintain/series_file_checks.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>
#include <utility>

#include "format/beside.h"
#include "maintain/deletion_notes.h"
#include "maintain/manifest_file.h"
#include "store/repository_names.h"
#include "varve/version_name.h"

namespace varve::maintain {

Result<void> check_labels(const CheckScope& scope, CheckFindings& findings,
                          const std::vector<catalog::SeriesRecord>& all) {
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(scope.catalog));
    VARVE_TRY_ASSIGN(const auto notes, find_damaged_notes(txn));
    for (const auto& note : notes) {
      // Not a fault of the whole catalog, which would be rebuilt.
      findings.damage(scope.catalog_path() + "/data.mdb",
                      "the note of the last deletion in the series " + note.name +
                          " (no version is touched: `varve repair` removes the note)");
    }
  }
  // A writer may be between a commit and the write of the labels, so the check tries several times.
  constexpr int kTriesMax = 20;
  constexpr std::chrono::milliseconds kWait(20);
  std::vector<SeriesId> left;
  for (const auto& series : all) left.push_back(series.id);
  for (int tries = 1;; ++tries) {
    std::vector<SeriesId> differ;
    for (const auto id : left) {
      const auto labels =
          read_labels(scope.files, scope.codecs.frames(), scope.stores.folder_of(id), id);
      if (!labels) continue;  // Another part of the check reports the labels.
      VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(scope.catalog));
      const auto agree = sealed_labels_agree(txn, id, *labels);
      if (!agree && agree.error().code() == ErrorCode::kNotFound) continue;  // Just removed.
      if (labels->torn || (agree && !*agree)) differ.push_back(id);
    }
    left = std::move(differ);
    if (left.empty() || tries == kTriesMax || scope.options.stop.stop_requested()) break;
    std::this_thread::sleep_for(kWait);
  }
  const bool is_damage =
      !left.empty() && scope.helpers.labels_are_complete && scope.helpers.labels_are_complete();
  for (const auto id : left) {
    auto path = scope.stores.folder_of(id) + "/" + kLabelsName;
    if (is_damage) {
      findings.damage(
          std::move(path),
          "the labels lack changes that the catalog has, so a rebuilt catalog would lack versions "
          "(the catalog is sound: after `varve repair`, the next opening writes them again)");
      continue;
    }
    findings.note(
        std::move(path),
        "they differ from the catalog, as a crash may leave them: the next writer writes them "
        "again");
  }
  return {};
}

// Reads labels and manifests completely, because both replace a lost catalog.
void check_manifests(const CheckScope& scope, CheckFindings& findings,
                     const catalog::SeriesRecord& series,
                     const std::vector<catalog::VersionRecord>& versions) {
  const auto directory = scope.stores.folder_of(series.id);
  const auto derived = [](const std::string& what) {
    return what +
           " (the catalog is sound: after `varve repair`, the next opening rebuilds this file)";
  };
  const auto present = list_manifests(scope.files, directory);
  if (!present) {
    findings.damage(directory + "/" + kManifestFolder, present.error().message());
    return;
  }
  // An earlier release wrote neither labels nor manifests.
  const auto labels = read_labels(scope.files, scope.codecs.frames(), directory, series.id);
  const bool none = !labels && labels.error().code() == ErrorCode::kNotFound && present->empty();
  if (!labels && !none) {
    findings.damage(directory + "/" + kLabelsName, derived(labels.error().message()));
  }
  // An attached folder leaves manifests in the object store.
  if (scope.helpers.is_distant) return;
  std::set<VersionNumber> found;
  for (const auto& file : *present) {
    found.insert(file.number);
    const auto path = manifest_path(directory, file.number);
    const auto state = state_of_manifest(scope.files, scope.codecs.frames(), path, scope.catalog,
                                         series.id, file.number);
    findings.report().bytes_read += file.bytes;
    // Deleted in the meantime.
    if (!state && state.error().code() == ErrorCode::kNotFound) continue;
    if (!state) {
      findings.damage(path, state.error().message());
    } else if (!state->fault.empty()) {
      findings.damage(path, state->fault);
    }
  }
  for (const auto& version : versions) {
    if (!labels || version.state != VersionState::kSealed || found.contains(version.number)) {
      continue;
    }
    const auto txn = meta::ReadTxn::begin(scope.catalog);
    const auto now = txn ? catalog::find_version(*txn, series.id, version.number)
                         : Result<std::optional<catalog::VersionRecord>>(txn.error());
    if (!now || !*now) continue;  // Deleted in the meantime.
    findings.damage(manifest_path(directory, version.number), derived("it is missing"));
  }
}

namespace {

// Adds notes on names beside versions that have another meaning or belong to versions.
void note_names_beside(CheckFindings& findings, const std::string& path,
                       const format::BesideImage& image,
                       const std::vector<catalog::VersionRecord>& versions) {
  for (const auto& file : image.records) {
    if (file.parent != kRootIno) continue;
    const bool is_of_version = std::ranges::any_of(versions, [&](const auto& version) {
      return version.name == file.name || version.name == partial_name(file.name);
    });
    if (file.name == kLatestName) {
      findings.note(path,
                    "`latest` of a program replaces Varve's link to the newest version "
                    "in a mount; if no program needs it, remove it in a mount with -o "
                    "beside");
    } else if (is_of_version) {
      findings.note(path, "a version hides the file `" + file.name +
                              "` beside the versions; `varve mv` renames the version");
    } else if (is_partial_name(file.name)) {
      findings.note(path, "the file `" + file.name +
                              "` has a name of open versions; rename it in a mount with "
                              "-o beside");
    }
  }
}

}  // namespace

void check_beside(const CheckScope& scope, CheckFindings& findings, SeriesId series,
                  const std::vector<catalog::VersionRecord>& versions) {
  const auto path = fmt::format("{}/{}", scope.stores.folder_of(series), store::kBesideName);
  const auto bytes = scope.files.read_file(path, format::kBesideImageBytesMax);
  if (!bytes && bytes.error().code() == ErrorCode::kNotFound) return;
  if (bytes) findings.report().bytes_read += bytes->size();
  const auto image = bytes ? format::decode_beside(series, *bytes) : bytes.error();
  if (image) note_names_beside(findings, path, *image, versions);
  // A newer format is no damage.
  if (image || image.error().code() == ErrorCode::kUnsupported) return;
  findings.damage(path, image.error().message() +
                            " (no version is touched: restore the file from a copy, or let `varve "
                            "repair` put it away)");
}

void check_index(const CheckScope& scope, CheckFindings& findings,
                 const catalog::SeriesRecord& series,
                 const std::vector<catalog::VersionRecord>& versions) {
  const catalog::VersionRecord* newest = nullptr;
  for (const auto& version : versions) {
    if (version.state == VersionState::kSealed) newest = &version;
  }
  if (newest == nullptr || !scope.helpers.verify_index) return;
  const auto directory = scope.stores.folder_of(series.id);
  const auto verified = scope.helpers.verify_index(series.id, newest->number);
  if (verified) return;
  auto where = directory + "/" + store::snapshot_name(newest->number);
  if (verified.error().code() != ErrorCode::kNotFound) {
    return findings.damage(
        std::move(where), verified.error(),
        " (derived data: `varve repair` removes it, and the next backup builds it again)");
  }
  // After the deletion of newer versions, the index is missing until the next seal.
  const bool was_newest = series.next_number == number_after(newest->number);
  if (!was_newest) return;
  findings.note(std::move(where),
                verified.error().message() +
                    "; a part of the index is missing, and the next backup builds it "
                    "again from containers");
}

}  // namespace varve::maintain
