// SPDX-License-Identifier: Apache-2.0
#include "copy/beside_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <span>
#include <utility>

#include "base/coding.h"
#include "varve/beside.h"

namespace varve::copy {
namespace {

Result<BesideFile> read_one(BesideFiles& from, const std::string& name, const OpenEntry& entry) {
  BesideFile file;
  file.name = name;
  file.mode = entry.attributes.mode;
  file.uid = entry.attributes.uid;
  file.gid = entry.attributes.gid;
  file.mtime = entry.attributes.mtime;
  if (S_ISLNK(file.mode)) {
    VARVE_TRY_ASSIGN(file.content, from.read_link(entry.ino));
  } else if (S_ISREG(file.mode)) {
    VARVE_TRY_ASSIGN(const auto opened, from.open(entry.ino, false));
    file.content.resize(std::min<std::uint64_t>(entry.attributes.size, kBesideFileBytesMax));
    VARVE_TRY_ASSIGN(const std::size_t got,
                     opened->read(0, std::as_writable_bytes(std::span(file.content))));
    file.content.resize(got);
  }
  return file;
}

Result<void> remove_one(BesideFiles& from, Ino directory, const std::string& name,
                        const OpenEntry& entry) {
  if (!S_ISDIR(entry.attributes.mode)) return from.unlink(directory, name);
  VARVE_TRY_ASSIGN(const auto below, from.list(entry.ino));
  for (const auto& [child, file] : below) VARVE_TRY(from.unlink(entry.ino, child));
  return from.remove_directory(directory, name);
}

Result<void> write_one(BesideFiles& to, const BesideFile& file) {
  Ino directory = kRootIno;
  if (!file.folder.empty()) {
    VARVE_TRY_ASSIGN(const auto folder, to.lookup(kRootIno, file.folder));
    directory = folder.ino;
  }
  NewFile made;
  made.mode = file.mode;
  made.uid = file.uid;
  made.gid = file.gid;
  if (S_ISLNK(file.mode)) made.symlink_target = file.content;
  VARVE_TRY_ASSIGN(const auto entry, to.create(directory, file.name, made));
  if (S_ISREG(file.mode) && !file.content.empty()) {
    VARVE_TRY_ASSIGN(const auto opened, to.open(entry.ino, true));
    VARVE_TRY(opened->write(0, base::as_bytes(file.content)));
    VARVE_TRY(opened->sync());
  }
  return {};
}

}  // namespace

Result<std::vector<BesideFile>> read_beside(Repository& repository, SeriesId series) {
  VARVE_TRY_ASSIGN(const auto from, repository.beside(series));
  VARVE_TRY_ASSIGN(const auto names, from->list(kRootIno));
  std::vector<BesideFile> files;
  for (const auto& [name, entry] : names) {
    VARVE_TRY_ASSIGN(auto file, read_one(*from, name, entry));
    files.push_back(std::move(file));
    if (!S_ISDIR(entry.attributes.mode)) continue;
    VARVE_TRY_ASSIGN(const auto below, from->list(entry.ino));
    for (const auto& [child, child_entry] : below) {
      VARVE_TRY_ASSIGN(auto found, read_one(*from, child, child_entry));
      found.folder = name;
      files.push_back(std::move(found));
    }
  }
  return files;
}

Result<void> write_beside(Repository& repository, SeriesId series,
                          const std::vector<BesideFile>& files) {
  VARVE_TRY_ASSIGN(const auto present, read_beside(repository, series));
  if (present == files) return {};
  VARVE_TRY_ASSIGN(const auto versions, repository.versions(series));
  for (const BesideFile& file : files) {
    const bool taken = file.folder.empty() &&
                       std::ranges::find(versions, file.name, &VersionInfo::name) != versions.end();
    if (taken) return Error(ErrorCode::kExists, "a version is called " + file.name);
  }
  VARVE_TRY_ASSIGN(const auto to, repository.beside(series));
  VARVE_TRY_ASSIGN(const auto old, to->list(kRootIno));
  for (const auto& [name, entry] : old) VARVE_TRY(remove_one(*to, kRootIno, name, entry));
  for (const BesideFile& file : files) VARVE_TRY(write_one(*to, file));
  // Times come last: a new file in a folder changes the folder's time.
  for (auto file = files.rbegin(); file != files.rend(); ++file) {
    Ino directory = kRootIno;
    if (!file->folder.empty()) {
      VARVE_TRY_ASSIGN(const auto folder, to->lookup(kRootIno, file->folder));
      directory = folder.ino;
    }
    VARVE_TRY_ASSIGN(const auto entry, to->lookup(directory, file->name));
    AttributeChange change;
    change.mtime = file->mtime;
    VARVE_TRY(to->set_attributes(entry.ino, change));
  }
  return to->sync();
}

}  // namespace varve::copy
