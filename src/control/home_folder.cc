// SPDX-License-Identifier: Apache-2.0
#include "control/home_folder.h"

#include <pwd.h>
#include <sys/stat.h>

#include <array>
#include <cstdlib>

namespace varve::control {
namespace {

constexpr std::size_t kEntryBytesMax = 4096;

bool owns(uid_t user, const std::string& folder) {
  struct stat status {};
  return ::stat(folder.c_str(), &status) == 0 && status.st_uid == user;
}

/// Returns the home directory in the user database; "" if there is none.
std::string recorded_home(uid_t user) {
  std::array<char, kEntryBytesMax> space{};
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(user, &entry, space.data(), space.size(), &found) != 0) return {};
  if (found == nullptr || found->pw_dir == nullptr || *found->pw_dir != '/') return {};
  return found->pw_dir;
}

}  // namespace

std::string home_folder(uid_t user) {
  const char* const value = std::getenv("HOME");
  const std::string named = value != nullptr && *value == '/' ? value : "";
  if (!named.empty() && owns(user, named)) return named;
  auto recorded = recorded_home(user);
  return recorded.empty() ? named : recorded;
}

}  // namespace varve::control
