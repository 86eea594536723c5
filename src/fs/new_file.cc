// SPDX-License-Identifier: Apache-2.0
#include "fs/new_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <string>

#include "fs/posix_acl.h"

namespace varve::fs {

Result<NewFile> new_file(const Caller& caller, const ShowOptions& show, const Node& directory,
                         mode_t mode) {
  NewFile file;
  file.mode = mode;
  file.uid = caller.uid();
  file.gid = caller.gid();
  if (!show.permissions_checked || S_ISLNK(mode)) return file;
  if (directory.kind == Node::Kind::kOpen) {
    VARVE_TRY_ASSIGN(const Xattrs all, directory.writer->xattrs(directory.ino));
    const auto place = std::ranges::find(all, kDefaultAclName, &Xattr::name);
    if (place != all.end()) {
      const auto inherited = inherit_acl(place->value, mode);
      if (!inherited) return Error(ErrorCode::kCorrupt, "the directory has an invalid default ACL");
      file.mode = (mode & ~0777U) | inherited->permissions;
      if (!inherited->access.empty()) {
        file.xattrs.push_back({std::string(kAccessAclName), inherited->access});
      }
      if (S_ISDIR(mode)) file.xattrs.push_back(*place);
      return file;
    }
  }
  file.mode &= ~(caller.umask() & 0777U);
  return file;
}

}  // namespace varve::fs
