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

#include "base/coding.h"
#include "catalog/series_catalog.h"
#include "crypto/sealed_file.h"
#include "format/container.h"
#include "format/manifest.h"
#include "format/parity.h"
#include "maintain/manifest_file.h"
#include "remote/catalog_reads.h"
#include "remote/commit_log.h"
#include "remote/head.h"
#include "remote/replica_files.h"
#include "store/sealed_places.h"

namespace varve::remote {

namespace {

constexpr std::size_t kHeadersAtOnce = 256;
// Limit of the numbers of versions to which a sealed manifest may belong without labels.
constexpr std::uint32_t kNumbersTried = 10000;
constexpr std::uint32_t kSeriesTried = 1000;
constexpr std::uint32_t kSeriesWithoutLabels = 16;
constexpr std::uint32_t kAliasesTried = 1000;
constexpr std::uint32_t kLabelsBlockBytes = 512;
constexpr std::size_t kSmallFileBytesMax = std::size_t{300} << 20;
// Enough for the header and the first block of a sealed file.
constexpr std::size_t kManifestFrontBytes = 64;
constexpr std::size_t kFrontBytes = std::size_t{8} << 10;
constexpr std::uint32_t kAliasesMagic = 0x4c415656;  // "VVAL" in file order.

constexpr std::string_view kBesideMagic = "VarveBsd";

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

/// The first bytes of a file, in memory.
class FrontFile final : public io::File {
 public:
  explicit FrontFile(const std::string& bytes) : bytes_(bytes) {}
  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out) override {
    if (offset >= bytes_.size()) return std::size_t{0};
    const auto part = base::as_bytes(bytes_).subspan(offset);
    const auto got = std::min(part.size(), out.size());
    std::copy_n(part.begin(), got, out.begin());
    return got;
  }
  Result<void> write_at(std::uint64_t, std::span<const std::byte>) override { return refused(); }
  Result<void> sync() override { return {}; }
  Result<std::uint64_t> size() override { return std::uint64_t{bytes_.size()}; }
  Result<void> truncate(std::uint64_t) override { return refused(); }
  Result<std::uint64_t> seek_data(std::uint64_t offset) override { return offset; }
  Result<std::uint64_t> seek_hole(std::uint64_t) override { return size(); }

 private:
  static Error refused() { return {ErrorCode::kReadOnly, "a file in memory"}; }
  const std::string& bytes_;
};

// Returns whether labels may begin so, sealed or clear.
bool may_be_labels(std::string_view front) {
  const auto header = format::decode_manifest_header(base::as_bytes(front));
  if (header) return header->kind == format::ManifestKind::kLabels;
  base::ByteReader reader(front);
  static_cast<void>(reader.u64());
  return reader.u32() == kLabelsBlockBytes;
}

/// Finds the path of a small file from its first bytes. A sealed file opens only in its own place,
/// so the places are tried.
class PathFinder {
 public:
  PathFinder(std::shared_ptr<const crypto::KeyRing> keys, std::set<SeriesId> series)
      : keys_(std::move(keys)), series_(std::move(series)) {}

  /// Returns the path in the repository; nullopt for parity, and for bytes of no known file.
  std::optional<std::string> find(const std::string& front) {
    if (!keys_) return clear_path(front);
    for (const auto& path : may_be_labels(front) ? labels() : others()) {
      if (opens_at(front, path)) return path;
    }
    return std::nullopt;
  }
  /// Learns the next number of a series from the series' labels.
  void learn(SeriesId series, std::uint32_t next_number) {
    auto& number = numbers_[series];
    number = std::max(number, next_number);
    others_.clear();
  }

 private:
  std::optional<std::string> clear_path(std::string_view front) {
    const auto header = format::decode_manifest_header(base::as_bytes(front));
    if (header && header->kind == format::ManifestKind::kLabels) {
      return labels_path(header->series);
    }
    if (header) {
      return maintain::manifest_path(series_folder(header->series), header->number);
    }
    base::ByteReader reader(front);
    if (front.starts_with(kBesideMagic)) {
      static_cast<void>(reader.u64());
      static_cast<void>(reader.u32());
      return series_folder(static_cast<SeriesId>(reader.u32())) + "/beside";
    }
    if (reader.u32() == kAliasesMagic) return aliases_path(++aliases_);
    return std::nullopt;
  }
  static std::string labels_path(SeriesId series) {
    return series_folder(series) + "/" + maintain::kLabelsName;
  }
  static std::string aliases_path(std::uint32_t number) {
    return fmt::format("pool/aliases-{:08x}.als", number);
  }
  [[nodiscard]] std::vector<std::string> labels() const {
    auto all = series_;
    for (std::uint32_t id = 1; id <= kSeriesTried; ++id) all.insert(static_cast<SeriesId>(id));
    std::vector<std::string> paths;
    for (const auto series : all) paths.push_back(labels_path(series));
    return paths;
  }
  const std::vector<std::string>& others() {
    if (!others_.empty()) return others_;
    auto all = series_;
    for (const auto& [series, number] : numbers_) all.insert(series);
    for (std::uint32_t id = 1; numbers_.empty() && id <= kSeriesWithoutLabels; ++id) {
      all.insert(static_cast<SeriesId>(id));
    }
    for (const auto series : all) {
      const auto known = numbers_.find(series);
      const auto end = known == numbers_.end() ? kNumbersTried : known->second;
      for (std::uint32_t number = 1; number < end; ++number) {
        others_.push_back(
            maintain::manifest_path(series_folder(series), static_cast<VersionNumber>(number)));
      }
      others_.push_back(series_folder(series) + "/beside");
    }
    for (std::uint32_t number = 0; number < kAliasesTried; ++number) {
      others_.push_back(aliases_path(number));
    }
    return others_;
  }
  bool opens_at(const std::string& front, const std::string& path) {
    const auto place = store::sealed_place("/r", "/r/" + path);
    if (!place) return false;
    const auto file =
        crypto::make_sealed_file(std::make_unique<FrontFile>(front), path, keys_, *place);
    std::array<std::byte, 1> byte{};
    const auto got = file->read_at(0, byte);
    return got && *got == 1;
  }

  const std::shared_ptr<const crypto::KeyRing> keys_;
  const std::set<SeriesId> series_;            // The series of the data objects.
  std::map<SeriesId, std::uint32_t> numbers_;  // The next numbers of versions.
  std::vector<std::string> others_;
  std::uint32_t aliases_ = 0;
};

/// A small object with its copy.
struct SmallPair {
  std::int64_t seconds = 0;
  std::uint64_t bytes = 0;
  std::vector<std::string> names{};  // The object before the copy.
  std::string front{};               // The first bytes; empty if the object is lost.
};

// Returns the objects with the copies, the newest first.
std::vector<SmallPair> pairs_of(const std::vector<bucket::ObjectInfo>& objects) {
  std::map<std::string, SmallPair> by_name;
  for (const auto& object : objects) {
    const auto original = copied_name(object.name);
    auto& pair = by_name[original ? *original : object.name];
    pair.seconds = std::max(pair.seconds, object.modified.seconds);
    pair.bytes = std::max(pair.bytes, object.bytes);
    pair.names.insert(original ? pair.names.end() : pair.names.begin(), object.name);
  }
  std::vector<SmallPair> pairs;
  for (auto& [name, pair] : by_name) pairs.push_back(std::move(pair));
  std::ranges::stable_sort(pairs,
                           [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  return pairs;
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
      VARVE_TRY_ASSIGN(const bool whole,
                       series ? place_labels(*series, *path, *text) : place_file(*path, *text));
      if (whole) return {};
      fault = "is damaged";
    }
    placed.problems.push_back(
        fmt::format("{}/{} {}", bucket_.describe(), pair.names.front(), fault));
    return {};
  }

 private:
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
  static std::optional<SeriesId> series_of_labels(const std::string& path) {
    const auto end = path.rfind('/');
    if (path.substr(end + 1) != maintain::kLabelsName) return std::nullopt;
    return maintain::series_of_folder(path.substr(path.find('/') + 1, end - path.find('/') - 1));
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
  Result<bool> place_labels(SeriesId series, const std::string& path, const std::string& text) {
    const auto present = folder_.stored->read_file(folder_.root + "/" + path, kSmallFileBytesMax);
    VARVE_TRY(write(path, text));
    const auto labels = maintain::read_labels(*folder_.readable, codecs_.frames(),
                                              folder_.root + "/" + series_folder(series), series);
    const auto known = labels_.find(series);
    bool is_later = labels.has_value();
    if (labels && known != labels_.end()) {
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
                               const format::DataCodecs& codecs,
                               const std::vector<bucket::ObjectInfo>& objects,
                               PlacedObjects& placed) {
  std::set<SeriesId> series;
  for (const auto& [path, extents] : placed.map) {
    const auto known = maintain::series_of_folder(path.substr(path.find('/') + 1, 8));
    if (known && path.starts_with("series/")) series.insert(*known);
  }
  SmallPlacer placer(bucket, folder, codecs, std::move(series));
  auto pairs = pairs_of(objects);
  VARVE_TRY(read_fronts(bucket, pairs));
  std::erase_if(pairs, [](const auto& pair) { return is_parity(pair.front); });
  // Labels tell the numbers of the manifests.
  // The ranges of libstdc++ 12 are too new for clang 14.
  std::stable_partition(pairs.begin(), pairs.end(),
                        [](const auto& pair) { return may_be_labels(pair.front); });
  for (const auto& pair : pairs) VARVE_TRY(placer.place(pair, placed));
  return {};
}

}  // namespace varve::remote
