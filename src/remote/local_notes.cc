// SPDX-License-Identifier: Apache-2.0
#include "remote/local_notes.h"

#include <array>
#include <string_view>

#include "base/coding.h"

namespace varve::remote {

namespace {

constexpr std::string_view kNotesTitle = "# Data files that stay in this folder.\n";
constexpr const char* kNotesName = "files";
constexpr std::size_t kNotesBytesMax = std::size_t{64} << 20;
constexpr std::array<std::pair<LocalNote, std::string_view>, 2> kWords{
    {{LocalNote::kChanged, "changed "}, {LocalNote::kDamaged, "damaged "}}};

}  // namespace

Result<std::unique_ptr<LocalNotes>> LocalNotes::load(io::FileSystem& files,
                                                     const std::string& root) {
  std::unique_ptr<LocalNotes> made(new LocalNotes(files, root));
  const auto path = root + "/replica/" + kNotesName;
  VARVE_TRY_ASSIGN(const bool exists, files.exists(path));
  if (!exists) return made;
  VARVE_TRY_ASSIGN(const auto text, files.read_file(path, kNotesBytesMax));
  std::string_view rest = text;
  while (!rest.empty()) {
    const auto end = rest.find('\n');
    if (end == std::string_view::npos) {
      return Error(ErrorCode::kCorrupt, path + ": its last line is incomplete");
    }
    const auto line = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    for (const auto& [note, word] : kWords) {
      if (line.starts_with(word)) made->notes_.emplace(note, line.substr(word.size()));
    }
  }
  return made;
}

Result<void> LocalNotes::replace(Notes notes) {
  std::string text(kNotesTitle);
  for (const auto& [note, path] : notes) {
    for (const auto& [known, word] : kWords) {
      if (known == note) text.append(word).append(path).append("\n");
    }
  }
  VARVE_TRY(files_.make_durable_directory(root_ + "/replica"));
  VARVE_TRY(files_.write_file_atomically(root_ + "/replica", kNotesName, base::as_bytes(text)));
  notes_ = std::move(notes);
  return {};
}

Result<void> LocalNotes::add(LocalNote note, const std::string& path) {
  const std::lock_guard lock(mutex_);
  if (notes_.contains({note, path})) return {};
  auto notes = notes_;
  notes.emplace(note, path);
  return replace(std::move(notes));
}

Result<void> LocalNotes::remove(LocalNote note, const std::set<std::string>& paths) {
  const std::lock_guard lock(mutex_);
  auto notes = notes_;
  for (const auto& path : paths) notes.erase({note, path});
  if (notes.size() == notes_.size()) return {};
  return replace(std::move(notes));
}

bool LocalNotes::has(LocalNote note, const std::string& path) const {
  const std::lock_guard lock(mutex_);
  return notes_.contains({note, path});
}

bool LocalNotes::has_any(const std::string& path) const {
  return has(LocalNote::kChanged, path) || has(LocalNote::kDamaged, path);
}

std::set<std::string> LocalNotes::paths(LocalNote note) const {
  const std::lock_guard lock(mutex_);
  std::set<std::string> found;
  for (const auto& [kind, path] : notes_) {
    if (kind == note) found.insert(path);
  }
  return found;
}

}  // namespace varve::remote
