// SPDX-License-Identifier: Apache-2.0
// Random histories of a repository in an object store. After each head, the store's catalog equals
// the local one, record for record, although a head looks only at what changed.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "io/posix_file_system.h"
#include "remote/copy_check.h"
#include "remote/replica_state.h"
#include "remote/replicator.h"
#include "stored_catalog.h"
#include "world.h"

namespace varve::test {
namespace {

using Parameters = std::tuple<bool, Placement>;

Tree next_tree(std::mt19937_64& random) {
  Tree tree = tree_of(random() % 20);
  tree["changing"] = noise(random() % 40'000, random());
  return tree;
}

// Counts the heads that compared the whole catalog.
struct Heads {
  std::uint64_t all = 0;
  std::uint64_t full = 0;
};
void count_heads(World& world, Heads& heads) {
  world.hooks().replicated = [&heads](const remote::ReplicateReport& done) {
    heads.all += done.committed;
    heads.full += done.committed && done.is_full;
  };
}

void rebuild_catalog(World& world, bool is_encrypted) {
  std::filesystem::remove_all(world.path() + "/catalog");
  RepairOptions options;
  if (is_encrypted) options.key = [] { return Result<UserKey>(test_key()); };
  const auto plan = must(repo::plan_repair(world.path(), options, false, {}, world.hooks()));
  const auto report = must(plan->execute({}));
  for (const auto& problem : report.problems) ADD_FAILURE() << problem;
}

// A process that changes the catalog and does not wait for the store. So the next head has to
// compare everything.
void change_without_waiting(World& world, int number) {
  auto options = world.options();
  options.store.waits = false;
  const auto repository = must(repo::RepositoryImpl::open(world.path(), options, world.hooks()));
  must(repository->create_series("other" + std::to_string(number)));
  must(repository->close());
}

// One step of a history. Returns false if the store may lack a part of it.
void step(World& world, std::mt19937_64& random, int number, bool is_encrypted) {
  std::vector<std::string> names;
  for (const auto& [name, tree] : world.local()) names.push_back(name);
  const auto kind = random() % 16;
  if (kind < 7 || names.empty()) {
    world.store("v" + std::to_string(number), next_tree(random));
  } else if (kind < 10) {
    world.arrange();
  } else if (kind < 13) {
    world.erase({names[random() % names.size()]});
  } else if (kind < 14) {
    world.rename(names[random() % names.size()], "renamed" + std::to_string(number));
  } else if (kind < 15) {
    change_without_waiting(world, number);
    world.arrange();
  } else {
    rebuild_catalog(world, is_encrypted);
    world.arrange();
  }
}

class CatalogOracle : public testing::TestWithParam<Parameters> {};

TEST_P(CatalogOracle, EveryHeadHasTheWholeCatalog) {
  const auto [is_encrypted, placement] = GetParam();
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    std::mt19937_64 random(seed);
    const auto mishap = seed % 3 == 1   ? Mishap::kKilledBefore
                        : seed % 3 == 2 ? Mishap::kKilledAfter
                                        : Mishap::kNone;
    // A part of the histories has evicted data.
    const auto cache = seed % 2 == 0 ? std::optional<std::uint64_t>(0) : std::nullopt;
    World world(is_encrypted, mishap, 20 + random() % 60, placement, cache);
    Heads heads;
    count_heads(world, heads);
    world.run([&] { return world.create(); });
    for (int number = 0; number < 14; ++number) {
      step(world, random, number, is_encrypted);
      expect_store_has_catalog(world);
      if (HasFailure()) {
        ADD_FAILURE() << "seed " << seed << ", step " << number;
        return;
      }
    }
    world.expect_versions();
    EXPECT_LT(heads.full, heads.all);
  }
}

TEST_P(CatalogOracle, AQuietHistoryComparesTheWholeCatalogOnce) {
  const auto [is_encrypted, placement] = GetParam();
  World world(is_encrypted, Mishap::kNone, 0, placement);
  world.run([&] { return world.create(); });
  world.store("v0", tree_of(3));
  Heads heads;
  count_heads(world, heads);
  for (int number = 1; number < 6; ++number) {
    world.store("v" + std::to_string(number), tree_of(static_cast<std::uint64_t>(number)));
  }
  world.arrange();
  world.erase({"v2"});
  world.rename("v3", "third");
  EXPECT_GE(heads.all, 7U);
  EXPECT_EQ(heads.full, 0U);
  expect_store_has_catalog(world);
}

// A change that another program makes while none replicates is found by the next head.
TEST(CatalogNotes, AnUnreplicatedChangeComparesTheWholeCatalog) {
  World world(false, Mishap::kNone, 0);
  world.run([&] { return world.create(); });
  world.store("v0", tree_of(3));
  change_without_waiting(world, 1);
  Heads heads;
  count_heads(world, heads);
  world.store("v1", tree_of(4));
  EXPECT_EQ(heads.full, 1U);
  expect_store_has_catalog(world);
  world.store("v2", tree_of(5));
  EXPECT_EQ(heads.full, 1U);
  expect_store_has_catalog(world);
}

// Damage that no head can know of. `varve check` compares all records, and a new base writes all.
TEST(CatalogNotes, AMissedChangeIsFoundByACheckAndEndsWithABase) {
  World world(false, Mishap::kNone, 0);
  world.run([&] { return world.create(); });
  world.store("v0", tree_of(3));
  const auto files = io::make_posix_file_system();
  const auto differences = [&] {
    const auto state = must(remote::ReplicaState::open(*files, world.path(), true));
    return must(remote::differences_from_copy(*files, world.path(), state));
  };
  EXPECT_EQ(differences(), 0U);
  {
    const auto copy = must(remote::open_copy(*files, world.path(), false));
    auto txn = must(meta::StoredWriter::begin(copy));
    must(txn.put("settings", {"missed", "a value that the store has and the folder lacks"}));
    must(txn.commit());
  }
  EXPECT_EQ(differences(), 1U);
  change_without_waiting(world, 1);
  EXPECT_EQ(differences(), std::nullopt);
  world.arrange();  // Compares everything.
  EXPECT_EQ(differences(), 0U);
  expect_store_has_catalog(world);
}

// A number of texts that cannot be read lets the next writer renew the key (meta::TextCount).
TEST(CatalogNotes, ARenewedKeyComesWithTheNextHead) {
  World world(true, Mishap::kNone, 0);
  world.run([&] { return world.create(); });
  world.store("v0", tree_of(3));
  std::string salt;
  {
    meta::EnvOptions options;
    options.tables = meta::catalog::kTables;
    options.without_keys = true;
    const auto catalog = must(meta::Env::open(world.path() + "/catalog", options));
    {
      const auto txn = must(meta::ReadTxn::begin(catalog));
      salt = must(meta::find_stored(txn, meta::kSealTable, meta::kSaltKey)).value_or("");
    }
    auto writer = must(meta::StoredWriter::begin(catalog));
    must(writer.put(meta::kSealTable, {meta::kTextsKey, "not a number"}));
    must(writer.commit());
  }
  Heads heads;
  count_heads(world, heads);
  world.store("v1", tree_of(4));
  EXPECT_GE(heads.full, 1U);
  expect_store_has_catalog(world);
  world.store("v2", tree_of(5));
  expect_store_has_catalog(world);
  world.expect_versions();
  const auto files = io::make_posix_file_system();
  const auto state = must(remote::ReplicaState::open(*files, world.path(), true));
  EXPECT_EQ(must(remote::differences_from_copy(*files, world.path(), state)), 0U);
  const auto copy = must(remote::open_copy(*files, world.path(), true));
  const auto txn = must(meta::ReadTxn::begin(copy));
  EXPECT_NE(must(meta::find_stored(txn, meta::kSealTable, meta::kSaltKey)), salt);
}

INSTANTIATE_TEST_SUITE_P(All, CatalogOracle,
                         testing::Combine(testing::Bool(), testing::Values(Placement::kLineage,
                                                                           Placement::kLineagePool,
                                                                           Placement::kPool)));

}  // namespace
}  // namespace varve::test
