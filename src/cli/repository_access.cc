// SPDX-License-Identifier: Apache-2.0
#include "cli/repository_access.h"

#include "varve/options.h"

namespace varve::cli {

Result<std::unique_ptr<Repository>> open_to_read(const std::string& path, bool probe_catalog) {
  OpenOptions options;
  options.read_only = true;
  options.probe_catalog = probe_catalog;
  return Repository::open(path, options);
}

Result<std::unique_ptr<Repository>> open_to_write(const std::string& path) {
  return Repository::open(path, OpenOptions());
}

}  // namespace varve::cli
