// SPDX-License-Identifier: Apache-2.0
#include "remote/store_survey.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "base/checksum.h"
#include "base/coding.h"
#include "catalog/series_catalog.h"
#include "format/container.h"
#include "format/manifest.h"
#include "format/parity.h"
#include "maintain/manifest_file.h"
#include "remote/catalog_reads.h"
#include "remote/commit_log.h"
#include "remote/head.h"
#include "remote/label_chains.h"
#include "remote/label_parts.h"
#include "remote/named_parts.h"
#include "remote/path_finder.h"
#include "remote/replica_files.h"
#include "remote/small_pairs.h"

namespace varve::remote {

namespace {

constexpr std::size_t kHeadersAtOnce = 256;
constexpr std::size_t kSmallFileBytesMax = std::size_t{300} << 20;
// Enough for the header and the first block of a sealed file.
constexpr std::size_t kManifestFrontBytes = 64;
constexpr std::size_t kFrontBytes = std::size_t{8} << 10;

/// The store of the first container in an object.
struct FirstContainer {
  StoreId store{};
  bool is_corrected = false;  ///< A byte of the header in the store is wrong.
};
std::optional<FirstContainer> first_container(std::span<const std::byte> start) {
  if (start.size() != format::kContainerFixedHeaderBytes) return std::nullopt;
  std::vector<std::byte> header(start.begin(), start.end());
  FirstContainer first;
  first.is_corrected = !format::container_length(header);
  if (first.is_corrected && !format::correct_fixed_header(header)) return std::nullopt;
  constexpr std::size_t kStoreOffset = 12;
  first.store = static_cast<StoreId>(base::load_le<std::uint32_t>(header.data() + kStoreOffset));
  return first;
}

std::string folder_of_store(StoreId store) {
  if (store == kPoolStore) return "pool";
  return series_folder(static_cast<SeriesId>(static_cast<std::uint32_t>(store)));
}

bool is_parity(std::string_view front) {
  base::ByteReader reader(front);
  return reader.u32() == format::kParityMagic;
}

Extent start_of(const std::string& object, std::uint64_t object_bytes, std::uint64_t most) {
  return {.object = object, .bytes = std::min(object_bytes, most), .object_bytes = object_bytes};
}

// Reads the first bytes of objects, many at the same time. nullopt for a lost object.
Result<std::vector<std::optional<std::string>>> read_starts(bucket::Bucket& bucket,
                                                            const std::vector<Extent>& starts) {
  std::vector<std::optional<std::string>> texts;
  for (std::size_t at = 0; at < starts.size(); at += kHeadersAtOnce) {
    const auto group = std::span(starts).subspan(at, std::min(kHeadersAtOnce, starts.size() - at));
    for (auto& text : read_extents_or_copies(bucket, {group.begin(), group.end()})) {
      if (!text && !is_loss(text.error())) return std::move(text).error();
      texts.push_back(text ? std::optional(*std::move(text)) : std::nullopt);
    }
  }
  return texts;
}

Result<void> read_fronts(bucket::Bucket& bucket, std::vector<SmallPair>& pairs) {
  std::vector<Extent> fronts;
  for (const auto& pair : pairs) {
    fronts.push_back(start_of(pair.names.front(), pair.bytes, kManifestFrontBytes));
  }
  VARVE_TRY_ASSIGN(auto texts, read_starts(bucket, fronts));
  for (std::size_t i = 0; i < pairs.size(); ++i) pairs[i].front = std::move(texts[i]).value_or("");
  return {};
}

/// Downloads small files, the newest first.
class SmallPlacer {
 public:
  SmallPlacer(bucket::Bucket& bucket, const PlacingFolder& folder, const format::DataCodecs& codecs,
              std::set<SeriesId> series)
      : bucket_(bucket),
        folder_(folder),
        codecs_(codecs),
        finder_(codecs.keys(), std::move(series)) {}

  /// Takes labels, or a part of labels, for place_labels().
  Result<void> take_labels(const SmallPair& pair, PlacedObjects& placed) {
    if (!may_have_lead(pair.front)) return place(pair, placed);
    std::string fault = "is lost";
    for (const auto& name : pair.names) {
      auto text = read(name, pair.bytes);
      if (!text && !is_loss(text.error())) return std::move(text).error();
      if (!text) continue;
      const auto part = decode_lead(*text, codecs_.keys().get());
      if (!part && part.error().code() == ErrorCode::kUnsupported) return part.error();
      fault = part ? "is damaged" : part.error().message();
      if (!part) continue;
      text->erase(0, kLabelLeadBytes);
      const bool is_whole =
          text->size() == part->bytes && base::checksum64(base::as_bytes(*text)) == part->checksum;
      if (!is_whole) continue;
      chains_.add(*part, *std::move(text), pair.names.front());
      return {};
    }
    note_fault(pair.names.front(), fault, placed);
    return {};
  }
  /// Joins the parts of the labels of each series. Names the loss of a part.
  Result<void> place_labels(const std::vector<LabelEvidence>& evidence, PlacedObjects& placed) {
    for (const auto& [series, chosen] : labels_) {
      const auto path = folder_.root + "/" + labels_path(series);
      VARVE_TRY_ASSIGN(auto text, folder_.stored->read_file(path, kSmallFileBytesMax));
      chains_.add_whole(series, std::move(text));
    }
    chains_.join();
    std::map<SeriesId, LabelChain> newest;
    for (const auto series : chains_.series()) {
      VARVE_TRY(chains_.visit_newest(series, [&](LabelChain chain) -> Result<bool> {
        VARVE_TRY_ASSIGN(const bool whole,
                         choose_labels(series, labels_path(series), chain.labels, true));
        if (whole) newest[series] = std::move(chain);
        return whole;
      }));
      const auto known = newest.find(series);
      const auto lost =
          chains_.newest_lost(series, known == newest.end() ? nullptr : &known->second);
      if (lost) {
        note_fault(*lost,
                   fmt::format("continues labels of which a part is lost{}", loss_of(series)),
                   placed);
      }
    }
    for (const auto& one : evidence) {
      const auto known = newest.find(one.part.series);
      const bool is_older =
          known != newest.end() &&
          std::pair(one.part.head, one.part.end()) <=
              std::pair(known->second.head, std::uint64_t{known->second.labels.size()});
      if (is_older) continue;
      note_fault(one.object, "is a lost part of labels" + loss_of(one.part.series), placed);
    }
    return {};
  }

  Result<void> place(const SmallPair& pair, PlacedObjects& placed) {
    std::string fault = "is lost";
    for (const auto& name : pair.names) {
      const auto text = read(name, pair.bytes);
      if (!text && !is_loss(text.error())) return text.error();
      if (!text || text->empty()) continue;
      const auto path = finder_.find(text->substr(0, kFrontBytes));
      fault = "is no file of this repository, or damaged";
      if (!path) continue;
      const auto series = series_of_labels(*path);
      if (!series && whole_.contains(*path)) return {};  // A newer object has the file.
      if (!series && is_deleted(*path)) {
        ++placed.deleted;
        return {};
      }
      VARVE_TRY_ASSIGN(const bool whole, series ? choose_labels(*series, *path, *text, false)
                                                : place_file(*path, *text));
      if (whole) return {};
      fault = "is damaged";
    }
    note_fault(pair.names.front(), fault, placed);
    return {};
  }

 private:
  void note_fault(const std::string& object, const std::string& fault, PlacedObjects& placed) {
    placed.problems.push_back(fmt::format("{}/{} {}", bucket_.describe(), object, fault));
  }
  static std::string loss_of(SeriesId series) {
    return fmt::format(
        ": the newest names, locks and deletions of the versions in series {} are missing",
        static_cast<std::uint32_t>(series));
  }
  Result<std::string> read(const std::string& name, std::uint64_t bytes) {
    if (bytes > kSmallFileBytesMax) return Error(ErrorCode::kCorrupt, name + " is too long");
    VARVE_TRY_ASSIGN(const auto got, bucket_.get_all(name, bytes));
    return std::string(base::as_text(got));
  }
  Result<void> write(const std::string& path, const std::string& text) {
    for (auto slash = path.find('/'); slash != std::string::npos;
         slash = path.find('/', slash + 1)) {
      VARVE_TRY(folder_.stored->make_durable_directory(folder_.root + "/" + path.substr(0, slash)));
    }
    const auto slash = path.rfind('/');
    return folder_.stored->write_file_atomically(folder_.root + "/" + path.substr(0, slash),
                                                 path.substr(slash + 1), base::as_bytes(text));
  }
  // Returns whether labels that do not list a version show its deletion: manifests stay in the
  // store for a day. Labels note the deleted versions whose manifests other versions need.
  [[nodiscard]] bool is_deleted(const std::string& path) const {
    constexpr std::size_t kSeriesDigits = 8;
    if (!path.ends_with(".man")) return false;
    const auto series = maintain::series_of_folder(path.substr(path.find('/') + 1, kSeriesDigits));
    const auto number = maintain::number_of_manifest(path.substr(path.rfind('/') + 1));
    if (!series || !number) return false;
    const auto known = labels_.find(*series);
    if (known == labels_.end() || *number >= known->second.next_number) return false;
    const auto version = static_cast<VersionNumber>(*number);
    return !known->second.listed.contains(version) &&
           !known->second.labels.removed.contains(version);
  }
  // Returns whether the file is whole.
  Result<bool> place_file(const std::string& path, const std::string& text) {
    VARVE_TRY(write(path, text));
    const auto none = [](format::ManifestRecord, std::string_view,
                         std::string_view) -> Result<void> { return {}; };
    if (path.ends_with(".man")) {
      const auto read = maintain::read_manifest(*folder_.readable, codecs_.frames(),
                                                folder_.root + "/" + path, none);
      if (!read || read->damaged_blocks != 0) return false;
    }
    whole_.insert(path);
    return true;
  }
  // Labels are written often, and a time of the store has whole seconds. So of the labels of one
  // catalog, those of the later transaction count. Returns whether the labels are whole.
  // `is_of_parts`: each program that writes whole labels refuses a store with parts of labels, so
  // labels of parts are later than whole labels, also if a takeover has given the catalog a new id.
  Result<bool> choose_labels(SeriesId series, const std::string& path, const std::string& text,
                             bool is_of_parts) {
    const auto present = folder_.stored->read_file(folder_.root + "/" + path, kSmallFileBytesMax);
    VARVE_TRY(write(path, text));
    const auto labels = maintain::read_labels(*folder_.readable, codecs_.frames(),
                                              folder_.root + "/" + series_folder(series), series);
    const auto known = labels_.find(series);
    bool is_later = labels.has_value();
    if (labels && known != labels_.end() && !is_of_parts) {
      const auto& other = known->second.labels;
      is_later = labels->catalog_id == other.catalog_id
                     ? labels->header.stamp > other.header.stamp
                     : labels->setting(maintain::kReplacedCatalogsSetting).find(other.catalog_id) !=
                           std::string::npos;
    }
    if (!is_later && present && known != labels_.end()) VARVE_TRY(write(path, *present));
    if (!labels) return false;
    if (!is_later) return true;
    auto& chosen = labels_[series] = {.labels = *labels};
    for (const auto& version : maintain::labelled_versions(series, *labels)) {
      chosen.listed.insert(version.number);
    }
    const auto record = catalog::decode_series(series, labels->series);
    if (!record) return true;
    chosen.next_number = record->next_number;
    finder_.learn(series, record->next_number);
    return true;
  }

  bucket::Bucket& bucket_;
  const PlacingFolder folder_;
  const format::DataCodecs& codecs_;
  PathFinder finder_;
  std::set<std::string> whole_;
  struct ChosenLabels {
    maintain::Labels labels{};
    std::set<VersionNumber> listed{};
    std::uint32_t next_number = 0;
  };
  std::map<SeriesId, ChosenLabels> labels_;
  LabelChains chains_;
};

}  // namespace

Result<SurveyedObjects> survey_objects(bucket::Bucket& bucket, const std::string& repository_id) {
  SurveyedObjects found;
  const auto add_to = [](std::vector<bucket::ObjectInfo>& objects) {
    return [&objects](const bucket::ObjectInfo& object) -> Result<void> {
      objects.push_back(object);
      return {};
    };
  };
  for (const auto* const folder : {"/seg/", "/vol/"}) {
    VARVE_TRY(bucket::list_all(bucket, repository_id + folder, "", add_to(found.data)));
  }
  VARVE_TRY(bucket::list_all(bucket, repository_id + "/other/", "", add_to(found.others)));
  VARVE_TRY(bucket::list_all(bucket, repository_id + "/cat/", "", add_to(found.catalog)));
  std::ranges::stable_sort(found.data, [](const auto& a, const auto& b) {
    return a.modified.seconds > b.modified.seconds;
  });
  CommitLog log(bucket, repository_id);
  VARVE_TRY(log.list_with_copies(0, [&](std::uint64_t number, bool) {
    found.heads_passed = std::max(found.heads_passed, number);
  }));
  return found;
}

Result<void> place_data(bucket::Bucket& bucket, const std::vector<bucket::ObjectInfo>& objects,
                        PlacedObjects& placed) {
  std::vector<Extent> starts;
  for (const auto& object : objects) {
    starts.push_back(start_of(object.name, object.bytes, format::kContainerFixedHeaderBytes));
  }
  VARVE_TRY_ASSIGN(const auto texts, read_starts(bucket, starts));
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    const auto& object = objects[i];
    const auto first = texts[i] ? first_container(base::as_bytes(*texts[i])) : std::nullopt;
    if (!first || first->is_corrected) {
      placed.problems.push_back(fmt::format(
          "{}/{}: the header of its first container is damaged; {}", bucket.describe(), object.name,
          first ? "the data in this container cannot be read" : "its data is left out"));
    }
    if (!first) continue;
    const bool is_volume = object.name.find("/vol/") != std::string::npos;
    const auto path = fmt::format("{}/{}", folder_of_store(first->store),
                                  is_volume ? fmt::format("volumes/{:08x}.vol", ++number)
                                            : fmt::format("active/{:08x}.seg", ++number));
    placed.map[path] = {
        {.object = object.name, .bytes = object.bytes, .object_bytes = object.bytes}};
  }
  return {};
}

Result<void> place_small_files(bucket::Bucket& bucket, const PlacingFolder& folder,
                               const format::DataCodecs& codecs, const SurveyedObjects& objects,
                               PlacedObjects& placed) {
  std::set<SeriesId> series;
  for (const auto& [path, extents] : placed.map) {
    const auto known = maintain::series_of_folder(path.substr(path.find('/') + 1, 8));
    if (known && path.starts_with("series/")) series.insert(*known);
  }
  SmallPlacer placer(bucket, folder, codecs, std::move(series));
  auto pairs = pairs_of(objects.others);
  VARVE_TRY(read_fronts(bucket, pairs));
  std::erase_if(pairs, [](const auto& pair) { return is_parity(pair.front); });
  // Labels tell the numbers of the manifests.
  // The ranges of libstdc++ 12 are too new for clang 14.
  const auto rest = std::stable_partition(pairs.begin(), pairs.end(), [](const auto& pair) {
    return may_have_lead(pair.front) || may_be_labels(pair.front);
  });
  for (auto pair = pairs.begin(); pair != rest; ++pair) {
    VARVE_TRY(placer.take_labels(*pair, placed));
  }
  VARVE_TRY_ASSIGN(const auto missing,
                   missing_parts(bucket, objects.catalog, objects.others, codecs.keys().get()));
  VARVE_TRY(placer.place_labels(missing, placed));
  for (auto pair = rest; pair != pairs.end(); ++pair) VARVE_TRY(placer.place(*pair, placed));
  return {};
}

}  // namespace varve::remote
