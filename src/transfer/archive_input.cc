// SPDX-License-Identifier: Apache-2.0
#include "transfer/archive_input.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/coding.h"
#include "transfer/libarchive.h"
#include "transfer/pax_check.h"
#include "transfer/transfer_error.h"
#include "transfer/xz_stream.h"
#include "transfer/zip_names.h"

namespace varve::transfer {
namespace {

// libarchive refuses a longer header than 1 MiB, and a member has few.
constexpr std::size_t kSeenBytesMax = std::size_t{8} << 20;
constexpr int kPollMs = 250;
constexpr std::int64_t kTarBlockBytes = 512;

bool is_cpio(archive* handle) {
  return (libarchive().archive_format(handle) & ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_CPIO;
}

bool is_tar(archive* handle) {
  return (libarchive().archive_format(handle) & ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_TAR;
}

bool is_zip(archive* handle) {
  return (libarchive().archive_format(handle) & ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_ZIP;
}

}  // namespace

Result<std::size_t> read_stream(int fd, std::span<std::byte> out,
                                const std::function<bool()>& goes_on) {
  while (true) {
    if (!goes_on()) return Error(ErrorCode::kInterrupted, "interrupted");
    pollfd ready = {.fd = fd, .events = POLLIN, .revents = 0};
    const int polled = ::poll(&ready, 1, kPollMs);
    if (polled == 0 || (polled < 0 && errno == EINTR)) continue;
    const ssize_t got = ::read(fd, out.data(), out.size());
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno != EINTR && errno != EAGAIN) return system_error("cannot read the input", errno);
  }
}

ArchiveInput::ArchiveInput(int fd, const std::function<bool()>& goes_on)
    : fd_(fd), goes_on_(goes_on), buffer_(new std::byte[kArchivePartBytes]) {}

ArchiveInput::~ArchiveInput() {
  if (handle_ != nullptr) libarchive().archive_read_free(handle_);
}

Result<std::unique_ptr<ArchiveInput>> ArchiveInput::open(int fd,
                                                         const std::function<bool()>& goes_on) {
  std::unique_ptr<ArchiveInput> input(new ArchiveInput(fd, goes_on));
  VARVE_TRY(input->start());
  return input;
}

Result<void> ArchiveInput::start() {
  VARVE_TRY(load_libarchive());
  handle_ = libarchive().archive_read_new();
  if (handle_ == nullptr) return Error(ErrorCode::kIo, "no memory for reading the archive");
  libarchive().archive_read_support_format_tar(handle_);
  // Archives may be joined, as by `cat`: bytes after an end mark are data too.
  libarchive().archive_read_set_format_option(handle_, "tar", "read_concatenated_archives", "1");
  libarchive().archive_read_support_format_cpio(handle_);
  VARVE_TRY(choose_input());
  libarchive().archive_read_set_read_callback(handle_, &ArchiveInput::read_callback);
  libarchive().archive_read_set_callback_data(handle_, this);
  if (libarchive().archive_read_open1(handle_) < ARCHIVE_WARN) return failure();
  return {};
}

Result<void> ArchiveInput::choose_input() {
  struct stat status {};
  const bool is_file = ::fstat(fd_, &status) == 0 && S_ISREG(status.st_mode);
  const off_t begin = is_file ? ::lseek(fd_, 0, SEEK_CUR) : 0;
  VARVE_TRY_ASSIGN(ahead_, read_input());
  constexpr std::array kGzipMagic{std::byte{0x1f}, std::byte{0x8b}};
  constexpr std::array kZipMagic{std::byte{'P'}, std::byte{'K'}};
  const auto begins_with = [this](const std::array<std::byte, 2>& magic) {
    return ahead_.size() >= magic.size() && std::ranges::equal(ahead_.first(magic.size()), magic);
  };
  if (begins_with(kGzipMagic)) {
    decompressor_ = std::make_unique<GzipStream>();
    return {};
  }
  if (XzStream::begins(ahead_)) {
    VARVE_TRY_ASSIGN(decompressor_, XzStream::open());
    return {};
  }
  const bool is_zip_stream = begins_with(kZipMagic);
  VARVE_TRY_ASSIGN(auto filter, FilterStream::open([this] { return read_input(); }));
  if (!filter->is_plain()) {
    decompressor_ = std::move(filter);
  } else if (is_file && begin >= 0 && ::lseek(fd_, begin, SEEK_SET) == begin) {
    ahead_ = {};
    // libarchive's streaming reader of zip archives takes a symbolic link for a file.
    libarchive().archive_read_support_format_zip_seekable(handle_);
    libarchive().archive_read_set_seek_callback(handle_, &ArchiveInput::seek_callback);
  } else if (is_zip_stream) {
    return Error(
        ErrorCode::kInvalid,
        "a zip archive cannot be read from a pipe, because types and modes are at its end; "
        "name the file");
  } else {
    decompressor_ = std::move(filter);  // Has the part already read.
  }
  return {};
}

Result<std::span<const std::byte>> ArchiveInput::read_input() {
  if (!ahead_.empty()) return std::exchange(ahead_, {});
  VARVE_TRY_ASSIGN(const auto got, read_stream(fd_, {buffer_.get(), kArchivePartBytes}, goes_on_));
  return std::span<const std::byte>(buffer_.get(), got);
}

Result<std::span<const std::byte>> ArchiveInput::read_archive() {
  VARVE_TRY_ASSIGN(const auto got, decompressor_
                                       ? decompressor_->next([this] { return read_input(); })
                                       : read_input());
  const auto last =
      std::find_if(got.rbegin(), got.rend(), [](std::byte byte) { return byte != std::byte{0}; });
  if (last != got.rend()) data_end_ = std::max(data_end_, position_ + (got.rend() - last));
  position_ += static_cast<std::int64_t>(got.size());
  // Zeros of any length may precede the headers.
  if (!in_headers_ || seen_.size() > kSeenBytesMax) seen_.erase(0, seen_.size() - last_seen_);
  seen_ += base::as_text(got);
  last_seen_ = got.size();
  return got;
}

ssize_t ArchiveInput::read_callback(archive* handle, void* self, const void** buffer) {
  auto& input = *static_cast<ArchiveInput*>(self);
  const auto got = input.read_archive();
  if (!got) {
    input.read_error_ = got.error();
    libarchive().archive_set_error(handle, EIO, "%s", got.error().message().c_str());
    return ARCHIVE_FATAL;
  }
  *buffer = got->data();
  return static_cast<ssize_t>(got->size());
}

std::int64_t ArchiveInput::seek_callback(archive* /*handle*/, void* self, std::int64_t offset,
                                         int whence) {
  auto& input = *static_cast<ArchiveInput*>(self);
  const off_t at = ::lseek(input.fd_, offset, whence);
  if (at < 0) return ARCHIVE_FATAL;
  input.position_ = at;
  input.seen_.clear();
  input.last_seen_ = 0;
  return at;
}

Error ArchiveInput::failure() {
  if (read_error_) return *read_error_;
  const char* reason = libarchive().archive_error_string(handle_);
  return {ErrorCode::kInvalid, std::string("the archive is damaged, truncated or of another format "
                                           "than tar, pax, cpio and zip: ") +
                                   (reason == nullptr ? "unknown reason" : reason)};
}

// libarchive takes the end of the file for the end of a tar archive. But tar(1) always writes an
// end mark, a block of zeros, so an archive without an end mark was truncated between two members.
Result<void> ArchiveInput::check_end(std::int64_t before) const {
  if (!is_tar(handle_) || libarchive().archive_filter_bytes(handle_, 0) - before >= kTarBlockBytes)
    return {};
  return Error(ErrorCode::kInvalid, "the archive is truncated: it has no end mark");
}

// libarchive ends a cpio archive at the trailer, and cpio(1) fills the last block with zeros.
// Members of a joined archive would be lost silently.
Result<void> ArchiveInput::check_cpio_end() {
  if (!is_cpio(handle_)) return {};
  const std::int64_t end = libarchive().archive_filter_bytes(handle_, 0);
  while (data_end_ <= end) {
    VARVE_TRY_ASSIGN(const auto rest, read_archive());
    if (rest.empty()) return {};
  }
  return Error(ErrorCode::kInvalid,
               fmt::format("data follows the trailer of the cpio archive, at byte {}; store joined "
                           "cpio archives one by one, or join them as tar archives",
                           end));
}

// libarchive decodes members of other methods with as much memory as the members ask for.
Result<void> ArchiveInput::check_method() const {
  if (!is_zip(handle_)) return {};
  constexpr std::array<std::string_view, 4> kBounded{"(uncompressed)", "(deflation)", "(bzip)",
                                                     "(zstd)"};
  const std::string_view name = libarchive().archive_format_name(handle_);
  const auto is_method = [&](std::string_view method) { return name.ends_with(method); };
  if (std::ranges::any_of(kBounded, is_method)) return {};
  return Error(ErrorCode::kInvalid,
               fmt::format("Varve has no bound of memory for a member of the archive, {}; pack the "
                           "files again, by `zip -r` or `tar`",
                           name));
}

Result<void> ArchiveInput::check_headers() const {
  if (!is_tar(handle_)) return {};
  const std::int64_t begin = libarchive().archive_read_header_position(handle_);
  const std::int64_t seen_from = position_ - static_cast<std::int64_t>(seen_.size());
  if (begin < seen_from || begin > position_) return {};
  return check_pax_names(
      std::string_view(seen_).substr(static_cast<std::size_t>(begin - seen_from)));
}

Result<void> ArchiveInput::take_name(archive_entry* entry) {
  const char* const name = libarchive().archive_entry_pathname(entry);
  name_ = name == nullptr ? "" : name;
  if (!is_zip(handle_)) return {};
  if (!zip_names_) {
    VARVE_TRY_ASSIGN(zip_names_, read_zip_names(fd_));
  }
  const Error differs(ErrorCode::kInvalid,
                      "the zip archive is damaged: its members differ from those in its directory");
  if (zip_members_ == zip_names_->size()) return differs;
  const std::string& own = (*zip_names_)[zip_members_++];
  // libarchive has no name after a failed conversion.
  if (name != nullptr && !is_same_zip_name(name_, own)) return differs;
  name_ = own;
  if (name_.ends_with('/') && libarchive().archive_entry_filetype(entry) != AE_IFDIR) {
    libarchive().archive_entry_set_filetype(entry, AE_IFDIR);
    libarchive().archive_entry_set_perm(entry, libarchive().archive_entry_perm(entry) | 0111);
  }
  return {};
}

Result<archive_entry*> ArchiveInput::next() {
  // The unread rest of a member must not count as an end mark.
  while (has_data_) {
    VARVE_TRY_ASSIGN(const auto block, next_block());
    if (!block) break;
  }
  const std::int64_t before = libarchive().archive_filter_bytes(handle_, 0);
  archive_entry* entry = nullptr;
  in_headers_ = true;
  const int status = libarchive().archive_read_next_header(handle_, &entry);
  in_headers_ = false;
  warning_.clear();
  if (status == ARCHIVE_EOF) {
    VARVE_TRY(check_end(before));
    VARVE_TRY(check_cpio_end());
    if (zip_names_ && zip_members_ != zip_names_->size()) {
      return Error(ErrorCode::kInvalid, "the zip archive is damaged: it lacks members");
    }
    // libarchive stops before the checksums at the end of the compressed data.
    while (decompressor_) {
      VARVE_TRY_ASSIGN(const auto rest, decompressor_->next([this] { return read_input(); }));
      if (rest.empty()) break;
    }
    return static_cast<archive_entry*>(nullptr);
  }
  if (status < ARCHIVE_WARN) return failure();
  if (status == ARCHIVE_WARN) {
    const char* reason = libarchive().archive_error_string(handle_);
    warning_ = reason == nullptr ? "damaged in part" : reason;
    // A name with bytes above 0x7f: libarchive then returns the bytes unchanged, or no name.
    if (warning_.find("can't be converted from") != std::string::npos ||
        warning_.find("cannot be converted from") != std::string::npos) {
      warning_.clear();
    }
  }
  // libarchive gives no warning of a damaged ACL.
  const char* const error = libarchive().archive_error_string(handle_);
  if (status == ARCHIVE_OK && error != nullptr && std::strstr(error, "Parse error") != nullptr) {
    warning_ = "part of the ACL not stored: it is damaged";
  }
  VARVE_TRY(check_headers());
  VARVE_TRY(check_method());
  VARVE_TRY(take_name(entry));
  has_data_ = true;
  return entry;
}

Result<std::optional<ArchiveInput::Block>> ArchiveInput::next_block() {
  const void* bytes = nullptr;
  std::size_t size = 0;
  la_int64_t offset = 0;
  const int status = libarchive().archive_read_data_block(handle_, &bytes, &size, &offset);
  if (status == ARCHIVE_EOF) {
    has_data_ = false;
    return std::optional<Block>();
  }
  // A warning here is a wrong checksum or length.
  if (status != ARCHIVE_OK || offset < 0) return failure();
  return std::optional(
      Block{static_cast<std::uint64_t>(offset), {static_cast<const std::byte*>(bytes), size}});
}

}  // namespace varve::transfer
