// SPDX-License-Identifier: Apache-2.0
// Bytes that the versions of a small tree send to an object store, by the kind of object.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <ostream>
#include <random>
#include <span>
#include <string>
#include <utility>

#include "../unit/remote/world.h"
#include "base/coding.h"

namespace varve::test {
namespace {

constexpr std::uint64_t kFileBytes = 6000;

/// Sums of bytes by the kind of object, each with its copies.
using Sent = std::map<std::string, std::uint64_t>;

/// Counts the bytes of all objects by their kind.
class CountedBytes final : public LentBucket {
 public:
  struct Counts {
    std::mutex mutex;
    Sent sent;
  };
  CountedBytes(std::shared_ptr<MemoryBucket> bucket, Counts& counts)
      : LentBucket(std::move(bucket)), counts_(counts) {}
  Result<void> put(const std::string& name, std::span<const std::span<const std::byte>> parts,
                   const bucket::PutOptions& options) override {
    std::uint64_t bytes = 0;
    std::string front;
    for (const auto& part : parts) {
      bytes += part.size();
      if (front.size() < 8) front += base::as_text(part).substr(0, 8);
    }
    {
      const std::lock_guard lock(counts_.mutex);
      counts_.sent[kind_of(name, front)] += bytes;
    }
    return LentBucket::put(name, parts, options);
  }

 private:
  static std::string kind_of(const std::string& name, const std::string& front) {
    for (const auto* const kind : {"seg", "vol", "cat", "head"}) {
      if (name.find("/" + std::string(kind) + "/") != std::string::npos) return kind;
    }
    if (name.find("/other/") == std::string::npos) return "rest";
    // A manifest has the kind 1; labels and parts of labels have other first bytes.
    return front.starts_with("VVMN") && front.size() >= 8 && front[6] == 1 ? "manifests" : "labels";
  }
  Counts& counts_;
};

/// A small tree in an object store, some of whose files change in each version.
class SmallTree {
 public:
  SmallTree(std::uint64_t files, std::uint64_t changed, bool arranges)
      : changed_(changed), arranges_(arranges), world_(false, Mishap::kBefore, UINT64_MAX) {
    world_.hooks().extent_bytes_max = std::uint64_t{64} << 20;
    world_.hooks().delta_bytes_min = std::uint64_t{4} << 20;
    must(repo::create_in_store({.place = "s3://memory/p"}, world_.path(), {}, {}, world_.hooks()));
    world_.hooks().open =
        [this](const remote::BucketConfig&) -> Result<std::unique_ptr<bucket::Bucket>> {
      return std::unique_ptr<bucket::Bucket>(std::make_unique<CountedBytes>(
          std::make_shared<MemoryBucket>(world_.shared_objects(), "p/", &world_.clock()), counts_));
    };
    for (std::uint64_t file = 0; file < files; ++file) {
      tree_["f" + std::to_string(file)] = noise(kFileBytes, ++seed_);
    }
  }

  void store(int versions) {
    for (int i = 0; i < versions; ++i) store_one();
  }
  Sent take() { return std::exchange(counts_.sent, {}); }
  World& world() { return world_; }

 private:
  void store_one() {
    for (std::uint64_t i = 0; i < changed_; ++i) {
      auto file = std::next(tree_.begin(), static_cast<long>(random_() % tree_.size()));
      file->second = noise(kFileBytes, ++seed_);
    }
    must(world_.with([&](Repository& repository) {
      store_tree(repository, "v" + std::to_string(++versions_), tree_);
      if (arranges_) must(repository.arrange(series_s(repository), {}));
    }));
    world_.clock().seconds += 60;
  }

  const std::uint64_t changed_;
  const bool arranges_;
  CountedBytes::Counts counts_;
  World world_;
  Tree tree_;
  std::mt19937_64 random_{5};
  std::uint64_t seed_ = 0;
  int versions_ = 0;
};

struct Case {
  const char* name;
  std::uint64_t files;
  std::uint64_t changed;
  bool arranges;
  /// Bytes for each version, at most.
  std::uint64_t labels, manifests, data, all;
};
void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

class SmallSealsGate : public testing::TestWithParam<Case> {};

TEST_P(SmallSealsGate, AVersionSendsLittleBesideItsData) {
  constexpr int kBefore = 100;
  constexpr int kMeasured = 20;
  SmallTree tree(GetParam().files, GetParam().changed, GetParam().arranges);
  tree.store(kBefore);
  static_cast<void>(tree.take());
  tree.store(kMeasured);
  auto sent = tree.take();
  std::uint64_t all = 0;
  for (auto& [kind, bytes] : sent) {
    bytes /= kMeasured;
    all += bytes;
    RecordProperty(kind, static_cast<int>(bytes));
    std::printf("%s %.1f KB, ", kind.c_str(), static_cast<double>(bytes) / 1000);
  }
  std::printf("all %.2f of the new data\n",
              static_cast<double>(all) / static_cast<double>(GetParam().changed * kFileBytes));
  EXPECT_LE(sent["labels"], GetParam().labels);
  EXPECT_LE(sent["manifests"], GetParam().manifests);
  EXPECT_LE(sent["seg"] + sent["vol"], GetParam().data);
  EXPECT_LE(all, GetParam().all);
}

INSTANTIATE_TEST_SUITE_P(
    All, SmallSealsGate,
    testing::Values(Case{"few", 83, 2, false, 9000, 10'000, 17'000, 45'000},
                    Case{"few arranged", 83, 2, true, 10'000, 10'000, 65'000, 95'000},
                    Case{"many", 300, 17, false, 9000, 14'000, 110'000, 204'000},
                    Case{"many arranged", 300, 17, true, 10'000, 14'000, 330'000, 380'000}));

}  // namespace
}  // namespace varve::test
