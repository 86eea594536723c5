// SPDX-License-Identifier: Apache-2.0
#include "transfer/tar_writer.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/coding.h"

namespace varve::transfer {
namespace {

constexpr std::size_t kBlockBytes = 512;
// By default, GNU tar pads an archive to a multiple of a record.
constexpr std::size_t kRecordBytes = 20 * kBlockBytes;
constexpr std::size_t kBufferBytes = 256U << 10;

// A field of a header block.
struct Field {
  std::size_t at;
  std::size_t bytes;
};
constexpr Field kName{0, 100};
constexpr Field kMode{100, 8};
constexpr Field kUid{108, 8};
constexpr Field kGid{116, 8};
constexpr Field kSize{124, 12};
constexpr Field kMtime{136, 12};
constexpr Field kChecksum{148, 8};
constexpr Field kType{156, 1};
constexpr Field kLinkName{157, 100};
constexpr Field kMagicField{257, 8};
constexpr Field kDeviceMajor{329, 8};
constexpr Field kDeviceMinor{337, 8};

std::uint64_t padding(std::uint64_t bytes) {
  return (kBlockBytes - bytes % kBlockBytes) % kBlockBytes;
}

/// Returns the largest number that fits the octal digits of a field.
constexpr std::uint64_t largest(Field field) { return (1ULL << (3 * (field.bytes - 1))) - 1; }

class Header {
 public:
  Header() { text(kMagicField, std::string_view("ustar\00000", 8)); }

  void text(Field field, std::string_view value) {
    std::memcpy(block_.data() + field.at, value.data(), std::min(value.size(), field.bytes));
  }
  /// Sets a numeric field. Returns false and sets 0 if the value does not fit.
  bool number(Field field, std::uint64_t value) {
    const bool fits = value <= largest(field);
    const std::string digits = fmt::format("{:0{}o}", fits ? value : 0, field.bytes - 1);
    text(field, digits);
    return fits;
  }
  /// Returns the block with the checksum.
  [[nodiscard]] const std::string& block() {
    text(kChecksum, "        ");
    unsigned sum = 0;
    for (const char c : block_) sum += static_cast<unsigned char>(c);
    text(kChecksum, std::string_view(fmt::format("{:06o}", sum) + '\0' + ' '));
    return block_;
  }

 private:
  std::string block_ = std::string(kBlockBytes, '\0');
};

/// Appends a record of an extended header. A record starts with the record's length, including the
/// length's own digits.
void add_record(std::string& records, std::string_view key, std::string_view value) {
  const std::size_t rest = key.size() + value.size() + 3;  // Blank, '=' and newline.
  std::size_t length = rest;
  while (length != rest + std::to_string(length).size()) {
    length = rest + std::to_string(length).size();
  }
  records += fmt::format("{} {}=", length, key);
  records += value;
  records += '\n';
}

char type_of(const TarEntry& entry) {
  if (entry.is_hard_link) return '1';
  switch (entry.attributes.mode & S_IFMT) {
    case S_IFLNK:
      return '2';
    case S_IFCHR:
      return '3';
    case S_IFBLK:
      return '4';
    case S_IFDIR:
      return '5';
    case S_IFIFO:
      return '6';
    default:
      return '0';
  }
}

std::string time_text(const Timestamp& time) {
  if (time.seconds >= 0 || time.nanoseconds == 0) {
    return fmt::format("{}.{:09}", time.seconds, time.nanoseconds);
  }
  // Before 1970, the fraction counts away from zero.
  const auto whole = -(time.seconds + 1);
  return fmt::format("-{}.{:09}", whole, 1'000'000'000 - time.nanoseconds);
}

void add_xattrs(std::string& records, const TarEntry& entry) {
  for (const Xattr& xattr : entry.xattrs) {
    const auto acl = [&](std::string_view key) {
      const auto text = acl_text(xattr.value);
      if (text) add_record(records, key, *text);
      return text.has_value();
    };
    if (xattr.name == "system.posix_acl_access" && acl("SCHILY.acl.access")) continue;
    if (xattr.name == "system.posix_acl_default" && acl("SCHILY.acl.default")) continue;
    // '=' ends the key of a record, so GNU tar escapes '=' and '%' as follows.
    std::string key = "SCHILY.xattr.";
    for (const char c : xattr.name) {
      key += c == '=' ? "%3D" : c == '%' ? "%25" : std::string(1, c);
    }
    add_record(records, key, xattr.value);
  }
}

std::string sparse_map(const std::vector<ByteRange>& data) {
  std::string map = fmt::format("{}\n", data.size());
  for (const ByteRange& range : data) {
    map += fmt::format("{}\n{}\n", range.begin, range.end - range.begin);
  }
  map.append(padding(map.size()), '\0');
  return map;
}

}  // namespace

std::optional<std::string> acl_text(std::string_view value) {
  constexpr std::uint32_t kVersion = 2;  // linux/posix_acl_xattr.h
  base::ByteReader reader(value);
  if (reader.u32() != kVersion) return std::nullopt;
  std::string text;
  while (reader.ok() && reader.left() > 0) {
    const std::uint16_t tag = reader.u16();
    const std::uint16_t allowed = reader.u16();
    const std::uint32_t id = reader.u32();
    if (!text.empty()) text += ',';
    switch (tag) {
      case 0x01:
        text += "user::";
        break;
      case 0x02:
        text += fmt::format("user:{}:", id);
        break;
      case 0x04:
        text += "group::";
        break;
      case 0x08:
        text += fmt::format("group:{}:", id);
        break;
      case 0x10:
        text += "mask::";
        break;
      case 0x20:
        text += "other::";
        break;
      default:
        return std::nullopt;
    }
    text += (allowed & 4) != 0 ? 'r' : '-';
    text += (allowed & 2) != 0 ? 'w' : '-';
    text += (allowed & 1) != 0 ? 'x' : '-';
  }
  if (!reader.done()) return std::nullopt;
  return text;
}

Result<void> TarWriter::begin(const TarEntry& entry) {
  const Attributes& attributes = entry.attributes;
  const char type = type_of(entry);
  std::string map;
  std::uint64_t size = type == '0' ? attributes.size : 0;
  std::string records;
  if (type == '0' && entry.data) {
    map = sparse_map(*entry.data);
    size = map.size();
    for (const ByteRange& range : *entry.data) size += range.end - range.begin;
    add_record(records, "GNU.sparse.major", "1");
    add_record(records, "GNU.sparse.minor", "0");
    add_record(records, "GNU.sparse.name", entry.path);
    add_record(records, "GNU.sparse.realsize", std::to_string(attributes.size));
  }
  Header header;
  const auto is_plain = [](std::string_view text, Field field) {
    return text.size() <= field.bytes &&
           std::ranges::all_of(text, [](char c) { return c >= 0x20 && c < 0x7f; });
  };
  header.text(kName, entry.path);
  if (!is_plain(entry.path, kName)) add_record(records, "path", entry.path);
  header.text(kLinkName, entry.target);
  if (!is_plain(entry.target, kLinkName)) add_record(records, "linkpath", entry.target);
  header.number(kMode, attributes.mode & 07777);
  if (!header.number(kUid, attributes.uid)) {
    add_record(records, "uid", std::to_string(attributes.uid));
  }
  if (!header.number(kGid, attributes.gid)) {
    add_record(records, "gid", std::to_string(attributes.gid));
  }
  if (!header.number(kSize, size)) add_record(records, "size", std::to_string(size));
  const bool is_early = attributes.mtime.seconds < 0;
  const auto seconds = static_cast<std::uint64_t>(is_early ? 0 : attributes.mtime.seconds);
  if (!header.number(kMtime, seconds) || is_early || attributes.mtime.nanoseconds > 0) {
    add_record(records, "mtime", time_text(attributes.mtime));
  }
  header.text(kType, std::string_view(&type, 1));
  if (type == '3' || type == '4') {
    const auto device = static_cast<dev_t>(attributes.rdev);
    // The format has only seven digits for device numbers.
    header.number(kDeviceMajor, major(device));
    header.number(kDeviceMinor, minor(device));
  }
  if (type != '1') add_xattrs(records, entry);

  if (!records.empty()) {
    Header extended;
    extended.text(kName, "./PaxHeaders/entry");
    extended.number(kMode, 0644);
    extended.number(kUid, 0);
    extended.number(kGid, 0);
    extended.number(kSize, records.size());
    extended.number(kMtime, 0);
    extended.text(kType, "x");
    buffer_ += extended.block();
    buffer_ += records;
    buffer_.append(padding(records.size()), '\0');
  }
  buffer_ += header.block();
  buffer_ += map;
  return buffer_.size() >= kBufferBytes ? flush() : Result<void>();
}

Result<void> TarWriter::write(std::span<const std::byte> bytes) {
  if (buffer_.size() + bytes.size() >= kBufferBytes) {
    VARVE_TRY(flush());
    if (bytes.size() >= kBufferBytes) {
      written_ += bytes.size();
      return write_all(fd_, bytes, std::nullopt);
    }
  }
  buffer_ += base::as_text(bytes);
  return {};
}

Result<void> TarWriter::write_zeros(std::uint64_t bytes) {
  while (bytes > 0) {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, kBufferBytes));
    buffer_.append(n, '\0');
    bytes -= n;
    if (buffer_.size() >= kBufferBytes) VARVE_TRY(flush());
  }
  return {};
}

Result<void> TarWriter::end() { return write_zeros(padding(written_ + buffer_.size())); }

Result<void> TarWriter::finish() {
  const std::uint64_t bytes = written_ + buffer_.size() + 2 * kBlockBytes;
  VARVE_TRY(write_zeros(2 * kBlockBytes + (kRecordBytes - bytes % kRecordBytes) % kRecordBytes));
  return flush();
}

Result<void> TarWriter::flush() {
  VARVE_TRY(write_all(fd_, base::as_bytes(buffer_), std::nullopt));
  written_ += buffer_.size();
  buffer_.clear();
  return {};
}

}  // namespace varve::transfer
