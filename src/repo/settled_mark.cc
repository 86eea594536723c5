// SPDX-License-Identifier: Apache-2.0
#include "repo/settled_mark.h"

#include <cstddef>
#include <string_view>
#include <utility>

#include "base/checksum.h"
#include "base/coding.h"

namespace varve::repo {

namespace {

constexpr std::uint32_t kMagic = 0x54535656;  // "VVST" in file order
constexpr std::uint32_t kFormat = 1;
constexpr std::uint32_t kListFormat = 2;  // Lists the series with possible work.
constexpr std::size_t kIdBytes = 16;
constexpr std::size_t kBytes = 48;  // Without a list.
constexpr std::size_t kListedMax = 100;
constexpr std::size_t kBytesMax = 512;

// docs/FORMAT.md §1. The file is shorter than a sector, so that a crash leaves the old or the new
// content.
std::string encode(const std::string& catalog_id, std::uint64_t commit,
                   const std::optional<std::set<SeriesId>>& unarranged) {
  const bool listed = unarranged && !unarranged->empty() && unarranged->size() <= kListedMax;
  std::string out;
  base::ByteWriter w(out);
  w.u32(kMagic);
  w.u32(listed ? kListFormat : kFormat);
  w.u64(commit);
  w.u64(listed ? unarranged->size() : unarranged && unarranged->empty() ? 1 : 0);
  w.text(catalog_id);
  if (listed) {
    for (const auto series : *unarranged) w.u32(static_cast<std::uint32_t>(series));
  }
  w.u64(base::checksum64(base::as_bytes(out)));
  return out;
}

// Returns the unarranged series listed in the note; nullopt if any series may be unarranged. The
// caller verifies the note.
std::optional<std::set<SeriesId>> listed_in(std::string_view note) {
  base::ByteReader r(note);
  r.u32();
  const std::uint32_t format = r.u32();
  r.u64();
  const std::uint64_t count = r.u64();
  if (!r.ok()) return std::nullopt;
  std::set<SeriesId> listed;
  if (format == kFormat && count == 1) return listed;
  if (format != kListFormat || count > kListedMax) return std::nullopt;
  r.bytes(kIdBytes);
  for (std::uint64_t i = 0; i < count; ++i) listed.insert(static_cast<SeriesId>(r.u32()));
  if (!r.ok()) return std::nullopt;
  return listed;
}

}  // namespace

SettledMark::Note SettledMark::read(const std::string& catalog_id, std::uint64_t commit) {
  const std::lock_guard lock(mutex_);
  const auto bytes = files_.read_file(path_, kBytesMax);
  cleared_ = !bytes && bytes.error().code() == ErrorCode::kNotFound;
  if (!bytes || catalog_id.size() != kIdBytes) return {};
  on_disk_ = *bytes;
  const auto unarranged = listed_in(*bytes);
  // A longer note may have been there before.
  if (!bytes->starts_with(encode(catalog_id, commit, unarranged))) return {};
  return {true, unarranged};
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
                                const std::optional<std::set<SeriesId>>& unarranged) {
  const std::lock_guard lock(mutex_);
  if (catalog_id.size() != kIdBytes) return {};
  auto note = encode(catalog_id, commit, unarranged);
  if (note == on_disk_) return {};
  cleared_ = false;
  on_disk_ = std::move(note);
  return put(on_disk_);
}

Result<void> SettledMark::put(const std::string& bytes) {
  VARVE_TRY_ASSIGN(const auto file, files_.open(path_, io::OpenMode::kReadWrite));
  VARVE_TRY(file->write_at(0, base::as_bytes(bytes)));
  // An earlier release does not read a note followed by more bytes.
  VARVE_TRY(file->truncate(bytes.size()));
  return file->sync();
}

}  // namespace varve::repo
