// SPDX-License-Identifier: Apache-2.0
// The search for names in all sealed versions, for the page of `varve web`.
//
// The search compares each version with the next newer version, and matches only names absent from
// the newer version. So the search visits the whole newest version, and then only changed
// directories, and needs no memory of earlier matches.
#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/glob.h"
#include "cli/output.h"
#include "cli/tree_compare.h"
#include "cli/web_answers.h"
#include "cli/web_values.h"

namespace varve::cli {
namespace {

constexpr std::uint64_t kFromNewest = UINT32_MAX;  // No version has this number.
constexpr std::size_t kFoundMax = 200;
constexpr std::size_t kPatternBytesMax = 256;
/// The cost of opening a version, counted as names.
constexpr std::uint64_t kVersionNames = 100;

/// Returns the pattern for names that contain `text`, with letters of either case. A text with a
/// slash is a part of a path; a text that begins with a slash is the beginning of a path.
std::string pattern_of(std::string_view text) {
  if (text.find_first_of("*?[") != std::string_view::npos) return std::string(text);
  std::string pattern = text.find('/') == std::string_view::npos ? "*" : "**/*";
  if (text.starts_with('/')) pattern.clear();
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if (letter == '\\') {
      pattern += "\\\\";
    } else if (byte < 128 && std::isalpha(byte) != 0) {
      pattern +=
          {'[', static_cast<char>(std::tolower(byte)), static_cast<char>(std::toupper(byte)), ']'};
    } else {
      pattern += letter;
    }
  }
  return pattern + "*";
}

Result<base::PathGlob> glob_of(const web::Request& request) {
  const std::string* const text = request.find("name");
  if (text == nullptr || text->empty()) {
    return Error(ErrorCode::kInvalid, "enter a name, or a part of one");
  }
  if (text->size() > kPatternBytesMax) {
    return Error(ErrorCode::kInvalid, "the name is too long; enter at most 256 bytes of it");
  }
  return base::PathGlob::parse(pattern_of(*text));
}

/// One page of found names.
class Search {
 public:
  Search(Repository& repository, base::PathGlob glob)
      : repository_(repository), glob_(std::move(glob)) {}

  /// Searches the versions of a series from the version `from` on to older versions; from the
  /// newest version on for kFromNewest. `behind` counts in the version `from` only.
  Result<void> search(const SeriesInfo& series, std::uint64_t from,
                      const std::optional<std::string>& behind) {
    VARVE_TRY_ASSIGN(const auto versions, sealed_versions(repository_, series.id));
    std::size_t first = 0;
    if (from != kFromNewest) {
      VARVE_TRY_ASSIGN(first, index_of(versions, from));
    }
    std::shared_ptr<VersionReader> newer;
    // Of the versions searched before, only the oldest version is needed.
    for (std::size_t i = first - std::min<std::size_t>(first, 1); i < versions.size(); ++i) {
      const auto number = static_cast<std::uint64_t>(versions[i].number);
      const bool is_next = i >= first;
      auto reader = repository_.reader(series.id, versions[i].number);
      // A concurrent prune may have deleted the version.
      if (!reader && reader.error().code() == ErrorCode::kNotFound) continue;
      if (!reader) return reader.error();
      if (is_next) {
        if (is_full()) {
          put_end(series, number);
          return {};
        }
        VARVE_TRY(search(series, **reader, newer.get(),
                         number == from ? behind : std::optional<std::string>()));
        if (stopped_) return {};
      }
      newer = std::move(*reader);
    }
    return {};
  }

  [[nodiscard]] bool is_full() const {
    return names_ >= kWebNamesMax || count_ >= kFoundMax || bytes_ >= kWebPathBytesMax;
  }
  [[nodiscard]] bool stopped() const { return stopped_; }
  /// Records that the next request continues with a series.
  void put_end(const SeriesInfo& series, std::uint64_t version) {
    end_["from_series"] = static_cast<std::uint32_t>(series.id);
    end_["from_version"] = version;
    stopped_ = true;
  }
  Json take() {
    Json object{{"found", std::move(found_)}, {"names", names_}};
    if (stopped_) object["end"] = std::move(end_);
    return object;
  }

 private:
  Result<void> search(const SeriesInfo& series, VersionReader& reader, VersionReader* newer,
                      const std::optional<std::string>& behind) {
    VARVE_TRY_ASSIGN(const SealedEntry root, reader.get(0));
    const EntryAt here{reader, root};
    std::optional<EntryAt> there;
    if (newer != nullptr) {
      VARVE_TRY_ASSIGN(const SealedEntry newer_root, newer->get(0));
      there.emplace(EntryAt{*newer, newer_root});
    }
    names_ += kVersionNames;
    const TreeComparison comparison{
        .path = {},
        .added_only = true,
        .behind = behind,
        .names_max = kWebNamesMax - std::min(names_, kWebNamesMax) + kVersionNames};
    VARVE_TRY_ASSIGN(
        const ComparedTrees compared,
        compare_trees(there ? &*there : nullptr, &here, comparison, [&](const TreeChange& change) {
          if (change.path.empty() || !glob_.matches(change.path)) {
            return true;
          }
          put(series, reader.info(), change);
          return !is_full();
        }));
    names_ += compared.names;
    if (compared.stopped) {
      put_end(series, static_cast<std::uint32_t>(reader.info().number));
      put_place_to_go_on(end_, *compared.stopped);
    }
    return {};
  }

  void put(const SeriesInfo& series, const VersionInfo& version, const TreeChange& change) {
    Json one = found_value(change.path, change.entry);
    one["series"] = static_cast<std::uint32_t>(series.id);
    one["series_name"] = printable(series.name);
    one["version"] = version_value(version);
    found_.push_back(std::move(one));
    ++count_;
    bytes_ += change.path.size();
  }

  Repository& repository_;
  const base::PathGlob glob_;
  Json found_ = Json::array();
  Json end_ = Json::object();  // The place where the next request continues.
  bool stopped_ = false;
  std::uint64_t names_ = 0;
  std::size_t count_ = 0;
  std::size_t bytes_ = 0;  // Of paths.
};

}  // namespace

Result<Json> web_search(Repository& repository, const web::Request& request) {
  VARVE_TRY_ASSIGN(auto glob, glob_of(request));
  std::uint64_t first = 0;
  std::uint64_t from = kFromNewest;
  std::optional<std::string> behind;
  if (request.find("from_series") != nullptr) {
    VARVE_TRY_ASSIGN(first, web_number(request, "from_series", UINT32_MAX));
    VARVE_TRY_ASSIGN(from, web_number(request, "from_version", UINT32_MAX));
    if (const std::string* const path = request.find("behind")) behind = *path;
  }
  std::vector<SeriesInfo> all;
  if (request.find("series") != nullptr) {
    VARVE_TRY_ASSIGN(SeriesInfo only, web_series(repository, request));
    all.push_back(std::move(only));
  } else {
    VARVE_TRY_ASSIGN(all, repository.series());
    std::ranges::sort(all, {}, &SeriesInfo::id);
  }
  Search search(repository, std::move(glob));
  for (const SeriesInfo& series : all) {
    const auto id = static_cast<std::uint64_t>(series.id);
    if (id < first) continue;
    const bool goes_on = id == first;
    if (search.is_full()) {
      search.put_end(series, kFromNewest);
      break;
    }
    VARVE_TRY(search.search(series, goes_on ? from : kFromNewest,
                            goes_on ? behind : std::optional<std::string>()));
    if (search.stopped()) break;
  }
  return search.take();
}

}  // namespace varve::cli
