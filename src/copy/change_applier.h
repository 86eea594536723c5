// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "copy/change.h"
#include "varve/backup.h"
#include "varve/result.h"

namespace varve::copy {

/// Makes the changes of a copy in an open version. Trusts no name, type or number. Not thread-safe.
class ChangeApplier {
 public:
  /// Lifetime: the version outlives the object.
  explicit ChangeApplier(VersionWriter& version) : version_(version) {}

  /// Makes the changes. `chunks` has the bytes of each chunk of the batch, in order; no bytes for a
  /// missing chunk.
  /// Errors: the errors of the version; kInvalid for changes impossible in a version.
  [[nodiscard]] Result<void> apply(const ChangeBatch& batch,
                                   std::span<const std::span<const std::byte>> chunks);
  /// Closes the file written last.
  [[nodiscard]] Result<void> close_file();
  /// Returns the number of changes made.
  [[nodiscard]] std::uint64_t made() const { return made_; }
  void set_made(std::uint64_t made) { made_ = made; }

 private:
  [[nodiscard]] Result<void> apply_one(const Change& change,
                                       std::span<const std::span<const std::byte>> chunks);
  [[nodiscard]] Result<void> enter(const std::string& name);
  [[nodiscard]] Result<void> make(const Change& change);
  [[nodiscard]] Result<OpenFile*> file(const std::string& name);
  [[nodiscard]] Result<void> write(const Change& change,
                                   std::span<const std::span<const std::byte>> chunks);
  [[nodiscard]] Result<void> set_attributes(const Change& change);
  [[nodiscard]] Result<void> set_xattrs(Ino ino, const Xattrs& wanted);
  [[nodiscard]] Result<void> link(const Change& change);
  [[nodiscard]] Ino directory() const { return directories_.back(); }

  VersionWriter& version_;
  std::vector<Ino> directories_{kRootIno};
  std::uint64_t made_ = 0;
  std::string file_name_;  // In the present directory.
  std::unique_ptr<OpenFile> file_;
};

/// Checks a name in a directory: no empty name, no path, neither "." nor "..".
/// Errors: kInvalid.
[[nodiscard]] Result<void> check_file_name(const std::string& name);

}  // namespace varve::copy
