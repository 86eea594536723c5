// SPDX-License-Identifier: Apache-2.0
#include "version/open_inode.h"

#include "base/coding.h"
#include "base/time_coding.h"
#include "format/dir_entry_codec.h"

namespace varve::version {

namespace {

using base::get_time;
using base::put_time;

std::uint32_t get_u32(base::ByteReader& r) {
  const std::uint64_t v = r.varint();
  if (v > 0xffffffffU) r.fail();
  return static_cast<std::uint32_t>(v);
}

}  // namespace

Attributes OpenInode::attributes() const {
  Attributes a;
  a.mode = mode;
  a.uid = uid;
  a.gid = gid;
  a.rdev = rdev;
  a.mtime = mtime;
  a.ctime = ctime;
  a.atime = atime;
  a.nlink = is_directory() && nlink != 0 ? 2 + directory.subdirectories : nlink;
  if (is_regular()) {
    a.size = content.size;
    a.data_bytes =
        staging.is_staged() ? staging.ranges->data_bytes_max() : content.size - content.hole_bytes;
  } else if (is_directory()) {
    a.size = directory.children;
  } else {
    a.size = symlink_target.size();
  }
  return a;
}

namespace {

// `recipe` is null if the record refers to the base's own recipe.
std::string encode(const OpenInode& inode, const format::Recipe* recipe) {
  std::string out;
  base::ByteWriter w(out);
  w.u32(inode.mode);
  w.varint(inode.uid);
  w.varint(inode.gid);
  w.varint(inode.nlink);
  w.varint(inode.rdev);
  put_time(w, inode.mtime);
  put_time(w, inode.ctime);
  put_time(w, inode.atime);
  format::put_xattrs(inode.xattrs, w);
  w.sized_text(inode.symlink_target);
  w.varint(inode.directory.parent);
  w.varint(inode.directory.children);
  w.varint(inode.directory.subdirectories);
  w.varint(inode.staging.generation);
  if (inode.staging.is_staged()) {
    inode.staging.ranges->encode(out);
    return out;
  }
  ChunkId id_base;
  format::encode_recipe(recipe != nullptr ? *recipe : format::Recipe(), id_base, out);
  if (recipe != nullptr && inode.directory.base_page == format::NodeId{}) return out;
  // Fields of a file of the base.
  w.varint(inode.directory.base_page.value);
  w.varint(recipe == nullptr ? inode.content.recipe_id.value : 0);
  if (recipe != nullptr) return out;
  w.varint(inode.content.size);
  w.varint(inode.content.hole_bytes);
  return out;
}

}  // namespace

namespace {

// Checks that only files have content, and only directories have pages.
bool has_content_of_type(const OpenInode& inode) {
  if (!format::is_entry_mode(inode.mode)) return false;
  if (inode.content.recipe_id != format::NodeId{} || inode.staging.is_staged()) {
    return inode.is_regular();
  }
  return inode.directory.base_page == format::NodeId{} || inode.is_directory();
}

}  // namespace

Error damaged_overlay(const char* what) {
  return {ErrorCode::kCorrupt, std::string("the open version's overlay: ") + what};
}

std::string encode_open_inode(const OpenInode& inode, const format::Recipe& recipe) {
  return encode(inode, &recipe);
}

std::string encode_open_inode(const OpenInode& inode) {
  return encode(inode, inode.content.recipe.get());
}

Result<std::unique_ptr<OpenInode>> decode_open_inode(Ino ino, std::string_view bytes,
                                                     Ino base_end) {
  base::ByteReader r(bytes);
  auto inode = std::make_unique<OpenInode>();
  inode->ino = ino;
  inode->mode = r.u32();
  inode->uid = get_u32(r);
  inode->gid = get_u32(r);
  inode->nlink = get_u32(r);
  inode->rdev = r.varint();
  inode->mtime = get_time(r);
  inode->ctime = get_time(r);
  inode->atime = get_time(r);
  inode->xattrs = format::get_xattrs(r);
  const bool is_link = (inode->mode & S_IFMT) == S_IFLNK;
  inode->symlink_target = is_link ? format::get_symlink_target(r) : r.sized_text(0);
  inode->directory.parent = r.varint();
  inode->directory.children = r.varint();
  inode->directory.subdirectories = get_u32(r);
  const std::uint64_t generation = r.varint();
  format::Recipe recipe;
  std::uint64_t base_bytes = 0;
  std::uint64_t base_holes = 0;
  if (generation != 0) {
    inode->staging.begin(generation, std::make_unique<StagedContent>(StagedContent::decode(r)), {});
  } else {
    ChunkId id_base;
    recipe = format::decode_recipe(r, id_base);
    if (r.ok() && r.left() != 0) {
      inode->directory.base_page = format::NodeId{r.varint()};
      inode->content.recipe_id = format::NodeId{r.varint()};
      if (inode->content.recipe_id != format::NodeId{}) {
        base_bytes = r.varint();
        base_holes = r.varint();
        if (base_holes > base_bytes) r.fail();
      }
    }
  }
  const bool refers_to_base = inode->directory.base_page != format::NodeId{} ||
                              inode->content.recipe_id != format::NodeId{};
  if (!r.done() || !has_content_of_type(*inode) || (refers_to_base && ino >= base_end)) {
    return Error(ErrorCode::kCorrupt, "an open version's inode record is damaged");
  }
  if (inode->content.recipe_id != format::NodeId{}) {
    inode->content.size = base_bytes;
    inode->content.hole_bytes = base_holes;
    return inode;
  }
  auto& staging = inode->staging;
  inode->content.size = staging.is_staged() ? staging.ranges->size() : recipe.bytes();
  staging.counted = staging.is_staged() ? staging.ranges->file_bytes() : 0;
  inode->content.set_recipe(std::move(recipe));
  return inode;
}

}  // namespace varve::version
