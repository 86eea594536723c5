// SPDX-License-Identifier: Apache-2.0
// The requests of an attach do not follow the number of kept versions: a folder that only reads
// asks for the newest head, few catalog objects and the labels, and reads a manifest only if a
// reader needs the manifest.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <map>
#include <memory>
#include <string>

#include "../unit/remote/stored_catalog.h"
#include "../unit/remote/world.h"
#include "io/posix_file_system.h"
#include "meta/schema.h"
#include "meta/stored_records.h"
#include "remote/kept_snapshot.h"
#include "remote/replicator.h"

namespace varve::test {
namespace {

// Requests by kind and by the kind of object.
using Counts = std::map<std::string, std::uint64_t>;

std::string kind_of(bucket::RequestKind kind, const std::string& name) {
  std::string label = kind == bucket::RequestKind::kGet    ? "get "
                      : kind == bucket::RequestKind::kList ? "list"
                                                           : "other request ";
  if (kind == bucket::RequestKind::kList) return label;
  for (const auto* const part : {"head", "cat", "other", "seg", "vol"}) {
    if (name.find(std::string("/") + part + "/") != std::string::npos) label += part;
  }
  return label + (name.ends_with(".copy") ? " copy" : "");
}

std::uint64_t sum_of(const Counts& counts) {
  std::uint64_t sum = 0;
  for (const auto& [kind, count] : counts) sum += count;
  return sum;
}

// A tree of few small files, one of which is new in each version.
Tree small_tree(std::uint64_t version) {
  Tree tree;
  for (std::uint64_t file = 0; file < 3; ++file) {
    const auto changed = version < file ? 0 : version - (version - file) % 3;
    tree["f" + std::to_string(file)] = noise(300, changed * 10 + file);
  }
  return tree;
}

constexpr std::uint64_t kRequestsMax = 30;
constexpr int kVersions = 1000;

class AttachCostGate : public testing::TestWithParam<bool> {
 protected:
  // Stores versions, each with a head of its own.
  void store_until(int count) {
    for (; versions_ < count; ++versions_) {
      must(world_.with([&](Repository& repository) {
        auto series = repository.find_series("s");
        if (!series) series = repository.create_series("s");
        const auto id = must(std::move(series)).id;
        const auto name = "v" + std::to_string(versions_);
        const auto number = must(repository.open_version(id, name, folder())).number;
        {
          const auto writer = must(repository.writer(id));
          for (const auto& [file, bytes] : small_tree(static_cast<std::uint64_t>(versions_))) {
            write_file(*writer, kRootIno, file, bytes);
          }
        }
        must(repository.seal(id, number, ""));
      }));
    }
  }

  [[nodiscard]] remote::BucketHooks counting_hooks(Counts& counts) {
    auto hooks = world_.hooks();
    hooks.open = [this, &counts](const remote::BucketConfig&) {
      auto bucket = std::make_shared<MemoryBucket>(world_.shared_objects(), "p/", &world_.clock());
      bucket->set_faults(
          [&counts](std::uint64_t, bucket::RequestKind kind, const std::string& name) {
            ++counts[kind_of(kind, name)];
            return Fault::kNone;
          });
      return Result<std::unique_ptr<bucket::Bucket>>(
          std::make_unique<LentBucket>(std::move(bucket)));
    };
    return hooks;
  }

  /// Attaches a fresh folder, and returns the requests.
  Counts attach() {
    Counts counts;
    const TempDirectory temp;
    const auto hooks = counting_hooks(counts);
    must(repo::attach_to_store({.place = "s3://memory/p"}, temp.path() + "/reader",
                               world_.options(true), hooks));
    return counts;
  }
  void create() {
    world_.hooks().extent_bytes_max = std::uint64_t{64} << 20;
    world_.hooks().delta_bytes_min = std::uint64_t{4} << 20;
    must(world_.create());
  }
  void expect_few(const Counts& counts, const std::string& versions) {
    for (const auto& [kind, count] : counts) {
      RecordProperty(versions + " " + kind, static_cast<int>(count));
    }
    EXPECT_LE(sum_of(counts), kRequestsMax) << versions << " versions";
    EXPECT_EQ(counts.contains("get head copy"), false);
  }

  World world_{GetParam(), Mishap::kBefore, UINT64_MAX};
  int versions_ = 0;
};

TEST_P(AttachCostGate, AnAttachTakesFewRequests) {
  create();
  for (const int versions : {10, 100}) {
    store_until(versions);
    expect_few(attach(), std::to_string(versions));
  }
}

// A reader that is behind reads the heads in between if catalog objects were merged, and no small
// file but the labels.
TEST_P(AttachCostGate, ANewHeadTakesFewRequests) {
  create();
  store_until(1);
  Counts counts;
  const auto hooks = counting_hooks(counts);
  const TempDirectory temp;
  const auto reader = temp.path() + "/reader";
  must(repo::attach_to_store({.place = "s3://memory/p"}, reader, world_.options(true), hooks));
  for (int versions = 2; versions <= 30; ++versions) {
    store_until(versions);
    counts.clear();
    must(repo::RepositoryImpl::open(reader, world_.options(true), hooks));
    EXPECT_LE(sum_of(counts), 5U) << versions;
  }
  store_until(40);
  counts.clear();
  must(repo::RepositoryImpl::open(reader, world_.options(true), hooks));
  EXPECT_LE(sum_of(counts), 10U + 20U);
}

// The heads of 1,000 versions: the replicator creates each, but no version is stored. Each has a
// manifest, and the labels grow with each.
class AThousandVersions : public AttachCostGate {};

TEST_P(AThousandVersions, TakeFewRequests) {
  create();
  store_until(2);
  const auto files = io::make_posix_file_system();
  meta::EnvOptions env;
  env.tables = meta::catalog::kTables;
  env.optional_tables = meta::catalog::kTablesOptional;
  env.without_keys = true;
  const auto catalog = must(meta::Env::open(*files, world_.path() + "/catalog", env));
  MemoryBucket bucket(world_.shared_objects(), "p/", &world_.clock());
  remote::KeptSnapshot kept;
  kept.begin(catalog);
  remote::ReplicatorParts parts;
  parts.root = world_.path();
  parts.files = files.get();
  parts.catalog = &catalog;
  parts.bucket = &bucket;
  parts.clock = &world_.clock();
  const auto head = newest_head(world_);
  parts.repository_id = head.repository_id;
  const auto& text = head.superblock;
  parts.superblock = [&text] { return Result<std::string>(text); };
  parts.kept = &kept;
  const auto replicator = must(remote::Replicator::open(std::move(parts)));
  const auto series = world_.path() + "/series/00000001/";
  const auto key = meta::version_key(SeriesId{1}, VersionNumber{2});
  for (int version = 3; version <= kVersions; ++version) {
    kept.before_write(catalog);
    auto txn = must(meta::StoredWriter::begin(catalog));
    for (const auto table :
         {meta::catalog::kVersions, meta::catalog::kVersionChunks, meta::catalog::kRetention}) {
      const auto* const name = meta::catalog::kTables[table];
      std::string value;
      {
        const auto read = must(meta::ReadTxn::begin(catalog));
        value = must(meta::find_stored(read, name, key)).value_or("");
      }
      const auto number = VersionNumber{static_cast<std::uint32_t>(version)};
      must(txn.put(name, {meta::version_key(SeriesId{1}, number), value}));
    }
    must(txn.commit());
    std::ofstream(series + "manifests/" + fmt::format("{:08x}.man", version)) << noise(700, 1);
    std::ofstream(series + "labels", std::ios::app) << noise(100, 2);
    must(replicator->replicate());
  }
  const auto counts = attach();
  expect_few(counts, "1000");
  EXPECT_GE(world_.names_with("/head/").size(), 2 * kVersions - 2U);
}

INSTANTIATE_TEST_SUITE_P(Encryption, AttachCostGate, testing::Bool(),
                         [](const auto& encrypted) { return encrypted.param ? "On" : "Off"; });

INSTANTIATE_TEST_SUITE_P(Plain, AThousandVersions, testing::Values(false));

}  // namespace
}  // namespace varve::test
