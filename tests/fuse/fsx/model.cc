// SPDX-License-Identifier: Apache-2.0
#include "model.h"

#include <algorithm>
#include <utility>

namespace varve::fsx {

void FileModel::remember(std::uint64_t offset, std::uint64_t bytes) {
  changed_ = true;
  if (offset >= bytes_.size()) return;
  bytes = std::min<std::uint64_t>(bytes, bytes_.size() - offset);
  const auto begin = bytes_.begin() + static_cast<std::ptrdiff_t>(offset);
  undo_.push_back({offset, Bytes(begin, begin + static_cast<std::ptrdiff_t>(bytes))});
  undo_bytes_ += bytes;
}

void FileModel::write(std::uint64_t offset, std::span<const std::uint8_t> data) {
  if (data.empty()) return;
  remember(offset, data.size());
  if (offset + data.size() > bytes_.size()) bytes_.resize(offset + data.size());
  std::copy(data.begin(), data.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(offset));
  size_max_ = std::max<std::uint64_t>(size_max_, bytes_.size());
}

void FileModel::resize(std::uint64_t size) {
  if (size == bytes_.size()) return;
  remember(size, bytes_.size());
  bytes_.resize(size);
  size_min_ = std::min(size_min_, size);
  size_max_ = std::max(size_max_, size);
}

void FileModel::zero(std::uint64_t offset, std::uint64_t bytes) {
  if (offset >= bytes_.size()) return;
  bytes = std::min<std::uint64_t>(bytes, bytes_.size() - offset);
  remember(offset, bytes);
  std::fill_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), bytes, std::uint8_t{0});
}

void FileModel::is_durable() {
  undo_.clear();
  undo_bytes_ = 0;
  size_min_ = size_max_ = bytes_.size();
  changed_ = false;
}

std::string FileModel::explain_after_crash(const Bytes& found) const {
  const std::string sizes = "size " + std::to_string(found.size()) + ", last " +
                            std::to_string(bytes_.size()) + ", " + std::to_string(size_min_) +
                            " to " + std::to_string(size_max_) + " since the last fsync";
  if (!changed_ && found.size() != bytes_.size()) return "was not touched: " + sizes;
  if (found.size() < size_min_ || found.size() > size_max_) return sizes;
  std::vector<bool> fits(found.size());
  for (std::uint64_t i = 0; i < found.size(); ++i) {
    fits[i] = (i < bytes_.size() && bytes_[i] == found[i]) || (i >= size_min_ && found[i] == 0);
  }
  for (const Undo& undo : undo_) {
    const std::uint64_t end = std::min<std::uint64_t>(undo.offset + undo.old.size(), found.size());
    for (std::uint64_t i = undo.offset; i < end; ++i) {
      if (undo.old[i - undo.offset] == found[i]) fits[i] = true;
    }
  }
  const auto bad = std::find(fits.begin(), fits.end(), false);
  if (bad == fits.end()) return {};
  const auto at = static_cast<std::uint64_t>(bad - fits.begin());
  const auto count = std::count(bad, fits.end(), false);
  return "byte " + std::to_string(at) + " is " + std::to_string(found[at]) +
         ", which it never was since the last fsync (last: " +
         (at < bytes_.size() ? std::to_string(bytes_[at]) : "past the end") + "; " +
         std::to_string(count) + " such bytes; " + (changed_ ? "" : "not touched; ") + sizes + ")";
}

void FileModel::take_over(Bytes found) {
  bytes_ = std::move(found);
  is_durable();
}

FileId TreeModel::find(const std::string& name) const {
  const auto it = names_.find(name);
  return it == names_.end() ? 0 : it->second;
}

FileId TreeModel::create(const std::string& name) {
  files_.emplace(++last_, File{});
  set_name(name, last_);
  return last_;
}

void TreeModel::set_name(const std::string& name, FileId id) {
  const FileId old = find(name);
  if (old == id) return;
  before_[name].insert(old);
  if (id != 0) {
    ++files_.at(id).names;
    names_[name] = id;
  } else {
    names_.erase(name);
  }
  if (old != 0) {
    --files_.at(old).names;
    reap(old);
  }
}

void TreeModel::rename(const std::string& from, const std::string& to) {
  const FileId id = find(from);
  if (id == find(to)) return;
  set_name(to, id);
  set_name(from, 0);
}

void TreeModel::exchange(const std::string& a, const std::string& b) {
  const FileId first = find(a);
  const FileId second = find(b);
  if (first == second) return;
  ++files_.at(first).names;  // Keeps the file while the names change.
  set_name(a, second);
  set_name(b, first);
  --files_.at(first).names;
}

void TreeModel::reap(FileId id) {
  File& file = files_.at(id);
  if (file.names != 0) return;
  file.is_rooted = false;
  // A crash may restore a name that was removed, so the model keeps the file until the next sync.
  if (file.handles != 0) return;
  for (const auto& [name, ids] : before_) {
    if (ids.contains(id)) return;
  }
  files_.erase(id);
}

void TreeModel::names_are_durable() {
  before_.clear();
  for (auto it = files_.begin(); it != files_.end();) {
    it->second.is_rooted = it->second.names != 0;
    it = it->second.names == 0 && it->second.handles == 0 ? files_.erase(it) : std::next(it);
  }
}

void TreeModel::all_is_durable() {
  names_are_durable();
  for (auto& [id, file] : files_) file.content.is_durable();
}

std::string TreeModel::take_over_names(const std::map<std::string, std::uint64_t>& found) {
  std::map<std::uint64_t, FileId> by_ino;
  for (auto& [id, file] : files_) {
    // The number of a file that never reached the disk may be used again.
    if (file.st_ino != 0) by_ino[file.st_ino] = std::max(by_ino[file.st_ino], id);
    file.names = file.handles = 0;
  }
  std::map<std::string, FileId> now;
  for (const auto& [name, ino] : found) {
    if (!by_ino.contains(ino)) return name + " has inode " + std::to_string(ino) + ", unknown";
    now[name] = by_ino[ino];
  }
  std::set<std::string> all;
  for (const auto& [name, id] : names_) all.insert(name);
  for (const auto& [name, id] : now) all.insert(name);
  for (const auto& name : all) {
    const FileId last = find(name);
    const FileId is = now.contains(name) ? now[name] : 0;
    if (is == last || (before_.contains(name) && before_[name].contains(is))) continue;
    return name + " is file " + std::to_string(is) + ", must be " + std::to_string(last) +
           (before_.contains(name) ? " or what it was since the last sync" : ", untouched");
  }
  for (const auto& [name, id] : now) ++files_.at(id).names;
  for (const auto& [id, file] : files_) {
    if (file.is_rooted && file.names == 0) {
      return "file " + std::to_string(id) + " lost its last name without being removed";
    }
  }
  names_ = std::move(now);
  names_are_durable();
  return {};
}

}  // namespace varve::fsx
