// SPDX-License-Identifier: Apache-2.0
#include "cli/repository_access.h"

#include "base/file_limit.h"
#include "base/path_list.h"
#include "control/lock_wait.h"
#include "control/open_control.h"
#include "varve/options.h"

namespace varve::cli {
namespace {

OpenOptions options_for(const std::string& path, control::Purpose purpose) {
  OpenOptions options;
  options.read_only = purpose == control::Purpose::kLook;
  options.trust_owner = is_trusted(path);
  // The process ends after the command, so nothing arranges in the background.
  options.arrange = false;
  return options;
}

}  // namespace

bool is_trusted(const std::string& path) { return base::is_listed_path("VARVE_TRUST", path); }

Result<std::unique_ptr<Repository>> open_to_read(const std::string& path, bool probe_catalog) {
  base::raise_file_limit();
  OpenOptions options = options_for(path, control::Purpose::kLook);
  options.probe_catalog = probe_catalog;
  return Repository::open(path, options);
}

Result<std::unique_ptr<Repository>> open_to_write(const std::string& path,
                                                  std::optional<std::uint64_t> index_bytes) {
  base::raise_file_limit();
  OpenOptions options = options_for(path, control::Purpose::kChange);
  options.index_bytes = index_bytes.value_or(options.index_bytes);
  return control::open_when_unlocked(path, [&] { return Repository::open(path, options); });
}

Result<std::unique_ptr<control::RepositoryControl>> open_control(const std::string& path,
                                                                 control::Purpose purpose) {
  base::raise_file_limit();
  return control::open_control(path, options_for(path, purpose));
}

}  // namespace varve::cli
