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

/// Compares a version with the result of changes. Reads and fingerprints all data that they name.
/// Not thread-safe.
class ChangeChecker {
 public:
  ChangeChecker(std::unique_ptr<TreeView> tree, const format::Fingerprinter& fingerprinter)
      : tree_(std::move(tree)), fingerprinter_(fingerprinter) {}

  /// Appends one difference for each change whose result the version does not have. A file that
  /// cannot be read is a difference.
  /// Errors: kInvalid for changes that no version has; kIo.
  [[nodiscard]] Result<void> check(const ChangeBatch& batch, std::vector<Difference>& differences);

 private:
  using Finding = std::optional<std::string>;  // What differs.
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
