// SPDX-License-Identifier: Apache-2.0
#include "maintain/sealed_check.h"

#include <utility>

#include "crypto/sealed_file.h"
#include "store/repository_names.h"
#include "store/sealed_places.h"

namespace varve::maintain {

namespace {

// Files of a process that runs, or that a crash has left.
bool is_temporary(const crypto::SealedPlace& place, const std::string& path) {
  return path.ends_with(store::kTemporarySuffix) ||
         place.kind == static_cast<std::uint32_t>(store::SealedKind::kTails);
}

Result<void> check_one(io::FileSystem& files, const crypto::SealedPlace& place,
                       const std::string& path, SealedFilesReport& report) {
  const auto file = files.open(path, io::OpenMode::kRead);
  if (!file && file.error().code() == ErrorCode::kNotFound) return {};  // Just removed.
  auto fault = file ? crypto::find_sealed_fault(**file) : file.error();
  if (!fault && fault.error().code() == ErrorCode::kUnsupported) {
    return std::move(fault).error().with_context(path);
  }
  ++report.files;
  if (const auto bytes = files.tree_bytes(path)) report.bytes += *bytes;
  if (!fault) {
    report.damages.push_back({path, fault.error().message()});
  } else if (!fault->what.empty() && place.grows && fault->only_at_end) {
    report.incomplete.push_back(path);
  } else if (!fault->what.empty()) {
    report.damages.push_back({path, fault->what});
  }
  return {};
}

}  // namespace

Result<SealedFilesReport> check_sealed_files(io::FileSystem& files, const std::string& repository) {
  SealedFilesReport report;
  std::vector<std::pair<std::string, store::FolderKind>> waiting{
      {repository, store::FolderKind::kRepository}};
  while (!waiting.empty()) {
    const auto [folder, kind] = std::move(waiting.back());
    waiting.pop_back();
    const auto names = files.list(folder);
    if (!names) {
      const auto code = names.error().code();
      if (code != ErrorCode::kNotFound && code != ErrorCode::kNotDirectory) {
        report.damages.push_back({folder, names.error().message()});
      }
      continue;
    }
    for (const auto& name : *names) {
      const auto known = store::known_name(kind, name);
      if (!known) continue;
      const auto path = std::string(folder).append("/").append(name);
      if (known->folder) {
        waiting.emplace_back(path, *known->folder);
        continue;
      }
      const auto place = store::sealed_place(repository, path);
      if (place && !is_temporary(*place, path)) {
        VARVE_TRY(check_one(files, *place, path, report));
      }
    }
  }
  return report;
}

}  // namespace varve::maintain
