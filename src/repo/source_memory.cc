// SPDX-License-Identifier: Apache-2.0
// The file sources-NNNNNNNN.dat in the series' folder has the states of the source files stored in
// version NNNNNNNN. Until the seal the file is called sources-NNNNNNNN.dat.tmp: a version with a
// .tmp file is to become equal to the source. Before the version exists, sources-00000000.dat.tmp
// announces the version, so that after a crash the store's clone is not mistaken for a clone that
// the user made to add files.
#include "repo/source_memory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <optional>
#include <string_view>
#include <utility>

#include "base/checksum.h"
#include "base/coding.h"
#include "base/log.h"
#include "io/file_system.h"
#include "store/repository_names.h"
#include "store/repository_paths.h"

namespace varve::repo {

namespace {

constexpr std::int64_t kOpeningSeconds = 60;  // From the announcement to the version's record.

std::uint64_t hash_of(std::string_view text) { return base::checksum64(base::as_bytes(text)); }

void log_unknown(const Error& error) {
  base::log(base::LogLevel::kWarning, "the next store will read every file: " + error.message());
}

}  // namespace

SourceMemory::SourceMemory(Repository& repository, io::FileSystem& files,
                           const StoreRequest& request, const std::string& source)
    : repository_(repository),
      files_(files),
      request_(request),
      started_at_(transfer::kernel_time()),
      clock_(started_at_, request.settle_s),
      source_(hash_of(request.source.empty() ? source : request.source)) {
  struct stat status {};
  if (::stat(source.c_str(), &status) == 0) root_inode_ = status.st_ino;
}

std::string SourceMemory::directory(SeriesId series) const {
  return store::RepositoryPaths(repository_.path()).series(series);
}

transfer::SourceStatesHeader SourceMemory::new_header(SeriesId series) {
  transfer::SourceStatesHeader header;
  header.series = series;
  header.started_at = started_at_;
  header.name = hash_of(request_.version);
  header.source = source_;
  header.root_inode = root_inode_;
  header.user = ::geteuid();
  if (const auto lost = repository_.lost_chunks_stamp(series)) header.lost = *lost;
  return header;
}

// Returns the states of a sealed version, if the states describe the present source.
std::unique_ptr<transfer::SourceStates> SourceMemory::states_of(const VersionInfo& version) {
  if (request_.read_all) return nullptr;
  const auto path = directory(version.series) + "/" + store::sources_name(version.number);
  auto states = transfer::SourceStates::open(files_, path);
  if (!states) return nullptr;
  const auto& header = (*states)->header();
  const bool of_version = header.series == version.series && header.number == version.number &&
                          header.sealed_at == version.sealed_at &&
                          header.entries == version.entries + 1;
  const bool of_source = header.source == source_ || header.root_inode == root_inode_;
  // Another user may have been refused the extended attributes of a file.
  const bool same_user = header.user == ::geteuid();
  // A file that got its ctime while the clock was ahead may get the same ctime again.
  const bool clock_went_on = header.started_at <= started_at_;
  // A chunk lost since then must be stored again.
  const auto lost = repository_.lost_chunks_stamp(version.series);
  if (!of_version || !of_source || !same_user || !clock_went_on || !lost || *lost != header.lost)
    return nullptr;
  return std::move(*states);
}

Result<void> SourceMemory::track(const VersionInfo& info, const VersionInfo* base) {
  auto header = new_header(info.series);
  header.number = info.number;
  if (base != nullptr) {
    header.base = base->number;
    header.base_sealed_at = base->sealed_at;
  }
  VARVE_TRY_ASSIGN(states_, transfer::SourceStatesWriter::create(
                                files_, directory(info.series),
                                store::unfinished_sources_name(info.number), header));
  tracking_ = {previous_.get(), states_.get(), &clock_};
  return {};
}

Result<void> SourceMemory::announce(SeriesId series, const VersionInfo* base) {
  auto header = new_header(series);
  if (base != nullptr) {
    header.base = base->number;
    header.base_sealed_at = base->sealed_at;
  }
  VARVE_TRY(transfer::SourceStatesWriter::create(
      files_, directory(series), store::unfinished_sources_name(VersionNumber{}), header));
  return {};
}

Result<VersionInfo> SourceMemory::open_new(SeriesId series, VersionNumber source,
                                           const NewFile& root) {
  if (request_.open) return request_.open(series, source, root);
  if (source == VersionNumber{}) return repository_.open_version(series, request_.version, root);
  return repository_.clone_version(series, source, request_.version);
}

Result<VersionInfo> SourceMemory::open_version(SeriesId series, const NewFile& root) {
  std::optional<VersionInfo> base;
  if (request_.seals && !request_.read_all) {
    VARVE_TRY_ASSIGN(const auto open, repository_.open_versions(series));
    // The seal of an open version would make another version the newest.
    if (open.empty()) {
      if (auto newest = repository_.find_version(series, "latest")) base = std::move(*newest);
    }
    // A clone with the name of the cloned version would replace that version.
    if (base && base->name != request_.version) previous_ = states_of(*base);
  }
  if (!previous_) base.reset();
  if (request_.seals && !announce(series, base ? &*base : nullptr)) {
    previous_.reset();
    base.reset();
  }
  VARVE_TRY_ASSIGN(auto info, open_new(series, base ? base->number : VersionNumber{}, root));
  if (base) {
    VARVE_TRY(track(info, &*base));
  } else if (request_.seals) {
    if (auto tracked = track(info, nullptr); !tracked) log_unknown(tracked.error());
  }
  (void)files_.remove(directory(series) + "/" + store::unfinished_sources_name(VersionNumber{}));
  return info;
}

// Returns the states' header of the store that began the version.
std::optional<transfer::SourceStatesHeader> SourceMemory::find_beginning(const VersionInfo& info,
                                                                         VersionNumber number) {
  const auto path = directory(info.series) + "/" + store::unfinished_sources_name(number);
  const auto states = transfer::SourceStates::open(files_, path);
  if (!states) return std::nullopt;
  const auto& header = (*states)->header();
  if (header.series != info.series || header.number != number) return std::nullopt;
  if (number != VersionNumber{}) return header;
  const Timestamp last{header.started_at.seconds + kOpeningSeconds, 0};
  const bool announces = header.name == hash_of(info.name) && info.opened_at >= header.started_at &&
                         info.opened_at <= last;
  return announces ? std::optional(header) : std::nullopt;
}

Result<bool> SourceMemory::resume(const VersionInfo& info) {
  auto beginning = find_beginning(info, info.number);
  if (!beginning) beginning = find_beginning(info, VersionNumber{});
  if (!beginning || beginning->source != source_) return false;
  std::optional<VersionInfo> base;
  VARVE_TRY_ASSIGN(const auto versions, repository_.versions(info.series));
  for (const auto& version : versions) {
    if (version.number == beginning->base && version.sealed_at == beginning->base_sealed_at) {
      base = version;
    }
  }
  if (base) previous_ = states_of(*base);
  VARVE_TRY(track(info, base ? &*base : nullptr));
  return true;
}

Result<bool> SourceMemory::any_began(const VersionInfo& info) {
  VARVE_TRY_ASSIGN(const bool begun, files_.exists(directory(info.series) + "/" +
                                                   store::unfinished_sources_name(info.number)));
  return begun || find_beginning(info, VersionNumber{}).has_value();
}

Result<void> SourceMemory::check_no_other_began(const VersionInfo& info) {
  VARVE_TRY_ASSIGN(const bool begun, any_began(info));
  if (!begun) return {};
  return Error(ErrorCode::kBusy,
               info.name +
                   " was left by an interrupted `varve store` or `varve import` of another "
                   "directory, and would become a mixture; give that command again, or remove the "
                   "version with `varve rm`");
}

std::optional<SourceMemory::Known> SourceMemory::look(SeriesId series) {
  auto newest = repository_.find_version(series, "latest");
  if (!newest) return std::nullopt;
  auto states = states_of(*newest);
  return Known{std::move(*newest), std::move(states)};
}

Result<void> SourceMemory::finish() {
  if (!states_ || request_.seals) return {};
  // The version is complete, and the user keeps the version open for changes.
  const auto directory_of = directory(states_->series());
  const auto name = store::unfinished_sources_name(states_->version());
  states_.reset();
  return files_.remove(directory_of + "/" + name);
}

void keep_states(Repository& repository, io::FileSystem& files,
                 transfer::SourceStatesWriter& states, const VersionInfo& sealed) {
  const auto directory = store::RepositoryPaths(repository.path()).series(sealed.series);
  const auto own = store::sources_name(sealed.number);
  // A stream has no states.
  if (!states.is_empty()) {
    auto kept = states.finish(own, sealed.sealed_at, sealed.entries);
    if (!kept) log_unknown(kept.error());
  }
  const auto names = files.list(directory);
  if (!names) return;
  for (const auto& name : *names) {
    std::string_view stem = name;
    if (stem.ends_with(store::kTemporarySuffix)) stem.remove_suffix(store::kTemporarySuffix.size());
    if (name != own && store::parse_sources_name(stem)) (void)files.remove(directory + "/" + name);
  }
}

}  // namespace varve::repo
