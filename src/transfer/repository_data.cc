// SPDX-License-Identifier: Apache-2.0
#include "transfer/repository_data.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "base/coding.h"
#include "base/unique_fd.h"
#include "transfer/source_listing.h"

namespace varve::transfer {

namespace {

// Names of files and of series' folders have a number of this many digits (docs/FORMAT.md §1).
constexpr std::size_t kNumberDigits = 8;
constexpr std::array<std::string_view, 3> kDataSuffixes{".seg", ".vol", ".man"};
constexpr std::array<const char*, 3> kDataFolders{"active", "volumes", "manifests"};

bool is_data_file(std::string_view name) {
  return base::parse_hex32(name.substr(0, kNumberDigits)) &&
         std::ranges::find(kDataSuffixes, name.substr(kNumberDigits)) != kDataSuffixes.end();
}

base::UniqueFd open_folder(int directory_fd, const char* name) {
  return base::UniqueFd(
      ::openat(directory_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

template <typename Wanted>
bool has_name(int directory_fd, const Wanted& wanted) {
  const auto names = list_names(directory_fd);
  return names && std::ranges::any_of(*names, wanted);
}

/// Returns whether the directory is the folder of a series' or the pool's data.
bool is_store_folder(int directory_fd) {
  return std::ranges::any_of(kDataFolders, [&](const char* name) {
    const auto folder = open_folder(directory_fd, name);
    return folder.valid() && has_name(folder.get(), is_data_file);
  });
}

bool is_folder_of_series(int directory_fd) {
  return has_name(directory_fd, [&](const std::string& name) {
    if (!base::parse_hex32(name)) return false;
    const auto folder = open_folder(directory_fd, name.c_str());
    return folder.valid() && is_store_folder(folder.get());
  });
}

}  // namespace

bool has_repository_data(int directory_fd) {
  const auto folder = open_folder(directory_fd, ".");
  if (!folder.valid()) return false;
  const auto series = open_folder(folder.get(), "series");
  if (series.valid()) {
    struct stat catalog {};
    if (::fstatat(folder.get(), "catalog/data.mdb", &catalog, AT_SYMLINK_NOFOLLOW) == 0)
      return true;
    if (is_folder_of_series(series.get())) return true;
  }
  const auto pool = open_folder(folder.get(), "pool");
  if (pool.valid() && is_store_folder(pool.get())) return true;
  return is_store_folder(folder.get()) || is_folder_of_series(folder.get());
}

}  // namespace varve::transfer
