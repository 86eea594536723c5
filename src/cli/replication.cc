// SPDX-License-Identifier: Apache-2.0
#include "cli/replication.h"

#include <fmt/core.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "base/log.h"
#include "cli/quantity.h"
#include "cli/repository_access.h"
#include "control/client.h"
#include "control/store_access.h"
#include "varve/remote_folder.h"
#include "varve/repository.h"

namespace varve::cli {
namespace {

constexpr std::chrono::milliseconds kPause{200};

}  // namespace

void add_store_options(Command& command, PlaceOptions& options) {
  command
      .add_option("--endpoint", options.place.endpoint,
                  "URL of the object store (default: $AWS_ENDPOINT_URL, or that of AWS)")
      .type_name("URL");
  command.add_option("--region", options.place.region,
                     "Region of the object store (default: $AWS_REGION, or what it says)");
  command
      .add_option("--credentials-command", options.credentials_command,
                  "Command that prints the credentials as JSON, as credential_process of AWS does "
                  "(default: the environment, then ~/.aws)")
      .type_name("COMMAND");
  command
      .add_option(
          "--cache-size", options.cache_size,
          "Bytes of data in the store that DIR keeps, such as 50G (default: 16G, or 4G in a "
          "folder that only reads)")
      .type_name("BYTES");
  command
      .add_option(
          "--staging-size", options.staging_size,
          "Bytes that may wait for the store before writers wait, such as 50G (default: 64G)")
      .type_name("BYTES");
}

Result<void> take_sizes(PlaceOptions& options) {
  const auto take = [](const std::string& text,
                       std::optional<std::uint64_t>& bytes) -> Result<void> {
    if (text.empty()) return {};
    auto parsed = as_usage(parse_bytes(text));
    if (!parsed) return std::move(parsed).error();
    bytes = *parsed;
    return {};
  };
  VARVE_TRY(take(options.cache_size, options.place.cache_bytes));
  return take(options.staging_size, options.place.staging_bytes);
}

void put_into_environment(const PlaceOptions& options) {
  if (options.credentials_command.empty()) return;
  ::setenv(control::kCredentialsCommandVariable, options.credentials_command.c_str(), 1);
}

void add_no_wait_flag(Command& command, bool& value) {
  command.add_flag("--no-wait", value,
                   "End when the version is on this disk, before the object store has it");
}

namespace {

/// Returns the error of a replication that another process cannot complete.
Error lasting(const std::string& folder, const ReplicationFailure& failure) {
  return {failure.code,
          fmt::format("{}; what is sealed in {} is safe there. The process that has {} open tries "
                      "again with the next seal, and every few minutes",
                      failure.message, folder, folder)};
}

/// Returns the error of a replication that another folder has ended for good.
Error fenced(const ReplicationInfo& info) {
  return {ErrorCode::kLocked, info.fenced + ". " + how_to_write_again(info.place)};
}

/// Asks the daemon that has the folder open, if any, to try again now: the user may have renewed
/// credentials since the last failure. Returns the time of the request.
Timestamp request_attempt(const std::string& folder) {
  const base::SystemClock clock;
  const auto now = clock.now();
  auto client = control::Client::connect(folder);
  if (!client) return now;
  const auto synced = client->ask<control::Operation::kSync>();
  if (!synced) base::log(base::LogLevel::kInfo, synced.error().message());
  return now;
}

/// Replicates, or waits for the replication by another process, until `done` returns true.
/// Another process has tried since `since` if its failure lasts; {} requests an attempt first.
Result<void> wait_until(const std::string& folder, const StoreWaits& waits, Timestamp since,
                        const std::function<Result<bool>()>& done) {
  const bool trusted = is_trusted(folder);
  StoreWaiting waiting(waits);
  StoreWaits closing = waits;
  closing.stopped = [&] { return waiting.stopped(); };
  while (true) {
    VARVE_TRY_ASSIGN(const bool is_done, done());
    if (is_done) return {};
    VARVE_TRY_ASSIGN(const auto info, RemoteFolder(folder, trusted).info());
    const auto place = info ? info->place : folder;
    if (!waiting.goes_on({place, 0})) return wait_interrupted(folder, place);
    const auto opened = Repository::open(folder, options_to_write(folder, closing));
    if (opened) {
      VARVE_TRY((*opened)->close());  // Replicates the sealed versions.
      continue;
    }
    if (opened.error().code() != ErrorCode::kLocked) return opened.error();
    VARVE_TRY_ASSIGN(const auto now, RemoteFolder(folder, trusted).info());
    if (now && !now->fenced.empty()) return fenced(*now);
    if (since == Timestamp{}) {
      since = request_attempt(folder);
      continue;
    }
    if (now && now->failure && now->failure->at >= since) return lasting(folder, *now->failure);
    std::this_thread::sleep_for(kPause);
  }
}

/// Returns the folder of a repository; nullopt unless the folder uploads to an object store.
Result<std::optional<std::string>> writing_folder(const std::string& named) {
  VARVE_TRY_ASSIGN(auto folder, repository_at(named, control::Purpose::kLook));
  VARVE_TRY_ASSIGN(const auto info, RemoteFolder(folder, is_trusted(folder)).info());
  if (!info || info->reads_only) return std::optional<std::string>();
  return std::optional(std::move(folder));
}

}  // namespace

std::string advice_on_upload(const std::string& named) {
  const auto folder = writing_folder(named);
  if (!folder || !*folder) return {};
  return "; if only its upload was interrupted, `varve wait " + named + "` goes on";
}

Result<void> wait_for_replication(const std::string& named, const VersionInfo& version,
                                  const StoreWaits& waits, const Timestamp& since) {
  if (!waits.wanted || version.state != VersionState::kSealed) return {};
  VARVE_TRY_ASSIGN(const auto folder, writing_folder(named));
  if (!folder) return {};
  return wait_until(*folder, waits, since, [&] {
    return RemoteFolder(*folder, is_trusted(*folder)).is_replicated(version.series, version.number);
  });
}

Result<void> wait_for_changes(const std::string& named, const StoreWaits& waits) {
  VARVE_TRY_ASSIGN(const auto folder, writing_folder(named));
  if (!folder) return {};
  return wait_until(*folder, waits, {}, [&]() -> Result<bool> {
    VARVE_TRY_ASSIGN(const auto changes,
                     RemoteFolder(*folder, is_trusted(*folder)).unreplicated_changes());
    return !changes.any();
  });
}

std::string note_on_keys(const std::string& folder) {
  const auto info = RemoteFolder(folder, is_trusted(folder)).info();
  const auto changes = RemoteFolder(folder, is_trusted(folder)).unreplicated_changes();
  if (!info || !*info || !changes || !changes->keys) return {};
  return "; until then, the former keys open the repository in " + (*info)->place;
}

}  // namespace varve::cli
