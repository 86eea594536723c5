// SPDX-License-Identifier: Apache-2.0
#include "transfer_targets.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <memory>
#include <utility>

#include "base/coding.h"
#include "base/unique_fd.h"
#include "checks.h"
#include "counting_version.h"
#include "fs/posix_acl.h"
#include "transfer/archive_importer.h"
#include "transfer/archive_input.h"
#include "transfer/pax_check.h"
#include "transfer/zip_names.h"

namespace varve::fuzz {
namespace {

constexpr std::size_t kTarBlock = 512;
constexpr std::size_t kPipeBytes = 60'000;  // A pipe holds so many bytes without a reader.

base::UniqueFd file_with(std::string_view bytes) {
  base::UniqueFd fd(::memfd_create("input", MFD_CLOEXEC));
  require(fd.valid() && ::pwrite(fd.get(), bytes.data(), bytes.size(), 0) ==
                            static_cast<ssize_t>(bytes.size()),
          "a file in memory");
  return fd;
}

base::UniqueFd pipe_with(std::string_view bytes) {
  int ends[2];
  require(::pipe2(ends, O_CLOEXEC) == 0, "a pipe");
  base::UniqueFd read_end(ends[0]);
  const base::UniqueFd write_end(ends[1]);
  require(
      ::write(write_end.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()),
      "a pipe takes the input");
  return read_end;
}

// Corrects the checksum of a tar header.
void sum_tar_header(std::string& bytes, std::size_t at) {
  constexpr std::size_t kSumAt = 148;
  constexpr std::size_t kSumBytes = 8;
  std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at + kSumAt), kSumBytes, ' ');
  unsigned total = 0;
  for (std::size_t i = 0; i < kTarBlock; ++i) total += static_cast<unsigned char>(bytes[at + i]);
  const auto text = fmt::format("{:06o}", total) + '\0' + ' ';
  bytes.replace(at + kSumAt, kSumBytes, text);
}

// Returns the size in a tar header: an octal number, or the last bytes of a binary one.
std::size_t tar_size(std::string_view header) {
  constexpr std::size_t kSizeAt = 124;
  constexpr std::size_t kSizeBytes = 12;
  std::string_view field = header.substr(kSizeAt, kSizeBytes);
  std::size_t size = 0;
  if ((static_cast<unsigned char>(field[0]) & 0x80) != 0) {
    for (const char c : field.substr(kSizeBytes - 4))
      size = size << 8 | static_cast<unsigned char>(c);
    return size;
  }
  while (field.starts_with(' ') || field.starts_with('\t')) field.remove_prefix(1);
  std::from_chars(field.data(), field.data() + field.size(), size, 8);
  return size;
}

// Corrects the checksums of all headers of a tar archive.
void sum_tar(std::string& bytes) {
  for (std::size_t at = 0; at + kTarBlock <= bytes.size();) {
    const std::string_view header = std::string_view(bytes).substr(at, kTarBlock);
    if (header.find_first_not_of('\0') == std::string_view::npos) {
      at += kTarBlock;
      continue;
    }
    const auto size = tar_size(header);
    sum_tar_header(bytes, at);
    at += kTarBlock + std::min(size, bytes.size() - at) / kTarBlock * kTarBlock +
          (size % kTarBlock == 0 ? 0 : kTarBlock);
  }
}

using ArchivePtr = std::unique_ptr<::archive, decltype(&::archive_write_free)>;

// Returns an archive that libarchive writes, with members of several types.
std::string sample_archive(int (*set_format)(::archive*), int (*add_filter)(::archive*) = nullptr) {
  std::string out(1U << 20, '\0');
  std::size_t used = 0;
  const ArchivePtr writer(::archive_write_new(), &::archive_write_free);
  bool done = writer != nullptr && set_format(writer.get()) == ARCHIVE_OK;
  if (done && add_filter != nullptr) done = add_filter(writer.get()) == ARCHIVE_OK;
  ::archive_write_set_bytes_in_last_block(writer.get(), 1);
  done = done &&
         ::archive_write_open_memory(writer.get(), out.data(), out.size(), &used) == ARCHIVE_OK;
  const auto add = [&](const char* name, unsigned type, std::string_view data, const char* link) {
    ::archive_entry* const entry = ::archive_entry_new();
    ::archive_entry_set_pathname(entry, name);
    ::archive_entry_set_filetype(entry, type);
    ::archive_entry_set_perm(entry, 0644);
    ::archive_entry_set_mtime(entry, 1'700'000'000, 5);
    ::archive_entry_set_size(entry, static_cast<la_int64_t>(data.size()));
    if (type == AE_IFLNK) ::archive_entry_set_symlink(entry, link);
    if (type == 0) ::archive_entry_set_hardlink(entry, link);
    if (type == AE_IFREG) ::archive_entry_xattr_add_entry(entry, "user.a", "1", 1);
    done = done && ::archive_write_header(writer.get(), entry) >= ARCHIVE_WARN;
    if (!data.empty()) ::archive_write_data(writer.get(), data.data(), data.size());
    ::archive_entry_free(entry);
  };
  add("dir", AE_IFDIR, "", nullptr);
  add("dir/file", AE_IFREG, std::string(700, 'd'), nullptr);
  add("dir/\xc3\xa9t\xc3\xa9", AE_IFREG, "accents", nullptr);
  add((std::string(60, 'p') + "/" + std::string(60, 'n')).c_str(), AE_IFREG, "long", nullptr);
  add("symlink", AE_IFLNK, "", "../up");
  done = ::archive_write_close(writer.get()) == ARCHIVE_OK && done;
  require(done, "libarchive writes a sample");
  out.resize(used);
  return out;
}

// Returns a tar header without its checksum.
std::string tar_header(const std::string& name, char type, std::size_t bytes) {
  std::string header(kTarBlock, '\0');
  header.replace(0, name.size(), name);
  header.replace(100, 7, "0000644");
  header.replace(108, 7, "0000000");
  header.replace(116, 7, "0000000");
  header.replace(124, 11, fmt::format("{:011o}", bytes));
  header.replace(136, 11, "14000000000");
  header[156] = type;
  header.replace(257, 8,
                 std::string("ustar\0"
                             "00",
                             8));
  sum_tar_header(header, 0);
  return header;
}

std::string padded_tar(std::string bytes) {
  bytes.resize((bytes.size() + kTarBlock - 1) / kTarBlock * kTarBlock);
  return bytes;
}

// Returns an archive in which an extended header with these records, a hard link and a sparse file
// follow each other.
std::string pax_archive(std::string_view records) {
  return tar_header("first", '0', 3) + padded_tar("abc") + tar_header("pax", 'x', records.size()) +
         padded_tar(std::string(records)) + tar_header("second", '0', 3) + padded_tar("def") +
         std::string(2 * kTarBlock, '\0');
}

std::string pax_record(std::string_view key, std::string_view value) {
  const auto rest = key.size() + value.size() + 3;  // With a blank, '=' and a line feed.
  auto length = rest + 1;
  while (std::to_string(length).size() + rest != length) ++length;
  return fmt::format("{} {}={}\n", length, key, value);
}

// Returns whether a name of the archive ends at the zero byte of a record in the input. libarchive
// would take such a member for another one. A name that a tar header has is not cut.
bool is_cut(std::string_view input, const std::string& name) {
  if (name.empty() || name == "first" || name == "second") return false;
  if (input.find(" path=" + name + '\0') == std::string_view::npos) return false;
  for (std::size_t at = 0; at < input.size(); at += kTarBlock) {
    if (input.substr(at).starts_with(name)) return false;
  }
  return input.find("path=" + name + '\n') == std::string_view::npos;
}

std::string acl_of(const std::vector<std::array<std::uint32_t, 3>>& entries) {
  std::string value;
  base::ByteWriter writer(value);
  writer.u32(2);
  for (const auto& [tag, permissions, id] : entries) {
    writer.u16(static_cast<std::uint16_t>(tag));
    writer.u16(static_cast<std::uint16_t>(permissions));
    writer.u32(id);
  }
  return value;
}

}  // namespace

void archive(Bytes input) {
  if (input.empty()) return;
  const auto flags = static_cast<unsigned>(input[0]);
  std::string bytes(text_of(input.subspan(1)));
  if ((flags & 2) != 0) sum_tar(bytes);
  const bool by_pipe = (flags & 1) != 0 && bytes.size() <= kPipeBytes;
  const auto fd = by_pipe ? pipe_with(bytes) : file_with(bytes);
  CountingVersion version;
  const auto report = transfer::import_archive(version, fd.get(), {});
  if (report) {
    require(report->entries == version.names(), "a report has the number of names");
  } else {
    require(report.error().code() == ErrorCode::kInvalid ||
                report.error().code() == ErrorCode::kTooLarge,
            "a damaged archive is an invalid one");
  }
}

std::vector<std::string> archive_seeds() {
  const std::string file(1, '\0');
  const std::string tar(1, '\2');
  const std::string piped_tar(1, '\3');
  std::vector<std::string> seeds{
      tar + sample_archive(::archive_write_set_format_pax_restricted),
      piped_tar + sample_archive(::archive_write_set_format_gnutar),
      file + sample_archive(::archive_write_set_format_cpio_newc),
      std::string(1, '\1') + sample_archive(::archive_write_set_format_cpio_odc),
      file + sample_archive(::archive_write_set_format_zip),
      file + sample_archive(::archive_write_set_format_ustar, ::archive_write_add_filter_gzip),
      file + sample_archive(::archive_write_set_format_ustar, ::archive_write_add_filter_zstd),
      file + sample_archive(::archive_write_set_format_ustar, ::archive_write_add_filter_xz),
      file + sample_archive(::archive_write_set_format_ustar, ::archive_write_add_filter_bzip2)};
  // A hard link, and a sparse file of GNU tar with a map of two parts.
  auto linked = tar_header("first", '0', 3) + padded_tar("abc") + tar_header("dir/link", '1', 0);
  linked.replace(2 * kTarBlock + 157, 5, "first");
  const auto map = pax_record("GNU.sparse.major", "1") + pax_record("GNU.sparse.minor", "0") +
                   pax_record("GNU.sparse.name", "sparse") +
                   pax_record("GNU.sparse.realsize", "9000");
  seeds.push_back(tar + linked + tar_header("pax", 'x', map.size()) + padded_tar(map) +
                  tar_header("GNUSparseFile.1/sparse", '0', kTarBlock + 4) +
                  padded_tar("2\n0\n2\n8000\n2\n") + padded_tar("abcd") +
                  std::string(2 * kTarBlock, '\0'));
  return seeds;
}

void zip_directory(Bytes input) {
  const auto fd = file_with(text_of(input));
  const auto names = transfer::read_zip_names(fd.get());
  if (!names) {
    require(names.error().code() == ErrorCode::kInvalid, "a damaged directory is an invalid one");
    return;
  }
  require(names->size() <= input.size(), "a member takes a byte");
  for (const auto& name : *names) {
    require(name.find('\0') == std::string::npos, "a name has no zero byte");
    require(transfer::is_same_zip_name(name, name), "a name is the same as itself");
  }
}

std::vector<std::string> zip_directory_seeds() {
  std::vector<std::string> seeds{sample_archive(::archive_write_set_format_zip)};
  // Without data: the directory and its end, also with an end of 64 bits.
  const auto record = [](std::string_view name, std::string_view extra, bool by_dos) {
    std::string out("PK\1\2\x14", 5);
    base::ByteWriter writer(out);
    writer.u8(by_dos ? 0 : 3);
    writer.text(std::string(14, '\0'));
    writer.u32(5);
    writer.u32(5);
    writer.u16(static_cast<std::uint16_t>(name.size()));
    writer.u16(static_cast<std::uint16_t>(extra.size()));
    writer.u16(0);
    writer.text(std::string(8, '\0'));
    writer.u32(extra.empty() ? 0 : ~0U);  // The place is in the extra field.
    return out.append(name).append(extra);
  };
  const std::string extra("\1\0\x8\0\1\0\0\0\0\0\0\0", 12);
  const auto directory = record("a\\b", "", true) + record("name", extra, false);
  std::string end("PK\5\6", 4);
  base::ByteWriter writer(end);
  writer.text(std::string(8, '\0'));
  writer.u32(static_cast<std::uint32_t>(directory.size()));
  writer.u32(0);
  writer.u16(0);
  seeds.push_back(directory + end);
  std::string end64("PK\6\6", 4);
  end64.resize(56);
  std::string locator("PK\6\7\0\0\0\0", 8);
  base::ByteWriter place(locator);
  place.u64(directory.size());
  place.u32(1);
  seeds.push_back(directory + end64 + locator + end);
  return seeds;
}

void pax_records(Bytes input) {
  const auto text = text_of(input);
  const auto checked = transfer::check_pax_names(text);
  if (!checked) {
    require(checked.error().code() == ErrorCode::kInvalid && text.find('\0') != text.npos,
            "only a name with a zero byte is refused");
  }
  std::string bytes(text);
  if (text.size() < kTarBlock) {
    bytes = pax_archive(text);
  } else {
    sum_tar(bytes);
  }
  const auto fd = file_with(bytes);
  const std::function<bool()> goes_on = [] { return true; };
  const auto opened = transfer::ArchiveInput::open(fd.get(), goes_on);
  if (!opened) return;
  for (auto entry = (*opened)->next(); entry && *entry != nullptr; entry = (*opened)->next()) {
    const auto& name = (*opened)->name();
    require(name.find('\0') == std::string::npos, "a name has no zero byte");
    require(!is_cut(text, name), "no name was cut at a zero byte");
  }
}

std::vector<std::string> pax_records_seeds() {
  const auto records = pax_record("mtime", "1700000000.5") + pax_record("path", "another") +
                       pax_record("linkpath", "first") +
                       pax_record("SCHILY.xattr.user.a", std::string("1\0\2", 3)) +
                       pax_record("LIBARCHIVE.xattr.user.b", "MQ") +
                       pax_record("SCHILY.acl.access", "user::rw-,group::r--,other::---") +
                       pax_record("size", "3") + pax_record("uid", "1000");
  return {records, pax_archive(pax_record("path", "x")), pax_record("path", std::string("a\0b", 3)),
          pax_record("GNU.sparse.map", "0,1,2,1") + pax_record("GNU.sparse.size", "9")};
}

void posix_acl(Bytes input) {
  if (input.size() < 2) return;
  const std::uint32_t mode = base::load_le<std::uint16_t>(input.data()) & 0777U;
  const auto value = text_of(input.subspan(2));
  const auto summary = varve::fs::summarise_acl(value);
  const auto changed = varve::fs::acl_after_chmod(value, mode);
  require(changed.size() == value.size(), "a change of the mode keeps the entries");
  require(varve::fs::acl_after_chmod(changed, mode) == changed, "a mode is set once");
  const auto inherited = varve::fs::inherit_acl(value, mode);
  require(summary.has_value() == inherited.has_value(), "an ACL is usable or not");
  require(summary.has_value() == varve::fs::summarise_acl(changed).has_value(),
          "a change of the mode keeps an ACL usable");
  if (!summary) return;
  require(summary->permissions <= 0777, "permissions are nine bits");
  require(varve::fs::summarise_acl(changed)->permissions == mode, "an ACL follows the mode");
  require(varve::fs::summarise_acl(changed)->extended == summary->extended, "entries stay");
  require((inherited->permissions & ~mode) == 0, "a new file has no more rights than its mode");
  require((inherited->permissions & ~summary->permissions) == 0,
          "a new file has no more rights than the default ACL");
  require(inherited->access.empty() != summary->extended, "an ACL is kept if bits do not suffice");
}

std::vector<std::string> posix_acl_seeds() {
  constexpr std::uint32_t kNone = 0xffffffff;
  const std::string mode("\xa4\1", 2);
  return {mode + acl_of({{1, 6, kNone}, {4, 4, kNone}, {32, 0, kNone}}),
          mode + acl_of({{1, 7, kNone},
                         {2, 5, 1000},
                         {4, 5, kNone},
                         {8, 1, 7},
                         {16, 5, kNone},
                         {32, 4, kNone}})};
}

}  // namespace varve::fuzz
