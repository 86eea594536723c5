// SPDX-License-Identifier: Apache-2.0
// What every restore engine must do: give the same bytes, whatever it keeps in memory.
#include <gtest/gtest.h>

#include <string>

#include "../unit/restore/fake_source.h"
#include "restore/file_stream.h"
#include "restore/restore_engine.h"

namespace varve::restore {
namespace {

constexpr std::size_t kMiB = 1U << 20;

class RestoreEngineContract : public testing::TestWithParam<std::string> {
 protected:
  // An engine over all files of a world.
  struct Bench {
    explicit Bench(World& world)
        : areas(1, &meter),
          slices(2, &meter),
          stream(std::nullopt, std::make_unique<WorldFutureFiles>(world, 0)) {}
    MemoryMeter meter;
    SliceReader reader;
    BufferPool areas;
    BufferPool slices;
    FileStream stream;
    std::unique_ptr<RestoreEngine> engine;
  };

  static std::unique_ptr<Bench> make_bench(World& world, const EngineMemory& memory) {
    auto bench = std::make_unique<Bench>(world);
    auto engine = make_engine(GetParam(),
                              {&world.source, &bench->stream, &bench->reader, &bench->areas,
                               &bench->slices, &bench->meter},
                              memory);
    EXPECT_TRUE(engine.has_value());
    bench->engine = std::move(*engine);
    return bench;
  }

  // The stream that the files make: their data without holes.
  static Bytes stream_of(const World& world) {
    Bytes stream;
    for (const World::File& file : world.files) {
      std::size_t at = 0;
      for (const format::RecipeRun& run : file.recipe->runs) {
        const auto begin = file.content.begin() + static_cast<std::ptrdiff_t>(at);
        if (!run.is_hole()) {
          stream.insert(stream.end(), begin, begin + static_cast<std::ptrdiff_t>(run.bytes));
        }
        at += run.bytes;
      }
    }
    return stream;
  }

  static void expect_stream(RestoreEngine& engine, const Bytes& wanted, std::size_t area_bytes) {
    std::uint64_t at = 0;
    while (true) {
      ASSERT_EQ(engine.position(), at);
      const auto area = engine.assemble(area_bytes);
      ASSERT_TRUE(area.has_value()) << area.error().message();
      if (!*area) break;
      ASSERT_EQ((*area)->position(), at);
      ASSERT_GT((*area)->end(), at);
      ASSERT_LE((*area)->end() - at, area_bytes);
      ASSERT_LE((*area)->end(), wanted.size());
      ASSERT_EQ((*area)->good_bytes(at), (*area)->end() - at);
      ASSERT_EQ(std::memcmp((*area)->bytes_at(at), wanted.data() + at, (*area)->end() - at), 0);
      at = (*area)->end();
    }
    EXPECT_EQ(at, wanted.size());
  }
};

TEST_P(RestoreEngineContract, RandomStreamsComeOutByteForByte) {
  for (const unsigned seed : {21U, 22U, 23U}) {
    World world(seed, seed == 22 ? Codec::kZstd : Codec::kNone);
    fill_random(world, 150);
    const Bytes wanted = stream_of(world);
    for (const std::size_t area_bytes : {std::size_t{64} << 10, kMiB, 4 * kMiB}) {
      for (const std::size_t memory : {4 * area_bytes + 2 * kMiB, 64 * kMiB}) {
        const auto bench = make_bench(world, {memory, 4 * area_bytes});
        expect_stream(*bench->engine, wanted, area_bytes);
      }
    }
  }
}

TEST_P(RestoreEngineContract, StaysWithinItsMemory) {
  World world(24);
  fill_random(world, 300);
  const EngineMemory memory{12 * kMiB, 4 * kMiB};
  const auto bench = make_bench(world, memory);
  while (true) {
    const auto area = bench->engine->assemble(kMiB);
    ASSERT_TRUE(area.has_value());
    if (!*area) break;
    ASSERT_LE(bench->meter.held(), memory.total);
  }
}

TEST_P(RestoreEngineContract, DamageIsMarkedAndAllElseIsGood) {
  World world(25);
  World::File& file = world.add_file();
  world.append_new(file, 9 * kMiB);
  // The damaged chunks come back later, out of order.
  const format::RecipeRun run = file.recipe->runs[0];
  for (int i = 0; i < 300; ++i) world.append(file, run.first.plus(world.random() % run.count));
  world.finish();
  world.source.flip_byte(0, 7);
  world.source.flip_byte(1, 0);
  const Bytes wanted = stream_of(world);
  const auto bench = make_bench(world, {32 * kMiB, 4 * kMiB});
  std::uint64_t at = 0;
  std::uint64_t good = 0;
  while (true) {
    const auto area = bench->engine->assemble(kMiB);
    ASSERT_TRUE(area.has_value());
    if (!*area) break;
    for (at = (*area)->position(); at < (*area)->end();) {
      const std::size_t n = (*area)->good_bytes(at);
      ASSERT_EQ(std::memcmp((*area)->bytes_at(at), wanted.data() + at, n), 0);
      good += n;
      at += std::max<std::size_t>(n, 1);
    }
  }
  EXPECT_EQ(at, wanted.size());
  std::uint64_t bad = 0;
  std::uint64_t offset = 0;
  std::set<ChunkId> damaged;
  for (const auto& [container, frame] : {std::pair(0U, 7U), std::pair(1U, 0U)}) {
    const auto head = *world.source.head(container);
    for (const format::ChunkEntry& chunk : head->chunks) {
      if (chunk.frame == frame) damaged.insert(chunk.id);
    }
  }
  for (const format::RecipeRun& part : file.recipe->runs) {
    for (std::uint32_t i = 0; i < part.count; ++i) {
      const ChunkId id = part.first.plus(i);
      const auto location = *world.source.locate(id);
      const auto head = *world.source.head(location.container);
      const auto& chunk = head->chunks[location.index + (id.value - location.first.value)];
      if (damaged.contains(id)) bad += chunk.raw_bytes;
      offset += chunk.raw_bytes;
    }
  }
  EXPECT_EQ(offset, wanted.size());
  EXPECT_EQ(good, wanted.size() - bad);
  EXPECT_GT(bad, 2 * format::kFrameRawBytesMax - 2 * 16384);
}

TEST_P(RestoreEngineContract, SkippingPassesOverWholeRunsOnly) {
  World world(26);
  for (int i = 0; i < 200; ++i) {
    World::File& file = world.add_file();
    world.append_new(file, 50000);
    // Not joined to the next file's run.
    static_cast<void>(world.new_chunk(2048));
  }
  world.finish();
  const Bytes wanted = stream_of(world);
  const auto bench = make_bench(world, {32 * kMiB, 4 * kMiB});
  for (const std::uint64_t target : {std::uint64_t{60000}, std::uint64_t{4000000}}) {
    ASSERT_TRUE(bench->engine->skip_to(target).has_value());
    EXPECT_LE(bench->engine->position(), target);
    EXPECT_EQ(bench->engine->position() % 50000, 0U);
    EXPECT_GT(bench->engine->position() + 50000, target);
    const auto area = bench->engine->assemble(kMiB);
    ASSERT_TRUE(area.has_value());
    const std::uint64_t at = (*area)->position();
    EXPECT_EQ(at, target / 50000 * 50000);
    EXPECT_EQ(std::memcmp((*area)->bytes_at(at), wanted.data() + at, (*area)->end() - at), 0);
  }
  ASSERT_TRUE(bench->engine->skip_to(wanted.size()).has_value());
  const auto end = bench->engine->assemble(kMiB);
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(*end, nullptr);
}

TEST_P(RestoreEngineContract, ChunkThatIsNotStoredEndsTheStreamWithAnError) {
  World world(27);
  World::File& file = world.add_file();
  world.append_new(file, 100000);
  world.finish();
  file.recipe->append_chunk(ChunkId::make(VersionNumber{7}, 7), 1000);
  const auto bench = make_bench(world, {32 * kMiB, 4 * kMiB});
  const auto area = bench->engine->assemble(kMiB);
  ASSERT_TRUE(area.has_value());
  EXPECT_EQ((*area)->end(), 100000U);
  const auto end = bench->engine->assemble(kMiB);
  ASSERT_FALSE(end.has_value());
  EXPECT_EQ(end.error().code(), ErrorCode::kCorrupt);
}

INSTANTIATE_TEST_SUITE_P(Engines, RestoreEngineContract,
                         testing::Values("alacc", "alacc-paper", "alacc-f80", "faa", "lru",
                                         "lru-chunk", "opt"),
                         [](const auto& engine) {
                           std::string name = engine.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace varve::restore
