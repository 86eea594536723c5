// SPDX-License-Identifier: Apache-2.0
// A series driven straight through the layout, beside a model of what it must hold.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/metrics.h"
#include "catalog/layout_records.h"
#include "catalog/series_catalog.h"
#include "crash_file_system.h"
#include "layout/arranger.h"
#include "layout/category_layout.h"
#include "layout/deletion.h"
#include "layout/window.h"
#include "meta/schema.h"
#include "store/folder_store.h"
#include "support/noise.h"
#include "support/temp_repository.h"
#include "support/test_keys.h"

namespace varve::layout {

using varve::test::must;

inline constexpr SeriesId kSeries{1};
inline constexpr StoreId kStore{1};
inline const std::string kFolder = "/r/1";

/// The content of a chunk: any two chunks of one content are equal.
using Content = std::uint32_t;

/// Returns contents that no stream has had, and counts them.
inline std::vector<Content> new_contents(std::size_t chunks, Content& next) {
  std::vector<Content> stream(chunks);
  std::iota(stream.begin(), stream.end(), next);
  next += static_cast<Content>(chunks);
  return stream;
}

class History {
 public:
  explicit History(std::uint64_t seed, const format::Compression& compression = {});

  // Versions. write() leaves the version open; a seal needs one.
  VersionNumber open();
  void write(const std::vector<Content>& stream);
  void seal();
  void abandon();
  [[nodiscard]] bool is_open() const { return open_.has_value(); }
  [[nodiscard]] std::vector<VersionNumber> sealed() const;
  [[nodiscard]] const std::vector<Content>& newest_stream() const { return newest_; }

  /// True if it came to its end. Stops after `steps_max` steps. Checks that the metrics grow by
  /// `moved`.
  [[nodiscard]] Result<bool> arrange(std::uint64_t steps_max = ~std::uint64_t{0});
  /// Deletes the versions, and expects that exactly the forecast bytes come back.
  void remove(const std::vector<VersionNumber>& numbers);
  /// The commit of a deletion without what follows it, or with files that fail.
  [[nodiscard]] Result<void> try_remove(const std::vector<VersionNumber>& numbers);
  void set(const ArrangeSettings& settings);
  /// A power cut; an open version is given up, as its overlay is not part of this model.
  void crash();

  /// Everything that must hold after each step.
  void check();
  /// Chunks that reading the version would take out of the files: a prefix of each volume that
  /// is not older, and those of the active set that are not younger.
  [[nodiscard]] base::IdRuns read_set(VersionNumber number);
  [[nodiscard]] base::IdRuns chunk_set(VersionNumber number);

  std::mt19937_64 random;
  test::CrashFileSystem files;
  std::uint64_t step_bytes_max = 3000;
  std::uint64_t batch_bytes_max = 700;
  std::uint64_t shared_bytes_max = 600;
  CoalescingLimits coalescing{4000, 3000, 2};
  MoveOutcome moved;                  ///< By the last arrange().
  std::uint64_t coalesced_bytes = 0;  ///< By all calls of arrange().
  bool side = false;                  ///< Whether the last seal made a side version.

  /// Contents with the same remainder by 16 are alike, up to the length of the shorter one.
  static std::string bytes_of(Content content) {
    return test::noise(8, content) + test::noise(32 + content * 37 % 400, content % 16);
  }
  [[nodiscard]] meta::Env& catalog() { return *catalog_; }
  [[nodiscard]] CategoryLayout& layout() { return *layout_; }

 private:
  struct Version {
    std::vector<std::pair<ChunkId, Content>> chunks;
    bool side = false;
  };
  void start();
  [[nodiscard]] std::map<std::string, std::uint64_t> file_sizes();
  [[nodiscard]] catalog::VersionRecord record(VersionNumber number, VersionState state) const;
  void check_reading();
  void check_records();
  void check_volumes();
  void check_categories();

  std::unique_ptr<test::TempDirectory> directory_;
  std::unique_ptr<meta::Env> catalog_;
  base::Metrics registry_;
  const LayoutMetrics metrics_{registry_};
  base::ThreadPool pool_{1, "test"};
  std::unique_ptr<store::FolderStore> store_;
  const std::unique_ptr<const format::FrameCodec> codec_;  // Sealed for odd seeds.
  std::unique_ptr<CategoryLayout> layout_;
  std::map<VersionNumber, Version> versions_;
  std::vector<Content> newest_;
  std::uint32_t next_number_ = 1;
  std::optional<VersionNumber> open_;
  Version writing_;
  std::map<Content, ChunkId> index_;
  std::map<std::uint64_t, Content> content_of_;
};

}  // namespace varve::layout
