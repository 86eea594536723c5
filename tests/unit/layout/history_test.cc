// SPDX-License-Identifier: Apache-2.0
// Random histories of one series: whatever is written, deleted, arranged or cut short, every
// version that is left reads back as it was.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "delta_chunks.h"
#include "history_model.h"

namespace varve::layout {
namespace {

using varve::test::code_of;

/// The next version's stream: `changes` edits of the last one.
std::vector<Content> edited(History& history, std::vector<Content> stream, std::size_t changes,
                            Content& next) {
  auto& random = history.random;
  for (std::size_t i = 0; i < changes; ++i) {
    const std::size_t at = stream.empty() ? 0 : random() % stream.size();
    const auto where = stream.begin() + static_cast<std::ptrdiff_t>(at);
    switch (stream.empty() ? 1 : random() % 4) {
      case 0:
        stream.erase(where);
        break;
      case 1:
        stream.insert(where, next++);
        break;
      case 2:  // Something that was there before may come back.
        stream.insert(where, static_cast<Content>(random() % next));
        break;
      default:
        *where = next++;
    }
  }
  return stream;
}

ArrangeSettings any_settings(std::mt19937_64& random) {
  ArrangeSettings settings;
  settings.policy = static_cast<ArrangePolicyKind>(1 + random() % 3);
  settings.batch = static_cast<std::uint32_t>(1 + random() % 4);
  settings.fan = static_cast<std::uint32_t>(2 + random() % 4);
  settings.dead_permille = static_cast<std::uint32_t>(20 + random() % 300);
  settings.window = static_cast<std::uint32_t>(1 + random() % 3);
  settings.delta = random() % 2;
  return settings;
}

std::vector<VersionNumber> any_versions(History& history) {
  std::vector<VersionNumber> chosen;
  const auto all = history.sealed();
  const auto share = 1 + history.random() % 4;
  for (const auto number : all) {
    if (history.random() % 5 < share) chosen.push_back(number);
  }
  if (all.size() > 12) chosen.push_back(all[history.random() % all.size()]);
  std::sort(chosen.begin(), chosen.end());
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  return chosen;
}

void write_something(History& history, std::vector<Content>& stream, Content& next) {
  switch (history.random() % 8) {
    case 0:
      history.write({});  // An empty backup.
      break;
    case 1: {  // A partial one.
      auto part = stream;
      part.resize(part.size() / 10);
      history.write(part);
      break;
    }
    case 2:  // Of something else.
      history.write(new_contents(20, next));
      break;
    default:
      stream = edited(history, stream, history.random() % 20, next);
      history.write(stream);
  }
}

// One random step. A step that breaks in the middle ends in a crash.
void step(History& history, std::vector<Content>& stream, Content& next) {
  auto& random = history.random;
  const auto kind = random() % 100;
  const auto may_break = [&] {
    if (random() % 4 == 0) history.files.break_after(1 + random() % 12);
  };
  if (kind < 35) {
    if (!history.is_open()) {
      history.open();
      if (random() % 3 == 0) return;  // Written later.
    }
    write_something(history, stream, next);
    if (random() % 6 == 0) {
      history.abandon();
    } else {
      history.seal();
    }
  } else if (kind < 60) {
    may_break();
    const auto arranged = history.arrange(random() % 3 == 0 ? 1 + random() % 3 : 1000);
    if (!arranged) {
      ASSERT_TRUE(history.files.broken()) << arranged.error().message();
    }
  } else if (kind < 75) {
    history.remove(any_versions(history));
  } else if (kind < 82) {
    may_break();
    const auto removed = history.try_remove(any_versions(history));
    if (!removed) {
      ASSERT_TRUE(history.files.broken()) << removed.error().message();
    }
  } else if (kind < 90) {
    history.set(any_settings(random));
    history.shared_bytes_max = random() % 3 == 0 ? 0 : random() % 3000;
    history.coalescing.stored_bytes_max = random() % 4 == 0 ? 0 : 1000 + random() % 10000;
    history.coalescing.delta_fan = 2 + random() % 3;
    history.coalescing.delta_part_bytes = 1000 + random() % 50000;
    history.coalescing.delta_volume_bytes_max = 1000 + random() % 50000;
  } else {
    history.crash();
  }
  if (history.files.broken()) history.crash();
  history.files.break_after(0);
}

TEST(RandomHistory, EveryVersionLeftReadsBackAfterEveryStep) {
  const char* more = std::getenv("VARVE_HISTORIES");
  const std::uint64_t histories = more != nullptr ? std::strtoull(more, nullptr, 10) : 40;
  constexpr int kSteps = 250;
  std::uint64_t coalesced_bytes = 0;
  std::size_t with_prefix = 0;
  for (std::uint64_t seed = 1; seed <= histories; ++seed) {
    const format::Compression compression{seed % 4 < 2 ? Codec::kZstd : Codec::kNone, 1};
    History history(seed, compression);
    Content next = 0;
    auto stream = new_contents(60, next);
    for (int i = 0; i < kSteps; ++i) {
      ASSERT_NO_FATAL_FAILURE(step(history, stream, next)) << "seed " << seed << ", step " << i;
      history.check();
      ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed << ", step " << i;
      if (i % 10 == 0) with_prefix += delta_chunks(history);
    }
    coalesced_bytes += history.coalesced_bytes;
  }
  EXPECT_GT(coalesced_bytes, 0U);
  EXPECT_GT(with_prefix, 0U);
}

TEST(RandomHistory, ReadSetOfAVersionIsItsChunksWithAWindowOfOne) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    History history(seed);
    history.coalescing.stored_bytes_max = 0;  // Coalesced volumes hold several deaths.
    ArrangeSettings settings = any_settings(history.random);
    settings.window = 1;
    if (settings.policy == ArrangePolicyKind::kBatched) settings.batch = 1;
    history.set(settings);
    Content next = 0;
    auto stream = new_contents(80, next);
    for (int i = 0; i < 40; ++i) {
      if (history.random() % 4 != 0) {
        history.open();
        history.write(stream);
        history.seal();
        EXPECT_FALSE(history.side);
        stream = edited(history, stream, history.random() % 12, next);
      } else {
        history.remove(any_versions(history));
      }
      ASSERT_TRUE(must(history.arrange()));
      history.check();
      for (const auto number : history.sealed()) {
        ASSERT_TRUE(history.read_set(number) == history.chunk_set(number))
            << "seed " << seed << ", step " << i << ", policy " << static_cast<int>(settings.policy)
            << ", version " << static_cast<std::uint32_t>(number) << " of "
            << history.sealed().size() << ": read " << history.read_set(number).size()
            << " instead of " << history.chunk_set(number).size();
      }
    }
  }
}

TEST(RandomHistory, DeletingEverythingGivesEverythingBack) {
  for (std::uint64_t seed = 100; seed < 106; ++seed) {
    History history(seed);
    Content next = 0;
    auto stream = new_contents(100, next);
    for (int i = 0; i < 12; ++i) {
      history.open();
      history.write(stream);
      history.seal();
      stream = edited(history, stream, 15, next);
      must(history.arrange(history.random() % 4));
    }
    history.remove(history.sealed());
    EXPECT_EQ(must(history.files.tree_bytes(kFolder)), 0U);
    history.check();
  }
}

// A header is deleted before the next version: what left the active set is in use again.
TEST(Deletion, NewestVersionIsSplicedOutWithoutMovingAnything) {
  History history(9);
  ArrangeSettings settings;
  settings.window = 1;
  history.set(settings);
  Content next = 0;
  const auto first = new_contents(200, next);
  auto second = first;
  for (std::size_t i = 0; i < 40; ++i) second[i] = next++;
  for (const auto& stream : {first, second}) {
    history.open();
    history.write(stream);
    history.seal();
    must(history.arrange());
  }
  const auto newest = history.sealed().back();
  history.remove({newest});
  const auto number = history.open();
  history.write(first);
  history.seal();
  const auto chunks = history.chunk_set(number);
  for (const auto& run : chunks.runs()) {
    EXPECT_LT(run.first.birth(), number) << "a chunk of the version before was stored again";
  }
  must(history.arrange());
  history.check();
}

TEST(Deletion, OpenVersionKeepsWhatItMayReferTo) {
  History history(10);
  Content next = 0;
  auto stream = new_contents(150, next);
  for (int i = 0; i < 3; ++i) {
    history.open();
    history.write(stream);
    history.seal();
    stream = edited(history, stream, 10, next);
  }
  history.open();
  history.remove(history.sealed());
  must(history.arrange());
  history.write(stream);
  history.seal();
  history.check();
  must(history.arrange());
  history.check();
  EXPECT_EQ(history.sealed().size(), 1U);
}

// The mover leaves damaged chunks in their place and does not lose them: once the damage is gone,
// all chunks are readable.
TEST(Arranging, DamagedChunksStayWhereTheyAre) {
  for (const bool in_header : {false, true}) {
    History history(31);
    ArrangeSettings settings;
    settings.policy = ArrangePolicyKind::kOriginal;
    settings.window = 1;
    history.set(settings);
    Content next = 0;
    auto stream = new_contents(120, next);
    for (int i = 0; i < 4; ++i) {
      history.open();
      history.write(stream);
      history.seal();
      stream = edited(history, stream, 14, next);
    }
    format::ContainerRecord damaged;  // The first version's, of which most is to be moved.
    std::vector<std::string> before;
    const auto locations = [&](const format::ContainerRecord& container) {
      std::vector<std::string> all;
      const auto txn = must(meta::ReadTxn::begin(history.catalog()));
      must(catalog::for_each_location(txn, kStore, ChunkId{},
                                      [&](const catalog::LocationRecord& at) -> Result<bool> {
                                        if (at.container == container.number)
                                          all.push_back(at.encode());
                                        return true;
                                      }));
      return all;
    };
    {
      const auto txn = must(meta::ReadTxn::begin(history.catalog()));
      must(catalog::for_each_container(txn, kStore,
                                       [&](const format::ContainerRecord& record) -> Result<bool> {
                                         damaged = record;
                                         return false;
                                       }));
    }
    before = locations(damaged);
    ASSERT_FALSE(before.empty());
    const auto flip = [&] {
      auto file = must(history.files.open(kFolder + "/" + store::segment_path(damaged.segment),
                                          io::OpenMode::kReadWrite));
      std::array<std::byte, 1> byte{};
      const auto at =
          damaged.offset + (in_header ? damaged.header_bytes / 2 : damaged.header_bytes);
      must(file->read_at(at, byte));
      byte[0] ^= std::byte{1};
      must(file->write_at(at, byte));
    };
    flip();
    must(history.arrange());
    EXPECT_EQ(locations(damaged), before);
    EXPECT_GT(history.moved.bytes_written, 0U) << "the others were moved";
    flip();
    ASSERT_TRUE(must(history.arrange()));
    EXPECT_NE(locations(damaged), before);
    history.check();
  }
}

// Breaks every single change of a step, and of a deletion, in turn.
template <typename Act>
void break_everywhere(std::uint64_t seed, const Act& act) {
  for (std::uint64_t at = 1; at < 400; ++at) {
    History history(seed);
    Content next = 0;
    auto stream = new_contents(120, next);
    for (int i = 0; i < 7; ++i) {
      history.open();
      history.write(stream);
      history.seal();
      stream = edited(history, stream, 14, next);
      if (i < 4) must(history.arrange());
    }
    history.step_bytes_max = 1U << 20;
    history.files.break_after(at);
    const bool done = act(history);
    const bool broken = history.files.broken();
    history.crash();
    history.check();
    ASSERT_FALSE(testing::Test::HasFailure()) << "broken at change " << at;
    ASSERT_TRUE(must(history.arrange()));
    history.check();
    ASSERT_FALSE(testing::Test::HasFailure()) << "after arranging, broken at change " << at;
    if (done && !broken) return;
  }
  FAIL() << "it never came to its end";
}

TEST(CrashInjection, ArrangingLosesNothingWhereverItBreaks) {
  break_everywhere(20, [](History& history) {
    const auto arranged = history.arrange();
    EXPECT_TRUE(!arranged || history.coalesced_bytes != 0);
    return arranged.has_value();
  });
}

TEST(CrashInjection, DeletingLosesNothingWhereverItBreaks) {
  break_everywhere(21, [](History& history) {
    const auto all = history.sealed();
    return history.try_remove({all[0], all[2], all[3], all.back()}).has_value();
  });
}

}  // namespace
}  // namespace varve::layout
