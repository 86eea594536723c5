// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <sys/stat.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/named_places.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/repository_access.h"
#include "cli/tree_compare.h"

namespace varve::cli {
namespace {

struct DiffArguments {
  std::vector<std::string> words;
  bool read_data = false;
  bool json = false;
};

struct Letter {
  char letter;
  const char* word;
};
constexpr std::array<Letter, 4> kLetters = {
    {{'+', "added"}, {'-', "removed"}, {'M', "changed"}, {'m', "metadata"}}};

/// Counts changes, and prints each change at once.
class Printer {
 public:
  explicit Printer(bool json) : json_(json) {}

  void operator()(const TreeChange& change) {
    const auto kind = static_cast<std::size_t>(change.kind);
    ++counts_[kind];
    const std::string path = change.path.empty() ? "." : change.path;
    if (json_) {
      Json object{{"change", kLetters[kind].word},
                  {"type", type_text(change.entry.attributes.mode)},
                  {"size_bytes", change.entry.attributes.size}};
      put_name(object, "path", path);
      print_json("change", std::move(object));
      return;
    }
    const bool directory = S_ISDIR(change.entry.attributes.mode);
    print(fmt::format("{} {}{}\n", kLetters[kind].letter, name_text(path), directory ? "/" : ""));
  }

  [[nodiscard]] std::string summary() const {
    return fmt::format("{} added, {} removed, {} changed, {} with other metadata", counts_[0],
                       counts_[1], counts_[2], counts_[3]);
  }

 private:
  const bool json_;
  std::array<std::uint64_t, 4> counts_{};
};

struct Side {
  std::shared_ptr<VersionReader> reader;
  std::optional<SealedEntry> entry;  ///< nullopt if the version lacks the path.
};

/// Returns a path without slashes at the ends or in a row.
std::string plain_path(const std::string& text) {
  return parse_version_path("series/version/" + text).path;
}

Result<Side> find_side(Repository& repository, const VersionPath& place, const std::string& path) {
  const VersionPath whole{place.series, place.version, {}};
  VARVE_TRY_ASSIGN(const VersionInfo info, find_whole_version(repository, whole));
  Side side;
  VARVE_TRY_ASSIGN(side.reader, repository.reader(info.series, info.number));
  auto entry = find_entry(*side.reader, path);
  if (entry) {
    side.entry = *entry;
  } else if (entry.error().code() != ErrorCode::kNotFound) {
    return std::move(entry).error();
  }
  return side;
}

Result<void> diff(const DiffArguments& options, const Context& context) {
  VARVE_TRY_ASSIGN(const NamedPlaces named,
                   find_places(options.words,
                               {.least = 2, .most = 2, .order = "REPO SERIES/A SERIES/B [PATH]"}));
  if (named.rest.size() > 1) return usage_error("there are too many arguments; see --help");
  const VersionPath& first = named.places[0];
  const VersionPath& second = named.places[1];
  std::string path = named.rest.empty() ? std::string() : plain_path(named.rest.front());
  if (!first.path.empty() || !second.path.empty()) {
    if (first.path != second.path || !path.empty()) {
      return usage_error(
          "the paths in both versions must be the same; or give PATH after the versions");
    }
    path = first.path;
  }
  VARVE_TRY_ASSIGN(const auto repository, open_to_read(named.repository));
  VARVE_TRY_ASSIGN(const Side before, find_side(*repository, first, path));
  VARVE_TRY_ASSIGN(const Side after, find_side(*repository, second, path));
  if (!before.entry && !after.entry) {
    return Error(ErrorCode::kNotFound, "neither version has \"" + path + "\"");
  }
  Printer printer(options.json);
  const auto entry_of = [](const Side& side) {
    return side.entry ? std::optional<EntryAt>(EntryAt{*side.reader, *side.entry}) : std::nullopt;
  };
  const auto left = entry_of(before);
  const auto right = entry_of(after);
  const TreeComparison comparison{
      .path = path, .check = options.read_data ? DataCheck::kRead : DataCheck::kTimes};
  VARVE_TRY(compare_trees(left ? &*left : nullptr, right ? &*right : nullptr, comparison,
                          [&](const TreeChange& change) {
                            printer(change);
                            return true;
                          }));
  note(context, printer.summary());
  return {};
}

int run_diff(const DiffArguments& options, const Context& context) {
  const auto compared = diff(options, context);
  return compared ? kExitOk : fail(compared.error());
}

}  // namespace

void add_diff_command(CommandLine& line, const Context& context) {
  auto options = std::make_shared<DiffArguments>();
  auto command = line.add_command(
      "diff",
      "List names that were added (+), removed (-) or changed (M), or whose metadata changed (m)");
  command.add_places(options->words, "SERIES/A and SERIES/B, and PATH to compare only a part");
  command.add_flag("--read-data", options->read_data,
                   "Compare the data of all files, even if size and time are the same");
  command.add_json_flag(options->json, "one for each name");
  command.run([options, &context] { return run_diff(*options, context); });
}

}  // namespace varve::cli
