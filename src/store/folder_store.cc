// SPDX-License-Identifier: Apache-2.0
#include "store/folder_store.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/aligned_buffer.h"
#include "base/coding.h"
#include "store/repository_names.h"
#include "store/segment_files.h"

namespace varve::store {
namespace {

static_assert(kBlockBytes == io::kDirectAlignment && room_for(1) == io::direct_room(1));
constexpr std::size_t kCopyBytes = 1U << 20;

const char* folder_name(StoredKind kind) {
  switch (kind) {
    case StoredKind::kSegments:
      return "active";
    case StoredKind::kVolumes:
      return "volumes";
    case StoredKind::kGroups:
      break;
  }
  return kParityFolder;
}

FolderKind folder_kind(StoredKind kind) {
  switch (kind) {
    case StoredKind::kSegments:
      return FolderKind::kActive;
    case StoredKind::kVolumes:
      return FolderKind::kVolumes;
    case StoredKind::kGroups:
      break;
  }
  return FolderKind::kParity;
}

std::string file_name(StoredFile file) {
  if (const auto* segment = std::get_if<SegmentNumber>(&file)) return segment_name(*segment);
  return fmt::format("{:08x}.par", std::get<GroupNumber>(file));
}

// Returns the file of a known name without the temporary suffix.
std::optional<StoredFile> parse_name(StoredKind kind, const std::string& name) {
  if (name.ends_with(kTemporarySuffix) || !known_name(folder_kind(kind), name)) return std::nullopt;
  const auto number = base::parse_hex32(std::string_view(name).substr(0, name.find('.')));
  if (!number) return std::nullopt;
  if (kind == StoredKind::kGroups) return static_cast<GroupNumber>(*number);
  const auto segment = static_cast<SegmentNumber>(*number);
  return kind == StoredKind::kVolumes ? as_volume(segment) : segment;
}

// Volumes are compact, so direct access cannot write volumes.
io::OpenMode write_mode_of(SegmentNumber segment) {
  return is_volume(segment) ? io::OpenMode::kReadWrite : io::OpenMode::kWriteDirect;
}

class OpenFile final : public OpenSegment {
 public:
  explicit OpenFile(std::unique_ptr<io::File> file) : file_(std::move(file)) {}
  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out) override {
    return file_->read_at(offset, out);
  }
  Result<std::uint64_t> size() override { return file_->size(); }
  void will_read(std::uint64_t offset, std::uint64_t bytes) override {
    file_->will_read(offset, bytes);
  }
  bool is_cached(std::uint64_t offset, std::uint64_t bytes) override {
    return file_->is_cached(offset, bytes);
  }

 private:
  const std::unique_ptr<io::File> file_;
};

class Appender final : public SegmentAppender {
 public:
  explicit Appender(std::unique_ptr<io::File> file) : file_(std::move(file)) {}
  // Writes the last part first: a container's header is never on the disk without the data.
  Result<void> append(std::span<const std::span<const std::byte>> parts) override {
    std::uint64_t total = 0;
    for (const auto& part : parts) total += part.size();
    std::uint64_t at = end_ + total;
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      at -= part->size();
      VARVE_TRY(file_->write_at(at, *part));
    }
    end_ += total;
    return {};
  }

 private:
  const std::unique_ptr<io::File> file_;
  std::uint64_t end_ = 0;
};

bool is_corrected(const std::vector<Correction>& corrections, std::uint64_t begin,
                  std::uint64_t end) {
  return std::any_of(corrections.begin(), corrections.end(), [&](const Correction& one) {
    return one.offset <= begin && end <= one.offset + one.bytes.size();
  });
}

void apply(const std::vector<Correction>& corrections, std::uint64_t offset,
           std::span<std::byte> bytes) {
  const std::uint64_t end = offset + bytes.size();
  for (const auto& one : corrections) {
    const auto from = std::max(offset, one.offset);
    const auto to = std::min(end, one.offset + one.bytes.size());
    if (from >= to) continue;
    std::copy_n(one.bytes.begin() + static_cast<std::ptrdiff_t>(from - one.offset), to - from,
                bytes.begin() + static_cast<std::ptrdiff_t>(from - offset));
  }
}

// Reads bytes of a file to be corrected. `out` has whole blocks. Errors: a place is unreadable and
// not replaced by the corrections.
Result<void> read_correctable(io::File& file, std::uint64_t offset, std::span<std::byte> out,
                              std::uint64_t size, const std::vector<Correction>& corrections) {
  const auto wanted = std::min<std::uint64_t>(out.size(), size - offset);
  const auto whole = file.read_at(offset, out);
  if (whole && *whole >= wanted) return {};
  constexpr std::size_t kPiece = io::kDirectAlignment;  // The smallest unit lost by a disk.
  for (std::size_t at = 0; at < wanted; at += kPiece) {
    const auto here = std::min<std::uint64_t>(kPiece, wanted - at);
    const auto got = file.read_at(offset + at, out.subspan(at, kPiece));
    if (got && *got >= here) continue;
    if (!is_corrected(corrections, offset + at, offset + at + here)) {
      return got ? Error(ErrorCode::kIo, "the file became shorter") : got.error();
    }
  }
  return {};
}

// Returns the bytes from `at` on, as many as the buffer holds, of a file of `size` bytes after the
// corrections. The corrected file is `end` bytes long.
Result<std::span<const std::byte>> corrected(io::File& file, std::uint64_t size, std::uint64_t at,
                                             std::uint64_t end, base::AlignedBuffer& buffer,
                                             const std::vector<Correction>& corrections) {
  const auto length = std::min<std::uint64_t>(buffer.size(), end - at);
  std::fill(buffer.span().begin(), buffer.span().end(), std::byte{});
  if (at < size) {
    const auto blocks = (std::min(length, size - at) + io::kDirectAlignment - 1) /
                        io::kDirectAlignment * io::kDirectAlignment;
    VARVE_TRY(read_correctable(file, at, buffer.span().first(blocks), size, corrections));
  }
  const auto part = buffer.span().first(length);
  apply(corrections, at, part);
  return std::span<const std::byte>(part);
}

}  // namespace

io::OpenMode mode_of(ReadMode mode) {
  switch (mode) {
    case ReadMode::kCached:
      return io::OpenMode::kRead;
    case ReadMode::kPlanned:
      return io::OpenMode::kReadPlanned;
    case ReadMode::kDirect:
      break;
  }
  return io::OpenMode::kReadDirect;
}

StoredKind kind_of(StoredFile file) {
  const auto* segment = std::get_if<SegmentNumber>(&file);
  if (segment == nullptr) return StoredKind::kGroups;
  return is_volume(*segment) ? StoredKind::kVolumes : StoredKind::kSegments;
}

std::string FolderStore::folder(StoredKind kind) const {
  return directory_ + "/" + folder_name(kind);
}

std::string FolderStore::path(StoredFile file) const {
  return folder(kind_of(file)) + "/" + file_name(file);
}

Result<void> FolderStore::prepare() {
  VARVE_TRY(files_.make_durable_directory(directory_));
  VARVE_TRY(files_.make_directory(folder(StoredKind::kSegments)));
  VARVE_TRY(files_.make_directory(folder(StoredKind::kVolumes)));
  return files_.sync_directory(directory_);
}

Result<std::shared_ptr<OpenSegment>> FolderStore::open(StoredFile file, ReadMode mode) {
  VARVE_TRY_ASSIGN(auto opened, open_file(kind_of(file), path(file), mode_of(mode)));
  return std::shared_ptr<OpenSegment>(std::make_shared<OpenFile>(std::move(opened)));
}

void FolderStore::read_many(std::vector<RangeRead> ranges, ReadCompletion done) {
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    done(i, ranges[i].file->read_at(ranges[i].offset, ranges[i].out));
  }
}

Result<std::unique_ptr<SegmentAppender>> FolderStore::create(SegmentNumber segment) {
  VARVE_TRY_ASSIGN(auto file, open_file(kind_of(segment), path(segment), write_mode_of(segment)));
  VARVE_TRY_ASSIGN(const auto left_over, file->size());
  if (left_over != 0) VARVE_TRY(file->truncate(0));
  return std::unique_ptr<SegmentAppender>(std::make_unique<Appender>(std::move(file)));
}

Result<void> FolderStore::sync(StoredFile file) {
  VARVE_TRY_ASSIGN(const auto opened,
                   open_file(kind_of(file), path(file), io::OpenMode::kReadWrite));
  return opened->sync();
}

Result<void> FolderStore::sync_names(StoredKind kind) {
  return files_.sync_directory(folder(kind));
}

Result<void> FolderStore::write_again(SegmentNumber segment, std::uint64_t offset,
                                      std::span<const std::byte> bytes) {
  VARVE_TRY_ASSIGN(const auto file,
                   open_file(kind_of(segment), path(segment), write_mode_of(segment)));
  return file->write_at(offset, bytes);
}

Result<void> FolderStore::swap_in(StoredFile file, const std::string& temporary) {
  VARVE_TRY(rename_file(kind_of(file), temporary, path(file)));
  return files_.sync_directory(folder(kind_of(file)));
}

Result<void> FolderStore::put(StoredFile file, std::span<const std::span<const std::byte>> parts) {
  VARVE_TRY(files_.make_durable_directory(folder(kind_of(file))));
  const auto temporary = path(file) + std::string(kTemporarySuffix);
  const auto write = [&]() -> Result<void> {
    VARVE_TRY_ASSIGN(const auto to, open_file(kind_of(file), temporary, io::OpenMode::kReadWrite));
    VARVE_TRY(to->truncate(0));
    std::uint64_t at = 0;
    for (const auto& part : parts) {
      VARVE_TRY(to->write_at(at, part));
      at += part.size();
    }
    VARVE_TRY(to->sync());
    return swap_in(file, temporary);
  };
  auto written = write();
  if (!written) static_cast<void>(remove_file(kind_of(file), temporary));
  return written;
}

// Swapping in a corrected copy never leaves a file half corrected, and also works in a store whose
// files cannot be overwritten. Two cases need a correction in place: a full disk, and currently
// unreadable bytes beside the damage. A copy would lose the unreadable bytes for good.
Result<void> FolderStore::correct(StoredFile file, const std::vector<Correction>& corrections) {
  VARVE_TRY(files_.make_durable_directory(folder(kind_of(file))));
  if (correct_by_swap(file, corrections)) return {};
  static_cast<void>(remove_file(kind_of(file), path(file) + std::string(kTemporarySuffix)));
  return correct_in_place(file, corrections);
}

Result<void> FolderStore::correct_by_swap(StoredFile file,
                                          const std::vector<Correction>& corrections) {
  const auto temporary = path(file) + std::string(kTemporarySuffix);
  // Past the page cache: the copy is made from the bytes on the disk.
  VARVE_TRY_ASSIGN(const auto from,
                   open_file(kind_of(file), path(file), io::OpenMode::kReadDirect));
  VARVE_TRY_ASSIGN(const auto size, from->size());
  auto end = size;
  for (const auto& one : corrections) end = std::max(end, one.offset + one.bytes.size());
  base::AlignedBuffer buffer(kCopyBytes);
  {
    VARVE_TRY_ASSIGN(const auto to, open_file(kind_of(file), temporary, io::OpenMode::kReadWrite));
    VARVE_TRY(to->truncate(0));
    for (std::uint64_t at = 0; at < end; at += kCopyBytes) {
      VARVE_TRY_ASSIGN(const auto part, corrected(*from, size, at, end, buffer, corrections));
      VARVE_TRY(to->write_at(at, part));
    }
    VARVE_TRY(to->sync());
  }
  // The replaced bytes may be the only good bytes, so the copy is verified first.
  VARVE_TRY_ASSIGN(const auto copy, open_file(kind_of(file), temporary, io::OpenMode::kReadDirect));
  base::AlignedBuffer written(kCopyBytes);
  for (std::uint64_t at = 0; at < end; at += kCopyBytes) {
    VARVE_TRY_ASSIGN(const auto part, corrected(*from, size, at, end, buffer, corrections));
    VARVE_TRY_ASSIGN(const auto got, copy->read_at(at, written.span()));
    if (got != part.size() || !std::equal(part.begin(), part.end(), written.span().begin())) {
      return Error(ErrorCode::kIo, temporary + " differs from what was written");
    }
  }
  return swap_in(file, temporary);
}

Result<void> FolderStore::correct_in_place(StoredFile file,
                                           const std::vector<Correction>& corrections) {
  VARVE_TRY_ASSIGN(const auto to, open_file(kind_of(file), path(file), io::OpenMode::kReadWrite));
  for (const auto& one : corrections) VARVE_TRY(to->write_at(one.offset, one.bytes));
  VARVE_TRY(to->sync());
  return files_.sync_directory(folder(kind_of(file)));
}

Result<void> FolderStore::cut(StoredFile file, std::uint64_t bytes) {
  // Opening for writing would create a missing file.
  VARVE_TRY_ASSIGN(const bool present, has_file(kind_of(file), path(file)));
  if (!present) return Error(ErrorCode::kNotFound, path(file) + " is missing");
  VARVE_TRY_ASSIGN(const auto opened,
                   open_file(kind_of(file), path(file), io::OpenMode::kReadWrite));
  return opened->truncate(bytes);
}

Result<void> FolderStore::remove(StoredFile file) { return remove_file(kind_of(file), path(file)); }

Result<void> FolderStore::remove_unfinished(StoredKind kind) {
  const auto names = file_names(kind);
  if (!names) {
    if (names.error().code() == ErrorCode::kNotFound) return {};
    return names.error();
  }
  for (const auto& name : *names) {
    if (!name.ends_with(kTemporarySuffix) || !known_name(folder_kind(kind), name)) continue;
    auto removed = remove_file(kind, folder(kind) + "/" + name);
    if (!removed && removed.error().code() != ErrorCode::kNotFound) return removed;
  }
  return {};
}

Result<std::vector<StoredFile>> FolderStore::list(StoredKind kind) {
  std::vector<StoredFile> all;
  const auto names = file_names(kind);
  if (!names) {
    if (names.error().code() == ErrorCode::kNotFound) return all;
    return names.error();
  }
  for (const auto& name : *names) {
    if (const auto file = parse_name(kind, name)) all.push_back(*file);
  }
  return all;
}

Result<std::uint64_t> FolderStore::size(StoredFile file) {
  return file_bytes(kind_of(file), path(file));
}

Result<SpaceInfo> FolderStore::space() { return files_.space(directory_); }

Result<std::unique_ptr<io::File>> FolderStore::open_file(StoredKind, const std::string& path,
                                                         io::OpenMode mode) {
  return files_.open(path, mode);
}

Result<void> FolderStore::remove_file(StoredKind, const std::string& path) {
  return files_.remove(path);
}

Result<void> FolderStore::rename_file(StoredKind, const std::string& from, const std::string& to) {
  return files_.rename(from, to);
}

Result<bool> FolderStore::has_file(StoredKind, const std::string& path) {
  return files_.exists(path);
}

Result<std::uint64_t> FolderStore::file_bytes(StoredKind, const std::string& path) {
  return files_.tree_bytes(path);
}

Result<std::vector<std::string>> FolderStore::file_names(StoredKind kind) {
  return files_.list(folder(kind));
}

std::unique_ptr<SegmentStore> open_store(const StoreOpener& open, io::FileSystem& files,
                                         const std::string& directory) {
  if (open) return open(files, directory);
  return std::make_unique<FolderStore>(files, directory);
}

}  // namespace varve::store
