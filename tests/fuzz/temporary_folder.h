// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

namespace varve::fuzz {

/// A temporary folder, in memory if possible. The destructor removes it.
class TemporaryFolder {
 public:
  TemporaryFolder()
      : path_(std::filesystem::exists("/dev/shm") ? "/dev/shm/varve-XXXXXX" : "/tmp/varve-XXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr) std::abort();
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace varve::fuzz
