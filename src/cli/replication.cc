// SPDX-License-Identifier: Apache-2.0
#include "cli/replication.h"

#include <chrono>
#include <cstdlib>
#include <thread>

#include "cli/repository_access.h"
#include "control/store_access.h"
#include "varve/repository.h"

namespace varve::cli {
namespace {

constexpr const char* kCredentialsCommand = "VARVE_CREDENTIALS_COMMAND";
constexpr const char* kNoWait = "VARVE_NO_WAIT";
constexpr std::chrono::milliseconds kPause{200};
constexpr int kPausesBetweenNotes = 150;

}  // namespace

bool names_store(const std::string& word) { return word.starts_with("s3://"); }

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
}

void put_into_environment(const PlaceOptions& options) {
  if (options.credentials_command.empty()) return;
  ::setenv(kCredentialsCommand, options.credentials_command.c_str(), 1);
}

void reach_stores_by_environment() {
  set_store_access([](const StorePlace& place) {
    const char* const command = std::getenv(kCredentialsCommand);
    return control::object_store_options({.endpoint = place.endpoint,
                                          .region = place.region,
                                          .credentials_command = command ? command : ""});
  });
}

void add_no_wait_flag(Command& command, bool& value) {
  command.add_flag("--no-wait", value,
                   "End when the version is on this disk, before the object store has it");
}

void wait_for_no_store() { ::setenv(kNoWait, "1", 1); }

Result<void> wait_for_replication(const std::string& named, const VersionInfo& version,
                                  const Context& context) {
  if (std::getenv(kNoWait) != nullptr || version.state != VersionState::kSealed) return {};
  VARVE_TRY_ASSIGN(const auto folder, repository_at(named, control::Purpose::kLook));
  const bool trusted = is_trusted(folder);
  VARVE_TRY_ASSIGN(const auto info, replication_info(folder, trusted));
  if (!info || info->reads_only) return {};
  for (int pauses = 0;; ++pauses) {
    VARVE_TRY_ASSIGN(const bool replicated,
                     is_replicated(folder, version.series, version.number, trusted));
    if (replicated) return {};
    const auto opened = Repository::open(folder, options_to_write(folder));
    if (opened) {
      VARVE_TRY((*opened)->close());  // Replicates what is sealed.
      continue;
    }
    if (opened.error().code() != ErrorCode::kLocked) return opened.error();
    VARVE_TRY_ASSIGN(const auto now, replication_info(folder, trusted));
    if (now && !now->fenced.empty()) return Error(ErrorCode::kLocked, now->fenced);
    if (pauses % kPausesBetweenNotes == kPausesBetweenNotes - 1) {
      note(context, "waiting until " + info->place + " has the version");
    }
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace varve::cli
