// SPDX-License-Identifier: Apache-2.0
#include "copy/change_checker.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <span>
#include <string_view>

#include "copy/change_applier.h"

namespace varve::copy {
namespace {

constexpr std::uint64_t kHoleBytesRead = 65536;

/// Returns whether the reason is something missing in the version, not a failure of the check.
bool is_difference(const Error& error) {
  switch (error.code()) {
    case ErrorCode::kNotFound:
    case ErrorCode::kNotDirectory:
    case ErrorCode::kIsDirectory:
    case ErrorCode::kInvalid:
    case ErrorCode::kCorrupt:
      return true;
    default:
      return false;
  }
}

}  // namespace

Result<void> ChangeChecker::check(const ChangeBatch& batch, std::vector<Difference>& differences) {
  if (directories_.empty()) {
    directories_.push_back(tree_->root());
  }
  std::uint32_t number = 0;
  for (const Change& change : batch.changes) {
    auto found = check_one(change);
    if (!found) {
      // Nothing below a missing directory can be compared.
      if (!is_difference(found.error()) || change.kind == ChangeKind::kEnter) {
        return std::move(found).error().with_context("comparing " + change.name);
      }
      differences.push_back({number, found.error().message()});
    } else if (*found) {
      differences.push_back({number, **found});
    }
    ++number;
  }
  return {};
}

Result<ChangeChecker::Finding> ChangeChecker::check_one(const Change& change) {
  if (change.kind == ChangeKind::kLeave) {
    if (directories_.size() == 1) return Error(ErrorCode::kIo, "a way out of the version");
    directories_.pop_back();
    return Finding();
  }
  if (change.kind == ChangeKind::kAttributes && change.name.empty()) {
    VARVE_TRY_ASSIGN(const auto here, tree_->get(directories_.back()));
    return check_attributes(change, here);
  }
  VARVE_TRY(check_file_name(change.name));
  const auto entry = tree_->lookup(directories_.back(), change.name);
  if (change.kind == ChangeKind::kRemove) {
    if (entry) return Finding("the copy has it, and the original does not");
    if (entry.error().code() == ErrorCode::kNotFound) return Finding();
    return entry.error();
  }
  if (!entry) {
    if (entry.error().code() != ErrorCode::kNotFound) return entry.error();
    return Error(ErrorCode::kNotFound, "the copy does not have it");
  }
  switch (change.kind) {
    case ChangeKind::kEnter:
      if (!is_type(entry->attributes.mode, S_IFDIR)) {
        return Error(ErrorCode::kNotDirectory, "the copy has a file in place of a directory");
      }
      directories_.push_back(entry->id);
      return Finding();
    case ChangeKind::kMake:
      return check_made(change, *entry);
    case ChangeKind::kData:
      return check_data(change, *entry);
    case ChangeKind::kHole:
      return check_hole(change, *entry);
    case ChangeKind::kAttributes:
      return check_attributes(change, *entry);
    case ChangeKind::kLink:
      return check_link(change, *entry);
    default:
      return Error(ErrorCode::kIo, "an unknown kind of change");
  }
}

Result<ChangeChecker::Finding> ChangeChecker::check_made(const Change& change,
                                                         const ViewEntry& entry) {
  if ((entry.attributes.mode & S_IFMT) != (change.mode & S_IFMT)) {
    return Finding("another type of file");
  }
  if (is_type(change.mode, S_IFLNK)) {
    VARVE_TRY_ASSIGN(const auto target, tree_->read_link(entry.id));
    if (target != change.target) return Finding("another target");
  }
  if (is_type(change.mode, S_IFBLK) || is_type(change.mode, S_IFCHR)) {
    if (entry.attributes.rdev != change.rdev) return Finding("another device");
  }
  return Finding();
}

Result<ViewFile*> ChangeChecker::file(const ViewEntry& entry) {
  if (file_id_ != entry.id) {
    file_id_.reset();
    VARVE_TRY_ASSIGN(file_, tree_->open(entry.id));
    file_id_ = entry.id;
  }
  return file_.get();
}

Result<ChangeChecker::Finding> ChangeChecker::check_data(const Change& change,
                                                         const ViewEntry& entry) {
  VARVE_TRY_ASSIGN(auto* const in, file(entry));
  std::size_t bytes = 0;
  for (const ChunkRef& chunk : change.chunks) bytes += chunk.bytes;
  if (bytes > kBatchDataMax) return Error(ErrorCode::kIo, "a change that is too large");
  room_.resize(bytes);
  VARVE_TRY_ASSIGN(const std::size_t got, in->read(change.offset, room_));
  if (got != bytes) return Finding("the copy is shorter");
  std::span<const std::byte> rest(room_);
  std::uint64_t offset = change.offset;
  for (const ChunkRef& chunk : change.chunks) {
    if (fingerprinter_.fingerprint(rest.first(chunk.bytes)) != chunk.fingerprint) {
      return Finding(fmt::format("other bytes at offset {}", offset));
    }
    rest = rest.subspan(chunk.bytes);
    offset += chunk.bytes;
  }
  return Finding();
}

// A hole that does not cover whole blocks may be stored as zeros at the ends.
Result<ChangeChecker::Finding> ChangeChecker::check_hole(const Change& change,
                                                         const ViewEntry& entry) {
  VARVE_TRY_ASSIGN(auto* const in, file(entry));
  const std::uint64_t end = change.offset + change.bytes;
  for (std::uint64_t at = change.offset; at < end;) {
    const auto data = in->seek_data(at);
    if (!data && data.error().code() == ErrorCode::kPastEnd) return Finding();
    if (!data) return data.error();
    at = std::max(at, *data);
    if (at >= end) return Finding();
    room_.resize(std::min(end - at, kHoleBytesRead));
    VARVE_TRY_ASSIGN(const std::size_t got, in->read(at, room_));
    if (got == 0) return Finding();
    const auto read = std::span<const std::byte>(room_).first(got);
    if (std::ranges::any_of(read, [](std::byte b) { return b != std::byte{0}; })) {
      return Finding(fmt::format("data in a hole, at offset {}", at));
    }
    at += got;
  }
  return Finding();
}

Result<ChangeChecker::Finding> ChangeChecker::check_attributes(const Change& change,
                                                               const ViewEntry& entry) {
  const Attributes& have = entry.attributes;
  if (have.mode != change.mode) return Finding("another mode or type");
  if (have.uid != change.uid || have.gid != change.gid) return Finding("another owner");
  if (have.mtime != change.mtime) return Finding("another modification time");
  if (is_type(change.mode, S_IFREG) && have.size != change.size) return Finding("another size");
  VARVE_TRY_ASSIGN(const Xattrs xattrs, tree_->xattrs(entry.id));
  if (xattrs != change.xattrs) return Finding("other extended attributes");
  return Finding();
}

Result<ChangeChecker::Finding> ChangeChecker::check_link(const Change& change,
                                                         const ViewEntry& entry) {
  std::uint64_t at = directories_.front();
  std::string_view path = change.target;
  std::uint64_t linked = 0;
  while (!path.empty()) {
    const auto slash = std::min(path.find('/'), path.size());
    VARVE_TRY_ASSIGN(const auto next, tree_->lookup(at, path.substr(0, slash)));
    at = next.id;
    linked = next.file;
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  if (linked != entry.file) return Finding("not a name of the same file");
  return Finding();
}

}  // namespace varve::copy
