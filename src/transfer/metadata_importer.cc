// SPDX-License-Identifier: Apache-2.0
#include "transfer/metadata_importer.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace varve::transfer {

namespace {
/// Prefix of Varve's own attributes at a version's root.
constexpr std::string_view kOwnXattrPrefix = "user.varve.";
}  // namespace

/// Returns the extended attributes of a file of the source, without Varve's own attributes.
Xattrs MetadataImporter::source_xattrs(const FileRef& file, Ino ino, const std::string& path) {
  auto xattrs = read_xattrs(file);
  if (!xattrs) {
    problem_list_.add(path, xattrs.error().message());
    ++problem_count_;
    return {};
  }
  if (ino == kRootIno) {
    std::erase_if(*xattrs, [](const Xattr& x) { return x.name.starts_with(kOwnXattrPrefix); });
  }
  return std::move(*xattrs);
}

Result<void> MetadataImporter::set_xattrs(Ino ino, const Xattrs& xattrs, const std::string& path) {
  for (const Xattr& xattr : xattrs) {
    auto set = errors_.checked(version_.set_xattr(ino, xattr.name, xattr.value, XattrMode::kAny));
    if (!set && errors_.ends(set.error())) return set;
    if (!set) {
      problem_list_.add_shared("attribute " + xattr.name + " not stored: " + set.error().message(),
                               path);
      ++problem_count_;
    }
  }
  return {};
}

Result<void> MetadataImporter::set_attributes(Ino ino, const struct stat& status) {
  AttributeChange change;
  change.mode = status.st_mode & 07777U;
  change.uid = status.st_uid;
  change.gid = status.st_gid;
  change.mtime = time_of(status.st_mtim);
  VARVE_TRY(errors_.checked(version_.set_attributes(ino, change)));
  return {};
}

Result<void> MetadataImporter::set(const FileRef& file, Ino ino, const struct stat& status,
                                   const std::string& path) {
  VARVE_TRY(set_xattrs(ino, source_xattrs(file, ino, path), path));
  return set_attributes(ino, status);
}

Result<void> MetadataImporter::adjust(const FileRef& file, Ino ino, const struct stat& status,
                                      const std::string& path) {
  const Xattrs wanted = source_xattrs(file, ino, path);
  VARVE_TRY_ASSIGN(const Xattrs stored, errors_.checked(version_.xattrs(ino)));
  for (const Xattr& xattr : stored) {
    const bool kept =
        std::ranges::any_of(wanted, [&](const Xattr& x) { return x.name == xattr.name; });
    if (!kept) VARVE_TRY(errors_.checked(version_.remove_xattr(ino, xattr.name)));
  }
  Xattrs changed = wanted;
  std::erase_if(changed, [&](const Xattr& x) {
    return std::ranges::any_of(
        stored, [&](const Xattr& y) { return x.name == y.name && x.value == y.value; });
  });
  VARVE_TRY(set_xattrs(ino, changed, path));
  VARVE_TRY_ASSIGN(const OpenEntry entry, errors_.checked(version_.get(ino)));
  const Attributes& present = entry.attributes;
  if (present.mode == status.st_mode && present.uid == status.st_uid &&
      present.gid == status.st_gid && present.mtime == time_of(status.st_mtim)) {
    return {};
  }
  return set_attributes(ino, status);
}

}  // namespace varve::transfer
