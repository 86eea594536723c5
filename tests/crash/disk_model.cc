// SPDX-License-Identifier: Apache-2.0
#include "disk_model.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "support/file_content.h"

namespace varve::test {
namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kSectorBytes = 512;
// First number for files that existed before the record began. The recorder counts up from 1.
constexpr std::uint32_t kFirstOldFile = 1U << 31;

std::string parent_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

bool has_only_zeros(const std::string& content) {
  return !content.empty() && content.front() == '\0' &&
         std::memcmp(content.data(), content.data() + 1, content.size() - 1) == 0;
}

bool is_reserve(const std::string& path) { return path == "reserve" || path.ends_with("/reserve"); }

}  // namespace

DiskModel::DiskModel(const std::string& root) {
  std::uint32_t next = kFirstOldFile;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    const auto path = entry.path().string().substr(root.size() + 1);
    if (entry.is_directory()) {
      names_[path] = 0;
    } else if (entry.is_regular_file()) {
      std::ifstream in(entry.path(), std::ios::binary);
      files_[next].durable = varve::test::rest_of(in);
      names_[path] = next++;
    }
  }
}

void DiskModel::change(std::string& content, const Change& change) {
  if (change.truncates) {
    content.resize(change.offset, '\0');
    return;
  }
  if (content.size() < change.offset + change.bytes.size()) {
    content.resize(change.offset + change.bytes.size(), '\0');
  }
  content.replace(change.offset, change.bytes.size(), change.bytes);
}

void DiskModel::change_name(Names& names, const DiskCall& call) {
  switch (call.kind) {
    case CallKind::kCreate:
      names[call.path] = call.file;
      break;
    case CallKind::kMakeDirectory:
      names[call.path] = 0;
      break;
    case CallKind::kRemove:
      names.erase(call.path);
      break;
    case CallKind::kRename: {
      Names moved;
      for (auto at = names.begin(); at != names.end();) {
        const bool is_it = at->first == call.path || at->first.starts_with(call.path + "/");
        if (!is_it) {
          ++at;
          continue;
        }
        moved[call.to + at->first.substr(call.path.size())] = at->second;
        at = names.erase(at);
      }
      for (const auto& [path, file] : moved) names[path] = file;
      break;
    }
    default:
      break;
  }
}

void DiskModel::apply(const DiskCall& call) {
  // The record introduces an older file with the first change of its content.
  if (call.file != 0 && call.kind != CallKind::kCreate && !files_.contains(call.file)) {
    const auto name = names_.find(call.path);
    if (name == names_.end()) throw std::runtime_error("a file without a name: " + call.path);
    auto old = files_.extract(name->second);
    old.key() = call.file;
    files_.insert(std::move(old));
    name->second = call.file;
  }
  switch (call.kind) {
    case CallKind::kCreate:
      files_[call.file] = {};
      pending_names_.push_back(call);
      break;
    case CallKind::kMakeDirectory:
    case CallKind::kRemove:
    case CallKind::kRename:
      pending_names_.push_back(call);
      break;
    case CallKind::kWrite:
    case CallKind::kTruncate: {
      Change what{call.kind == CallKind::kTruncate, call.offset, call.bytes};
      auto& file = files_.at(call.file);
      if (call.durable) {
        change(file.durable, what);
      } else {
        file.pending.push_back(std::move(what));
      }
      break;
    }
    case CallKind::kSync: {
      auto& file = files_.at(call.file);
      for (const auto& what : file.pending) change(file.durable, what);
      file.pending.clear();
      break;
    }
    case CallKind::kFailedSync:
      files_.at(call.file).pending.clear();
      break;
    case CallKind::kSyncDirectory:
      std::erase_if(pending_names_, [&](const DiskCall& pending) {
        const auto& path = pending.kind == CallKind::kRename ? pending.to : pending.path;
        if (parent_of(path) != call.path) return false;
        change_name(names_, pending);
        return true;
      });
      break;
    case CallKind::kNothing:
      break;
  }
}

std::string DiskModel::content_of(const File& file, Survives survives, std::mt19937_64& random) {
  std::string content = file.durable;
  if (survives == Survives::kNothing) return content;
  for (std::size_t i = 0; i < file.pending.size(); ++i) {
    const Change& whole = file.pending[i];
    if (survives == Survives::kEverything) {
      change(content, whole);
      continue;
    }
    if (whole.truncates) {
      if (random() % 2 == 0) change(content, whole);
      continue;
    }
    for (std::size_t at = 0; at < whole.bytes.size();) {
      const std::size_t end =
          std::min(whole.bytes.size(), at + kPageBytes - (whole.offset + at) % kPageBytes);
      std::size_t length = end - at;
      if (i + 1 == file.pending.size())
        length = random() % (length / kSectorBytes + 1) * kSectorBytes;
      if (random() % 2 == 0) {
        change(content, {false, whole.offset + at, whole.bytes.substr(at, length)});
      }
      at = end;
    }
  }
  return content;
}

std::size_t DiskModel::size_of(const File& file, Survives survives, std::mt19937_64& random) {
  constexpr std::size_t kLostPagesMax = 16;
  std::size_t size = file.durable.size();
  if (survives == Survives::kNothing) return size;
  for (const Change& change : file.pending) {
    const bool survives_whole = survives == Survives::kEverything;
    if (change.truncates) {
      if (survives_whole || random() % 2 == 0) size = change.offset;
      continue;
    }
    const std::size_t end = std::max<std::size_t>(size, change.offset + change.bytes.size());
    const std::size_t lost = survives_whole ? 0 : random() % kLostPagesMax * kPageBytes;
    size = std::max(size, end - std::min(end, lost));
  }
  return size;
}

void DiskModel::write_image(const std::string& directory, Survives survives,
                            std::uint64_t seed) const {
  namespace fs = std::filesystem;
  std::mt19937_64 random(seed);
  Names names = names_;
  std::size_t kept = 0;
  if (survives == Survives::kEverything) kept = pending_names_.size();
  if (survives == Survives::kSome) kept = random() % (pending_names_.size() + 1);
  for (std::size_t i = 0; i < kept; ++i) change_name(names, pending_names_[i]);

  fs::remove_all(directory);
  fs::create_directory(directory);
  for (const auto& [path, number] : names) {  // A directory comes before its entries.
    const auto to = directory + "/" + path;
    if (!fs::is_directory(fs::path(to).parent_path())) continue;
    if (number == 0) {
      fs::create_directory(to);
      continue;
    }
    std::ofstream out(to, std::ios::binary);
    const auto& file = files_.at(number);
    // Only the size of a reserve has a meaning. Its 8 MB would take longer than all other files.
    if (is_reserve(path)) {
      fs::resize_file(to, size_of(file, survives, random));
      continue;
    }
    std::string changed;
    if (!file.pending.empty()) changed = content_of(file, survives, random);
    const auto& content = file.pending.empty() ? file.durable : changed;
    if (has_only_zeros(content)) {
      fs::resize_file(to, content.size());
      continue;
    }
    out.write(content.data(), static_cast<std::streamsize>(content.size()));
    if (!out.flush()) throw std::runtime_error("cannot write " + to);
  }
}

}  // namespace varve::test
