// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "varve/result.h"

namespace varve::index {

/// An index file that is unreadable, or has wrong bytes.
struct IndexFault {
  std::string path;
  Error error;
  std::string dependent{};  ///< File useless without `path`; may be empty.
};

}  // namespace varve::index
