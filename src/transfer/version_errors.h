// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "transfer/transfer_error.h"
#include "varve/result.h"

namespace varve::transfer {

/// Records if the repository is broken: then the importer does not continue with the next file. Not
/// thread-safe.
class VersionErrors {
 public:
  /// Returns the version's answer.
  template <typename T>
  [[nodiscard]] Result<T> checked(Result<T> answer) {
    if (!answer &&
        (answer.error().code() == ErrorCode::kIo || answer.error().code() == ErrorCode::kCorrupt)) {
      failed_ = true;
    }
    return answer;
  }
  /// Returns true if the import cannot continue after this error.
  [[nodiscard]] bool ends(const Error& error) const { return failed_ || ends_transfer(error); }

 private:
  bool failed_ = false;
};

}  // namespace varve::transfer
