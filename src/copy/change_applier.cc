// SPDX-License-Identifier: Apache-2.0
#include "copy/change_applier.h"

#include <sys/stat.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace varve::copy {
namespace {

constexpr std::uint32_t kPermissions = 07777;
constexpr std::string_view kOwnPrefix = "user.varve.";

Error broken(const std::string& what) {
  return {ErrorCode::kInvalid, "the copy has a change that no version has: " + what};
}

}  // namespace

Result<void> check_file_name(const std::string& name) {
  const bool bad = name.empty() || name == "." || name == ".." || name.size() > kNameBytesMax ||
                   name.find('/') != std::string::npos || name.find('\0') != std::string::npos;
  if (bad) return broken("a name that no file has");
  return {};
}

Result<void> ChangeApplier::apply(const ChangeBatch& batch,
                                  std::span<const std::span<const std::byte>> chunks) {
  for (const Change& change : batch.changes) {
    if (chunks.size() < change.chunks.size()) return broken("chunks without bytes");
    auto done = apply_one(change, chunks.first(change.chunks.size()));
    if (!done) return std::move(done).error().with_context("copying " + change.name);
    chunks = chunks.subspan(change.chunks.size());
    if (change.counts()) ++made_;
  }
  return {};
}

Result<void> ChangeApplier::apply_one(const Change& change,
                                      std::span<const std::span<const std::byte>> chunks) {
  if (change.kind != ChangeKind::kLeave &&
      (change.kind != ChangeKind::kAttributes || !change.name.empty())) {
    VARVE_TRY(check_file_name(change.name));
  }
  if (file_ && file_name_ != change.name) VARVE_TRY(close_file());
  switch (change.kind) {
    case ChangeKind::kEnter:
      return enter(change.name);
    case ChangeKind::kLeave:
      if (directories_.size() == 1) return broken("a way out of the version");
      directories_.pop_back();
      return {};
    case ChangeKind::kRemove:
      VARVE_TRY(close_file());
      return remove_tree(version_, directory(), change.name);
    case ChangeKind::kMake:
      VARVE_TRY(close_file());
      return make(change);
    case ChangeKind::kData:
      return write(change, chunks);
    case ChangeKind::kHole: {
      VARVE_TRY_ASSIGN(auto* const hole_in, file(change.name));
      return hole_in->allocate(change.offset, change.bytes, AllocateMode::kPunchHole);
    }
    case ChangeKind::kAttributes:
      VARVE_TRY(close_file());
      return set_attributes(change);
    case ChangeKind::kLink:
      VARVE_TRY(close_file());
      return link(change);
  }
  return broken("an unknown kind");
}

Result<void> ChangeApplier::close_file() {
  if (!file_) return {};
  auto stored = file_->flush();
  file_.reset();
  return stored;
}

Result<void> ChangeApplier::enter(const std::string& name) {
  VARVE_TRY_ASSIGN(const auto entry, version_.lookup(directory(), name));
  if (!is_type(entry.attributes.mode, S_IFDIR)) return broken("a file with files in it");
  directories_.push_back(entry.ino);
  return {};
}

Result<void> ChangeApplier::make(const Change& change) {
  const bool is_directory = is_type(change.mode, S_IFDIR);
  const auto present = version_.lookup(directory(), change.name);
  if (present && is_directory && is_type(present->attributes.mode, S_IFDIR)) return {};
  if (present) VARVE_TRY(remove_tree(version_, directory(), change.name));
  NewFile made;
  made.mode = change.mode;
  made.uid = change.uid;
  made.gid = change.gid;
  made.rdev = change.rdev;
  made.symlink_target = change.target;
  VARVE_TRY(version_.create(directory(), change.name, made));
  return {};
}

Result<OpenFile*> ChangeApplier::file(const std::string& name) {
  if (!file_) {
    VARVE_TRY_ASSIGN(const auto entry, version_.lookup(directory(), name));
    if (!is_type(entry.attributes.mode, S_IFREG)) return broken("data of a file that has none");
    VARVE_TRY_ASSIGN(file_, version_.open(entry.ino, true));
    file_name_ = name;
  }
  return file_.get();
}

// Chunks adjacent in memory are written by a single call.
Result<void> ChangeApplier::write(const Change& change,
                                  std::span<const std::span<const std::byte>> chunks) {
  VARVE_TRY_ASSIGN(auto* const out, file(change.name));
  std::uint64_t offset = change.offset;
  for (std::size_t i = 0; i < chunks.size();) {
    if (chunks[i].empty()) {
      offset += change.chunks[i++].bytes;
      continue;
    }
    std::span<const std::byte> run = chunks[i++];
    while (i < chunks.size() && !chunks[i].empty() && chunks[i].data() == run.data() + run.size()) {
      run = {run.data(), run.size() + chunks[i++].size()};
    }
    VARVE_TRY(out->write(offset, run));
    offset += run.size();
  }
  return {};
}

Result<void> ChangeApplier::set_attributes(const Change& change) {
  Ino ino = directory();
  if (!change.name.empty()) {
    VARVE_TRY_ASSIGN(const auto found, version_.lookup(directory(), change.name));
    ino = found.ino;
  }
  VARVE_TRY_ASSIGN(const auto entry, version_.get(ino));
  if ((entry.attributes.mode & S_IFMT) != (change.mode & S_IFMT)) {
    return broken("attributes of another type of file");
  }
  if (is_type(change.mode, S_IFREG) && entry.attributes.size != change.size) {
    AttributeChange size;
    size.size = change.size;
    VARVE_TRY(version_.set_attributes(ino, size));
  }
  VARVE_TRY(set_xattrs(ino, change.xattrs));
  AttributeChange rest;
  rest.mode = change.mode & kPermissions;
  rest.uid = change.uid;
  rest.gid = change.gid;
  rest.mtime = change.mtime;
  VARVE_TRY(version_.set_attributes(ino, rest));
  return {};
}

Result<void> ChangeApplier::set_xattrs(Ino ino, const Xattrs& wanted) {
  for (const Xattr& xattr : wanted) {
    if (xattr.name.starts_with(kOwnPrefix)) return broken("an attribute that only Varve sets");
  }
  VARVE_TRY_ASSIGN(const Xattrs present, version_.xattrs(ino));
  if (present == wanted) return {};
  for (const Xattr& xattr : present) {
    if (std::ranges::find(wanted, xattr.name, &Xattr::name) == wanted.end()) {
      VARVE_TRY(version_.remove_xattr(ino, xattr.name));
    }
  }
  for (const Xattr& xattr : wanted) {
    if (std::ranges::find(present, xattr) != present.end()) continue;
    VARVE_TRY(version_.set_xattr(ino, xattr.name, xattr.value, XattrMode::kAny));
  }
  return {};
}

Result<void> ChangeApplier::link(const Change& change) {
  Ino target = kRootIno;
  std::string_view path = change.target;
  do {
    const auto slash = std::min(path.find('/'), path.size());
    const std::string name(path.substr(0, slash));
    VARVE_TRY(check_file_name(name));
    VARVE_TRY_ASSIGN(const auto entry, version_.lookup(target, name));
    target = entry.ino;
    path.remove_prefix(std::min(slash + 1, path.size()));
  } while (!path.empty());
  const auto present = version_.lookup(directory(), change.name);
  if (present && present->ino == target) return {};
  if (present) VARVE_TRY(remove_tree(version_, directory(), change.name));
  VARVE_TRY(version_.link(target, directory(), change.name));
  return {};
}

}  // namespace varve::copy
