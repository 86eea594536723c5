// SPDX-License-Identifier: Apache-2.0
#include "maintain/checker.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>

#include "catalog/dir_tree.h"
#include "catalog/location_table.h"
#include "catalog/object_store.h"
#include "format/container.h"
#include "format/fingerprinter.h"
#include "index/neighbour_index.h"
#include "maintain/layout_checker.h"

namespace varve::maintain {

namespace {
constexpr std::size_t kAffectedNamed = 1000;  // Of one damage; the rest is counted.
}  // namespace

Checker::Checker(const meta::Env& catalog, io::FileSystem& files, std::string repository_path,
                 const CheckOptions& options, std::function<void(const CheckProgress&)> progress)
    : catalog_(catalog),
      files_(files),
      path_(std::move(repository_path)),
      options_(options),
      progress_(std::move(progress)) {}

std::string Checker::series_directory(SeriesId series) const {
  return fmt::format("{}/series/{:08x}", path_, static_cast<std::uint32_t>(series));
}

void Checker::damage(std::string where, std::string what, std::vector<base::IdRun> ids) {
  if (!ids.empty())
    damaged_.push_back({report_.damages.size(), base::IdRuns::from(std::move(ids))});
  report_.damages.push_back({std::move(where), std::move(what), {}});
}

Result<CheckReport> Checker::run() {
  std::vector<catalog::SeriesRecord> all;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
    VARVE_TRY_ASSIGN(all, catalog::list_series(txn));
    for (const auto& series : all) {
      VARVE_TRY(catalog::for_each_container(
          txn, series.id, [&](const store::ContainerRecord& record) -> Result<bool> {
            done_.bytes_total +=
                options_.read_data ? record.head_bytes + record.data_bytes : record.head_bytes;
            return true;
          }));
    }
  }
  for (const auto& series : all) {
    auto checked = check_series(series);
    if (!checked) damage(path_ + "/catalog", checked.error().message(), {});
  }
  return std::move(report_);
}

Result<void> Checker::check_series(const catalog::SeriesRecord& series) {
  damaged_.clear();
  present_.clear();
  checked_.clear();
  std::vector<catalog::VersionRecord> versions;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
    VARVE_TRY_ASSIGN(versions, catalog::list_versions(txn, series.id));
    // Reading everything finds files that are too short, too, and says whom that touches.
    VARVE_TRY(
        check_layout(txn, files_, series_directory(series.id), series.id, !options_.read_data,
                     [&](std::string what) { damage(path_ + "/catalog", std::move(what), {}); }));
  }
  // What is arranged or deleted meanwhile is looked at where it is then.
  constexpr int kRoundsMax = 16;
  for (int round = 0; round < kRoundsMax; ++round) {
    VARVE_TRY_ASSIGN(const bool again, check_containers(series));
    if (!again) break;
  }
  check_index(series, versions);
  const auto present = base::IdRuns::from(present_);
  for (const auto& version : versions) {
    if (version.state != VersionState::kSealed) continue;
    ++report_.versions;
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
    auto chunks = catalog::version_chunks(txn, series.id, version.number);
    if (!chunks) {
      damage(path_ + "/catalog", chunks.error().message(), {});
    } else {
      const auto missing = chunks->subtract(present);
      if (missing.size() != 0) {
        damage(path_ + "/catalog", fmt::format("{} chunks are not stored anywhere", missing.size()),
               missing.runs());
      }
    }
    check_version(series, version);
  }
  return {};
}

// Those that were not checked yet, in the order of the disk. True if some were gone when their
// turn came.
Result<bool> Checker::check_containers(const catalog::SeriesRecord& series) {
  store::SegmentReader reader(files_, series_directory(series.id));
  std::vector<store::ContainerRecord> containers;
  std::multimap<std::uint32_t, catalog::LocationRecord> runs_of;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
    VARVE_TRY(catalog::for_each_container(
        txn, series.id, [&](const store::ContainerRecord& record) -> Result<bool> {
          if (!checked_.contains(record.number)) containers.push_back(record);
          return true;
        }));
    VARVE_TRY(catalog::for_each_location(
        txn, series.id, ChunkId{}, [&](const catalog::LocationRecord& record) -> Result<bool> {
          runs_of.emplace(record.container, record);
          return true;
        }));
  }
  std::sort(containers.begin(), containers.end(), [](const auto& a, const auto& b) {
    return std::pair(a.segment, a.offset) < std::pair(b.segment, b.offset);
  });
  bool some_gone = false;
  for (const auto& record : containers) {
    const auto damages = report_.damages.size();
    const auto marks = damaged_.size();
    check_container(series, reader, record, runs_of);
    checked_.insert(record.number);
    if (report_.damages.size() != damages) {
      VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
      VARVE_TRY_ASSIGN(const auto now, catalog::find_container(txn, series.id, record.number));
      if (!now || now->encode() != record.encode()) {
        some_gone = true;
        report_.damages.resize(damages);
        damaged_.resize(marks);
        if (now) checked_.erase(record.number);
      }
    }
    done_.bytes_done += record.head_bytes;
    report_.bytes_read += record.head_bytes;
    if (progress_) progress_(done_);
  }
  return some_gone;
}

void Checker::check_container(
    const catalog::SeriesRecord& series, store::SegmentReader& reader,
    const store::ContainerRecord& record,
    const std::multimap<std::uint32_t, catalog::LocationRecord>& runs_of) {
  ++report_.containers;
  auto head = reader.read_head(series.id, record);
  const auto [first, last] = runs_of.equal_range(record.number);
  std::vector<base::IdRun> ids;
  for (auto it = first; it != last; ++it) ids.push_back({it->second.first, it->second.count});
  if (!head) {
    damage(reader.describe(record), head.error().message(), ids);
    present_.insert(present_.end(), ids.begin(), ids.end());
    return;
  }
  report_.chunks += head->chunks.size();
  for (auto it = first; it != last; ++it) {
    const auto& run = it->second;
    const std::uint64_t end = std::uint64_t{run.index} + run.count;
    if (end > head->chunks.size() || head->chunks[run.index].id != run.first ||
        head->chunks[end - 1].id != run.first.plus(run.count - 1)) {
      damage(path_ + "/catalog", "a location does not fit " + reader.describe(record),
             {{run.first, run.count}});
    }
    present_.push_back({run.first, run.count});
  }
  if (options_.read_data) check_frames(reader, record, *head);
}

void Checker::check_frames(store::SegmentReader& reader, const store::ContainerRecord& record,
                           const format::ContainerHead& head) {
  std::vector<std::byte> stored;
  std::vector<std::byte> raw;
  format::Fingerprinter fingerprinter;
  for (const auto& frame : head.frames) {
    stored.resize(frame.stored_bytes);
    raw.resize(frame.raw_bytes);
    auto read = reader.read_data(record, frame.offset, stored);
    if (read) read = format::decode_frame(frame, stored, raw);
    if (read && options_.verify_chunks) {
      for (std::uint32_t i = 0; read && i < frame.chunk_count; ++i) {
        const auto& chunk = head.chunks[frame.first_chunk + i];
        const auto bytes = std::span(raw).subspan(chunk.frame_offset, chunk.raw_bytes);
        if (fingerprinter.fingerprint(bytes) != chunk.fingerprint) {
          read = Error(ErrorCode::kCorrupt, "a chunk does not match its SHA-256");
        }
      }
    }
    if (!read) {
      std::vector<base::IdRun> ids;
      for (std::uint32_t i = 0; i < frame.chunk_count; ++i) {
        ids.push_back({head.chunks[frame.first_chunk + i].id, 1});
      }
      damage(reader.describe(record),
             fmt::format("frame at data offset {}: {}", frame.offset, read.error().message()),
             std::move(ids));
    }
    done_.bytes_done += frame.stored_bytes;
    report_.bytes_read += frame.stored_bytes;
  }
  if (auto padding = reader.verify_padding(record); !padding) {
    damage(reader.describe(record), padding.error().message(), {});
  }
}

void Checker::check_index(const catalog::SeriesRecord& series,
                          const std::vector<catalog::VersionRecord>& versions) {
  const catalog::VersionRecord* newest = nullptr;
  for (const auto& version : versions) {
    if (version.state == VersionState::kSealed) newest = &version;
  }
  if (newest == nullptr) return;
  const auto directory = series_directory(series.id);
  const auto next = static_cast<VersionNumber>(static_cast<std::uint32_t>(newest->number) + 1);
  const auto loaded =
      index::NeighbourIndex::load(files_, directory, series.id, newest->number, next);
  // After newer versions were deleted there is none until the next seal.
  const bool was_newest = series.next_number == static_cast<std::uint32_t>(next);
  if (!loaded && loaded.error().code() == ErrorCode::kNotFound && !was_newest) return;
  if (!loaded) {
    damage(directory + "/" + index::NeighbourIndex::snapshot_name(newest->number),
           loaded.error().message() + " (derived data: the next backup makes it anew)", {});
  }
}

// A clone would join or part files by it.
void Checker::check_links(const catalog::VersionRecord& version, const catalog::LinkTable& found) {
  const auto stored = [&]() -> Result<std::optional<catalog::LinkTable>> {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
    return catalog::version_links(txn, version.series, version.number);
  }();
  if (!stored) {
    damage(path_ + "/catalog", stored.error().message(), {});
  } else if (*stored && **stored != found) {
    damage(path_ + "/catalog", version.name + ": the record of hard links does not fit the tree",
           {});
  }
}

// Walks the tree, and names the files that refer to damaged chunks.
void Checker::check_version(const catalog::SeriesRecord& series,
                            const catalog::VersionRecord& version) {
  catalog::ObjectReader objects(catalog_, series.id);
  catalog::TreeWalker walker(objects, version.root);
  const std::string top = series.name + "/" + version.name;
  std::vector<std::pair<Rank, std::string>> directories;
  std::uint64_t entries = 0;
  std::vector<catalog::LinkTable::Entry> links;
  const auto lost = [&](const Error& error) {
    damage(path_ + "/catalog", error.message(), {});
    report_.damages.back().affected.push_back(top + ": the tree after entry " +
                                              std::to_string(entries));
  };
  while (true) {
    auto found = walker.next();
    if (!found) return lost(found.error());
    if (!*found) break;
    const auto& at = **found;
    const auto& entry = *at.entry;
    while (!directories.empty() && directories.back().first != at.parent) directories.pop_back();
    const std::string path = at.rank == 0          ? top
                             : directories.empty() ? top
                                                   : directories.back().second + "/" + entry.name;
    if ((entry.mode & S_IFMT) == S_IFDIR) {
      directories.emplace_back(at.rank, path);
    }
    entries += at.rank == 0 ? 0 : 1;
    if (entry.link_group != 0) {
      links.push_back({static_cast<std::uint32_t>(at.rank), entry.link_group});
    }
    if ((entry.mode & S_IFMT) != S_IFREG) continue;
    std::shared_ptr<const format::Recipe> stored;
    const format::Recipe* recipe = entry.recipe ? &*entry.recipe : nullptr;
    if (recipe == nullptr) {
      auto loaded = objects.recipe(entry.recipe_id);
      if (!loaded) {
        damage(path_ + "/catalog", loaded.error().message(), {});
        report_.damages.back().affected.push_back(path);
        continue;
      }
      stored = *loaded;
      recipe = stored.get();
    }
    if (damaged_.empty()) continue;
    std::vector<base::IdRun> runs;
    for (const auto& run : recipe->runs) {
      if (!run.is_hole()) runs.push_back({run.first, run.count});
    }
    const auto ids = base::IdRuns::from(std::move(runs));
    for (const auto& damaged : damaged_) {
      auto& affected = report_.damages[damaged.report_index].affected;
      if (affected.size() < kAffectedNamed && damaged.ids.intersect(ids).size() != 0) {
        affected.push_back(path);
      }
    }
  }
  if (entries != version.entries) {
    damage(path_ + "/catalog",
           fmt::format("{} has {} entries instead of {}", top, entries, version.entries), {});
  }
  check_links(version, catalog::LinkTable::from(std::move(links)));
}

}  // namespace varve::maintain
