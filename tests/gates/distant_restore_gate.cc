// SPDX-License-Identifier: Apache-2.0
// A restore from a store that answers each request after 50 ms submits the requests of many areas
// at once. A restore from a local folder reads slice by slice.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/coding.h"
#include "base/thread_pool.h"
#include "format/fingerprinter.h"
#include "format/frame_codec.h"
#include "io/memory_file_system.h"
#include "layout/category_layout.h"
#include "meta/schema.h"
#include "restore/file_stream.h"
#include "restore/restore_engine.h"
#include "store/folder_store.h"
#include "support/memory_segment_store.h"
#include "support/temp_repository.h"

namespace varve::restore {
namespace {

using test::must;

constexpr std::chrono::milliseconds kLatency(50);
constexpr std::size_t kMiB = 1U << 20;
constexpr std::size_t kChunkBytes = 16U << 10;
constexpr std::size_t kChunks = 2048;  // 32 MiB.

/// Passes every read on, and counts how.
class CountingSource final : public layout::ChunkSource {
 public:
  explicit CountingSource(layout::ChunkSource& source) : source_(source) {}
  const format::FrameCodec& codec() const override { return source_.codec(); }
  Result<layout::LocationRun> locate(ChunkId id) override { return source_.locate(id); }
  Result<std::shared_ptr<const format::ContainerHeader>> header(
      ContainerNumber container) override {
    return source_.header(container);
  }
  Result<void> read_data(ContainerNumber container, std::uint32_t offset,
                         std::span<std::byte> out) override {
    note(container, offset, out.size());
    return source_.read_data(container, offset, out);
  }
  Result<std::span<const std::byte>> read_once(ContainerNumber container, std::uint32_t offset,
                                               std::size_t bytes,
                                               std::span<std::byte> room) override {
    note(container, offset, bytes);
    return source_.read_once(container, offset, bytes, room);
  }
  bool answers_later() const override { return source_.answers_later(); }
  void read_many(const std::vector<layout::DataRead>& reads,
                 const layout::DataCompletion& done) override {
    ++batches;
    for (const auto& read : reads) note(read.container, read.offset, read.bytes);
    source_.read_many(reads, done);
  }
  Result<std::uint64_t> place_of(ContainerNumber container) override {
    return source_.place_of(container);
  }

  std::atomic<std::uint64_t> requests{0};
  std::atomic<std::uint64_t> bytes_read{0};
  std::atomic<std::uint64_t> repeated{0};  ///< Requests for bytes that were read before.
  std::atomic<std::uint64_t> batches{0};

 private:
  void note(ContainerNumber container, std::uint32_t offset, std::size_t size) {
    ++requests;
    bytes_read += size;
    const std::lock_guard lock(mutex_);
    if (!seen_.emplace(container, offset).second) ++repeated;
  }
  layout::ChunkSource& source_;
  std::mutex mutex_;
  std::set<std::pair<ContainerNumber, std::uint32_t>> seen_;
};

/// One version of one file, in a store.
class StoredFile {
 private:
  test::TempDirectory directory_;
  const std::unique_ptr<const format::FrameCodec> codec_ = format::make_plain_frame_codec({});
  std::unique_ptr<meta::Env> catalog_;

 public:
  explicit StoredFile(store::SegmentStore& segments) {
    meta::EnvOptions environment;
    environment.tables = meta::catalog::kTables;
    catalog_ = std::make_unique<meta::Env>(must(meta::Env::open(directory_.path(), environment)));
    layout::CategoryLayoutOptions options;
    options.series = SeriesId{1};
    options.store = StoreId{1};
    layout = must(layout::CategoryLayout::open(*catalog_, segments, *codec_, &pool, options));
    must(layout->begin_version(VersionNumber{1}));
    const auto fingerprinter = format::make_sha256_fingerprinter();
    for (std::size_t i = 0; i < kChunks; ++i) {
      const auto raw = test::noise(kChunkBytes, i + 1);
      const auto bytes = base::as_bytes(raw);
      recipe->append_chunk(must(layout->place(fingerprinter->fingerprint(bytes), bytes)),
                           kChunkBytes);
      content += raw;
    }
    must(layout->on_seal(VersionNumber{1}, {}));
  }

  base::ThreadPool pool{2, "test"};
  std::shared_ptr<format::Recipe> recipe = std::make_shared<format::Recipe>();
  std::string content;
  std::unique_ptr<layout::CategoryLayout> layout;
};

class OneFile final : public FutureFiles {
 public:
  explicit OneFile(FileContent file) : file_(std::move(file)) {}
  Result<std::optional<FileContent>> next() override { return std::exchange(file_, std::nullopt); }

 private:
  std::optional<FileContent> file_;
};

/// Restores the file and compares it.
void restore(const StoredFile& file, layout::ChunkSource& source) {
  base::ThreadPool workers(3, "test");
  MemoryMeter meter;
  base::Metrics registry;
  const ReadMetrics metrics(registry);
  SliceReader reader(metrics);
  BufferPool areas(1, &meter);
  BufferPool slices(2, &meter);
  FileStream stream(std::nullopt, std::make_unique<OneFile>(FileContent{1, file.recipe}));
  EngineContext context;
  context.source = &source;
  context.stream = &stream;
  context.reader = &reader;
  context.areas = &areas;
  context.slices = &slices;
  context.meter = &meter;
  context.metrics = &metrics;
  context.workers = &workers;
  context.ahead_readers = &workers;
  const auto engine = must(make_engine("alacc", context, {64 * kMiB, 16 * kMiB}));
  std::size_t at = 0;
  while (const auto area = must(engine->assemble(4 * kMiB))) {
    const std::size_t bytes = area->end() - area->position();
    ASSERT_EQ(area->good_bytes(at), bytes);
    ASSERT_EQ(std::memcmp(area->bytes_at(at), file.content.data() + at, bytes), 0);
    at += bytes;
  }
  EXPECT_EQ(at, file.content.size());
}

TEST(DistantRestoreGate, TheRequestsOfManyAreasAreInFlightAtOnce) {
  test::MemorySegmentStore segments(kLatency);
  const StoredFile file(segments);
  CountingSource source(*file.layout);
  const auto began = std::chrono::steady_clock::now();
  restore(file, source);
  const auto took = std::chrono::steady_clock::now() - began;
  EXPECT_GE(segments.in_flight_max(), 20U);
  EXPECT_GE(source.requests, file.content.size() / kSliceBytesMax);
  EXPECT_EQ(source.repeated, 0U) << "bytes were read twice";
  // One after the other, the requests would take at least this long.
  EXPECT_LT(took, kLatency * source.requests.load()) << source.requests << " requests";
}

TEST(DistantRestoreGate, AFailedBatchIsReadAgain) {
  test::MemorySegmentStore segments(std::chrono::milliseconds(1));
  const StoredFile file(segments);
  CountingSource source(*file.layout);
  for (std::uint32_t i = 0; i < kChunks; ++i) {  // The layout caches the headers.
    must(source.header(must(source.locate(ChunkId::make(VersionNumber{1}, i))).container));
  }
  segments.fail_batched_reads(5);  // The engine reads a slice again once.
  restore(file, source);
  EXPECT_GT(source.repeated, 0U);
}

TEST(DistantRestoreGate, ALocalFolderIsReadSliceBySlice) {
  const auto files = io::make_memory_file_system();
  must(files->make_directory("/r"));
  store::FolderStore segments(*files, "/r/s");
  const StoredFile file(segments);
  CountingSource source(*file.layout);
  restore(file, source);
  EXPECT_EQ(source.batches, 0U);
  EXPECT_EQ(source.repeated, 0U);
  EXPECT_EQ(source.bytes_read, file.content.size());
  EXPECT_LE(source.requests, 2 * file.content.size() / kSliceBytesMax);
}

}  // namespace
}  // namespace varve::restore
