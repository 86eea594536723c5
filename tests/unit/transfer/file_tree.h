// SPDX-License-Identifier: Apache-2.0
// Real files for the tests of transfers.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace varve::testing {

/// A directory that the destructor removes with all its content.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory();
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

void write_file(const std::string& path, std::string_view data);
[[nodiscard]] std::string read_file(const std::string& path);

/// Returns one line for each entry, with the results of stat(2) and readlink(2), the xattrs, the
/// bytes and the map of holes. Names of one hard-linked file have the same number.
[[nodiscard]] std::map<std::string, std::string> describe_tree(const std::string& directory);

}  // namespace varve::testing
