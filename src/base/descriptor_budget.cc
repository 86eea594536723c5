// SPDX-License-Identifier: Apache-2.0
#include "base/descriptor_budget.h"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>

#include "base/system_error.h"

namespace varve::base {

namespace {
// For the catalog, sealed files that are read, overlays in use, clients, seals and arranging.
constexpr std::size_t kReserveMax = 1536;
}  // namespace

std::size_t DescriptorBudget::of_process() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) limit.rlim_cur = 1024;
  return limit.rlim_cur - std::min<std::size_t>(limit.rlim_cur / 2, kReserveMax);
}

Result<DescriptorBudget::Share> DescriptorBudget::take(const std::string& what) {
  if (taken_->fetch_add(1) < max_) return Share(taken_);
  --*taken_;
  return io_error(what, EMFILE)
      .with_more(
          "; seal open versions or close files, or raise the limit on open files (ulimit "
          "-n, or LimitNOFILE= in a unit of systemd)");
}

}  // namespace varve::base
