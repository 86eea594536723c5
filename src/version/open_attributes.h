// SPDX-License-Identifier: Apache-2.0
// Attributes, link targets and extended attributes in an open version.
#pragma once

#include <string>
#include <string_view>

#include "varve/backup.h"
#include "varve/result.h"
#include "version/checkpointer.h"
#include "version/open_contents.h"
#include "version/open_state.h"

namespace varve::version {

/// The attributes of inodes. Functions do what VersionWriter's functions of the same names promise,
/// and are thread-safe.
class OpenAttributes {
 public:
  /// Lifetime: every argument must outlive this object.
  OpenAttributes(OpenState& state, OpenContents& contents, Checkpointer& checkpointer)
      : state_(state), contents_(contents), checkpointer_(checkpointer) {}
  OpenAttributes(const OpenAttributes&) = delete;
  OpenAttributes& operator=(const OpenAttributes&) = delete;

  [[nodiscard]] Result<OpenEntry> get(Ino ino);
  /// A change of the size waits until no thread cuts the file.
  [[nodiscard]] Result<OpenEntry> set_attributes(Ino ino, const AttributeChange& change);
  [[nodiscard]] Result<std::string> read_link(Ino ino);
  [[nodiscard]] Result<Xattrs> xattrs(Ino ino);
  [[nodiscard]] Result<Xattrs> own_attributes();
  [[nodiscard]] Result<void> set_xattr(Ino ino, std::string_view name, std::string_view value,
                                       XattrMode mode);
  [[nodiscard]] Result<void> remove_xattr(Ino ino, std::string_view name);

 private:
  OpenState& state_;
  OpenContents& contents_;
  Checkpointer& checkpointer_;
};

}  // namespace varve::version
