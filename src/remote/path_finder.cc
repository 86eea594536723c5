// SPDX-License-Identifier: Apache-2.0
#include "remote/path_finder.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "base/coding.h"
#include "crypto/sealed_file.h"
#include "format/manifest.h"
#include "io/file_system.h"
#include "maintain/manifest_file.h"
#include "remote/replica_files.h"
#include "store/sealed_places.h"

namespace varve::remote {

namespace {

// Limit of the numbers of versions to which a sealed manifest may belong without labels.
constexpr std::uint32_t kNumbersTried = 10000;
constexpr std::uint32_t kSeriesTried = 1000;
constexpr std::uint32_t kSeriesWithoutLabels = 16;
constexpr std::uint32_t kAliasesTried = 1000;
constexpr std::uint32_t kLabelsBlockBytes = 512;
constexpr std::uint32_t kAliasesMagic = 0x4c415656;  // "VVAL" in file order.
constexpr std::string_view kBesideMagic = "VarveBsd";

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

std::string aliases_path(std::uint32_t number) {
  return fmt::format("pool/aliases-{:08x}.als", number);
}

}  // namespace

std::string labels_path(SeriesId series) {
  return series_folder(series) + "/" + maintain::kLabelsName;
}

bool may_be_labels(std::string_view front) {
  const auto header = format::decode_manifest_header(base::as_bytes(front));
  if (header) return header->kind == format::ManifestKind::kLabels;
  base::ByteReader reader(front);
  static_cast<void>(reader.u64());
  return reader.u32() == kLabelsBlockBytes;
}

PathFinder::PathFinder(std::shared_ptr<const crypto::KeyRing> keys, std::set<SeriesId> series)
    : keys_(std::move(keys)), series_(std::move(series)) {}

std::optional<std::string> PathFinder::find(const std::string& front) {
  if (!keys_) return clear_path(front);
  for (const auto& path : may_be_labels(front) ? labels() : others()) {
    if (opens_at(front, path)) return path;
  }
  return std::nullopt;
}

void PathFinder::learn(SeriesId series, std::uint32_t next_number) {
  auto& number = numbers_[series];
  number = std::max(number, next_number);
  others_.clear();
}

std::optional<std::string> PathFinder::clear_path(std::string_view front) {
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

std::vector<std::string> PathFinder::labels() const {
  auto all = series_;
  for (std::uint32_t id = 1; id <= kSeriesTried; ++id) all.insert(static_cast<SeriesId>(id));
  std::vector<std::string> paths;
  for (const auto series : all) paths.push_back(labels_path(series));
  return paths;
}

const std::vector<std::string>& PathFinder::others() {
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

bool PathFinder::opens_at(const std::string& front, const std::string& path) {
  const auto place = store::sealed_place("/r", "/r/" + path);
  if (!place) return false;
  const auto file =
      crypto::make_sealed_file(std::make_unique<FrontFile>(front), path, keys_, *place);
  std::array<std::byte, 1> byte{};
  const auto got = file->read_at(0, byte);
  return got && *got == 1;
}

}  // namespace varve::remote
