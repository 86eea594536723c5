// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <thread>

#include "index/zero_files.h"

namespace varve::index {

std::vector<IndexFault> ZeroFiles::find_faults(io::FileSystem& files,
                                               const std::string& directory) {
  std::vector<IndexFault> faults;
  // A writer may replace the files meanwhile, or be about to complete a batch.
  constexpr int kFileLooksMax = 3;
  constexpr std::chrono::milliseconds kWait(20);
  for (int looks = 1; looks <= kFileLooksMax; ++looks) {
    faults.clear();
    for (const auto generation : generations(files, directory)) {
      ZeroFiles one(files, directory, 0);
      const auto looked = one.look_at(generation, faults);
      if (!looked && looked.error().code() != ErrorCode::kNotFound) {
        faults.push_back({one.path_of(generation, ".log"), looked.error()});
      }
      if (looked && *looked) break;
    }
    if (faults.empty()) break;
    if (looks < kFileLooksMax) std::this_thread::sleep_for(kWait);
  }
  return faults;
}

}  // namespace varve::index
