// SPDX-License-Identifier: Apache-2.0
#include "repo/incomplete_mark.h"

#include <algorithm>

#include "catalog/version_origin.h"

namespace varve::repo {

Result<void> mark_problems(VersionWriter& writer, std::uint64_t problems) {
  if (problems != 0) {
    return writer.set_xattr(kRootIno, catalog::kIncompleteAttribute,
                            catalog::encode_incomplete(writer.info().number, problems),
                            XattrMode::kAny);
  }
  VARVE_TRY_ASSIGN(const Xattrs present, writer.own_attributes());
  const bool is_marked =
      std::ranges::find(present, catalog::kIncompleteAttribute, &Xattr::name) != present.end();
  return is_marked ? writer.remove_xattr(kRootIno, catalog::kIncompleteAttribute) : Result<void>();
}

}  // namespace varve::repo
