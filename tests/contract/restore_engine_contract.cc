// SPDX-License-Identifier: Apache-2.0
// Checks that every restore engine gives the same bytes, for all contents of the engine's memory
// and all places of the chunks.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>
#include <utility>

#include "restore/file_stream.h"
#include "restore/restore_engine.h"
#include "restore_engine_worlds.h"
#include "support/lending_source.h"
#include "support/sanitized.h"

namespace varve::restore {
namespace {

struct Subject {
  std::string engine;
  Placed placed = Placed::kInMemory;
};

class RestoreEngineContract : public testing::TestWithParam<Subject> {
 public:
  // An engine over all files of a world.
  struct Bench {
    explicit Bench(const World& world)
        : areas(1, &meter),
          slices(2, &meter),
          stream(std::nullopt, std::make_unique<WorldFutureFiles>(world, 0)) {}
    MemoryMeter meter;
    base::Metrics registry;
    ReadMetrics metrics{registry};
    SliceReader reader{metrics};
    BufferPool areas;
    BufferPool slices;
    FileStream stream;
    std::unique_ptr<RestoreEngine> engine;
  };

  static std::unique_ptr<Bench> make_bench(StoredWorld& stored, const EngineMemory& memory,
                                           base::ThreadPool* workers = nullptr,
                                           EngineObserver* observer = nullptr,
                                           layout::ChunkSource* source = nullptr) {
    auto bench = std::make_unique<Bench>(stored.world);
    EngineContext context;
    context.source = source != nullptr ? source : &stored.source();
    context.stream = &bench->stream;
    context.reader = &bench->reader;
    context.areas = &bench->areas;
    context.slices = &bench->slices;
    context.meter = &bench->meter;
    context.metrics = &bench->metrics;
    context.workers = workers;
    context.ahead_readers = workers;
    context.observer = observer;
    auto engine = make_engine(GetParam().engine, context, memory);
    EXPECT_TRUE(engine.has_value());
    bench->engine = std::move(*engine);
    return bench;
  }

  // Reads from the position `from` to the end. The function returns the length of each area.
  static void expect_stream(RestoreEngine& engine, const Bytes& wanted,
                            const std::function<std::size_t()>& next_area_bytes,
                            std::uint64_t from = 0) {
    std::uint64_t at = from;
    while (true) {
      const std::size_t area_bytes = next_area_bytes();
      ASSERT_EQ(engine.position(), at);
      const auto area = engine.assemble(area_bytes);
      ASSERT_TRUE(area.has_value()) << area.error().message();
      if (!*area) break;
      ASSERT_EQ((*area)->position(), at);
      ASSERT_GT((*area)->end(), at);
      ASSERT_LE((*area)->end() - at, area_bytes);
      ASSERT_LE((*area)->end(), wanted.size());
      while (at < (*area)->end()) {  // Lent bytes are separate pieces.
        const std::size_t bytes = (*area)->good_bytes(at);
        ASSERT_GT(bytes, 0U);
        ASSERT_LE(bytes, (*area)->end() - at);
        ASSERT_EQ(std::memcmp((*area)->bytes_at(at), wanted.data() + at, bytes), 0);
        at += bytes;
      }
    }
    EXPECT_EQ(at, wanted.size());
  }
};

// Tests with chunks in memory, and in both stores.
class RestoreEngineLimits : public RestoreEngineContract {};
// Tests with chunks in memory only.
class RestoreEngineInMemory : public RestoreEngineContract {};

// Returns the first or the second world. No test changes the worlds, so all engines share them.
// The worlds in a layout are smaller, and uncompressed.
StoredWorld& shared_world(Placed placed, std::size_t number) {
  static std::map<std::pair<Placed, std::size_t>, std::unique_ptr<StoredWorld>> worlds;
  const bool in_memory = placed == Placed::kInMemory;
  auto& stored = worlds[{placed, in_memory ? number : 0}];
  if (!stored) {
    stored = std::make_unique<StoredWorld>(21 + static_cast<unsigned>(number), placed,
                                           in_memory && number == 1 ? Codec::kZstd : Codec::kNone);
    fill_random(stored->world, in_memory ? 70 : 13);
    stored->finish();
  }
  return *stored;
}

TEST_P(RestoreEngineContract, RandomStreamsComeOutByteForByte) {
  struct Case {
    std::size_t world, area_bytes, memory;
  };
  constexpr std::size_t kSmall = 64U << 10;
  std::vector<Case> cases = {{0, 2 * kMiB, 10 * kMiB}};
  const auto placed = GetParam().placed;
  if (is_in_both(placed)) cases.push_back({0, 4 * kSmall, 3 * kMiB});
  if (placed == Placed::kInMemory && !test::kThreadsWatched) {
    for (const Case& more :
         {Case{0, 2 * kMiB, 64 * kMiB}, Case{1, kSmall, 3 * kMiB}, Case{1, kSmall, 0}}) {
      cases.push_back(more);
    }
  }
  for (const Case& c : cases) {
    auto& stored = shared_world(placed, c.world);
    const auto bench = make_bench(stored, {c.memory, 4 * c.area_bytes});
    expect_stream(*bench->engine, stored.stream, [&] { return c.area_bytes; });
  }
}

TEST_P(RestoreEngineContract, LentBytesAreTheSame) {
  base::ThreadPool workers(3, "test");
  std::uint64_t lent = 0;
  for (const std::size_t world : {std::size_t{0}, std::size_t{1}}) {
    auto& stored = shared_world(GetParam().placed, world);
    test::LendingSource source(stored.source());
    for (const std::size_t area_bytes : {kMiB, 4 * kMiB}) {
      const auto bench =
          make_bench(stored, {64 * kMiB, 4 * area_bytes}, &workers, nullptr, &source);
      expect_stream(*bench->engine, stored.stream, [&] { return area_bytes; });
    }
    lent += source.lent;
  }
  if (GetParam().engine == "alacc") {
    EXPECT_GT(lent, 0U);
  }
}

TEST_P(RestoreEngineContract, WorkersGiveTheSameBytes) {
  base::ThreadPool workers(3, "test");
  auto& stored = shared_world(GetParam().placed, 1);
  const auto bench = make_bench(stored, {128 * kMiB, 4 * kMiB}, &workers);
  expect_stream(*bench->engine, stored.stream, [] { return kMiB; });
}

TEST_P(RestoreEngineLimits, MemoryAndAreasMayChangeAtAnyTime) {
  auto& stored = shared_world(GetParam().placed, 0);
  std::mt19937 random(31);
  const auto bench = make_bench(stored, {64 * kMiB, 4 * kMiB});
  expect_stream(*bench->engine, stored.stream, [&]() -> std::size_t {
    if (random() % 3 == 0) bench->engine->set_memory({random() % (64 * kMiB), 4 * kMiB});
    return (64U << 10) << (random() % 6);
  });
}

// The last area of a stream is short, and the areas before are longer than the next call allows.
TEST_P(RestoreEngineLimits, AreasMayBecomeShorterNearTheEnd) {
  base::ThreadPool workers(3, "test");
  auto& stored = shared_world(GetParam().placed, 0);
  const std::size_t step = GetParam().placed == Placed::kInMemory ? 90000 : 400000;
  for (std::size_t first = kMiB; first < 2 * kMiB; first += step) {
    const auto bench = make_bench(stored, {64 * kMiB, 4 * kMiB}, &workers);
    ASSERT_TRUE(bench->engine->skip_to(stored.stream.size() - 3 * first).has_value());
    std::size_t next = first;
    expect_stream(
        *bench->engine, stored.stream, [&] { return std::exchange(next, kMiB / 2); },
        bench->engine->position());
  }
}

TEST_P(RestoreEngineInMemory, ContainersThatMoveMeanwhileAreFoundAgain) {
  StoredWorld stored(29, GetParam().placed);
  World& world = stored.world;
  fill_random(world, 70);
  stored.finish();
  std::mt19937 random(30);
  // The container to be read next, or any other container, moves to another number.
  world.source.before_read = [&](std::uint32_t container) {
    if (random() % 4 != 0) return;
    if (random() % 2 == 0) container = static_cast<std::uint32_t>(random() % 4);
    if (!world.source.is_gone(container)) world.source.move_container(container);
  };
  const auto bench = make_bench(stored, {24 * kMiB, 4 * kMiB});
  expect_stream(*bench->engine, stored.stream, [] { return kMiB; });
}

// The catalog may locate chunks in a container without a record, or each container may be gone at
// the time of reading. The engine reads each area a few times only.
TEST_P(RestoreEngineInMemory, ContainersThatVanishEndInBadAreasAfterFewReads) {
  for (const bool moves : {false, true}) {
    StoredWorld stored(31, GetParam().placed);
    World& world = stored.world;
    auto& file = world.add_file();
    world.append_new(file, kMiB);
    stored.finish();
    std::uint64_t reads = 0;
    world.source.before_read = [&](std::uint32_t container) {
      ++reads;
      if (world.source.is_gone(container)) return;
      moves ? world.source.move_container(container) : world.source.lose_container(container);
    };
    const auto bench = make_bench(stored, {24 * kMiB, 4 * kMiB});
    const auto area = bench->engine->assemble(2 * kMiB);
    ASSERT_TRUE(area.has_value() && *area);
    EXPECT_EQ((*area)->good_bytes(0), 0U);
    // The engine tries at most five times. A request has a frame at least.
    EXPECT_GT(reads, 1U);
    EXPECT_LE(reads, 5 * (kMiB / format::kFrameRawBytesMax + 1));
    EXPECT_LE(world.source.stale_answers, 5 * (world.chunks().size() + 1));
  }
}

TEST_P(RestoreEngineLimits, CyclesAreReportedWithSizesThatFitTheMemory) {
  struct Observer final : EngineObserver {
    void on_cycle(const EngineCycle& cycle) override {
      EXPECT_EQ(cycle.number, cycles++);
      EXPECT_GE(cycle.sizes.forward, 1U);
      EXPECT_LE(cycle.sizes.forward, cycle.memory);
      EXPECT_LE(cycle.sizes.window, 6 * cycle.memory);
      containers += cycle.containers_read;
    }
    std::uint64_t cycles = 0;
    std::size_t containers = 0;
  } observer;
  auto& stored = shared_world(GetParam().placed, 0);
  const auto bench = make_bench(stored, {24 * kMiB, 4 * kMiB}, nullptr, &observer);
  expect_stream(*bench->engine, stored.stream, [] { return kMiB; });
  EXPECT_GE(observer.cycles, stored.stream.size() / kMiB);
  EXPECT_GE(observer.containers, stored.containers().size() / 2);
}

TEST_P(RestoreEngineLimits, StaysWithinItsMemory) {
  auto& stored = shared_world(GetParam().placed, 0);
  for (const std::size_t total : {12 * kMiB, 40 * kMiB}) {
    const EngineMemory memory{total, 4 * kMiB};
    const auto bench = make_bench(stored, memory);
    while (true) {
      const auto area = bench->engine->assemble(kMiB);
      ASSERT_TRUE(area.has_value());
      if (!*area) break;
      ASSERT_LE(bench->meter.held(), memory.total);
    }
  }
}

TEST_P(RestoreEngineLimits, DamageIsMarkedAndAllElseIsGood) {
  StoredWorld stored(25, GetParam().placed);
  World& world = stored.world;
  World::File& file = world.add_file();
  world.append_new(file, (GetParam().placed == Placed::kInMemory ? 9 : 3) * kMiB);
  // The damaged chunks come back later, out of order.
  const format::RecipeRun run = file.recipe->runs[0];
  for (int i = 0; i < 300; ++i) world.append(file, run.first.plus(world.random() % run.count));
  stored.finish();
  const auto containers = stored.containers();
  const std::array damages = {std::pair(*containers.begin(), 7U),
                              std::pair(*containers.rbegin(), 0U)};
  for (const auto& [container, frame] : damages) stored.damage(container, frame);
  base::ThreadPool workers(2, "test");
  const auto bench = make_bench(stored, {128 * kMiB, 4 * kMiB}, &workers);
  std::uint64_t at = 0;
  std::uint64_t good = 0;
  while (true) {
    const auto area = bench->engine->assemble(kMiB);
    ASSERT_TRUE(area.has_value());
    if (!*area) break;
    for (at = (*area)->position(); at < (*area)->end();) {
      const std::size_t n = (*area)->good_bytes(at);
      ASSERT_EQ(std::memcmp((*area)->bytes_at(at), stored.stream.data() + at, n), 0);
      good += n;
      at += std::max<std::size_t>(n, 1);
    }
  }
  EXPECT_EQ(at, stored.stream.size());
  std::uint64_t bad = 0;
  std::uint64_t offset = 0;
  std::set<ChunkId> damaged;
  std::uint64_t frames = 0;
  for (const auto& [container, frame] : damages) {
    const auto header = *stored.source().header(container);
    frames += header->frames[frame].raw_bytes;
    for (const format::ChunkEntry& chunk : header->chunks) {
      if (chunk.frame == frame) damaged.insert(chunk.id);
    }
  }
  for (const format::RecipeRun& part : file.recipe->runs) {
    for (std::uint32_t i = 0; i < part.count; ++i) {
      const ChunkId id = part.first.plus(i);
      const auto location = *stored.source().locate(id);
      const auto header = *stored.source().header(location.container);
      const auto& chunk = header->chunks[location.index + (id.value - location.first.value)];
      if (damaged.contains(id)) bad += chunk.raw_bytes;
      offset += chunk.raw_bytes;
    }
  }
  EXPECT_EQ(offset, stored.stream.size());
  EXPECT_EQ(good, stored.stream.size() - bad);
  EXPECT_GT(bad, frames / 2);  // Some of the chunks may belong to a deleted version.
}

TEST_P(RestoreEngineInMemory, SkippingPassesOverWholeRunsOnly) {
  StoredWorld stored(26, GetParam().placed);
  World& world = stored.world;
  for (int i = 0; i < 200; ++i) {
    World::File& file = world.add_file();
    world.append_new(file, 50000);
    // Not joined to the next file's run.
    static_cast<void>(world.new_chunk(2048));
  }
  stored.finish();
  const auto bench = make_bench(stored, {32 * kMiB, 4 * kMiB});
  for (const std::uint64_t target : {std::uint64_t{60000}, std::uint64_t{4000000}}) {
    ASSERT_TRUE(bench->engine->skip_to(target).has_value());
    EXPECT_LE(bench->engine->position(), target);
    EXPECT_EQ(bench->engine->position() % 50000, 0U);
    EXPECT_GT(bench->engine->position() + 50000, target);
    const auto area = bench->engine->assemble(kMiB);
    ASSERT_TRUE(area.has_value());
    const std::uint64_t at = (*area)->position();
    EXPECT_EQ(at, target / 50000 * 50000);
    EXPECT_EQ(std::memcmp((*area)->bytes_at(at), stored.stream.data() + at, (*area)->end() - at),
              0);
  }
  ASSERT_TRUE(bench->engine->skip_to(stored.stream.size()).has_value());
  const auto end = bench->engine->assemble(kMiB);
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(*end, nullptr);
}

TEST_P(RestoreEngineContract, ChunkThatIsNotStoredEndsTheStreamWithAnError) {
  StoredWorld stored(27, GetParam().placed);
  World& world = stored.world;
  World::File& file = world.add_file();
  world.append_new(file, 100000);
  stored.finish();
  const bool in_pool = GetParam().placed == Placed::kInPool;
  const auto birth = static_cast<VersionNumber>(in_pool ? kPoolBit | 7U : 7U);
  file.recipe->append_chunk(ChunkId::make(birth, 7), 1000);
  const auto bench = make_bench(stored, {32 * kMiB, 4 * kMiB});
  const auto area = bench->engine->assemble(kMiB);
  ASSERT_TRUE(area.has_value());
  EXPECT_EQ((*area)->end(), 100000U);
  const auto end = bench->engine->assemble(kMiB);
  ASSERT_FALSE(end.has_value());
  EXPECT_EQ(end.error().code(), ErrorCode::kCorrupt);
}

std::vector<Subject> subjects(std::initializer_list<Placed> places) {
  std::vector<Subject> all;
  for (const auto& engine : engine_infos()) {
    for (const auto placed : places) all.push_back({std::string(engine.name), placed});
  }
  return all;
}

std::string test_name(const testing::TestParamInfo<Subject>& info) {
  std::string name = info.param.engine + "_" + name_of(info.param.placed);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Engines, RestoreEngineContract,
                         testing::ValuesIn(subjects({Placed::kInMemory, Placed::kInSeries,
                                                     Placed::kInPool, Placed::kInBoth,
                                                     Placed::kInBothSealed})),
                         test_name);
INSTANTIATE_TEST_SUITE_P(Engines, RestoreEngineLimits,
                         testing::ValuesIn(subjects({Placed::kInMemory, Placed::kInBoth})),
                         test_name);
INSTANTIATE_TEST_SUITE_P(Engines, RestoreEngineInMemory,
                         testing::ValuesIn(subjects({Placed::kInMemory})), test_name);

}  // namespace
}  // namespace varve::restore
