// SPDX-License-Identifier: Apache-2.0
#include "copy/local_target.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "base/coding.h"
#include "copy/beside_files.h"
#include "varve/copy_name.h"
#include "varve/retention.h"
#include "varve/version_name.h"

namespace varve::copy {
namespace {

constexpr std::uint64_t kUnsettledBytesMax = 256U << 20;
constexpr std::chrono::seconds kUnsettledTime{10};
constexpr std::size_t kOffersMax = 4;  // Bounds the memory.

TargetVersion version_of(const VersionInfo& info) {
  TargetVersion version;
  version.number = info.number;
  version.name = info.name;
  version.is_sealed = info.state == VersionState::kSealed;
  version.entries = info.entries;
  version.origin = info.origin;
  return version;
}

// Removes the mark of an incomplete version if the copy inherited the mark: a copy starts as a
// clone of the previous copy.
Result<void> remove_mark_of_base(VersionWriter& writer) {
  VARVE_TRY_ASSIGN(const auto own, writer.own_attributes());
  const bool is_marked =
      std::ranges::find(own, catalog::kIncompleteAttribute, &Xattr::name) != own.end();
  return is_marked ? writer.remove_xattr(kRootIno, catalog::kIncompleteAttribute) : Result<void>();
}

}  // namespace

Result<std::vector<TargetSeries>> LocalTarget::series() {
  VARVE_TRY_ASSIGN(const auto all, repository_.series());
  std::vector<TargetSeries> series;
  for (const SeriesInfo& one : all) series.push_back({one.id, one.name});
  return series;
}

Result<std::vector<TargetVersion>> LocalTarget::versions(SeriesId series) {
  VARVE_TRY_ASSIGN(const auto all, repository_.versions(series));
  VARVE_TRY_ASSIGN(const auto locks, repository_.version_locks(series));
  std::vector<TargetVersion> versions;
  for (const VersionInfo& info : all) versions.push_back(version_of(info));
  for (const VersionLock& lock : locks) {
    const auto found = std::ranges::find(versions, lock.number, &TargetVersion::number);
    if (found != versions.end()) found->locked_until = lock.locked_until;
  }
  return versions;
}

Result<SeriesId> LocalTarget::create_series(const std::string& name,
                                            const SeriesSettings& settings) {
  VARVE_TRY_ASSIGN(const auto made,
                   repository_.create_series(name, {settings.placement, settings.rewrite}));
  return made.id;
}

Result<void> LocalTarget::rename_series(SeriesId series, const std::string& name) {
  // An interrupted copy that the source did not continue would prevent the rename.
  VARVE_TRY_ASSIGN(const auto open, repository_.open_versions(series));
  for (const VersionInfo& version : open) {
    if (!is_receiving_name(version.name)) continue;
    VARVE_TRY(repository_.abandon_version(series, version.number, true));
  }
  return repository_.rename_series(series, name);
}

Result<void> LocalTarget::rename_version(SeriesId series, VersionNumber number,
                                         const std::string& name) {
  return repository_.rename_version(series, number, name);
}

Result<void> LocalTarget::lock_version(SeriesId series, VersionNumber number,
                                       const Timestamp& until) {
  return repository_.lock_version(series, number, until);
}

Result<std::vector<std::string>> LocalTarget::delete_versions(
    SeriesId series, const std::vector<VersionNumber>& numbers) {
  DeletionOptions options;
  options.skip_held = true;
  VARVE_TRY_ASSIGN(const auto deleted, repository_.delete_versions(series, numbers, options));
  std::vector<std::string> reasons;
  for (const HeldVersion& held : deleted.held) reasons.push_back(held.reason);
  return reasons;
}

Result<void> LocalTarget::set_beside(SeriesId series, const std::vector<BesideFile>& files) {
  return write_beside(repository_, series, files);
}

Result<LocalTarget::Receiving*> LocalTarget::receiving() {
  if (!receiving_) return Error(ErrorCode::kInvalid, "no copy was begun");
  return &*receiving_;
}

Result<std::optional<VersionInfo>> LocalTarget::find_open(const CopyBegin& copy) {
  VARVE_TRY_ASSIGN(const auto versions, repository_.versions(copy.series));
  const auto open = std::ranges::find(versions, VersionState::kOpen, &VersionInfo::state);
  if (open == versions.end()) return std::optional<VersionInfo>();
  VARVE_TRY_ASSIGN(const auto writer, repository_.writer(copy.series));
  VARVE_TRY_ASSIGN(const auto own, writer->own_attributes());
  auto origin = catalog::receiving_origin_of(open->number, own);
  // A crash may have left a complete version, or a version without the attribute.
  if (!origin) origin = catalog::origin_of(open->number, own);
  const bool is_of_source = receiving_repository(open->name) == copy.origin.repository;
  if (!origin && !is_of_source) {
    return Error(ErrorCode::kBusy,
                 open->series_name + "/" + open->name +
                     " is open in the target and is no copy; seal it into another series, or "
                     "remove it with `varve rm`, before anything is copied to this series");
  }
  const auto mark = catalog::copy_mark_of(open->number, own);
  if (copy.continues && origin == copy.origin && mark && mark->base == copy.base) {
    return std::optional(*open);
  }
  VARVE_TRY(repository_.abandon_version(copy.series, open->number, true));
  return std::optional<VersionInfo>();
}

Result<VersionInfo> LocalTarget::open_new(const CopyBegin& copy) {
  const std::string name = partial_name(receiving_name(copy.origin));
  if (copy.base != VersionNumber{}) return repository_.clone_version(copy.series, copy.base, name);
  NewFile root;
  root.mode = S_IFDIR | 0700;
  return repository_.open_version(copy.series, name, root);
}

Result<std::uint64_t> LocalTarget::begin(const CopyBegin& copy) {
  receiving_.reset();
  offered_.clear();
  VARVE_TRY_ASSIGN(auto info, find_open(copy));
  const bool continues = info.has_value();
  if (!info) {
    VARVE_TRY_ASSIGN(info, open_new(copy));
  }
  Receiving receiving;
  receiving.info = *info;
  receiving.origin = copy.origin;
  receiving.known = copy.known;
  receiving.settled_at = std::chrono::steady_clock::now();
  VARVE_TRY_ASSIGN(receiving.writer, repository_.writer(copy.series));
  receiving.applier = std::make_unique<ChangeApplier>(*receiving.writer);
  receiving.mark.base = copy.base;
  if (continues) {
    VARVE_TRY_ASSIGN(const auto own, receiving.writer->own_attributes());
    receiving.mark = catalog::copy_mark_of(info->number, own).value_or(receiving.mark);
    receiving.applier->set_made(receiving.mark.changes);
  }
  receiving_ = std::move(receiving);
  // Before anything changes, also in a copy whose seal was interrupted.
  VARVE_TRY(set_origin(catalog::encode_receiving(info->number, copy.origin)));
  if (!continues) {
    VARVE_TRY(receiving_->writer->set_xattr(
        kRootIno, catalog::kCopyMarkAttribute,
        catalog::encode_copy_mark(info->number, receiving_->mark), XattrMode::kAny));
  }
  VARVE_TRY(receiving_->writer->sync());
  return receiving_->mark.changes;
}

Result<void> LocalTarget::offer(ChangeBatch batch) {
  VARVE_TRY_ASSIGN(auto* const to, receiving());
  if (offered_.size() >= kOffersMax) {
    return Error(ErrorCode::kInvalid, "too many batches without their data");
  }
  Offered offered;
  offered.batch = std::move(batch);
  offered.memory.resize(data_bytes(offered.batch));
  std::span<std::byte> rest(offered.memory);
  std::vector<WantedChunk> wanted;
  for (const Change& change : offered.batch.changes) {
    for (const ChunkRef& chunk : change.chunks) {
      wanted.push_back({chunk.fingerprint, rest.first(chunk.bytes)});
      offered.chunks.push_back(rest.first(chunk.bytes));
      rest = rest.subspan(chunk.bytes);
    }
  }
  offered.found = std::make_unique<bool[]>(wanted.size());
  to->writer->read_known(wanted, to->known, {offered.found.get(), wanted.size()});
  offered_.push_back(std::move(offered));
  return {};
}

Result<std::vector<bool>> LocalTarget::wanted() {
  const auto next = std::ranges::find(offered_, false, &Offered::is_answered);
  if (next == offered_.end()) return Error(ErrorCode::kInvalid, "no batch waits for an answer");
  next->is_answered = true;
  std::vector<bool> wanted(next->chunks.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] = !next->found[i];
  return wanted;
}

Result<void> LocalTarget::fill(std::vector<std::string> chunks) {
  VARVE_TRY_ASSIGN(auto* const to, receiving());
  if (offered_.empty() || !offered_.front().is_answered) {
    return Error(ErrorCode::kInvalid, "data for a batch that was not offered");
  }
  Offered offered = std::move(offered_.front());
  offered_.pop_front();
  std::vector<std::span<const std::byte>> bytes(offered.chunks.begin(), offered.chunks.end());
  std::size_t next = 0;
  std::size_t number = 0;
  for (const Change& change : offered.batch.changes) {
    for (const ChunkRef& chunk : change.chunks) {
      const std::size_t i = number++;
      if (offered.found[i]) continue;
      if (next == chunks.size()) return Error(ErrorCode::kInvalid, "fewer chunks than wanted");
      const auto sent = base::as_bytes(chunks[next++]);
      if (sent.empty()) {
        bytes[i] = {};
        continue;
      }
      if (sent.size() != chunk.bytes || fingerprinter_->fingerprint(sent) != chunk.fingerprint) {
        return Error(ErrorCode::kCorrupt, "a chunk of " + change.name +
                                              " does not have its fingerprint; it was altered "
                                              "on the way or in the source's memory");
      }
      std::ranges::copy(sent, offered.chunks[i].begin());
    }
  }
  if (next != chunks.size()) return Error(ErrorCode::kInvalid, "more chunks than wanted");
  VARVE_TRY(to->applier->apply(offered.batch, bytes));
  to->unsettled_bytes += offered.memory.size();
  const bool due = to->unsettled_bytes >= kUnsettledBytesMax ||
                   std::chrono::steady_clock::now() - to->settled_at >= kUnsettledTime;
  return due ? set_mark() : Result<void>();
}

Result<void> LocalTarget::set_origin(const std::string& value) {
  return receiving_->writer->set_xattr(kRootIno, catalog::kOriginAttribute, value, XattrMode::kAny);
}

// Makes the changes durable before setting the mark, so that the mark never counts a change that a
// crash can lose.
Result<void> LocalTarget::set_mark() {
  auto& to = *receiving_;
  VARVE_TRY(to.writer->sync());
  to.mark.changes = to.applier->made();
  VARVE_TRY(to.writer->set_xattr(kRootIno, catalog::kCopyMarkAttribute,
                                 catalog::encode_copy_mark(to.info.number, to.mark),
                                 XattrMode::kAny));
  to.unsettled_bytes = 0;
  to.settled_at = std::chrono::steady_clock::now();
  return {};
}

Result<void> LocalTarget::settle() {
  VARVE_TRY_ASSIGN(auto* const to, receiving());
  VARVE_TRY(to->applier->close_file());
  VARVE_TRY(set_mark());
  return to->writer->sync();
}

Result<std::vector<Difference>> LocalTarget::check(SeriesId series,
                                                   std::optional<VersionNumber> sealed, bool first,
                                                   const ChangeBatch& batch) {
  if (first) {
    checker_.reset();
    checked_.reset();
    if (sealed) {
      VARVE_TRY_ASSIGN(checked_, repository_.reader(series, *sealed));
      checker_ = std::make_unique<ChangeChecker>(view_of(*checked_), *fingerprinter_);
    } else {
      VARVE_TRY_ASSIGN(auto* const from, receiving());
      checker_ = std::make_unique<ChangeChecker>(view_of(*from->writer), *fingerprinter_);
    }
  }
  if (!checker_) return Error(ErrorCode::kInvalid, "no version is being checked");
  std::vector<Difference> differences;
  VARVE_TRY(checker_->check(batch, differences));
  return differences;
}

Result<TargetVersion> LocalTarget::seal(const CopySeal& copy) {
  VARVE_TRY_ASSIGN(auto* const to, receiving());
  VARVE_TRY(to->applier->close_file());
  checker_.reset();
  if (copy.claimed_at) VARVE_TRY(claim_time(repository_, to->info, *copy.claimed_at));
  if (copy.problems != 0) {
    VARVE_TRY(to->writer->set_xattr(kRootIno, catalog::kIncompleteAttribute,
                                    catalog::encode_incomplete(to->info.number, copy.problems),
                                    XattrMode::kAny));
  } else {
    VARVE_TRY(remove_mark_of_base(*to->writer));
  }
  // The source has compared the content: only from here on does a seal make the version a copy.
  to->origin.whole = copy.whole;
  VARVE_TRY(set_origin(catalog::encode_origin(to->info.number, to->origin)));
  // The mark stays: if the seal fails or a crash interrupts the seal, the next copy continues.
  auto sealed = repository_.seal(to->info.series, to->info.number, copy.name);
  if (!sealed && copy.whole) {
    const auto reset = set_origin(catalog::encode_receiving(to->info.number, to->origin));
    if (!reset) return std::move(sealed).error().with_context(reset.error().message());
  }
  if (!sealed) return std::move(sealed).error();
  receiving_.reset();
  return version_of(sealed->info);
}

Result<void> LocalTarget::drop() {
  VARVE_TRY_ASSIGN(auto* const to, receiving());
  checker_.reset();
  offered_.clear();
  to->applier.reset();
  const VersionInfo info = to->info;
  receiving_.reset();
  return repository_.abandon_version(info.series, info.number, true);
}

}  // namespace varve::copy
