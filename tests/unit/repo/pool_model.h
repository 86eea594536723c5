// SPDX-License-Identifier: Apache-2.0
// A model of series: the content of every file of every version.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "catalog/pool_records.h"
#include "catalog/series_catalog.h"
#include "store/repository_names.h"
#include "support/closed_catalog.h"
#include "support/temp_repository.h"
#include "varve/pool_index.h"
#include "varve/types.h"

namespace varve {

using test::must;

using Content = std::shared_ptr<const std::string>;
using Tree = std::map<std::string, Content>;  // All files are in the root directory.

/// The open version of a series.
struct Open {
  VersionNumber number{};
  VersionNumber base{};
  Tree tree;
  /// The contents of each file since the version was last made durable; null: absent.
  std::map<std::string, std::set<Content>> since_sync;
};

struct Series {
  SeriesId id{};
  std::string name;
  std::map<VersionNumber, Tree> sealed;
  std::optional<Open> open;
};

/// Copies a repository that is open. Copies it again if a file changes in the meantime.
inline void copy_running(const std::string& from, const std::string& to) {
  for (int tries = 100;; --tries) {
    try {
      test::copy_crashed(from, to);
      return;
    } catch (const std::filesystem::filesystem_error&) {
      if (tries == 0) throw;
      std::filesystem::remove_all(to);
    }
  }
}

inline PoolIndexChoice any_pool_index(std::mt19937_64& random) {
  if (random() % 3 == 0) return {};
  if (random() % 2 == 0) return {PoolIndexKind::kStream, 0};
  const std::uint32_t bits = random() % 2 == 0 ? 0 : 6 + static_cast<std::uint32_t>(random() % 5);
  return {PoolIndexKind::kZeroChunk, bits};
}

/// Returns whether an open version was ever written.
inline bool has_staging(const std::string& path, SeriesId series, VersionNumber number) {
  return std::filesystem::exists(path + "/staging/" + store::staging_name(series, number) +
                                 "/overlay");
}

/// The chunks of a sealed version and its containers of the pool, as the catalog has them.
struct Held {
  std::vector<base::IdRun> chunks;
  std::vector<catalog::PoolUse> pool_use;
  bool operator==(const Held&) const = default;
};

/// Returns the sealed versions of a repository that no process has open, by series and number.
inline std::map<std::string, Held> sealed_versions(const std::string& path) {
  const auto catalog = test::open_catalog(path + "/catalog");
  const auto txn = must(meta::ReadTxn::begin(catalog));
  std::map<std::string, Held> found;
  for (const auto& series : must(catalog::list_series(txn))) {
    for (const auto& version : must(catalog::list_versions(txn, series.id))) {
      if (version.state != VersionState::kSealed) continue;
      Held held;
      held.chunks = must(catalog::version_chunks(txn, series.id, version.number)).runs();
      held.pool_use = must(catalog::find_pool_use(txn, series.id, version.number));
      found[series.name + "/" + version.name] = std::move(held);
    }
  }
  return found;
}

using FileSizes = std::map<std::string, std::uint64_t>;

/// Returns the files of the series and of the pool.
inline FileSizes stored_files(const std::string& repository) {
  FileSizes found;
  for (const auto* const folder : {"/series", "/pool"}) {
    std::error_code missing;
    for (const auto& at :
         std::filesystem::recursive_directory_iterator(repository + folder, missing)) {
      if (at.is_regular_file()) {
        found[at.path().string().substr(repository.size())] = at.file_size();
      }
    }
  }
  return found;
}

/// Returns a line for each file that differs.
inline std::string changes(const FileSizes& before, const FileSizes& after) {
  std::string text;
  auto all = before;
  all.insert(after.begin(), after.end());
  for (const auto& [file, unused] : all) {
    const auto was = before.contains(file) ? std::to_string(before.at(file)) : "absent";
    const auto is = after.contains(file) ? std::to_string(after.at(file)) : "absent";
    if (was != is) text += "\n  " + file + ": " + was + " -> " + is;
  }
  return text;
}

/// Returns the bytes that a deletion freed, from the sizes of all files before and after it.
inline std::int64_t freed_between(const FileSizes& before, const FileSizes& after) {
  std::int64_t freed = 0;
  for (const auto& [file, bytes] : before) {
    const auto now = after.find(file);
    const auto left = static_cast<std::int64_t>(now == after.end() ? 0 : now->second);
    const auto less = static_cast<std::int64_t>(bytes) - left;
    // The labels may grow by a line. The forecast counts what they shrink by. Open versions write
    // their data at any time.
    const bool may_grow = file.ends_with("/labels") || file.ends_with(".seg");
    freed += may_grow ? std::max<std::int64_t>(less, 0) : less;
  }
  for (const auto& [file, bytes] : after) {
    const bool is_new = !before.contains(file) && !file.ends_with(".seg");
    if (is_new) freed -= static_cast<std::int64_t>(bytes);
  }
  return freed;
}

}  // namespace varve
