// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "copy/change.h"
#include "copy/target.h"
#include "copy/tree_view.h"
#include "format/fingerprinter.h"
#include "varve/result.h"

namespace varve::copy {

/// Compares a version with the result of changes. Reads and fingerprints all data named by the
/// changes. Not thread-safe.
class ChangeChecker {
 public:
  ChangeChecker(std::unique_ptr<TreeView> tree, const format::Fingerprinter& fingerprinter)
      : tree_(std::move(tree)), fingerprinter_(fingerprinter) {}

  /// Appends a difference for each change whose result is missing in the version. An unreadable
  /// file is a difference.
  /// Errors: kInvalid for changes impossible in a version; kIo.
  [[nodiscard]] Result<void> check(const ChangeBatch& batch, std::vector<Difference>& differences);

 private:
  using Finding = std::optional<std::string>;  // The difference.
  [[nodiscard]] Result<Finding> check_one(const Change& change);
  [[nodiscard]] Result<Finding> check_made(const Change& change, const ViewEntry& entry);
  [[nodiscard]] Result<Finding> check_data(const Change& change, const ViewEntry& entry);
  [[nodiscard]] Result<Finding> check_hole(const Change& change, const ViewEntry& entry);
  [[nodiscard]] Result<Finding> check_attributes(const Change& change, const ViewEntry& entry);
  [[nodiscard]] Result<Finding> check_link(const Change& change, const ViewEntry& entry);
  [[nodiscard]] Result<ViewFile*> file(const ViewEntry& entry);

  const std::unique_ptr<TreeView> tree_;
  const format::Fingerprinter& fingerprinter_;
  std::vector<std::uint64_t> directories_;  // Empty until the first change.
  std::optional<std::uint64_t> file_id_;
  std::unique_ptr<ViewFile> file_;
  std::vector<std::byte> room_;
};

}  // namespace varve::copy
