// SPDX-License-Identifier: Apache-2.0
#include "remote/store_errors.h"

#include "base/log.h"

namespace varve::remote {

bool is_out_of_reach(const Error& error) {
  if (!is_passing(error)) return false;
  base::log(base::LogLevel::kWarning, error.message() + "; older versions are shown");
  return true;
}

}  // namespace varve::remote
