// SPDX-License-Identifier: Apache-2.0
// Finds names in all sealed versions. An unchanged directory has the same content id in two
// versions. The search walks an unchanged directory without a match only once.
#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/glob.h"
#include "cli/command.h"
#include "cli/named_places.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/repository_access.h"
#include "control/named_version.h"
#include "varve/browse.h"

namespace varve::cli {
namespace {

constexpr std::size_t kFindBatch = 256;
/// Limit of remembered directories, of about 64 bytes and a path each.
constexpr std::size_t kWithoutMatchMax = 1'000'000;

struct FindArguments {
  std::vector<std::string> words;
  std::vector<std::string> series;
  bool json = false;
  bool exact = false;
};

struct FoundName {
  std::uint64_t position = 0;
  std::string name;
  SealedEntry entry;
};

struct FindLevel {
  SealedEntry directory;
  std::size_t path_bytes = 0;  ///< Length of the path above the directory.
  std::uint64_t after = 0;
  std::vector<FoundName> batch{};
  std::size_t next = 0;
  bool listed = false;
  bool any = false;  ///< An entry below matched.
};

class Finder {
 public:
  Finder(std::vector<base::PathGlob> globs, const FindArguments& options)
      : globs_(std::move(globs)), options_(options) {
    by_path_ = std::ranges::any_of(globs_, [](const auto& glob) { return !glob.of_name(); });
  }

  /// Begins with another series: content ids are valid in a single series.
  void start_series() { without_match_.clear(); }

  Result<void> search(VersionReader& reader) {
    std::string path;
    std::vector<FindLevel> levels;
    VARVE_TRY_ASSIGN(const SealedEntry root, reader.get(0));
    levels.push_back({root});
    while (!levels.empty()) {
      FindLevel& level = levels.back();
      if (level.next == level.batch.size()) {
        if (!level.listed) {
          VARVE_TRY(fill(reader, level));
          continue;
        }
        const bool any = level.any;
        if (!any) remember(level.directory, path);
        path.resize(level.path_bytes);
        levels.pop_back();
        if (!levels.empty()) levels.back().any = levels.back().any || any;
        continue;
      }
      const FoundName item = std::move(level.batch[level.next++]);
      const std::size_t path_bytes = path.size();
      if (!path.empty()) path += '/';
      path += item.name;
      if (std::ranges::any_of(globs_, [&](const auto& glob) { return glob.matches(path); })) {
        level.any = true;
        report(reader.info(), path, item.entry);
      }
      if (S_ISDIR(item.entry.attributes.mode) && !is_without_match(item.entry, path)) {
        levels.push_back({item.entry, path_bytes});
      } else {
        path.resize(path_bytes);
      }
    }
    return {};
  }

  [[nodiscard]] std::uint64_t found() const { return found_; }

 private:
  Result<void> fill(VersionReader& reader, FindLevel& level) {
    level.batch.clear();
    level.next = 0;
    VARVE_TRY(
        reader.list(level.directory.rank, level.after,
                    [&](std::uint64_t position, std::string_view name, const SealedEntry& entry) {
                      level.batch.push_back({position, std::string(name), entry});
                      return level.batch.size() < kFindBatch;
                    }));
    level.listed = level.batch.size() < kFindBatch;
    if (!level.batch.empty()) level.after = level.batch.back().position;
    return {};
  }

  // A pattern for names matches the same below every path.
  std::pair<std::uint64_t, std::string> key_of(const SealedEntry& directory,
                                               const std::string& path) const {
    return {directory.content_id, by_path_ ? path : std::string()};
  }
  bool is_without_match(const SealedEntry& directory, const std::string& path) const {
    return directory.content_id != 0 && without_match_.contains(key_of(directory, path));
  }
  void remember(const SealedEntry& directory, const std::string& path) {
    if (directory.content_id == 0) return;
    if (without_match_.size() >= kWithoutMatchMax) without_match_.clear();
    without_match_.insert(key_of(directory, path));
  }

  void report(const VersionInfo& version, const std::string& path, const SealedEntry& entry) {
    ++found_;
    const Attributes& a = entry.attributes;
    if (options_.json) {
      Json object = entry_json(version, path, a);
      put_time(object, "sealed_at", version.sealed_at);
      print_json("entry", std::move(object));
      return;
    }
    const std::string name = version.series_name + "/" + version.name;
    // A name may have line breaks, but must not look like a second line, even in a file.
    print(fmt::format("{}  {:>10}  {}  {}\n", printable(name),
                      S_ISREG(a.mode) ? size_text(a.size, options_.exact) : "-", time_text(a.mtime),
                      printable(path)));
  }

  const std::vector<base::PathGlob> globs_;
  const FindArguments& options_;
  bool by_path_ = false;
  std::set<std::pair<std::uint64_t, std::string>> without_match_;
  std::uint64_t found_ = 0;
};

/// Removes the repository from the words, and returns the repository.
Result<std::string> take_repository_word(std::vector<std::string>& words) {
  const char* environment = std::getenv("VARVE_REPO");
  const bool set = environment != nullptr && *environment != '\0';
  const bool first_is = !words.empty() && holds_repository(words.front());
  if (!set && words.size() > 1) {
    if (auto swapped = swapped_words(words.front(), words)) return std::move(*swapped);
  }
  if (words.size() > 1 && (!set || first_is)) {
    std::string repository = std::move(words.front());
    words.erase(words.begin());
    return repository;
  }
  if (set && !words.empty()) return std::string(environment);
  if (!set && !first_is) return no_repository_named();
  return usage_error("no name is given; give one, such as '*.txt'");
}

Result<std::uint64_t> find(FindArguments& options) {
  VARVE_TRY_ASSIGN(std::string path, take_repository_word(options.words));
  VARVE_TRY(use_folder_of_place(path, control::Purpose::kLook));
  std::vector<base::PathGlob> globs;
  for (const std::string& word : options.words) {
    VARVE_TRY_ASSIGN(auto glob, as_usage(base::PathGlob::parse(word)));
    globs.push_back(std::move(glob));
  }
  VARVE_TRY_ASSIGN(const auto repository, open_to_read(path));
  std::vector<VersionPath> places;
  for (const std::string& name : options.series) places.push_back(parse_version_path(name));
  VARVE_TRY_ASSIGN(const auto all, find_series(*repository, places));
  Finder finder(std::move(globs), options);
  for (const SeriesInfo& series : all) {
    finder.start_series();
    VARVE_TRY_ASSIGN(const auto versions, repository->versions(series.id));
    for (const VersionInfo& version : versions) {
      if (version.state != VersionState::kSealed) continue;
      const auto reader = repository->reader(series.id, version.number);
      // A concurrent prune may have deleted the version.
      if (!reader && reader.error().code() == ErrorCode::kNotFound) continue;
      if (!reader) return reader.error();
      auto searched = finder.search(**reader);
      if (!searched) {
        return std::move(searched).error().with_context(series.name + "/" + version.name);
      }
    }
  }
  return finder.found();
}

}  // namespace

void add_find_command(CommandLine& line, const Context& context) {
  auto options = std::make_shared<FindArguments>();
  auto command = line.add_command("find", "Find names in all sealed versions");
  command
      .add_option("REPO", options->words,
                  "Folder of the repository (default: $VARVE_REPO); then one or more names, with "
                  "the wildcards * ? [a-z]; one with a slash matches whole paths")
      .required();
  command.add_option("--series", options->series, "Search only this series; may be repeated")
      .type_name("SERIES")
      .one_value_each();
  command.add_json_flag(options->json, "one for each name in each version");
  command.add_bytes_flag(options->exact);
  command.run([options, &context] {
    const auto found = find(*options);
    if (!found) return fail(found.error());
    if (*found == 0) note(context, "no sealed version has such a name");
    return kExitOk;
  });
}

}  // namespace varve::cli
