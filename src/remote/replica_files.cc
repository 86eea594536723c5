// SPDX-License-Identifier: Apache-2.0
#include "remote/replica_files.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "base/checksum.h"
#include "base/coding.h"
#include "catalog/layout_records.h"
#include "catalog/series_catalog.h"
#include "store/folder_store.h"
#include "store/repository_names.h"
#include "store/repository_paths.h"
#include "store/segment_files.h"

namespace varve::remote {

namespace {

constexpr std::size_t kSampleBytes = 4096;
constexpr std::uint64_t kReadWholeBytes = 1U << 20;

Result<void> add_data_files(const meta::Txn& catalog, StoreId store, const std::string& folder,
                            std::vector<ReplicaFile>& found) {
  VARVE_TRY_ASSIGN(const auto segments, catalog::list_segments(catalog, store));
  for (const auto& segment : segments) {
    const auto path = folder + "/" + store::segment_path(segment.segment);
    if (segment.bytes != 0) found.push_back({path, segment.bytes, 0});
  }
  return {};
}

// A younger FileLook may hide a change within the same tick of the kernel's clock.
constexpr std::int64_t kYoungNs = 50'000'000;

std::int64_t ns_of(const struct timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// Returns nullopt if the file is outside the kernel's file systems, or too young.
Result<std::optional<FileLook>> look_of(io::FileSystem& files, const std::string& path) {
  const auto opened = files.descriptor(path, io::OpenMode::kRead);
  if (!opened && opened.error().code() == ErrorCode::kUnsupported) return std::optional<FileLook>();
  if (!opened) return opened.error();
  struct stat file {};
  struct timespec now {};
  if (::fstat(opened->get(), &file) != 0 || ::clock_gettime(CLOCK_REALTIME, &now) != 0) {
    return std::optional<FileLook>();
  }
  FileLook look;
  look.bytes = static_cast<std::uint64_t>(file.st_size);
  look.inode = file.st_ino;
  look.modified_ns = ns_of(file.st_mtim);
  look.changed_ns = ns_of(file.st_ctim);
  if (look.changed_ns > ns_of(now) - kYoungNs) return std::optional<FileLook>();
  return std::optional(look);
}

bool same_look(const std::optional<FileLook>& a, const std::optional<FileLook>& b) {
  if (!a || !b) return false;
  auto without_mark = *a;
  without_mark.mark = b->mark;
  return without_mark == *b;
}

// A replacing file differs in the checksum in the first or last bytes, the salt, or the length.
// Short files are read as a whole.
Result<std::optional<ReplicaFile>> read_mark(io::FileSystem& files, const std::string& root,
                                             const std::string& path, LookingRound& looking) {
  auto file = files.open(root + "/" + path, io::OpenMode::kRead);
  if (!file && file.error().code() == ErrorCode::kNotFound) return std::optional<ReplicaFile>();
  if (!file) return std::move(file).error();
  VARVE_TRY_ASSIGN(const auto bytes, (*file)->size());
  std::string sample;
  base::ByteWriter(sample).u64(bytes);
  const auto add = [&](std::uint64_t offset, std::uint64_t length) -> Result<void> {
    const auto at = sample.size();
    sample.resize(at + length);
    VARVE_TRY_ASSIGN(
        const auto got,
        (*file)->read_at(offset, std::as_writable_bytes(std::span(sample).subspan(at))));
    sample.resize(at + got);
    looking.bytes_read += got;
    return {};
  };
  if (bytes <= kReadWholeBytes) {
    VARVE_TRY(add(0, bytes));
  } else {
    VARVE_TRY(add(0, kSampleBytes));
    VARVE_TRY(add(bytes - kSampleBytes, kSampleBytes));
  }
  ++looking.files_read;
  const auto mark = base::checksum64(base::as_bytes(sample));
  return std::optional(ReplicaFile{path, bytes, std::max<std::uint64_t>(mark, 1)});
}

// Reads the file only if its attributes differ from the remembered FileLook.
Result<std::optional<ReplicaFile>> look_at(io::FileSystem& files, const std::string& root,
                                           const std::string& path, LookingRound& looking) {
  const auto before = look_of(files, root + "/" + path);
  if (!before && before.error().code() == ErrorCode::kNotFound) {
    return std::optional<ReplicaFile>();
  }
  if (!before) return before.error();
  if (*before && looking.known) {
    VARVE_TRY_ASSIGN(const auto known, looking.known(path));
    if (same_look(*before, known))
      return std::optional(ReplicaFile{path, known->bytes, known->mark});
  }
  VARVE_TRY_ASSIGN(auto found, read_mark(files, root, path, looking));
  if (!found || !*before) return found;
  // The FileLook and the mark belong to one file only if nothing replaced the file in between.
  const auto after = look_of(files, root + "/" + path);
  if (after && same_look(*before, *after) && found->bytes == (*before)->bytes) {
    auto look = **before;
    look.mark = found->mark;
    looking.noted[path] = look;
  }
  return found;
}

// Adds the files of a folder with the given ending and a name given by Varve.
Result<void> add_folder(io::FileSystem& files, const std::string& root, const std::string& folder,
                        store::FolderKind kind, std::string_view ending, LookingRound& looking,
                        std::vector<ReplicaFile>& found) {
  const auto names = files.list(root + "/" + folder);
  if (!names && names.error().code() == ErrorCode::kNotFound) return {};
  if (!names) return names.error();
  for (const auto& name : *names) {
    if (!name.ends_with(ending) || !store::known_name(kind, name)) continue;
    VARVE_TRY_ASSIGN(auto one, look_at(files, root, folder + "/" + name, looking));
    if (one) found.push_back(std::move(*one));
  }
  return {};
}

}  // namespace

std::string series_folder(SeriesId id) {
  return fmt::format("series/{:08x}", static_cast<std::uint32_t>(id));
}

std::string encode_look(const FileLook& look) {
  std::string out;
  base::ByteWriter writer(out);
  writer.u64(look.bytes);
  writer.u64(look.inode);
  writer.u64(static_cast<std::uint64_t>(look.modified_ns));
  writer.u64(static_cast<std::uint64_t>(look.changed_ns));
  writer.u64(look.mark);
  return out;
}

std::optional<FileLook> decode_look(std::string_view value) {
  base::ByteReader reader(value);
  FileLook look;
  look.bytes = reader.u64();
  look.inode = reader.u64();
  look.modified_ns = static_cast<std::int64_t>(reader.u64());
  look.changed_ns = static_cast<std::int64_t>(reader.u64());
  look.mark = reader.u64();
  return reader.done() && look.mark != 0 ? std::optional(look) : std::nullopt;
}

Result<std::map<StoreId, std::string>> store_folders(const meta::Txn& catalog) {
  std::map<StoreId, std::string> folders{{kPoolStore, "pool"}};
  VARVE_TRY_ASSIGN(const auto all, catalog::list_series(catalog));
  for (const auto& series : all) {
    folders[catalog::store_of(series.id)] = series_folder(series.id);
  }
  return folders;
}

Result<std::vector<ReplicaFile>> data_files(const meta::Txn& catalog) {
  std::vector<ReplicaFile> found;
  VARVE_TRY_ASSIGN(const auto folders, store_folders(catalog));
  for (const auto& [store, folder] : folders) {
    VARVE_TRY(add_data_files(catalog, store, folder, found));
  }
  return found;
}

Result<std::vector<ReplicaFile>> other_files(io::FileSystem& files, const std::string& root,
                                             const meta::Txn& catalog, LookingRound& looking) {
  using store::FolderKind;
  std::vector<ReplicaFile> found;
  VARVE_TRY_ASSIGN(const auto all, catalog::list_series(catalog));
  for (const auto& series : all) {
    const auto folder = series_folder(series.id);
    for (const auto name : {std::string_view("labels"), store::kBesideName}) {
      VARVE_TRY_ASSIGN(auto one, look_at(files, root, folder + "/" + std::string(name), looking));
      if (one) found.push_back(std::move(*one));
    }
    VARVE_TRY(add_folder(files, root, folder + "/manifests", FolderKind::kManifests, ".man",
                         looking, found));
    VARVE_TRY(
        add_folder(files, root, folder + "/parity", FolderKind::kParity, ".par", looking, found));
  }
  VARVE_TRY(add_folder(files, root, "pool", FolderKind::kPool, ".als", looking, found));
  VARVE_TRY(add_folder(files, root, "pool/parity", FolderKind::kParity, ".par", looking, found));
  return found;
}

}  // namespace varve::remote
