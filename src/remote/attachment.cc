// SPDX-License-Identifier: Apache-2.0
#include "remote/attachment.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/coding.h"
#include "base/log.h"
#include "format/superblock.h"
#include "meta/lmdb.h"
#include "meta/schema.h"
#include "remote/begun_takeover.h"
#include "remote/catalog_merge.h"
#include "remote/catalog_reads.h"
#include "remote/changes.h"
#include "remote/head.h"
#include "remote/head_objects.h"
#include "remote/left_files.h"
#include "remote/readable_head.h"
#include "remote/replica_state.h"
#include "remote/small_files.h"
#include "remote/uploads.h"
#include "store/repository_paths.h"
#include "store/superblock_text.h"

namespace varve::remote {

namespace {

constexpr std::string_view kLostFilesKey = "lost files";  // In the state.
constexpr std::size_t kPathBytesMax = 4096;
constexpr std::uint64_t kHeadsAtOnce = 16;

// Returns the small files missing in the store at the folder's last advance.
Result<std::set<std::string>> lost_files(const ReplicaState& state) {
  VARVE_TRY_ASSIGN(const auto text, state.text(kLostFilesKey));
  base::ByteReader reader(text ? std::string_view(*text) : std::string_view());
  std::set<std::string> paths;
  while (reader.ok() && reader.left() != 0) paths.emplace(reader.sized_text(kPathBytesMax));
  return paths;
}

// Notes and logs the lost files. O66
Result<void> note_lost_files(const bucket::Bucket& bucket, ReplicaState& state,
                             const std::set<std::string>& lost) {
  VARVE_TRY_ASSIGN(const auto known, lost_files(state));
  if (lost == known) return {};
  std::string text;
  base::ByteWriter writer(text);
  for (const auto& path : lost) writer.sized_text(path);
  VARVE_TRY(state.set_text(kLostFilesKey, text));
  if (lost.empty()) return {};
  const auto more =
      lost.size() > 1 ? fmt::format(" and {} more files", lost.size() - 1) : std::string();
  base::log(base::LogLevel::kWarning,
            fmt::format("{} has lost {}{}, with the copies. All versions are shown; `varve check` "
                        "lists the lost objects, and `varve repair` in the folder that writes "
                        "uploads them again",
                        bucket.describe(), *lost.begin(), more));
  return {};
}

// Downloads the small files that differ between two maps, and removes small files missing in `is`.
// Returns the files lost by the store. `retried`: files to download in any case. Of the files left
// in the store, removes older content, which an earlier release may have downloaded.
Result<std::set<std::string>> update_small_files(bucket::Bucket& bucket, io::FileSystem& files,
                                                 const std::string& root, const ObjectMap& was,
                                                 const ObjectMap& is,
                                                 const std::set<std::string>& retried) {
  std::vector<MappedFile> wanted;
  for (const auto& [path, extents] : is) {
    if (!is_small(extents)) {
      VARVE_TRY(make_folders(files, root, path));
      continue;
    }
    const auto known = was.find(path);
    const bool is_new = known == was.end();
    const bool differs = is_new || known->second != extents;
    if (is_left_in_store(path)) {
      if (differs && !is_new) VARVE_TRY(remove_small(files, root, path));
    } else if (differs || retried.contains(path)) {
      wanted.emplace_back(path, extents);
    }
  }
  VARVE_TRY_ASSIGN(auto lost, download_small(bucket, files, root, wanted));
  for (const auto& [path, extents] : was) {
    if (is_small(extents) && !is.contains(path)) VARVE_TRY(remove_small(files, root, path));
  }
  return lost;
}

/// Reads heads backwards, several at the same time.
class EarlierHeads {
 public:
  /// Reads no head below `lowest`.
  EarlierHeads(CommitLog& log, std::uint64_t lowest) : log_(log), lowest_(lowest) {}

  /// Returns a head, as read_head_or_copy() does.
  Result<std::string> read(std::uint64_t number) {
    const auto known = texts_.find(number);
    if (known != texts_.end()) return known->second;
    if (number <= lowest_) return read_head_or_copy(log_, number);
    texts_.clear();
    const auto first = std::max(lowest_, number - std::min(number, kHeadsAtOnce - 1));
    for (auto one = first; one <= number; ++one) texts_.emplace(one, std::string());
    Uploads reads({.requests = kHeadsAtOnce});
    for (auto& [one, text] : texts_) {
      VARVE_TRY(reads.begin(
          0,
          [this, number = one, read = &text]() -> Result<void> {
            *read = read_head_or_copy(log_, number);
            return {};
          },
          nullptr));
    }
    VARVE_TRY(reads.finish());
    return texts_.at(number);
  }

 private:
  CommitLog& log_;
  const std::uint64_t lowest_;
  std::map<std::uint64_t, Result<std::string>> texts_;
};

// Returns whether the heads up to `head` lead to the known head. Old heads are removed from the
// lowest one on, so a head below a missing one shows a loss.
Result<bool> continues(bucket::Bucket& bucket, const Head& known, const std::string& known_text,
                       Head head) {
  CommitLog log(bucket, known.repository_id);
  EarlierHeads earlier(log, known.number + 1);
  const auto wanted = digest_of(known_text);
  while (head.previous != wanted) {
    if (head.number <= known.number + 1) return false;
    const auto before = earlier.read(head.number - 1);
    if (!before && !is_loss(before.error())) return before.error();
    if (!before) {
      bool has_lower = false;
      VARVE_TRY(log.list(0, [&](std::uint64_t number, Timestamp) {
        has_lower = has_lower || number < head.number;
      }));
      return !has_lower;
    }
    VARVE_TRY_ASSIGN(head, decode_head(*before));
  }
  return true;
}

Error another_history(const bucket::Bucket& bucket, const std::string& root, const Head& known,
                      const Head& head) {
  return {ErrorCode::kCorrupt,
          fmt::format("{}: head {} does not continue head {}, which {} shows: another folder took "
                      "over from an older state, in which other versions have the same numbers. "
                      "{} stays at its state. Unmount the folder, and attach a new one with `varve "
                      "attach`",
                      bucket.describe(), head.number, known.number, root, root)};
}

// Refuses the superblock of a newer format, whose catalog may decode and mean something else.
Result<format::Superblock> superblock_of(const Head& head) {
  VARVE_TRY_ASSIGN(auto superblock, format::decode_superblock(head.superblock));
  if (superblock.repository_id != head.repository_id) {
    return Error(ErrorCode::kCorrupt, "a head has the superblock of another repository");
  }
  return superblock;
}

}  // namespace

Result<void> adopt_superblock(io::FileSystem& files, const std::string& root, const Head& head) {
  VARVE_TRY_ASSIGN(const bool exists, files.exists(store::RepositoryPaths(root).superblock()));
  if (!exists) return {};
  VARVE_TRY_ASSIGN(const auto superblock, superblock_of(head));
  return store::adopt_superblock(files, root, head.superblock, superblock.encryption.has_value());
}

// O49: first the new objects, then the catalog with references to the objects, then the small
// files. The old objects leave the map last.
Result<bool> advance(bucket::Bucket& bucket, const AttachedFolder& folder,
                     const std::string& text) {
  VARVE_TRY(
      undo_takeover(bucket, *folder.files, folder.root, *folder.state, *folder.catalog));  // O68
  VARVE_TRY_ASSIGN(const auto head, decode_head(text));
  VARVE_TRY(superblock_of(head));
  VARVE_TRY_ASSIGN(const auto known_text, folder.state->head());
  if (known_text && *known_text == text) {
    VARVE_TRY(adopt_superblock(*folder.files, folder.root, head));
    return false;
  }
  Head known;
  if (known_text) {
    VARVE_TRY_ASSIGN(known, decode_head(*known_text));
  }
  if (known.number > head.number) {
    return Error(ErrorCode::kCorrupt, "the newest head in " + bucket.describe() +
                                          " is older than the one that " + folder.root + " has");
  }
  const auto step = catalog_step(known, head);
  const bool replaces = step.replaces || !known_text;
  if (known_text && step.kept < known.catalog.size()) {
    VARVE_TRY_ASSIGN(const bool is_next, continues(bucket, known, *known_text, head));
    if (!is_next) return another_history(bucket, folder.root, known, head);
  }
  const auto news = std::span(head.catalog).subspan(step.kept);
  const auto read = read_all_or_copies(bucket, news);
  if (!read && folder.stays_on_loss && known_text && is_loss(read.error())) {
    base::log(base::LogLevel::kWarning,
              read.error().message() + "; " + folder.root +
                  " stays at an older state, without the versions sealed since. `varve repair` in "
                  "the folder that writes uploads lost objects again");
    return false;
  }
  if (!read) return read.error();
  const auto& parts = *read;
  VARVE_TRY_ASSIGN(const auto was, folder.state->objects());
  VARVE_TRY(folder.state->add_objects(parts));
  if (folder.objects_added) VARVE_TRY(folder.objects_added());
  VARVE_TRY(apply_to_catalog(*folder.catalog, parts, replaces));
  VARVE_TRY_ASSIGN(const auto is, map_after(was, parts, replaces));
  VARVE_TRY_ASSIGN(const auto retried, lost_files(*folder.state));
  VARVE_TRY_ASSIGN(const auto lost,
                   update_small_files(bucket, *folder.files, folder.root, was, is, retried));
  VARVE_TRY(note_lost_files(bucket, *folder.state, lost));
  VARVE_TRY(folder.state->commit(text, parts, replaces, {}, base::SystemClock().now().seconds,
                                 head.number));
  VARVE_TRY(adopt_superblock(*folder.files, folder.root, head));
  return true;
}

Result<bool> advance_to(bucket::Bucket& bucket, io::FileSystem& files, const std::string& root,
                        const std::string& text) {
  VARVE_TRY_ASSIGN(auto state, ReplicaState::open(files, root, false));
  VARVE_TRY_ASSIGN(const auto known, state.head());
  VARVE_TRY_ASSIGN(const bool begun, has_begun_takeover(state));
  if (known && *known == text && !begun) {
    VARVE_TRY_ASSIGN(const auto head, decode_head(text));
    VARVE_TRY(adopt_superblock(files, root, head));
    return false;
  }
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
  folder.stays_on_loss = true;
  return advance(bucket, folder, text);
}

}  // namespace varve::remote
