// SPDX-License-Identifier: Apache-2.0
// write_zip(): writes a sealed tree as a zip archive, in a single pass and in tree order.
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "transfer/entry_walk.h"
#include "transfer/libarchive.h"
#include "transfer/problem_list.h"
#include "transfer/transfer_error.h"
#include "varve/restore.h"

namespace varve {
namespace transfer {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

struct FreeArchive {
  void operator()(archive* handle) const { libarchive().archive_write_free(handle); }
};
struct FreeEntry {
  void operator()(archive_entry* entry) const { libarchive().archive_entry_free(entry); }
};

/// Returns the number of bytes of the UTF-8 character at the start of `text`; 0 if there is none.
std::size_t character_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const std::size_t bytes = first < 0x80   ? 1
                            : first < 0xc2 ? 0
                            : first < 0xe0 ? 2
                            : first < 0xf0 ? 3
                            : first < 0xf5 ? 4
                                           : 0;
  if (bytes == 0 || bytes > text.size()) return 0;
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const bool overlong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
  const bool surrogate = first == 0xed && byte(1) >= 0xa0;
  const bool beyond = first == 0xf4 && byte(1) >= 0x90;
  return overlong || surrogate || beyond ? 0 : bytes;
}

/// Returns a path for a zip archive with names in UTF-8: other bytes, control characters, and the
/// backslash, taken for a slash by some programs, become \xNN.
std::string zip_path(std::string_view path) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  while (!path.empty()) {
    const auto first = static_cast<unsigned char>(path.front());
    const std::size_t bytes = character_bytes(path);
    if (bytes == 0 || first < 0x20 || first == 0x7f || first == '\\') {
      out += {'\\', 'x', kDigits[first >> 4], kDigits[first & 15]};
      path.remove_prefix(1);
      continue;
    }
    out += path.substr(0, bytes);
    path.remove_prefix(bytes);
  }
  return out;
}

class ZipExport {
 public:
  ZipExport(VersionReader& version, const std::vector<std::string>& paths,
            const std::function<bool(const TransferProgress&)>& progress)
      : version_(version),
        progress_(progress),
        handle_(libarchive().archive_write_new()),
        buffer_(kPieceBytes),
        walk_(version, paths, problems_) {}

  Result<TransferReport> run(int fd);

 private:
  [[nodiscard]] Result<void> open(int fd);
  [[nodiscard]] Result<void> add_and_count(const SealedEntry& entry);
  [[nodiscard]] Result<void> add(const SealedEntry& entry);
  [[nodiscard]] Result<void> add_data(const SealedEntry& entry, archive_entry& out);
  [[nodiscard]] Error failure() const;

  VersionReader& version_;
  const std::function<bool(const TransferProgress&)>& progress_;
  const std::unique_ptr<archive, FreeArchive> handle_;
  std::vector<std::byte> buffer_;
  ProblemList problems_;
  TransferProgress done_;
  TransferReport report_;
  EntryWalk walk_;
  std::string& path_ = walk_.path();
};

Error ZipExport::failure() const {
  const int number = libarchive().archive_errno(handle_.get());
  const char* const text = libarchive().archive_error_string(handle_.get());
  return system_error(
      std::string("cannot write the archive") + (text ? ": " : "") + (text ? text : ""),
      number > 0 ? number : EIO);
}

Result<void> ZipExport::open(int fd) {
  archive* const handle = handle_.get();
  // Level 1 keeps pace with a disk. A pipe must get no padding behind the archive.
  const bool is_set =
      libarchive().archive_write_set_format_zip(handle) == ARCHIVE_OK &&
      libarchive().archive_write_set_options(handle, "zip:compression-level=1") == ARCHIVE_OK &&
      libarchive().archive_write_set_bytes_in_last_block(handle, 1) == ARCHIVE_OK;
  if (!is_set || libarchive().archive_write_open_fd(handle, fd) != ARCHIVE_OK) return failure();
  return {};
}

Result<TransferReport> ZipExport::run(int fd) {
  VARVE_TRY(walk_.begin());
  VARVE_TRY(open(fd));
  const auto add_one = [this](const SealedEntry& entry) { return add_and_count(entry); };
  VARVE_TRY(walk_.run(add_one, [this]() -> Result<void> {
    return Error(ErrorCode::kCorrupt, path_ + ": directories nested too deeply or in a circle");
  }));
  if (libarchive().archive_write_close(handle_.get()) != ARCHIVE_OK) return failure();
  report_.bytes = done_.bytes_done;
  report_.problems = problems_.take();
  return std::move(report_);
}

Result<void> ZipExport::add_and_count(const SealedEntry& entry) {
  VARVE_TRY(add(entry));
  ++done_.files_done;
  if (progress_ && !progress_(done_)) return Error(ErrorCode::kInterrupted, "interrupted");
  return {};
}

Result<void> ZipExport::add(const SealedEntry& entry) {
  const Attributes& attributes = entry.attributes;
  const mode_t type = attributes.mode & S_IFMT;
  if (type != S_IFREG && type != S_IFDIR && type != S_IFLNK) {
    problems_.add(path_, std::string(kSpecialLeftOut));
    return {};
  }
  const std::unique_ptr<archive_entry, FreeEntry> out(libarchive().archive_entry_new());
  libarchive().archive_entry_set_pathname(out.get(), zip_path(path_).c_str());
  libarchive().archive_entry_set_mode(out.get(), static_cast<mode_t>(attributes.mode));
  libarchive().archive_entry_set_uid(out.get(), attributes.uid);
  libarchive().archive_entry_set_gid(out.get(), attributes.gid);
  libarchive().archive_entry_set_mtime(out.get(), attributes.mtime.seconds,
                                       static_cast<long>(attributes.mtime.nanoseconds));
  if (type == S_IFLNK) {
    VARVE_TRY_ASSIGN(const std::string target, version_.read_link(entry.rank));
    libarchive().archive_entry_set_symlink(out.get(), target.c_str());
  }
  ++report_.entries;
  if (type == S_IFREG) return add_data(entry, *out);
  libarchive().archive_entry_set_size(out.get(), 0);
  if (libarchive().archive_write_header(handle_.get(), out.get()) < ARCHIVE_WARN) return failure();
  return {};
}

/// Adds a file. Damage ends the archive: a zip archive has no way to report missing bytes.
Result<void> ZipExport::add_data(const SealedEntry& entry, archive_entry& out) {
  auto source = version_.open(entry.rank);
  if (!source) return std::move(source).error().with_context(path_);
  const std::uint64_t size = (*source)->size();
  libarchive().archive_entry_set_size(&out, static_cast<std::int64_t>(size));
  if (libarchive().archive_write_header(handle_.get(), &out) < ARCHIVE_WARN) return failure();
  for (std::uint64_t at = 0; at < size;) {
    const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(size - at, kPieceBytes));
    auto got = (*source)->read(at, std::span(buffer_).first(wanted));
    if (!got) return std::move(got).error().with_context(path_);
    if (*got == 0) return Error(ErrorCode::kCorrupt, path_ + " ends before its size");
    for (std::size_t written = 0; written < *got;) {
      const la_ssize_t more =
          libarchive().archive_write_data(handle_.get(), buffer_.data() + written, *got - written);
      if (more <= 0) return failure();
      written += static_cast<std::size_t>(more);
    }
    at += *got;
    done_.bytes_done += *got;
    if (progress_ && !progress_(done_)) return Error(ErrorCode::kInterrupted, "interrupted");
  }
  return {};
}

}  // namespace
}  // namespace transfer

Result<TransferReport> write_zip(VersionReader& version, int fd,
                                 const std::vector<std::string>& paths,
                                 const std::function<bool(const TransferProgress&)>& progress) {
  VARVE_TRY(transfer::load_libarchive());
  return transfer::ZipExport(version, paths, progress).run(fd);
}

}  // namespace varve

#ifdef VARVE_STATIC
// libarchive's table of formats names xar, and xar needs libxml2. Varve never asks for xar, and the
// static program is linked without libxml2.
extern "C" int archive_write_set_format_xar(archive* /*handle*/) { return ARCHIVE_FATAL; }
#endif
