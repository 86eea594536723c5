// SPDX-License-Identifier: Apache-2.0
#include "transfer/zip_names.h"

#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <utility>

#include "base/coding.h"
#include "transfer/transfer_error.h"

namespace varve::transfer {
namespace {

constexpr std::size_t kEndBytes = 22;
constexpr std::size_t kLocatorBytes = 20;
constexpr std::size_t kEnd64Bytes = 56;
constexpr std::size_t kMemberRecordBytes = 46;
constexpr std::size_t kTailBytes = 16U << 10;              // libarchive looks no further, too.
constexpr std::size_t kMemberRecordBytesMax = 256U << 10;  // A record is shorter.
constexpr std::size_t kWindowBytes = 4 * kMemberRecordBytesMax;
constexpr std::uint32_t kIn64 = 0xffffffff;  // The number is in the field of 64 bits.
constexpr std::string_view kEndMark("PK\5\6", 4);
constexpr std::string_view kEnd64Mark("PK\6\6", 4);
constexpr std::string_view kLocatorMark("PK\6\7", 4);
constexpr std::string_view kRecordMark("PK\1\2", 4);

Error damaged() {
  return {ErrorCode::kInvalid, "the zip archive is damaged: its directory cannot be read"};
}

/// A member's name and the place of the member's data.
struct Member {
  std::uint64_t at = 0;
  std::string name;
  bool is_altered = false;  // Backslashes became slashes.
};

/// Returns bytes of the file; fewer at the end.
Result<std::string> read_at(int fd, std::uint64_t offset, std::size_t bytes) {
  // The kernel refuses a read beyond the longest file.
  constexpr std::uint64_t kEndMax = std::numeric_limits<off_t>::max();
  if (offset > kEndMax || bytes > kEndMax - offset) return damaged();
  std::string out(bytes, '\0');
  std::size_t got = 0;
  while (got < bytes) {
    const ssize_t n = ::pread(fd, out.data() + got, bytes - got, static_cast<off_t>(offset + got));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_error("cannot read the archive", errno);
    if (n == 0) break;
    got += static_cast<std::size_t>(n);
  }
  out.resize(got);
  return out;
}

/// Returns the offset of the directory.
Result<std::uint64_t> directory_at(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return system_error("cannot read the archive", errno);
  const auto size = static_cast<std::uint64_t>(status.st_size);
  const std::size_t wanted = std::min<std::uint64_t>(kTailBytes, size);
  VARVE_TRY_ASSIGN(const std::string tail, read_at(fd, size - wanted, wanted));
  if (tail.size() != wanted || wanted < kEndBytes) return damaged();
  const std::size_t end = tail.rfind(kEndMark, tail.size() - kEndBytes);
  if (end == std::string::npos) return damaged();
  if (end >= kLocatorBytes &&
      std::string_view(tail).substr(end - kLocatorBytes).starts_with(kLocatorMark)) {
    base::ByteReader locator(std::string_view(tail).substr(end - kLocatorBytes + 8));
    VARVE_TRY_ASSIGN(const std::string end64, read_at(fd, locator.u64(), kEnd64Bytes));
    if (end64.size() != kEnd64Bytes || !end64.starts_with(kEnd64Mark)) return damaged();
    return base::ByteReader(std::string_view(end64).substr(48)).u64();
  }
  // Data may precede the archive, so the directory's offset in the archive may be wrong.
  const std::uint64_t bytes = base::ByteReader(std::string_view(tail).substr(end + 12)).u32();
  const std::uint64_t end_at = size - wanted + end;
  if (bytes > end_at) return damaged();
  return end_at - bytes;
}

/// Takes the place and the name from the extra fields of a record.
Result<void> take_fields(std::string_view extra, std::uint64_t sizes_in_64, Member& member) {
  constexpr std::uint16_t kZip64 = 0x0001;
  constexpr std::uint16_t kUnicodePath = 0x7075;
  base::ByteReader fields(extra);
  while (fields.left() >= 4) {
    const std::uint16_t id = fields.u16();
    const std::uint16_t bytes = fields.u16();
    base::ByteReader field(fields.text(bytes));
    if (!fields.ok()) return damaged();
    if (id == kZip64 && member.at == kIn64) {
      for (std::uint64_t i = 0; i < sizes_in_64; ++i) field.u64();
      member.at = field.u64();
      if (!field.ok()) return damaged();
    } else if (id == kUnicodePath && bytes > 5) {
      field.u8();
      const std::uint32_t checksum = field.u32();
      const auto own = ::crc32(0, reinterpret_cast<const Bytef*>(member.name.data()),
                               static_cast<uInt>(member.name.size()));
      if (checksum == own) member.name = field.text(field.left());
    }
  }
  return {};
}

/// Reads a record of the directory. Returns the length of the record; 0 at the end of the
/// directory.
Result<std::size_t> read_record(std::string_view bytes, Member& member) {
  if (bytes.starts_with(kEndMark) || bytes.starts_with(kEnd64Mark)) return std::size_t{0};
  if (!bytes.starts_with(kRecordMark) || bytes.size() < kMemberRecordBytes) return damaged();
  base::ByteReader record(bytes.substr(5));
  const bool by_dos = record.u8() == 0;
  record.bytes(14);  // Versions, flags, method, time and checksum.
  const std::uint64_t sizes_in_64 =
      std::uint64_t{record.u32() == kIn64} + std::uint64_t{record.u32() == kIn64};
  const std::size_t name_bytes = record.u16();
  const std::size_t extra_bytes = record.u16();
  const std::size_t comment_bytes = record.u16();
  record.bytes(8);  // Disk and attributes.
  member.at = record.u32();
  member.name = record.text(name_bytes);
  const std::string_view extra = record.text(extra_bytes);
  record.bytes(comment_bytes);
  if (!record.ok()) return damaged();
  VARVE_TRY(take_fields(extra, sizes_in_64, member));
  if (member.name.find('\0') != std::string::npos) {
    return Error(ErrorCode::kInvalid, "the zip archive has a name with a zero byte");
  }
  if (member.name.find('/') == std::string::npos && member.name.find('\\') != std::string::npos) {
    if (by_dos) {
      std::ranges::replace(member.name, '\\', '/');
      member.is_altered = true;
    } else if (member.name.ends_with('\\')) {
      return Error(ErrorCode::kInvalid,
                   "the name \"" + member.name +
                       "\" ends in a backslash, which may mean a directory; unpack the archive and "
                       "store the result");
    }
  }
  return kMemberRecordBytes + name_bytes + extra_bytes + comment_bytes;
}

/// Checks that no name with altered backslashes has become the name of another member.
Result<void> check_altered(const std::vector<Member>& members) {
  std::set<std::string_view> altered;
  for (const Member& member : members) {
    if (member.is_altered) altered.insert(member.name);
  }
  for (const Member& member : members) {
    if (member.is_altered || !altered.contains(member.name)) continue;
    return Error(ErrorCode::kInvalid, "two members of the zip archive have the name \"" +
                                          member.name +
                                          "\" once backslashes are slashes; unpack the archive and "
                                          "store the result");
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> read_zip_names(int fd) {
  VARVE_TRY_ASSIGN(std::uint64_t at, directory_at(fd));
  std::vector<Member> members;
  VARVE_TRY_ASSIGN(std::string window, read_at(fd, at, kWindowBytes));
  std::size_t used = 0;
  while (true) {
    if (window.size() == kWindowBytes && window.size() - used < kMemberRecordBytesMax) {
      VARVE_TRY_ASSIGN(window, read_at(fd, at, kWindowBytes));
      used = 0;
    }
    Member member;
    VARVE_TRY_ASSIGN(const std::size_t bytes,
                     read_record(std::string_view(window).substr(used), member));
    if (bytes == 0) break;
    used += bytes;
    at += bytes;
    members.push_back(std::move(member));
  }
  VARVE_TRY(check_altered(members));
  std::ranges::sort(members, {}, &Member::at);
  std::vector<std::string> names;
  names.reserve(members.size());
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (i > 0 && members[i].at == members[i - 1].at) {
      return Error(ErrorCode::kInvalid, "two members of the zip archive have the same data: \"" +
                                            members[i - 1].name + "\" and \"" + members[i].name +
                                            "\"; unpack the archive and store the result");
    }
  }
  for (Member& member : members) names.push_back(std::move(member.name));
  return names;
}

bool is_same_zip_name(std::string_view altered, std::string_view own) {
  const auto is_ascii = [](std::string_view name) {
    return std::ranges::all_of(name, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  };
  if (!is_ascii(altered) || !is_ascii(own)) return true;
  if (altered.ends_with('/') && !own.ends_with('/') && !own.ends_with('\\')) {
    altered.remove_suffix(1);
  }
  return std::ranges::equal(altered, own,
                            [](char a, char b) { return a == b || (a == '/' && b == '\\'); });
}

}  // namespace varve::transfer
