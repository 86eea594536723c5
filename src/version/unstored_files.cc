// SPDX-License-Identifier: Apache-2.0
#include "version/unstored_files.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/coding.h"
#include "meta/lmdb.h"
#include "meta/schema.h"
#include "version/open_inode.h"
#include "version/open_references.h"
#include "version/overlay_names.h"

namespace varve::version {

namespace {

constexpr const char* kUnknownFolder = "...";  // Stands for folders whose names only the base has.
constexpr int kDepthMax = 4096;                // A damaged overlay may have a cycle.

/// Finds the names of inodes in an overlay.
class LostNames {
 public:
  LostNames(const meta::Txn& overlay, Ino base_end) : overlay_(overlay), base_end_(base_end) {}

  // Collects the inodes with references to `lost`, ascending.
  Result<void> collect(const base::IdRuns& lost) {
    return meta::for_each_prefix(
        overlay_, meta::overlay::kInodes, "",
        [&](std::string_view key, std::string_view value) -> Result<bool> {
          if (value.empty()) return true;  // A removed file of the base.
          const Ino ino = base::load_be64(key);
          VARVE_TRY_ASSIGN(const auto inode, decode_open_inode(ino, value, base_end_));
          std::vector<base::IdRun> runs;
          add_references(*inode, runs);
          const auto is_lost = [&](const base::IdRun& run) { return lost.overlaps(run); };
          if (std::ranges::any_of(runs, is_lost)) inodes_.push_back(ino);
          return true;
        });
  }

  Result<LostFiles> names() {
    LostFiles found;
    std::vector<std::pair<Ino, std::string>> named;  // Folder and name.
    VARVE_TRY(for_each_overlay_name(overlay_, [&](Ino folder, OverlayName name) {
      if (!std::ranges::binary_search(inodes_, name.ino)) return true;
      ++found.files;
      if (named.size() < kLostFilesNamed) named.emplace_back(folder, std::move(name.name));
      return true;
    }));
    for (const auto& [folder, name] : named) {
      VARVE_TRY_ASSIGN(auto path, path_of(folder));
      found.names.push_back(std::move(path) + name);
    }
    return found;
  }

 private:
  // Returns the path of a folder with a slash at the end; "" for the root.
  Result<std::string> path_of(Ino folder) {
    std::string path;
    for (int depth = 0; folder != kRootIno; ++depth) {
      VARVE_TRY_ASSIGN(const auto value,
                       overlay_.get(meta::overlay::kInodes, meta::ino_key(folder)));
      if (!value || value->view().empty() || depth == kDepthMax) {
        return std::string(kUnknownFolder) + "/" + path;
      }
      VARVE_TRY_ASSIGN(const auto inode, decode_open_inode(folder, value->view(), base_end_));
      VARVE_TRY_ASSIGN(const auto name, name_in(inode->directory.parent, folder));
      path = name.value_or(kUnknownFolder) + "/" + path;
      if (!name) break;
      folder = inode->directory.parent;
    }
    return path;
  }

  Result<std::optional<std::string>> name_in(Ino folder, Ino ino) {
    std::optional<std::string> found;
    VARVE_TRY(for_each_overlay_name(
        overlay_,
        [&](Ino, OverlayName name) {
          if (name.ino == ino) found = std::move(name.name);
          return !found;
        },
        meta::ino_key(folder)));
    return found;
  }

  const meta::Txn& overlay_;
  const Ino base_end_;
  std::vector<Ino> inodes_;
};

}  // namespace

Result<LostFiles> find_unstored_files(io::FileSystem& files, const StagedVersion& version,
                                      const FindLocated& located) {
  VARVE_TRY_ASSIGN(const auto env, open_overlay_to_read(files, version));
  if (!env) return LostFiles{};
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*env));
  VARVE_TRY_ASSIGN(const auto chunks, overlay_references(txn, version.base_end));
  VARVE_TRY_ASSIGN(const auto stored, located(chunks));
  const auto lost = chunks.subtract(stored);
  if (lost.size() == 0) return LostFiles{};
  LostNames names(txn, version.base_end);
  VARVE_TRY(names.collect(lost));
  return names.names();
}

}  // namespace varve::version
