// SPDX-License-Identifier: Apache-2.0
// Arranging in a folder that keeps less than the active set downloads evicted data once for several
// versions, and not for each of them. In between, versions are read, deleted and checked as usual.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "../unit/remote/world.h"

namespace varve::test {
namespace {

constexpr std::uint64_t kVersions = 24;
constexpr std::uint64_t kCacheBytes = 3U << 20;

/// Changes a tree from version to version.
using Change = void (*)(Tree& tree, std::uint64_t version);

// Pages of a database change at random places.
void change_pages(Tree& tree, std::uint64_t version) {
  if (tree.empty()) tree["database"] = noise(6U << 20, 1);
  std::mt19937_64 random(version);
  auto& bytes = tree["database"];
  for (int page = 0; page < 15; ++page) {
    bytes.replace((random() % (bytes.size() / 4096)) * 4096, 4096, noise(4096, random()));
  }
}

// Some files of a home directory are replaced.
void change_files(Tree& tree, std::uint64_t version) {
  constexpr std::uint64_t kFiles = 120;
  if (tree.empty()) {
    for (std::uint64_t i = 0; i < kFiles; ++i) tree["f" + std::to_string(i)] = noise(50'000, i);
  }
  std::mt19937_64 random(version);
  for (int i = 0; i < 2; ++i) {
    tree["f" + std::to_string(random() % kFiles)] = noise(20'000 + random() % 60'000, random());
  }
}

// A disk image whose changes are near each other, and a log that grows.
void change_image(Tree& tree, std::uint64_t version) {
  if (tree.empty()) tree["image"] = noise(6U << 20, 3);
  std::mt19937_64 random(version);
  auto& bytes = tree["image"];
  for (int i = 0; i < 3; ++i) {
    bytes.replace(random() % (bytes.size() - 30'000), 30'000, noise(30'000, random()));
  }
  tree["log"] += noise(15'000, random());
}

struct History {
  std::string name;
  Change change;
  std::uint64_t versions_kept;
  bool is_encrypted;
};

class EvictedArrangingGate : public testing::TestWithParam<History> {
 protected:
  // As a command does after a version.
  static void arrange_due(World& world) {
    world.run([&] {
      return world.with([&](Repository& repository) {
        must(repository.arrange(must(repository.find_series("s")).id, {}));
      });
    });
  }

  static std::uint64_t departing_bytes(World& world) {
    std::uint64_t bytes = 0;
    must(world.with([&](Repository& repository) {
      const auto id = must(repository.find_series("s")).id;
      bytes = must(repository.arranging_debt(id)).departing_bytes;
    }));
    return bytes;
  }

  /// Stores the versions, arranges after each one, and returns the bytes that arranging downloads.
  static std::uint64_t downloaded(bool at_once) {
    const auto& history = GetParam();
    // No mishap comes so late, and until then the world does not look into the store.
    World world(history.is_encrypted, Mishap::kBefore, UINT64_MAX, Placement::kLineage,
                kCacheBytes);
    world.hooks().extent_bytes_max = 4U << 20;
    world.run([&] { return world.create(); });
    // Little dead space: arranging has much to read.
    must(world.with([](Repository& repository) { must(repository.set_arrange_settings({})); }));
    Tree tree;
    std::uint64_t bytes = 0;
    for (std::uint64_t version = 0; version < kVersions; ++version) {
      history.change(tree, version);
      world.store("v" + std::to_string(version), tree);
      const auto before = world.counts(bucket::RequestKind::kGet).bytes_received;
      at_once ? world.arrange() : arrange_due(world);
      bytes += world.counts(bucket::RequestKind::kGet).bytes_received - before;
      if (version >= history.versions_kept) {
        world.erase({"v" + std::to_string(version - history.versions_kept)});
      }
      if (!at_once && version == 13) world.expect_here();
    }
    if (at_once) return bytes;
    EXPECT_NE(departing_bytes(world), 0U);  // What waits is told.
    world.expect_here();
    world.arrange();
    EXPECT_EQ(departing_bytes(world), 0U);
    world.expect_versions();
    return bytes;
  }
};

TEST_P(EvictedArrangingGate, DownloadsOnceForSeveralVersions) {
  const auto each = downloaded(true);
  const auto due = downloaded(false);
  RecordProperty("bytes_each", std::to_string(each));
  RecordProperty("bytes_due", std::to_string(due));
  std::printf("%s: %.1f MiB at each version, %.1f MiB with the rule\n", GetParam().name.c_str(),
              static_cast<double>(each) / (1 << 20), static_cast<double>(due) / (1 << 20));
  EXPECT_GT(each, std::uint64_t{12} << 20);  // Else the history shows nothing.
  EXPECT_LE(due * 2, each);
}

INSTANTIATE_TEST_SUITE_P(Histories, EvictedArrangingGate,
                         testing::Values(History{"pages", change_pages, 100, false},
                                         History{"files", change_files, 100, true},
                                         History{"files_pruned", change_files, 6, false},
                                         History{"image", change_image, 100, false}),
                         [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace varve::test
