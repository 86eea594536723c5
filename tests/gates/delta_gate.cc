// SPDX-License-Identifier: Apache-2.0
// The setting `delta`: the space of old versions, the cost of reading old versions, and the
// unchanged newest version.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "support/prefer_memory.h"
#include "support/records_read.h"
#include "support/temp_repository.h"
#include "varve/arrange.h"
#include "varve/browse.h"
#include "varve/check.h"
#include "varve/retention.h"

namespace varve {
namespace {

using test::must;

constexpr int kVersions = 24;

/// A history of one file.
class Source {
 public:
  enum class Kind { kDump, kPages, kNoise };
  explicit Source(Kind kind) : kind_(kind) {
    for (int i = 0; i < 4000; ++i) rows_.push_back(new_row());
  }
  void change() {
    for (int i = 0; i < 130; ++i) rows_[random_() % rows_.size()] = new_row();
    if (kind_ != Kind::kDump) return;
    for (int i = 0; i < 10; ++i) {
      const auto at = static_cast<std::ptrdiff_t>(random_() % rows_.size());
      rows_.insert(rows_.begin() + at, new_row());
    }
  }
  [[nodiscard]] std::string text() const {
    std::string text;
    for (const auto& row : rows_) text += row;
    return text;
  }

 private:
  // Rows of a dump differ in length, the pages of a file do not.
  std::string new_row() {
    if (kind_ == Kind::kNoise) return test::noise(500, random_());
    std::string row = "row " + std::to_string(random_() % 1000000);
    const auto bytes = kind_ == Kind::kDump ? 200 + random_() % 300 : 500;
    while (row.size() < bytes) row += " w" + std::to_string(random_() % 5000);
    row.resize(bytes, '.');
    return row + (kind_ == Kind::kDump ? "\n" : "");
  }
  const Kind kind_;
  std::mt19937_64 random_{3};
  std::vector<std::string> rows_;
};

class Stored {
 public:
  /// `files`: number of files into which the source is divided.
  Stored(Source::Kind kind, std::uint32_t delta, std::size_t files = 1) : files_(files) {
    must(Repository::create(path_, test::small_chunks(Codec::kZstd)));
    repository_ = test::reopen(path_);
    series_ = must(repository_->create_series("s")).id;
    auto settings = must(repository_->arrange_settings());
    settings.delta = delta;
    must(repository_->set_arrange_settings(settings));
    Source source(kind);
    for (int i = 0; i < kVersions; ++i) {
      if (i != 0) source.change();
      store(source.text());
      if (i == 9) volume_bytes_of_ten_ = bytes_in("volumes");
    }
  }

  void store(const std::string& text) {
    const auto number = must(repository_->open_version(series_, "v" + std::to_string(texts_.size()),
                                                       test::folder()))
                            .number;
    {
      const auto writer = must(repository_->writer(series_));
      for (std::size_t i = 0; i < files_; ++i) {
        test::write_file(*writer, kRootIno, name(i), part(text, i));
      }
    }
    must(repository_->seal(series_, number, ""));
    must(repository_->arrange(series_, {}));
    texts_[number] = text;
  }

  struct Cost {
    std::uint64_t read = 0;     ///< Stored bytes.
    std::uint64_t decoded = 0;  ///< Raw bytes, prefixes included.
  };
  /// Returns the costs of reading one file of each version in order, oldest first, as a mount does.
  std::vector<Cost> file_costs(std::size_t number) {
    constexpr std::size_t kRequestBytes = 128U << 10;
    std::vector<Cost> all;
    for (const auto& [version, text] : texts_) {
      repository_.reset();
      repository_ = test::reopen(path_);
      const auto reader = must(repository_->reader(series_, version));
      const auto file = must(reader->open(test::find(*reader, name(number))));
      std::string read(part(text, number).size(), '\0');
      for (std::size_t at = 0; at < read.size(); at += kRequestBytes) {
        const auto room = std::as_writable_bytes(std::span(read)).subspan(at);
        must(file->read(at, room.first(std::min(room.size(), kRequestBytes))));
      }
      EXPECT_TRUE(read == part(text, number));
      all.push_back({test::metric(*repository_, "varve_restore_read_bytes_total"),
                     test::metric(*repository_, "varve_restore_decoded_bytes_total")});
    }
    return all;
  }
  [[nodiscard]] DeltaSavings savings() { return must(repository_->delta_savings(series_)); }

  /// Returns the bytes read by a restore of each version, oldest first. Checks the restored bytes,
  /// and the bytes that a reader of the file gets.
  std::vector<std::uint64_t> reads() {
    std::vector<std::uint64_t> all;
    for (const auto& [number, text] : texts_) {
      repository_.reset();
      repository_ = test::reopen(path_);
      const auto reader = must(repository_->reader(series_, number));
      std::vector<StoredPiece> pieces;
      must(reader->locate_data(test::find(*reader, "file"), 0, [&](const StoredPiece& piece) {
        pieces.push_back(piece);
        return true;
      }));
      std::ranges::sort(pieces, lies_before);
      std::string restored(text.size(), '\0');
      reader->read_pieces(pieces, [&](const StoredPiece& /*piece*/, std::uint64_t offset,
                                      std::size_t bytes, const std::byte* data) {
        if (data != nullptr) std::memcpy(restored.data() + offset, data, bytes);
        return data != nullptr;
      });
      EXPECT_TRUE(restored == text);
      all.push_back(test::metric(*repository_, "varve_restore_read_bytes_total"));
      EXPECT_TRUE(test::read_sealed(*reader, "file") == text);
    }
    return all;
  }
  [[nodiscard]] std::uint64_t bytes_in(const char* folder) const {
    std::uint64_t bytes = 0;
    for (const auto& file :
         std::filesystem::directory_iterator(path_ + "/series/00000001/" + folder)) {
      bytes += file.file_size();
    }
    return bytes;
  }
  /// Returns the bytes of the volumes after the first ten versions.
  [[nodiscard]] std::uint64_t volume_bytes_of_ten() const { return volume_bytes_of_ten_; }
  [[nodiscard]] std::uint64_t written() const {
    return test::metric(*repository_, "varve_arrange_written_bytes_total");
  }
  [[nodiscard]] std::uint64_t written_with_prefixes() const {
    return test::metric(*repository_, "varve_arrange_delta_bytes_total");
  }
  void remove(const std::vector<std::size_t>& places) {
    std::vector<VersionNumber> gone;
    for (const auto place : places) {
      gone.push_back(std::next(texts_.begin(), static_cast<std::ptrdiff_t>(place))->first);
    }
    const auto forecast = must(repository_->forecast_deletion(series_, gone, {}));
    const auto deleted = must(repository_->delete_versions(series_, gone, {}));
    EXPECT_EQ(deleted.freed_bytes, forecast.freed_bytes);
    EXPECT_EQ(deleted.dead_bytes, forecast.dead_bytes);
    for (const auto number : gone) texts_.erase(number);
  }
  void arrange() { must(repository_->arrange(series_, {})); }
  void expect_whole() {
    const auto report = must(repository_->check({}, {}));
    for (const auto& damage : report.damages) ADD_FAILURE() << damage.where << ": " << damage.what;
    static_cast<void>(reads());
  }

 private:
  [[nodiscard]] std::string name(std::size_t file) const {
    return files_ == 1 ? "file" : "f" + std::to_string(file);
  }
  [[nodiscard]] std::string part(const std::string& text, std::size_t file) const {
    const std::size_t begin = text.size() * file / files_;
    return text.substr(begin, text.size() * (file + 1) / files_ - begin);
  }

  const std::size_t files_;
  const test::PreferMemory in_memory_;
  const test::TempDirectory directory_;
  const std::string path_ = directory_.path() + "/repo";
  std::unique_ptr<Repository> repository_;
  SeriesId series_{};
  std::uint64_t volume_bytes_of_ten_ = 0;
  std::map<VersionNumber, std::string> texts_;
};

struct Limits {
  // Shares of the bytes without the setting.
  double volumes = 0;         ///< Bytes of volumes.
  double volumes_of_ten = 0;  ///< Bytes of volumes after ten versions.
  double read = 0;            ///< Bytes read for the most expensive version.
  double written = 0;         ///< Bytes written by arranging.
};

double ratio(std::uint64_t part, std::uint64_t whole) {
  return static_cast<double>(part) / static_cast<double>(whole);
}

void check_kind(Source::Kind kind, const Limits& limits) {
  Stored off(kind, 0);
  Stored on(kind, 1);
  EXPECT_EQ(on.bytes_in("active"), off.bytes_in("active"));
  const double volumes = ratio(on.bytes_in("volumes"), off.bytes_in("volumes"));
  const double written = ratio(on.written(), off.written());
  const double of_ten = ratio(on.volume_bytes_of_ten(), off.volume_bytes_of_ten());
  EXPECT_LE(volumes, limits.volumes);
  EXPECT_LE(of_ten, limits.volumes_of_ten);
  EXPECT_LE(written, limits.written);
  testing::Test::RecordProperty("volumes", std::to_string(volumes));
  testing::Test::RecordProperty("volumes_of_ten", std::to_string(of_ten));
  testing::Test::RecordProperty("written", std::to_string(written));
  const auto reads_off = off.reads();
  const auto reads_on = on.reads();
  for (std::size_t i = 0; i < reads_on.size(); ++i) {
    EXPECT_LE(ratio(reads_on[i], reads_off[i]), limits.read) << "version " << i;
  }
  EXPECT_EQ(reads_on.back(), reads_off.back()) << "the newest version";
  on.remove({3, 4, 9});
  on.arrange();
  on.expect_whole();
  on.remove({0, 1, 2});
  on.remove({17, 16, 15});
  on.arrange();
  on.expect_whole();
}

// A file of a version in joined volumes, read alone: the last file, so that no other file is read
// in advance.
void check_file(Source::Kind kind) {
  Stored off(kind, 0, 8);
  Stored on(kind, 1, 8);
  const auto costs_off = off.file_costs(7);
  const auto costs_on = on.file_costs(7);
  double most_read = 0;
  double most_decoded = 0;
  for (std::size_t i = 0; i < costs_on.size(); ++i) {
    const double read = ratio(costs_on[i].read, costs_off[i].read);
    const double decoded = ratio(costs_on[i].decoded, costs_off[i].decoded);
    EXPECT_LE(read, 3) << "version " << i;
    EXPECT_LE(decoded, 3) << "version " << i;
    most_read = std::max(most_read, read);
    most_decoded = std::max(most_decoded, decoded);
  }
  testing::Test::RecordProperty("read", std::to_string(most_read));
  testing::Test::RecordProperty("decoded", std::to_string(most_decoded));
}

// Compares the figures of `stats --delta` with the volumes of a repository without the setting.
TEST(DeltaGate, SavingsAreWhatTheVolumesLack) {
  for (const auto kind : {Source::Kind::kDump, Source::Kind::kPages}) {
    Stored off(kind, 0);
    Stored on(kind, 1);
    const auto none = off.savings();
    EXPECT_EQ(none.volume_bytes, off.bytes_in("volumes"));
    EXPECT_EQ(none.frames, 0U);
    EXPECT_EQ(none.frame_plain_bytes, 0U);
    const auto savings = on.savings();
    EXPECT_EQ(savings.volume_bytes, on.bytes_in("volumes"));
    EXPECT_EQ(savings.containers_left_out, 0U);
    EXPECT_GT(savings.frames, 10U);
    EXPECT_LT(savings.frame_stored_bytes, savings.volume_bytes);
    const auto saved = savings.frame_plain_bytes - savings.frame_stored_bytes;
    const auto lacking = none.volume_bytes - savings.volume_bytes;
    EXPECT_NEAR(ratio(saved, lacking), 1, 0.1);
    // The arranger counts all joinings, also of volumes joined again later.
    EXPECT_GE(on.written_with_prefixes(), savings.frame_stored_bytes);
    EXPECT_EQ(off.written_with_prefixes(), 0U);
  }
}

TEST(DeltaGate, OneDumpOfEight) { check_file(Source::Kind::kDump); }
TEST(DeltaGate, OneFileOfPagesOfEight) { check_file(Source::Kind::kPages); }

TEST(DeltaGate, Dump) { check_kind(Source::Kind::kDump, {0.59, 0.55, 2, 1.6}); }
TEST(DeltaGate, Pages) { check_kind(Source::Kind::kPages, {0.65, 0.62, 2, 1.6}); }
TEST(DeltaGate, Noise) { check_kind(Source::Kind::kNoise, {0.69, 0.61, 2, 1.6}); }

}  // namespace
}  // namespace varve
