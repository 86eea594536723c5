// SPDX-License-Identifier: Apache-2.0
#include "remote/attachment.h"

#include <fmt/core.h>

#include <span>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/coding.h"
#include "meta/lmdb.h"
#include "meta/schema.h"
#include "remote/catalog_reads.h"
#include "remote/changes.h"
#include "remote/head.h"
#include "remote/head_objects.h"
#include "remote/replica_state.h"
#include "store/repository_paths.h"

namespace varve::remote {

namespace {

constexpr std::uint64_t kBytesAtOnce = std::uint64_t{64} << 20;

bool is_small(const std::vector<Extent>& extents) {
  return !extents.empty() && extents.front().mark != 0;
}

// Creates the folders above a file. The folders are durable once the file is.
Result<void> make_folders(io::FileSystem& files, const std::string& root, const std::string& path) {
  for (auto slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    VARVE_TRY(files.make_durable_directory(root + "/" + path.substr(0, slash)));
  }
  return {};
}

Result<void> write_small(io::FileSystem& files, const std::string& root, const std::string& path,
                         const std::string& text) {
  VARVE_TRY(make_folders(files, root, path));
  const auto slash = path.rfind('/');
  return files.write_file_atomically(root + "/" + path.substr(0, slash), path.substr(slash + 1),
                                     base::as_bytes(text));
}

// Downloads the small files that differ between two maps, and removes small files missing in `is`.
Result<void> update_small_files(bucket::Bucket& bucket, io::FileSystem& files,
                                const std::string& root, const ObjectMap& was,
                                const ObjectMap& is) {
  std::vector<std::pair<std::string, std::vector<Extent>>> wanted;
  for (const auto& [path, extents] : is) {
    if (!is_small(extents)) {
      VARVE_TRY(make_folders(files, root, path));
      continue;
    }
    const auto known = was.find(path);
    if (known == was.end() || known->second != extents) wanted.emplace_back(path, extents);
  }
  for (std::size_t i = 0; i < wanted.size();) {
    std::vector<Extent> together;
    std::uint64_t bytes = 0;
    const auto begin = i;
    for (; i < wanted.size() && (i == begin || bytes < kBytesAtOnce); ++i) {
      for (const auto& extent : wanted[i].second) {
        together.push_back(extent);
        bytes += extent.bytes;
      }
    }
    VARVE_TRY_ASSIGN(auto texts, read_extents(bucket, together));
    std::size_t next = 0;
    for (auto at = begin; at < i; ++at) {
      std::string whole;
      for (std::size_t part = 0; part < wanted[at].second.size(); ++part) whole += texts[next++];
      VARVE_TRY(write_small(files, root, wanted[at].first, whole));
    }
  }
  for (const auto& [path, extents] : was) {
    if (!is_small(extents) || is.contains(path)) continue;
    const auto removed = files.remove(root + "/" + path);
    if (!removed && removed.error().code() != ErrorCode::kNotFound) return removed;
  }
  return {};
}

}  // namespace

Result<std::string> newest_head(CommitLog& log, const std::string& known) {
  std::uint64_t known_number = 0;
  if (!known.empty()) {
    VARVE_TRY_ASSIGN(const auto head, decode_head(known));
    known_number = head.number;
  }
  VARVE_TRY_ASSIGN(const auto newest, log.newest(known_number == 0 ? 0 : known_number - 1));
  if (newest) return *newest == known_number ? known : read_head(log, *newest);
  if (known_number != 0) {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("{} lacks the head {}, which was there before: an older state of the "
                             "store was put back, or its newest objects were removed",
                             log.describe(), known_number));
  }
  return Error(ErrorCode::kNoRepository,
               log.describe() + " has a repository, but nothing was replicated to it yet");
}

// O49: first the new objects, then the catalog that needs the objects, then the small files. The
// old objects leave the map last.
Result<bool> advance(bucket::Bucket& bucket, const AttachedFolder& folder,
                     const std::string& text) {
  VARVE_TRY_ASSIGN(const auto head, decode_head(text));
  VARVE_TRY_ASSIGN(const auto known_text, folder.state->head());
  if (known_text && *known_text == text) return false;
  Head known;
  if (known_text) {
    VARVE_TRY_ASSIGN(known, decode_head(*known_text));
  }
  if (known.number > head.number) {
    return Error(ErrorCode::kCorrupt, "the newest head in " + bucket.describe() +
                                          " is older than the one that " + folder.root + " has");
  }
  const auto front = common_front(head.catalog, known.catalog);
  const bool replaces = front < known.catalog.size() || !known_text;
  const auto news = std::span(head.catalog).subspan(replaces ? 0 : front);
  VARVE_TRY_ASSIGN(const auto parts, read_catalog_objects(bucket, news));
  VARVE_TRY_ASSIGN(const auto was, folder.state->objects());
  VARVE_TRY(folder.state->add_objects(parts));
  if (folder.objects_added) VARVE_TRY(folder.objects_added());
  VARVE_TRY(apply_to_catalog(*folder.catalog, parts, replaces));
  VARVE_TRY_ASSIGN(const auto is, map_after(was, parts, replaces));
  VARVE_TRY(update_small_files(bucket, *folder.files, folder.root, was, is));
  VARVE_TRY(folder.state->commit(text, parts, replaces, {}, base::SystemClock().now().seconds,
                                 head.number));
  return true;
}

Result<bool> advance_to(bucket::Bucket& bucket, io::FileSystem& files, const std::string& root,
                        const std::string& text) {
  VARVE_TRY_ASSIGN(auto state, ReplicaState::open(files, root, false));
  VARVE_TRY_ASSIGN(const auto known, state.head());
  if (known && *known == text) return false;
  VARVE_TRY(files.make_durable_directory(root + "/catalog"));
  meta::EnvOptions options;
  options.tables = meta::catalog::kTables;
  options.writer_lock = store::RepositoryPaths(root).lock();
  options.without_keys = true;
  VARVE_TRY_ASSIGN(const auto catalog, meta::Env::open(files, root + "/catalog", options));
  AttachedFolder folder;
  folder.files = &files;
  folder.root = root;
  folder.state = &state;
  folder.catalog = &catalog;
  return advance(bucket, folder, text);
}

}  // namespace varve::remote
