// SPDX-License-Identifier: Apache-2.0
#include "maintain/sealed_check.h"

#include <utility>

#include "store/repository_names.h"
#include "store/sealed_places.h"

namespace varve::maintain {

namespace {

// Returns whether a file belongs to a running process, or was left by a crash.
bool is_temporary(const crypto::SealedPlace& place, const std::string& path) {
  return path.ends_with(store::kTemporarySuffix) ||
         place.kind == static_cast<std::uint32_t>(store::SealedKind::kTails);
}

Result<void> check_one(io::FileSystem& files, const SealedFiles::File& one,
                       const SealedCheckOptions& options, SealedFilesReport& report) {
  const auto file = files.open(one.path, io::OpenMode::kRead);
  if (!file && file.error().code() == ErrorCode::kNotFound) return {};  // Just removed.
  const auto goes_on = [&](std::uint64_t bytes) {
    report.bytes += bytes;
    if (options.progress) options.progress(report.bytes);
    return !options.stop.stop_requested();
  };
  auto fault = file ? crypto::find_sealed_fault(**file, goes_on) : file.error();
  if (!fault && fault.error().code() == ErrorCode::kUnsupported) {
    return std::move(fault).error().with_context(one.path);
  }
  if (fault && fault->stopped) {
    report.finished = false;
    return {};
  }
  ++report.files;
  if (!fault) {
    report.damages.push_back({one.path, fault.error().message()});
  } else if (!fault->what.empty() && one.place.grows && fault->only_at_end) {
    report.incomplete.push_back(one.path);
  } else if (!fault->what.empty()) {
    report.damages.push_back({one.path, fault->what});
  }
  return {};
}

}  // namespace

SealedFiles list_sealed_files(io::FileSystem& files, const std::string& repository) {
  SealedFiles list;
  std::vector<std::pair<std::string, store::FolderKind>> waiting{
      {repository, store::FolderKind::kRepository}};
  while (!waiting.empty()) {
    const auto [folder, kind] = std::move(waiting.back());
    waiting.pop_back();
    const auto names = files.list(folder);
    if (!names) {
      const auto code = names.error().code();
      if (code != ErrorCode::kNotFound && code != ErrorCode::kNotDirectory) {
        list.damages.push_back({folder, names.error().message()});
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
      if (!place || is_temporary(*place, path)) continue;
      const auto bytes = files.tree_bytes(path);
      list.files.push_back({path, *place, bytes ? *bytes : 0});
      list.bytes += list.files.back().bytes;
    }
  }
  return list;
}

Result<SealedFilesReport> check_sealed_files(io::FileSystem& files, const SealedFiles& list,
                                             const SealedCheckOptions& options) {
  SealedFilesReport report;
  report.damages = list.damages;
  for (const auto& one : list.files) {
    if (options.stop.stop_requested()) report.finished = false;
    if (!report.finished) break;
    VARVE_TRY(check_one(files, one, options, report));
  }
  return report;
}

}  // namespace varve::maintain
