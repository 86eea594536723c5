// SPDX-License-Identifier: Apache-2.0
#include "control/place_folder.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "base/checksum.h"
#include "base/log.h"
#include "base/nearest_name.h"
#include "base/path_list.h"
#include "base/system_error.h"
#include "control/client_state.h"
#include "control/home_folder.h"
#include "varve/remote_folder.h"
#include "varve/replication.h"

namespace varve::control {
namespace {

constexpr const char* kRootCache = "/var/cache";
constexpr std::size_t kReadableBytesMax = 80;
constexpr std::chrono::milliseconds kAttachPause{100};
constexpr int kAttachPausesMax = 6000;

bool is_trusted(const std::string& folder) { return base::is_listed_path("VARVE_TRUST", folder); }

std::string memory_folder() {
  OpenOptions options;
  use_client_state(options);
  return options.memory_folder;
}

Error no_folder(const std::string& place, const std::string& memory) {
  const auto gone = remembered_folders(memory, place);
  if (!gone.empty()) {
    return {ErrorCode::kNoRepository,
            fmt::format("the folder of {} on this machine, {}, is gone, or belongs to something "
                        "else now. `varve attach --write {} DIR` makes a new one that writes, with "
                        "what the store has; if the folder is elsewhere now, name it instead",
                        place, gone.front(), place)};
  }
  return {ErrorCode::kNoRepository,
          fmt::format("no folder of this machine is known to belong to {}: `varve init {} "
                      "--local=DIR` makes a new repository there, `varve attach {} DIR` a folder "
                      "that reads one; if the folder is here, name it instead{}",
                      place, place, place, base::nearest_name_hint(place, known_places(memory)))};
}

/// Returns the folder to use; "" if `known` is empty.
Result<std::string> choose(const std::string& place, const std::vector<StoreFolder>& known) {
  if (known.empty()) return std::string();
  std::string names;
  std::size_t rivals = 0;
  for (const auto& one : known) {
    const bool is_rival = !one.reads_only || one.place.endpoint != known.front().place.endpoint;
    if (!is_rival) continue;
    names += (rivals == 0 ? "" : ", ") + one.folder;
    ++rivals;
  }
  if (rivals <= 1) return known.front().folder;
  return Error(ErrorCode::kUsage,
               fmt::format("several folders belong to {}; name one of them: {}", place, names));
}

/// Returns the user's cache folder; "" if there is no cache folder.
std::string cache_folder() {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache == '/') return cache;
  if (::geteuid() == 0) return kRootCache;
  const auto home = home_folder(::geteuid());
  return home.empty() ? home : home + "/.cache";
}

/// Returns a recognizable name, unique to the place.
std::string name_for(const std::string& place) {
  std::string readable;
  for (const char c : place.substr(place.find("://") + 3)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    readable += plain ? c : '-';
  }
  readable.resize(std::min(readable.size(), kReadableBytesMax));
  return fmt::format("{}-{:016x}", readable, base::checksum64(std::as_bytes(std::span(place))));
}

/// Creates a folder for this user only, unless it exists.
Result<void> make_private(const std::string& folder) {
  if (::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) return {};
  return base::system_error(folder, errno);
}

Result<std::string> attach_in_cache(const std::string& place, const PlaceUse& use) {
  const auto cache = cache_folder();
  if (cache.empty()) {
    return Error(ErrorCode::kNoRepository,
                 fmt::format("{} has no folder on this machine, and there is no cache folder for "
                             "one; give one: `varve attach {} DIR`",
                             place, place));
  }
  for (const std::string& above : {cache, cache + "/varve", cache + "/varve/attached"}) {
    VARVE_TRY(make_private(above));
  }
  const auto folder = cache + "/varve/attached/" + name_for(place);
  for (int pauses = 0;; ++pauses) {
    VARVE_TRY_ASSIGN(const auto present, RemoteFolder(folder, is_trusted(folder)).place());
    if (present) return folder;
    if (pauses == 0) {
      base::log(base::LogLevel::kWarning,
                fmt::format("{} has no folder on this machine; making {}, which reads it", place,
                            folder));
    }
    const auto made = attach_to_store({.place = place}, folder, use.options(folder));
    if (made) return folder;
    // Another process is attaching the folder.
    const bool waits =
        made.error().code() == ErrorCode::kLocked || made.error().code() == ErrorCode::kExists;
    if (!waits || pauses == kAttachPausesMax) return made.error();
    std::this_thread::sleep_for(kAttachPause);
  }
}

Result<std::string> wanted_place(const std::string& word) {
  auto place = normalized_place(word);
  if (!place) return Error(ErrorCode::kUsage, place.error().message());
  return place;
}

}  // namespace

bool names_store(std::string_view word) { return is_store_place(word); }

Result<std::string> known_folder_of_place(const std::string& word) {
  if (!names_store(word)) return word;
  VARVE_TRY_ASSIGN(const auto place, wanted_place(word));
  const auto memory = memory_folder();
  VARVE_TRY_ASSIGN(auto folder, choose(place, known_store_folders(memory, place, is_trusted)));
  if (!folder.empty()) return folder;
  const auto cached = cache_folder() + "/varve/attached/" + name_for(place);
  const auto present = RemoteFolder(cached, is_trusted(cached)).place();
  if (present && *present) return cached;
  return no_folder(place, memory);
}

Result<std::string> folder_of_place(const std::string& word, const PlaceUse& use) {
  if (!names_store(word)) return word;
  VARVE_TRY_ASSIGN(const auto place, wanted_place(word));
  const auto memory = memory_folder();
  VARVE_TRY_ASSIGN(auto folder, choose(place, known_store_folders(memory, place, is_trusted)));
  if (!folder.empty()) return folder;
  if (use.purpose == Purpose::kChange) return no_folder(place, memory);
  auto attached = attach_in_cache(place, use);
  if (attached || attached.error().code() != ErrorCode::kNoRepository) return attached;
  return std::move(attached).error().with_more(
      base::nearest_name_hint(place, known_places(memory)));
}

}  // namespace varve::control
