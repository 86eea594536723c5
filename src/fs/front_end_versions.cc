// SPDX-License-Identifier: Apache-2.0
// Series and versions: the two upper levels of the mount.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/log.h"
#include "fs/errno_map.h"
#include "fs/front_end.h"
#include "fs/timeouts.h"
#include "varve/removed_files.h"

namespace varve::fs {
namespace {
constexpr std::string_view kLatest = "latest";
constexpr std::chrono::milliseconds kWriterPoll{500};
constexpr std::chrono::milliseconds kReaderPoll{20};
constexpr std::chrono::milliseconds kCloseGrace{1000};
}  // namespace

std::mutex& FrontEnd::versions_mutex(SeriesId series) {
  const std::lock_guard lock(versions_mutexes_mutex_);
  return versions_mutexes_[series];
}

Result<Slot*> FrontEnd::version_slot(const SeriesInfo& series, const VersionInfo& info) {
  Slot& slot = slots_.version(series, info.number);
  const Slot::Tree tree = slot.tree();
  if (tree.reader != nullptr || (tree.writer != nullptr && info.state == VersionState::kOpen)) {
    return &slot;
  }
  if (info.state == VersionState::kOpen) {
    VARVE_TRY_ASSIGN(auto writer, repository_.writer(series.id));
    if (writer->info().number != info.number) {
      return Error(ErrorCode::kNotFound, "the version was sealed or given up meanwhile");
    }
    if (auto* const removed = dynamic_cast<RemovedFiles*>(writer.get())) removed->keep_removed();
    slot.set_writer(std::move(writer));
  } else {
    VARVE_TRY_ASSIGN(auto reader, repository_.reader(series.id, info.number));
    slot.set_reader(std::move(reader));
  }
  return &slot;
}

Result<fuse_entry_param> FrontEnd::version_entry(const SeriesInfo& series,
                                                 const VersionInfo& info) {
  VARVE_TRY_ASSIGN(Slot * slot, version_slot(series, info));
  const Slot::Tree tree = slot->tree();
  fuse_entry_param entry{};
  if (tree.reader != nullptr) {
    VARVE_TRY_ASSIGN(const SealedEntry root, tree.reader->get(0));
    entry = entry_of(*slot, root);
  } else if (tree.writer != nullptr) {
    VARVE_TRY_ASSIGN(const OpenEntry root, tree.writer->get(kRootIno));
    entry = entry_of(*slot, root);
  } else {
    return Error(ErrorCode::kNotFound, "the version is gone");
  }
  entry.entry_timeout = kSeriesTimeoutS;
  return entry;
}

Result<fuse_entry_param> FrontEnd::look_up_series(std::string_view name) {
  VARVE_TRY_ASSIGN(const SeriesInfo series, repository_.find_series(name));
  const Slot& slot = slots_.series(series);
  fuse_entry_param entry{};
  entry.ino = pack({.slot = slot.index(), .open = false, .low = kSeriesDirectory});
  entry.generation = slot.generation();
  entry.attr = stat_of_series(series);
  entry.attr_timeout = entry.entry_timeout = kSeriesTimeoutS;
  return entry;
}

Result<fuse_entry_param> FrontEnd::look_up_version(const SeriesInfo& series,
                                                   std::string_view name) {
  VARVE_TRY_ASSIGN(const VersionInfo info, repository_.find_version(series.id, name));
  if (name != kLatest) return version_entry(series, info);
  Node node;
  node.kind = Node::Kind::kLatest;
  node.slot = &slots_.series(series);
  fuse_entry_param entry{};
  VARVE_TRY_ASSIGN(entry.attr, stat_of(node));
  entry.ino = pack({.slot = node.slot->index(), .open = false, .low = kSeriesLatest});
  entry.generation = node.slot->generation();
  entry.attr_timeout = entry.entry_timeout = latest_timeout_s();
  return entry;
}

Result<fuse_entry_param> FrontEnd::make_series(std::string_view name) {
  VARVE_TRY(repository_.create_series(name));
  return look_up_series(name);
}

// Seals the open version here rather than in open_version(): the kernel may still hold its inode
// numbers, and only the outcome of seal() translates them.
Result<std::string> FrontEnd::end_present_version(const SeriesInfo& series,
                                                  std::string_view new_name, VersionNumber source) {
  const auto open = repository_.version_to_end(series.id, new_name, source);
  if (!open) {
    if (open.error().code() == ErrorCode::kBusy) {
      base::log(base::LogLevel::kWarning, fmt::format("{}/{} is not opened: {}", series.name,
                                                      new_name, open.error().message()));
    }
    return open.error();
  }
  if (!*open) return std::string();
  VARVE_TRY(seal_now(series.id, (*open)->number, {}));
  base::log(base::LogLevel::kInfo, fmt::format("{}/{} was sealed, since {} is opened", series.name,
                                               (*open)->name, new_name));
  return (*open)->name;
}

Result<fuse_entry_param> FrontEnd::make_version(const SeriesInfo& series, std::string_view name,
                                                const NewFile& root) {
  const std::lock_guard lock(versions_mutex(series.id));
  VARVE_TRY(end_present_version(series, name, VersionNumber{}));
  VARVE_TRY_ASSIGN(const VersionInfo info, repository_.open_version(series.id, name, root));
  return version_entry(series, info);
}

Result<VersionInfo> FrontEnd::open_version(const SeriesInfo& series, std::string_view name,
                                           const NewFile& root) {
  std::string sealed;
  std::optional<Result<VersionInfo>> opened;
  {
    const std::lock_guard lock(versions_mutex(series.id));
    VARVE_TRY_ASSIGN(sealed, end_present_version(series, name, VersionNumber{}));
    opened = repository_.open_version(series.id, name, root);
  }
  forget_names(series.id, {sealed, std::string(name)});
  return std::move(*opened);
}

Result<VersionInfo> FrontEnd::clone_version(const SeriesInfo& series, VersionNumber source,
                                            std::string_view name) {
  std::string sealed;
  std::optional<Result<VersionInfo>> opened;
  {
    const std::lock_guard lock(versions_mutex(series.id));
    VARVE_TRY_ASSIGN(sealed, end_present_version(series, name, source));
    opened = repository_.clone_version(series.id, source, name);
  }
  forget_names(series.id, {sealed, *opened ? (*opened)->name : std::string(name)});
  return std::move(*opened);
}

// Makes the kernel look up these names in a series again. Only for commands, whose requests do not
// come through the kernel: the kernel must not get this notification while a request holds the
// directory.
void FrontEnd::forget_names(SeriesId series, const std::vector<std::string>& names) {
  const Slot* directory = slots_.find(series, VersionNumber{});
  if (directory == nullptr || session_ == nullptr || fuse_session_exited(session_)) return;
  const fuse_ino_t parent = pack({.slot = directory->index(), .open = false, .low = 0});
  for (const std::string& name : names) {
    if (!name.empty()) {
      fuse_lowlevel_notify_inval_entry(session_, parent, name.c_str(), name.size());
    }
  }
}

// Invalidates only attributes, which is allowed while a request holds the directory.
void FrontEnd::forget_latest(SeriesId series) {
  const Slot* directory = slots_.find(series, VersionNumber{});
  if (directory == nullptr || session_ == nullptr || fuse_session_exited(session_)) return;
  const fuse_ino_t latest = pack({.slot = directory->index(), .open = false, .low = kSeriesLatest});
  fuse_lowlevel_notify_inval_inode(session_, latest, -1, 0);
}

Result<void> FrontEnd::remove_series(std::string_view name) {
  VARVE_TRY_ASSIGN(const SeriesInfo series, repository_.find_series(name));
  VARVE_TRY(repository_.remove_series(name));
  if (Slot* slot = slots_.find(series.id, VersionNumber{})) {
    struct stat last = stat_of_series(series);
    last.st_nlink = 0;
    slot->remove(last);
  }
  return {};
}

// Returns the attributes of a version's root for the kernel, which may hold it after rmdir(2).
std::optional<struct stat> FrontEnd::last_look(const Slot* slot) const {
  if (slot == nullptr) return std::nullopt;
  const Slot::Tree tree = slot->tree();
  const auto note = [](struct stat last) {
    last.st_nlink = 0;
    return std::optional(last);
  };
  if (tree.writer != nullptr) {
    if (const auto root = tree.writer->get(kRootIno)) return note(stat_of(*slot, *root));
  } else if (tree.reader != nullptr) {
    if (const auto root = tree.reader->get(0)) return note(stat_of(*slot, *root));
  }
  return std::nullopt;
}

Result<void> FrontEnd::remove_version(const SeriesInfo& series, std::string_view name) {
  if (name == kLatest) return Error(ErrorCode::kNotPermitted, "latest follows the versions");
  const std::lock_guard lock(versions_mutex(series.id));
  VARVE_TRY_ASSIGN(const VersionInfo info, repository_.find_version(series.id, name));
  const auto last = last_look(slots_.find(series.id, info.number));
  if (info.state == VersionState::kSealed) {
    if (!show_.rmdir_deletes) {
      return Error(ErrorCode::kReadOnly, "a sealed version is not removed by rmdir");
    }
    VARVE_TRY(delete_after_last_close(series.id, {info.number}, {}));
    forget_latest(series.id);
  } else {
    VARVE_TRY(repository_.abandon_version(series.id, info.number, false));
  }
  if (Slot* slot = slots_.find(series.id, info.number)) {
    slot->drop();
    if (last) slot->remove(*last);
  }
  return {};
}

Result<void> FrontEnd::discard_version(SeriesId series, VersionNumber number) {
  std::string name;
  {
    const std::lock_guard lock(versions_mutex(series));
    VARVE_TRY_ASSIGN(const auto versions, repository_.versions(series));
    for (const VersionInfo& version : versions) {
      if (version.number == number) name = version.name;
    }
    VARVE_TRY(repository_.abandon_version(series, number, true));
    if (Slot* slot = slots_.find(series, number)) slot->drop();
  }
  forget_names(series, {name});
  return {};
}

Result<DeletionForecast> FrontEnd::delete_versions(SeriesId series,
                                                   const std::vector<VersionNumber>& numbers,
                                                   const DeletionOptions& options) {
  std::vector<std::string> names;
  std::optional<Result<DeletionForecast>> deleted;
  {
    const std::lock_guard lock(versions_mutex(series));
    VARVE_TRY_ASSIGN(const auto versions, repository_.versions(series));
    deleted = delete_after_last_close(series, numbers, options);
    if (!*deleted) return std::move(*deleted);
    const auto& gone = (*deleted)->versions;
    for (const VersionInfo& version : versions) {
      const bool went = std::ranges::find(gone, version.number) != gone.end();
      if (went) names.push_back(version.name);
    }
    // Requests for nodes of these versions get ESTALE from now on.
    for (const VersionNumber number : gone) {
      if (Slot* slot = slots_.find(series, number)) slot->drop();
    }
  }
  if (options.force) forget_contents(series, (*deleted)->versions);
  forget_latest(series);
  names.emplace_back(kLatest);  // `latest` disappears with the last version.
  forget_names(series, names);
  return std::move(*deleted);
}

// As for a seal: the kernel may not yet have reported the last close(2) when a program asks for the
// deletion.
Result<DeletionForecast> FrontEnd::delete_after_last_close(
    SeriesId series, const std::vector<VersionNumber>& numbers, const DeletionOptions& options) {
  const auto end = std::chrono::steady_clock::now() + kCloseGrace;
  DeletionOptions all_or_none = options;
  all_or_none.skip_held = false;
  for (;;) {
    auto deleted = repository_.delete_versions(series, numbers, all_or_none);
    if (deleted) return deleted;
    const ErrorCode code = deleted.error().code();
    const bool held = code == ErrorCode::kBusy || code == ErrorCode::kNotPermitted;
    if (code != ErrorCode::kBusy || std::chrono::steady_clock::now() >= end) {
      if (!held || !options.skip_held) return deleted;
      return repository_.delete_versions(series, numbers, options);
    }
    std::this_thread::sleep_for(kReaderPoll);
  }
}

void FrontEnd::forget_contents(SeriesId series, const std::vector<VersionNumber>& numbers) {
  if (session_ == nullptr || fuse_session_exited(session_)) return;
  for (const auto& handle : files_.all()) {
    if (handle->node_id() == 0) continue;
    for (const VersionNumber number : numbers) {
      if (slots_.find(series, number) != &handle->slot()) continue;
      fuse_lowlevel_notify_inval_inode(session_, handle->node_id(), 0, 0);
    }
  }
}

Result<SealOutcome> FrontEnd::seal_now(SeriesId series, VersionNumber number,
                                       std::string_view new_name, SealMode mode,
                                       SealWriters writers) {
  VARVE_TRY_ASSIGN(SealOutcome outcome, repository_.seal(series, number, new_name, mode, writers));
  if (Slot* slot = slots_.find(series, number)) {
    auto reader = repository_.reader(series, number);
    if (!reader) return std::move(reader).error().with_context("sealed, but cannot be read");
    slot->seal(outcome, std::move(*reader));
  }
  forget_latest(series);
  return outcome;
}

// The kernel reports a close only after close(2) has returned. A program that renames at once may
// therefore arrive before the report of its own close.
Result<SealOutcome> FrontEnd::seal_after_last_close(SeriesId series, VersionNumber number,
                                                    std::string_view new_name) {
  const auto end = std::chrono::steady_clock::now() + kCloseGrace;
  for (;;) {
    std::uint64_t seen = 0;
    {
      const std::lock_guard lock(writers_mutex_);
      seen = writers_closed_;
    }
    auto sealed = seal_now(series, number, new_name);
    if (sealed || sealed.error().code() != ErrorCode::kBusy) return sealed;
    std::unique_lock lock(writers_mutex_);
    if (!writers_left_.wait_until(lock, end, [&] { return writers_closed_ != seen; })) {
      return sealed;
    }
  }
}

Result<void> FrontEnd::rename_version(const SeriesInfo& series, std::string_view name,
                                      std::string_view new_name) {
  if (name == kLatest) return Error(ErrorCode::kNotPermitted, "latest follows the versions");
  const std::lock_guard lock(versions_mutex(series.id));
  VARVE_TRY_ASSIGN(const VersionInfo info, repository_.find_version(series.id, name));
  if (new_name == kLatest || repository_.find_version(series.id, new_name)) {
    return Error(ErrorCode::kExists, "a version of this name exists");
  }
  const bool was_partial = is_partial_name(name);
  const bool becomes_partial = is_partial_name(new_name);
  if (info.state == VersionState::kOpen && was_partial && !becomes_partial) {
    VARVE_TRY(seal_after_last_close(series.id, info.number, new_name));
    return {};
  }
  if (becomes_partial != was_partial) {
    return Error(ErrorCode::kNotPermitted, "nothing becomes partial again");
  }
  VARVE_TRY(repository_.rename_version(series.id, info.number, new_name));
  forget_latest(series.id);
  return {};
}

// The seal of a reopened version deletes the version that it replaces.
void FrontEnd::drop_deleted(SeriesId series, const std::vector<VersionInfo>& before) {
  const auto after = repository_.versions(series);
  if (!after) return;
  for (const VersionInfo& version : before) {
    const auto same = [&](const VersionInfo& other) { return other.number == version.number; };
    if (std::ranges::any_of(*after, same)) continue;
    if (Slot* slot = slots_.find(series, version.number)) slot->drop();
  }
}

Result<SealOutcome> FrontEnd::seal(SeriesId series, VersionNumber number, const SealWish& wish,
                                   const std::function<bool()>& cancelled) {
  std::optional<Result<SealOutcome>> sealed;
  std::string old_name;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(wish.wait_seconds);
  for (;;) {
    const bool waits =
        wish.wait && (wish.wait_seconds == 0 || std::chrono::steady_clock::now() < end);
    const auto writers = wish.force && !waits ? SealWriters::kCutOff : SealWriters::kRefuse;
    {
      const std::lock_guard lock(versions_mutex(series));
      if (auto writer = repository_.writer(series)) old_name = (*writer)->info().name;
      VARVE_TRY_ASSIGN(const auto before, repository_.versions(series));
      sealed = seal_now(series, number, wish.new_name, wish.mode, writers);
      if (*sealed) drop_deleted(series, before);
    }
    if (*sealed || !waits || sealed->error().code() != ErrorCode::kBusy) break;
    // The time limit covers a close between the attempt and the wait.
    std::unique_lock lock(writers_mutex_);
    const std::uint64_t seen = writers_closed_;
    writers_left_.wait_for(lock, kWriterPoll, [&] { return writers_closed_ != seen; });
    lock.unlock();
    if (cancelled()) {
      return Error(ErrorCode::kInterrupted, "the waiting for writers was cancelled");
    }
  }
  if (*sealed) forget_names(series, {old_name, (*sealed)->info.name});
  return std::move(*sealed);
}

}  // namespace varve::fs
