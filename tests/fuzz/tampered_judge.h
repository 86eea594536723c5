// SPDX-License-Identifier: Apache-2.0
// Looks at a repository that was tampered with: what a check says, what reads give, whether work on
// it does harm.
#pragma once

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "tampered_history.h"
#include "varve/backup.h"
#include "varve/beside.h"
#include "varve/check.h"
#include "varve/repair.h"

namespace varve::test {

enum Outcome : int {
  kFound = 0,   // By the check, or at the opening.
  kUnseen = 1,  // Everything is as before.
  kNoted = 2,   // The check has a note.
  kWrongBytes = 77,
  kUnreported = 79,  // Reading gives an error, and the check found nothing.
  kOtherNames = 80,  // Versions or open files are not the last ones, and the check found nothing.
};

// Looks at a tampered repository, in a process of its own.
class Judge {
 public:
  Judge(std::string path, const TamperedHistory& history, bool repairs)
      : path_(std::move(path)), history_(history), repairs_(repairs) {}

  int run() {
    for (const bool read_only : {true, false}) {
      auto options = history_.options();
      options.read_only = read_only;
      const auto repository = Repository::open(path_, options);
      if (!repository) {
        see(repository.error(), read_only ? "opening" : "opening to write");
        if (read_only) found_ = true;
        continue;
      }
      if (read_only) check(**repository);
      read_sealed_versions(**repository);
      if (!read_only) {
        read_open_versions(**repository);
        read_beside(**repository);
        work_on(**repository);
        read_sealed_versions(**repository);
      }
      static_cast<void>((*repository)->close());
    }
    if (repairs_) repair();
    if (wrong_) return kWrongBytes;
    if (found_) return kFound;
    if (errors_) return kUnreported;
    if (other_names_ && !noted_) return kOtherNames;
    return noted_ ? kNoted : kUnseen;
  }

 private:
  static void say(const std::string& text) { std::fprintf(stderr, "%s\n", text.c_str()); }
  void see(const Error& error, const std::string& where) {
    say(where + ": " + error.message());
    errors_ = true;
  }
  void wrong(const std::string& what) {
    say("wrong: " + what);
    wrong_ = true;
  }

  void check(Repository& repository) {
    CheckOptions options;
    options.verify_chunks = true;
    const auto report = repository.check(options, {});
    if (!report) {
      found_ = true;
      say("check: " + report.error().message());
      return;
    }
    for (const auto& damage : report->damages) say("damage: " + damage.where + ": " + damage.what);
    for (const auto& note : report->notes) say("note: " + note.where + ": " + note.what);
    found_ = !report->damages.empty();
    noted_ = !report->notes.empty();
  }

  void read_sealed_versions(Repository& repository) {
    std::set<std::string> names;
    const auto all = repository.series();
    if (!all) return see(all.error(), "series");
    for (const auto& series : *all) {
      const auto versions = repository.versions(series.id);
      if (!versions) {
        see(versions.error(), "versions of " + series.name);
        continue;
      }
      for (const auto& version : *versions) {
        const auto name = series.name + "/" + version.name;
        if (version.state != VersionState::kSealed || made_.contains(name)) continue;
        names.insert(name);
        const auto files = history_.expected().sealed.find(
            {static_cast<std::uint32_t>(series.id), static_cast<std::uint32_t>(version.number)});
        if (files == history_.expected().sealed.end()) {
          wrong("a version that was never sealed: " + name);
          continue;
        }
        const auto reader = repository.reader(series.id, version.number);
        if (!reader) {
          see(reader.error(), name);
          continue;
        }
        read_version(**reader, name, files->second);
      }
    }
    if (names == history_.expected().names) return;
    say("other versions");
    other_names_ = true;
  }

  void read_version(VersionReader& version, const std::string& name, const Files& files) {
    std::set<std::string> wanted;
    for (const auto& [path, bytes] : files) wanted.insert(path);
    if (const auto listed = names_of(version, 0, ""); listed && *listed != wanted) {
      wrong("the names of " + name);
    }
    for (const auto& [path, bytes] : files) {
      const auto got = read_file(version, path);
      if (!got) {
        see(got.error(), name + "/" + path);
      } else if (*got != bytes) {
        wrong(name + "/" + path);
      }
    }
  }

  Result<std::set<std::string>> names_of(VersionReader& version, Rank rank,
                                         const std::string& prefix) {
    std::set<std::string> names;
    std::map<std::string, Rank> folders;
    VARVE_TRY(
        version.list(rank, 0, [&](std::uint64_t, std::string_view name, const SealedEntry& entry) {
          const auto path = prefix + std::string(name);
          if (S_ISDIR(entry.attributes.mode)) {
            folders[path] = entry.rank;
          } else {
            names.insert(path);
          }
          return true;
        }));
    for (const auto& [path, child] : folders) {
      VARVE_TRY_ASSIGN(const auto below, names_of(version, child, path + "/"));
      names.insert(below.begin(), below.end());
    }
    return names;
  }

  static Result<std::string> read_file(VersionReader& version, const std::string& path) {
    Rank at = 0;
    std::uint64_t size = 0;
    for (const auto& part : std::filesystem::path(path)) {
      VARVE_TRY_ASSIGN(const auto found, version.lookup(at, part.string()));
      at = found.rank;
      size = found.attributes.size;
    }
    VARVE_TRY_ASSIGN(const auto file, version.open(at));
    return read_bytes(*file, size);
  }

  template <typename File>
  static Result<std::string> read_bytes(File& file, std::uint64_t size) {
    std::string out(std::min<std::uint64_t>(size, 1U << 20) + 1, '\0');
    VARVE_TRY_ASSIGN(const auto got,
                     file.read(0, std::as_writable_bytes(std::span(out.data(), out.size()))));
    out.resize(got);
    return out;
  }

  void read_open_versions(Repository& repository) {
    for (const auto& [series, files] : history_.expected().open) {
      const auto version = repository.writer(SeriesId{series});
      if (!version) {
        see(version.error(), "the open version");
        continue;
      }
      const auto& before = history_.expected().open_before.at(series);
      for (const auto& [name, bytes] : files) {
        const auto got = read_open_file(**version, name);
        const auto older = before.find(name);
        if (!got && got.error().code() == ErrorCode::kNotFound) {
          other_names_ = true;
        } else if (!got) {
          see(got.error(), "open " + name);
        } else if (*got != bytes && older != before.end() && *got == older->second) {
          other_names_ = true;
        } else if (*got != bytes) {
          wrong("open " + name);
        }
      }
    }
  }

  static Result<std::string> read_open_file(VersionWriter& version, const std::string& name) {
    VARVE_TRY_ASSIGN(const auto entry, version.lookup(kRootIno, name));
    VARVE_TRY_ASSIGN(const auto file, version.open(entry.ino, false));
    return read_bytes(*file, entry.attributes.size);
  }

  void read_beside(Repository& repository) {
    const auto files = repository.beside(SeriesId{1});
    if (!files) return see(files.error(), "beside");
    const auto entry = (*files)->lookup(kRootIno, "notes");
    if (!entry && entry.error().code() == ErrorCode::kNotFound) {
      other_names_ = true;
      return;
    }
    if (!entry) return see(entry.error(), "beside");
    const auto file = (*files)->open(entry->ino, false);
    if (!file) return see(file.error(), "beside");
    const auto got = read_bytes(**file, entry->attributes.size);
    if (!got) return see(got.error(), "beside");
    if (*got == "first") {
      other_names_ = true;
    } else if (*got != "second") {
      wrong("beside");
    }
  }

  // Stores a version in each series, of bytes that are known there and new ones, and reads it.
  void work_on(Repository& repository) {
    const auto all = repository.series();
    if (!all) return;
    const Files files{
        {"known", noise(30000, 5)}, {"old", noise(30000, 2)}, {"new", noise(9000, 4711)}};
    for (const auto& series : *all) {
      const auto done = store(repository, series, files);
      if (!done) see(done.error(), "storing in " + series.name);
    }
  }

  Result<void> store(Repository& repository, const SeriesInfo& series, const Files& files) {
    VARVE_TRY_ASSIGN(const auto open, repository.open_versions(series.id));
    VersionNumber number{};
    if (open.empty()) {
      VARVE_TRY_ASSIGN(const auto info, repository.open_version(series.id, "again", folder()));
      number = info.number;
    } else {
      number = open.front().number;
    }
    {
      VARVE_TRY_ASSIGN(const auto version, repository.writer(series.id));
      for (const auto& [name, bytes] : files) {
        VARVE_TRY_ASSIGN(const auto entry, version->create(kRootIno, name, regular_file()));
        VARVE_TRY_ASSIGN(const auto file, version->open(entry.ino, true));
        VARVE_TRY(file->write(0, base::as_bytes(bytes)));
        VARVE_TRY(file->flush());
      }
    }
    VARVE_TRY_ASSIGN(const auto sealed, repository.seal(series.id, number, "again"));
    made_.insert(series.name + "/again");
    VARVE_TRY_ASSIGN(const auto reader, repository.reader(series.id, sealed.info.number));
    for (const auto& [name, bytes] : files) {
      VARVE_TRY_ASSIGN(const auto got, read_file(*reader, name));
      if (got != bytes) wrong("stored again: " + series.name + "/" + name);
    }
    return {};
  }

  // Repairing may lose what is damaged, but never gives wrong bytes.
  void repair() {
    const bool found = found_;
    for (int pass = 0; pass < 2; ++pass) {
      RepairOptions options;
      options.key = history_.options().key;
      const auto planned = Repair::plan(path_, options, false, {});
      if (planned) static_cast<void>((*planned)->execute({}));
    }
    auto options = history_.options();
    options.read_only = true;
    const auto repository = Repository::open(path_, options);
    if (!repository) return;
    const bool errors = errors_;
    const bool other = other_names_;
    read_sealed_versions(**repository);
    errors_ = errors;
    other_names_ = other;
    found_ = found;
  }

  const std::string path_;
  const TamperedHistory& history_;
  const bool repairs_;
  std::set<std::string> made_;  // Versions that the judge has stored.
  bool found_ = false;
  bool noted_ = false;
  bool wrong_ = false;
  bool errors_ = false;
  bool other_names_ = false;
};

}  // namespace varve::test
