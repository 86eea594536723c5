// SPDX-License-Identifier: Apache-2.0
// Versions in an object store: new data takes few requests, and no later version sends much.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <ostream>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "../unit/remote/world.h"

namespace varve::test {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

struct Cost {
  std::uint64_t requests = 0;
  std::uint64_t bytes = 0;
};

/// A repository with the usual parameters, in a bucket in memory.
class Machine {
 public:
  Machine() : world_(false, Mishap::kBefore, UINT64_MAX) {
    world_.hooks().extent_bytes_max = 64 * kMiB;
    world_.hooks().delta_bytes_min = 4 * kMiB;
    must(repo::create_in_store({.place = "s3://memory/p"}, world_.path(), {}, {}, world_.hooks()));
  }

  /// Stores a version, arranges, and returns what the store was asked for meanwhile.
  Cost store(const Tree& tree) {
    const auto before = spent();
    must(world_.with([&](Repository& repository) {
      store_tree(repository, "v" + std::to_string(++versions_), tree);
      must(repository.arrange(series_s(repository), {}));
    }));
    const auto after = spent();
    return {after.requests - before.requests, after.bytes - before.bytes};
  }

 private:
  [[nodiscard]] Cost spent() const {
    Cost sum;
    for (std::size_t kind = 0; kind < std::tuple_size_v<bucket::Traffic>; ++kind) {
      const auto counts = world_.counts(static_cast<bucket::RequestKind>(kind));
      sum.requests += counts.requests;
      sum.bytes += counts.bytes_sent;
    }
    return sum;
  }

  World world_;
  int versions_ = 0;
};

/// A kind of data: its first version, and the change of a fiftieth of it.
struct Kind {
  const char* name;
  std::function<Tree(std::uint64_t bytes)> first;
  std::function<void(Tree& tree, std::mt19937_64& random)> change;
};
void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

Tree files_of(std::uint64_t bytes, double median, double spread) {
  Tree tree;
  std::mt19937_64 random(5);
  std::lognormal_distribution<double> length(median, spread);
  for (std::uint64_t number = 0; bytes != 0; ++number) {
    const auto size = std::min(bytes, static_cast<std::uint64_t>(length(random)) + 1);
    tree["f" + std::to_string(number)] = noise(size, number + 1);
    bytes -= size;
  }
  return tree;
}

// Replaces whole files.
void replace(Tree& tree, std::mt19937_64& random) {
  std::uint64_t all = 0;
  for (const auto& [name, bytes] : tree) all += bytes.size();
  std::uint64_t done = 0;
  while (done < all / 50) {
    auto file = std::next(tree.begin(), static_cast<long>(random() % tree.size()));
    file->second = noise(file->second.size(), random());
    done += file->second.size();
  }
}

// Overwrites pages of the one file.
void overwrite(Tree& tree, std::mt19937_64& random) {
  auto& image = tree.begin()->second;
  std::uint64_t done = 0;
  while (done < image.size() / 50) {
    const auto page = noise(4096 << (random() % 5), random());
    const auto at = random() % (image.size() - page.size()) / 4096 * 4096;
    image.replace(at, page.size(), page);
    done += page.size();
  }
}

// Appends to mailboxes, adds messages and removes some.
void receive(Tree& tree, std::mt19937_64& random) {
  std::uint64_t all = 0;
  for (const auto& [name, bytes] : tree) all += bytes.size();
  std::uint64_t done = 0;
  while (done < all / 50) {
    const auto message = noise(2000 + random() % 60000, random());
    done += message.size();
    if (random() % 2 == 0) {
      std::next(tree.begin(), static_cast<long>(random() % tree.size()))->second += message;
    } else {
      tree["m" + std::to_string(random())] = message;
    }
    if (random() % 2 == 0) {
      tree.erase(std::next(tree.begin(), static_cast<long>(random() % tree.size())));
    }
  }
}

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> kKinds = {
      {"files", [](std::uint64_t bytes) { return files_of(bytes, 12, 1.8); }, replace},
      {"image",
       [](std::uint64_t bytes) {
         return Tree{{"image", noise(bytes, 3)}};
       },
       overwrite},
      {"mails", [](std::uint64_t bytes) { return files_of(bytes, 10, 1); }, receive},
  };
  return kKinds;
}

class ObjectRequestsGate : public testing::TestWithParam<Kind> {};

// The copies of the labels, the manifest, the catalog object and the head, and the read of the new
// head. The other programs have none of these requests.
constexpr std::uint64_t kOwnRequests = 5;

// Packs of 16 MiB, as of other backup programs, and their 16 requests for keys, locks, an index and
// a snapshot.
std::uint64_t requests_of_packs(std::uint64_t bytes) {
  return 16 + (bytes + 16 * kMiB - 1) / (16 * kMiB);
}

TEST_P(ObjectRequestsGate, AFirstVersionTakesFewRequests) {
  for (const auto bytes : {16 * kMiB, 64 * kMiB, 160 * kMiB}) {
    Machine machine;
    const auto first = machine.store(GetParam().first(bytes));
    RecordProperty("requests_" + std::to_string(bytes / kMiB), static_cast<int>(first.requests));
    EXPECT_LE(first.requests, requests_of_packs(bytes) - 1 + kOwnRequests) << bytes;
    EXPECT_LE(first.bytes, bytes + bytes / 50) << bytes;
  }
}

// Arranging writes files again as a whole, so long first segments could make some version send
// much.
TEST_P(ObjectRequestsGate, NoVersionSendsMuch) {
  constexpr std::uint64_t kBytes = 24 * kMiB;
  constexpr int kVersions = 12;
  Machine machine;
  auto tree = GetParam().first(kBytes);
  static_cast<void>(machine.store(tree));
  std::mt19937_64 random(1);
  Cost worst;
  Cost all;
  for (int version = 0; version < kVersions; ++version) {
    GetParam().change(tree, random);
    const auto cost = machine.store(tree);
    worst = {std::max(worst.requests, cost.requests), std::max(worst.bytes, cost.bytes)};
    all = {all.requests + cost.requests, all.bytes + cost.bytes};
  }
  RecordProperty("worst_kib", static_cast<int>(worst.bytes / 1024));
  RecordProperty("mean_kib", static_cast<int>(all.bytes / 1024 / kVersions));
  RecordProperty("worst_requests", static_cast<int>(worst.requests));
  RecordProperty("requests", static_cast<int>(all.requests));
  EXPECT_LE(worst.bytes, kBytes * 3 / 4);
  EXPECT_LE(all.bytes, kBytes / 5 * kVersions);
  // One of the heads reads 12 catalog objects to merge them (decisions/162).
  EXPECT_LE(worst.requests, 32U);
}

INSTANTIATE_TEST_SUITE_P(Kinds, ObjectRequestsGate, testing::ValuesIn(kinds()),
                         [](const auto& kind) { return std::string(kind.param.name); });

}  // namespace
}  // namespace varve::test
