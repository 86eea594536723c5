// SPDX-License-Identifier: Apache-2.0
#include "maintain/folder_search.h"

#include <filesystem>
#include <system_error>

#include "base/system_error.h"

namespace varve::maintain {

Result<void> search_folder(const std::string& folder, const RepositoryParameters& parameters,
                           DataRepairer& repairer) {
  namespace fs = std::filesystem;
  constexpr auto kHow = fs::directory_options::skip_permission_denied;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, kHow, error), end;
       !error && at != end && !repairer.all_found(); at.increment(error)) {
    std::error_code ignored;
    if (!at->is_symlink(ignored) && at->is_regular_file(ignored)) {
      repairer.search_file(at->path().string(), parameters);
    }
  }
  if (error) return base::io_error(folder, error.value());
  return {};
}

}  // namespace varve::maintain
