// SPDX-License-Identifier: Apache-2.0
#include "repo/settled_mark.h"

#include <cstddef>
#include <utility>

#include "base/checksum.h"
#include "base/coding.h"

namespace varve::repo {

namespace {

constexpr std::uint32_t kMagic = 0x54535656;  // "VVST" in file order
constexpr std::uint32_t kFormat = 1;
constexpr std::size_t kIdBytes = 16;
constexpr std::size_t kBytes = 48;

// docs/FORMAT.md §1. The file is shorter than a sector, so that a crash leaves it old or new.
std::string encode(const std::string& catalog_id, std::uint64_t commit, bool arranged) {
  std::string out;
  base::ByteWriter w(out);
  w.u32(kMagic);
  w.u32(kFormat);
  w.u64(commit);
  w.u64(arranged ? 1 : 0);
  w.text(catalog_id);
  w.u64(base::checksum64(base::as_bytes(out)));
  return out;
}

}  // namespace

SettledMark::Note SettledMark::read(const std::string& catalog_id, std::uint64_t commit) {
  const std::lock_guard lock(mutex_);
  const auto bytes = files_.read_file(path_, kBytes);
  cleared_ = !bytes && bytes.error().code() == ErrorCode::kNotFound;
  if (!bytes || catalog_id.size() != kIdBytes) return {};
  on_disk_ = *bytes;
  const bool arranged = *bytes == encode(catalog_id, commit, true);
  return {arranged || *bytes == encode(catalog_id, commit, false), arranged};
}

Result<void> SettledMark::clear() {
  const std::lock_guard lock(mutex_);
  if (cleared_) return {};
  // In place: a crash must not bring the note back.
  auto done = put(std::string(kBytes, '\0'));
  if (!done) {
    VARVE_TRY(files_.remove(path_));
    const auto slash = path_.rfind('/');
    done = files_.sync_directory(path_.substr(0, slash));
  }
  if (done) cleared_ = true;
  on_disk_.clear();
  return done;
}

Result<void> SettledMark::write(const std::string& catalog_id, std::uint64_t commit,
                                bool arranged) {
  const std::lock_guard lock(mutex_);
  if (catalog_id.size() != kIdBytes) return {};
  auto note = encode(catalog_id, commit, arranged);
  if (note == on_disk_) return {};
  cleared_ = false;
  on_disk_ = std::move(note);
  return put(on_disk_);
}

Result<void> SettledMark::put(const std::string& bytes) {
  VARVE_TRY_ASSIGN(const auto file, files_.open(path_, io::OpenMode::kReadWrite));
  VARVE_TRY(file->write_at(0, base::as_bytes(bytes)));
  return file->sync();
}

}  // namespace varve::repo
