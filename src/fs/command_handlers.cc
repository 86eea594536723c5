// SPDX-License-Identifier: Apache-2.0
#include "fs/command_handlers.h"

#include <fmt/core.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/thread_pool.h"
#include "varve/backup.h"

namespace varve::fs {
namespace {

constexpr std::chrono::milliseconds kCancelPoll{100};

/// The two parts of SERIES/VERSION.
struct NamedVersion {
  std::string series;
  std::string version;
};

Result<NamedVersion> split(const std::string& text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos) {
    return Error(ErrorCode::kInvalid, fmt::format("{} is not of the form SERIES/VERSION", text));
  }
  return NamedVersion{text.substr(0, slash), text.substr(slash + 1)};
}

Result<control::SealReply> seal_by_name(Repository& repository, VersionCommands& commands,
                                        const control::SealRequest& request,
                                        const std::function<bool()>& cancelled) {
  VARVE_TRY_ASSIGN(const NamedVersion named, split(request.version));
  VARVE_TRY_ASSIGN(const SeriesInfo series, repository.find_series(named.series));
  VARVE_TRY_ASSIGN(const VersionInfo info, repository.find_version(series.id, named.version));
  if (info.state == VersionState::kSealed) {
    return Error(ErrorCode::kReadOnly, fmt::format("{} is sealed already", request.version));
  }
  const VersionCommands::SealWish wish = {.new_name = request.new_name,
                                          .mode = request.keep ? SealMode::kKeep : SealMode::kEnd,
                                          .wait = request.wait,
                                          .wait_seconds = request.wait_seconds,
                                          .force = request.force};
  VARVE_TRY_ASSIGN(SealOutcome outcome, commands.seal(series.id, info.number, wish, cancelled));
  return control::SealReply{std::move(outcome.info), std::move(outcome.next),
                            std::move(outcome.warning)};
}

Result<VersionInfo> open_by_name(Repository& repository, VersionCommands& commands,
                                 const control::OpenRequest& request) {
  VARVE_TRY_ASSIGN(const NamedVersion named, split(request.version));
  NewFile root;
  root.mode = request.mode;
  root.uid = request.uid;
  root.gid = request.gid;
  return open_in_series(repository, named.series, [&](const SeriesInfo& series) {
    return commands.open_version(series, named.version, root);
  });
}

Result<VersionInfo> clone_by_name(Repository& repository, VersionCommands& commands,
                                  const control::OpenRequest& request) {
  VARVE_TRY_ASSIGN(const NamedVersion target, split(request.version));
  VARVE_TRY_ASSIGN(const NamedVersion source, split(request.source));
  if (source.series != target.series) {
    return Error(ErrorCode::kOtherVersion, "a version and its clone are of one series");
  }
  VARVE_TRY_ASSIGN(const SeriesInfo series, repository.find_series(source.series));
  VARVE_TRY_ASSIGN(const VersionInfo info, repository.find_version(series.id, source.version));
  if (info.state != VersionState::kSealed) {
    return Error(ErrorCode::kInvalid, fmt::format("{} is not sealed yet", request.source));
  }
  // A clone of a version onto itself reopens it.
  const bool reopens = request.version == request.source;
  return commands.clone_version(series, info.number, reopens ? info.name : target.version);
}

Result<void> lock_by_number(Repository& repository, const control::LockRequest& request) {
  VARVE_TRY_ASSIGN(const SeriesInfo series, repository.find_series(request.series));
  return repository.lock_version(series.id, request.version, request.until);
}

Result<DeletionForecast> remove_by_number(Repository& repository, VersionCommands& commands,
                                          const control::DeleteRequest& request) {
  VARVE_TRY_ASSIGN(const SeriesInfo series, repository.find_series(request.series));
  if (request.discard) {
    DeletionForecast dropped;
    for (const VersionNumber number : request.versions) {
      VARVE_TRY(commands.discard_version(series.id, number));
      dropped.versions.push_back(number);
    }
    return dropped;
  }
  if (request.forecast_only) {
    return repository.forecast_deletion(series.id, request.versions, request.options);
  }
  return commands.delete_versions(series.id, request.versions, request.options);
}

/// Arranges a series. Arranging may sleep for long to keep to its rate, so another thread checks
/// whether the command still waits.
Result<ArrangeReport> arrange_by_name(Repository& repository,
                                      const control::ArrangeRequest& request,
                                      const std::function<bool()>& cancelled,
                                      const std::function<void(const ArrangeProgress&)>& progress) {
  VARVE_TRY_ASSIGN(const SeriesInfo series, repository.find_series(request.series));
  std::stop_source stop;
  const std::jthread watch([&](const std::stop_token& done) {
    base::name_this_thread("varve-watch");
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock lock(mutex);
    while (!done.stop_requested() && !cancelled()) {
      wake.wait_for(lock, done, kCancelPoll, [] { return false; });
    }
    stop.request_stop();
  });
  return repository.arrange(series.id, {.bytes_per_second = request.bytes_per_second,
                                        .stop = stop.get_token(),
                                        .progress = progress});
}

Result<ArrangeSettings> settle(Repository& repository,
                               const std::optional<ArrangeSettings>& settings) {
  if (settings) VARVE_TRY(repository.set_arrange_settings(*settings));
  return repository.arrange_settings();
}

void add_upkeep(Repository& repository, VersionCommands& commands, control::Handlers& handlers) {
  handlers.remove = [&](const control::DeleteRequest& request) {
    return remove_by_number(repository, commands, request);
  };
  handlers.lock = [&](const control::LockRequest& request) {
    return lock_by_number(repository, request);
  };
  handlers.arrange = [&](const control::ArrangeRequest& request,
                         const std::function<bool()>& cancelled,
                         const std::function<void(const ArrangeProgress&)>& progress) {
    return arrange_by_name(repository, request, cancelled, progress);
  };
  handlers.settings = [&](const std::optional<ArrangeSettings>& settings) {
    return settle(repository, settings);
  };
}

}  // namespace

void add_command_handlers(Repository& repository, VersionCommands& commands,
                          control::Handlers& handlers) {
  handlers.seal = [&](const control::SealRequest& request, const std::function<bool()>& cancelled) {
    return seal_by_name(repository, commands, request, cancelled);
  };
  handlers.open = [&](const control::OpenRequest& request) {
    return open_by_name(repository, commands, request);
  };
  handlers.clone = [&](const control::OpenRequest& request) {
    return clone_by_name(repository, commands, request);
  };
  handlers.stats = [&] { return repository.stats(); };
  handlers.sync = [&] { return repository.sync(); };
  handlers.open_versions = [&](const std::string& name) -> Result<std::vector<VersionInfo>> {
    VARVE_TRY_ASSIGN(const SeriesInfo series, repository.find_series(name));
    return repository.open_versions(series.id);
  };
  add_upkeep(repository, commands, handlers);
}

}  // namespace varve::fs
