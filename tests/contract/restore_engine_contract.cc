// SPDX-License-Identifier: Apache-2.0
// Checks that every restore engine gives the same bytes, whatever it keeps in memory.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>
#include <utility>

#include "restore/file_stream.h"
#include "restore/restore_engine.h"
#include "support/fake_source.h"

namespace varve::restore {
namespace {

class RestoreEngineContract : public testing::TestWithParam<std::string> {
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

  static std::unique_ptr<Bench> make_bench(World& world, const EngineMemory& memory,
                                           base::ThreadPool* workers = nullptr,
                                           EngineObserver* observer = nullptr) {
    auto bench = std::make_unique<Bench>(world);
    EngineContext context;
    context.source = &world.source;
    context.stream = &bench->stream;
    context.reader = &bench->reader;
    context.areas = &bench->areas;
    context.slices = &bench->slices;
    context.meter = &bench->meter;
    context.metrics = &bench->metrics;
    context.workers = workers;
    context.ahead_readers = workers;
    context.observer = observer;
    auto engine = make_engine(GetParam(), context, memory);
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

  // Reads from the position `from` to the end, in areas of the bytes that the function returns for
  // each.
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
      ASSERT_EQ((*area)->good_bytes(at), (*area)->end() - at);
      ASSERT_EQ(std::memcmp((*area)->bytes_at(at), wanted.data() + at, (*area)->end() - at), 0);
      at = (*area)->end();
    }
    EXPECT_EQ(at, wanted.size());
  }
};

// Worlds that no test changes, made once for all engines.
struct SharedWorld {
  SharedWorld(unsigned seed, Codec codec) : world(seed, codec) {
    fill_random(world, 70);
    stream = RestoreEngineContract::stream_of(world);
  }
  World world;
  Bytes stream;
};

SharedWorld& shared_world(std::size_t number) {
  static std::array<std::unique_ptr<SharedWorld>, 2> worlds;
  auto& world = worlds.at(number);
  if (!world) {
    world = std::make_unique<SharedWorld>(21 + static_cast<unsigned>(number),
                                          number == 1 ? Codec::kZstd : Codec::kNone);
  }
  return *world;
}

TEST_P(RestoreEngineContract, RandomStreamsComeOutByteForByte) {
  struct Case {
    std::size_t world, area_bytes, memory;
  };
  constexpr std::size_t kSmall = 64U << 10;
  for (const Case& c : {Case{0, 2 * kMiB, 64 * kMiB}, Case{0, 2 * kMiB, 10 * kMiB},
                        Case{1, kSmall, 3 * kMiB}, Case{1, kSmall, 0}}) {
    auto& [world, wanted] = shared_world(c.world);
    const auto bench = make_bench(world, {c.memory, 4 * c.area_bytes});
    expect_stream(*bench->engine, wanted, [&] { return c.area_bytes; });
  }
}

TEST_P(RestoreEngineContract, WorkersGiveTheSameBytes) {
  base::ThreadPool workers(3, "test");
  auto& [world, wanted] = shared_world(1);
  const auto bench = make_bench(world, {128 * kMiB, 4 * kMiB}, &workers);
  expect_stream(*bench->engine, wanted, [] { return kMiB; });
}

TEST_P(RestoreEngineContract, MemoryAndAreasMayChangeAtAnyTime) {
  auto& [world, wanted] = shared_world(0);
  std::mt19937 random(31);
  const auto bench = make_bench(world, {64 * kMiB, 4 * kMiB});
  expect_stream(*bench->engine, wanted, [&]() -> std::size_t {
    if (random() % 3 == 0) bench->engine->set_memory({random() % (64 * kMiB), 4 * kMiB});
    return (64U << 10) << (random() % 6);
  });
}

// The last area of a stream is short, and those before it are longer than the next call allows.
TEST_P(RestoreEngineContract, AreasMayBecomeShorterNearTheEnd) {
  base::ThreadPool workers(3, "test");
  auto& [world, wanted] = shared_world(0);
  for (std::size_t first = kMiB; first < 2 * kMiB; first += 90000) {
    const auto bench = make_bench(world, {64 * kMiB, 4 * kMiB}, &workers);
    ASSERT_TRUE(bench->engine->skip_to(wanted.size() - 3 * first).has_value());
    std::size_t next = first;
    expect_stream(
        *bench->engine, wanted, [&] { return std::exchange(next, kMiB / 2); },
        bench->engine->position());
  }
}

TEST_P(RestoreEngineContract, ContainersThatMoveMeanwhileAreFoundAgain) {
  World world(29);
  fill_random(world, 70);
  const Bytes wanted = stream_of(world);
  std::mt19937 random(30);
  // The one that is about to be read, or any other, goes elsewhere.
  world.source.before_read = [&](std::uint32_t container) {
    if (random() % 4 != 0) return;
    if (random() % 2 == 0) container = static_cast<std::uint32_t>(random() % 4);
    if (!world.source.is_gone(container)) world.source.move_container(container);
  };
  const auto bench = make_bench(world, {24 * kMiB, 4 * kMiB});
  expect_stream(*bench->engine, wanted, [] { return kMiB; });
}

TEST_P(RestoreEngineContract, CyclesAreReportedWithSizesThatFitTheMemory) {
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
  auto& [world, wanted] = shared_world(0);
  const auto bench = make_bench(world, {24 * kMiB, 4 * kMiB}, nullptr, &observer);
  expect_stream(*bench->engine, wanted, [] { return kMiB; });
  EXPECT_GE(observer.cycles, wanted.size() / kMiB);
  EXPECT_GE(observer.containers, world.source.containers() / 2);
}

TEST_P(RestoreEngineContract, StaysWithinItsMemory) {
  auto& [world, wanted] = shared_world(0);
  for (const std::size_t total : {12 * kMiB, 40 * kMiB}) {
    const EngineMemory memory{total, 4 * kMiB};
    const auto bench = make_bench(world, memory);
    while (true) {
      const auto area = bench->engine->assemble(kMiB);
      ASSERT_TRUE(area.has_value());
      if (!*area) break;
      ASSERT_LE(bench->meter.held(), memory.total);
    }
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
  base::ThreadPool workers(2, "test");
  const auto bench = make_bench(world, {128 * kMiB, 4 * kMiB}, &workers);
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
  for (const auto& [container, frame] :
       {std::pair(ContainerNumber{0}, 7U), std::pair(ContainerNumber{1}, 0U)}) {
    const auto header = *world.source.header(container);
    for (const format::ChunkEntry& chunk : header->chunks) {
      if (chunk.frame == frame) damaged.insert(chunk.id);
    }
  }
  for (const format::RecipeRun& part : file.recipe->runs) {
    for (std::uint32_t i = 0; i < part.count; ++i) {
      const ChunkId id = part.first.plus(i);
      const auto location = *world.source.locate(id);
      const auto header = *world.source.header(location.container);
      const auto& chunk = header->chunks[location.index + (id.value - location.first.value)];
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

std::vector<std::string> all_engines() {
  std::vector<std::string> names;
  for (const auto& engine : engine_infos()) names.emplace_back(engine.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Engines, RestoreEngineContract, testing::ValuesIn(all_engines()),
                         [](const auto& engine) {
                           std::string name = engine.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace varve::restore
