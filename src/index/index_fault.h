// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "varve/result.h"

namespace varve::index {

/// A file of an index that cannot be read, or has wrong bytes.
struct IndexFault {
  std::string path;
  Error error;
  std::string dependent{};  ///< A file that is of no use without this one; may be empty.
};

}  // namespace varve::index
