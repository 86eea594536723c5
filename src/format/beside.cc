// SPDX-License-Identifier: Apache-2.0
#include "format/beside.h"

#include <sys/stat.h>

#include <map>
#include <set>
#include <utility>

#include "base/checksum.h"
#include "base/coding.h"
#include "base/time_coding.h"
#include "format/dir_entry_codec.h"

namespace varve::format {

namespace {

constexpr std::string_view kMagic = "VarveBsd";
constexpr std::uint32_t kFormat = 1;
constexpr std::size_t kTailBytes = 8;

Error damaged() { return {ErrorCode::kCorrupt, "the files beside the versions are damaged"}; }

BesideRecord get_record(base::ByteReader& r) {
  BesideRecord record;
  record.ino = r.varint();
  record.parent = r.varint();
  record.name = r.sized_text(kNameBytesMax);
  record.mode = r.u32();
  record.uid = r.u32();
  record.gid = r.u32();
  record.mtime = base::get_time(r);
  record.ctime = base::get_time(r);
  record.atime = base::get_time(r);
  record.content = r.sized_text(kBesideFileBytesMax);
  return record;
}

// Returns whether the record alone follows the rules of the format.
bool is_sound(const BesideRecord& record) {
  if (!is_entry_name(record.name)) return false;
  switch (record.mode & S_IFMT) {
    case S_IFREG:
      return true;
    case S_IFLNK:
      return !record.content.empty() && record.content.size() <= kSymlinkBytesMax &&
             record.content.find('\0') == std::string::npos;
    case S_IFDIR:
      return record.content.empty() && record.parent == kRootIno;
    default:
      return false;
  }
}

// Returns whether the numbers, folders and names of all records agree.
bool is_sound(const BesideImage& image) {
  std::map<Ino, std::uint32_t> modes;
  std::set<std::pair<Ino, std::string_view>> names;
  std::size_t bytes = 0;
  Ino last = kRootIno;
  for (const auto& record : image.records) {
    if (record.ino <= last || record.ino >= image.next || !is_sound(record)) return false;
    last = record.ino;
    modes.emplace(record.ino, record.mode);
    bytes += record.content.size();
    if (!names.emplace(record.parent, record.name).second) return false;
  }
  for (const auto& record : image.records) {
    if (record.parent == kRootIno) continue;
    const auto folder = modes.find(record.parent);
    if (folder == modes.end() || !S_ISDIR(folder->second)) return false;
  }
  return bytes <= kBesideBytesMax;
}

}  // namespace

std::string encode_beside(SeriesId series, const BesideImage& image) {
  std::string out;
  base::ByteWriter w(out);
  w.text(kMagic);
  w.u32(kFormat);
  w.u32(static_cast<std::uint32_t>(series));
  w.u64(image.next);
  w.u32(static_cast<std::uint32_t>(image.records.size()));
  for (const auto& record : image.records) {
    w.varint(record.ino);
    w.varint(record.parent);
    w.sized_text(record.name);
    w.u32(record.mode);
    w.u32(record.uid);
    w.u32(record.gid);
    base::put_time(w, record.mtime);
    base::put_time(w, record.ctime);
    base::put_time(w, record.atime);
    w.sized_text(record.content);
  }
  w.u64(base::checksum64(base::as_bytes(out)));
  return out;
}

Result<BesideImage> decode_beside(SeriesId series, std::string_view bytes) {
  if (bytes.size() < kMagic.size() + kTailBytes) return damaged();
  const auto body = bytes.substr(0, bytes.size() - kTailBytes);
  base::ByteReader sum(bytes.substr(body.size()));
  if (sum.u64() != base::checksum64(base::as_bytes(body))) return damaged();
  base::ByteReader r(body);
  if (r.text(kMagic.size()) != kMagic) return damaged();
  if (r.u32() != kFormat) {
    return Error(ErrorCode::kUnsupported,
                 "a newer Varve wrote the files beside the versions; use that one");
  }
  const std::uint32_t owner = r.u32();
  BesideImage image;
  image.next = r.u64();
  const std::uint32_t count = r.u32();
  if (owner != static_cast<std::uint32_t>(series) || count > kBesideNamesMax ||
      image.next <= kRootIno || image.next > kBesideInoEnd) {
    return damaged();
  }
  for (std::uint32_t i = 0; i < count && r.ok(); ++i) image.records.push_back(get_record(r));
  if (!r.done() || !is_sound(image)) return damaged();
  return image;
}

}  // namespace varve::format
