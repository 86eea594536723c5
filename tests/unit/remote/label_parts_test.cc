// SPDX-License-Identifier: Apache-2.0
// Labels in the store are in parts. Each part shows its place, and a rebuild names lost parts.
#include "remote/label_parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/checksum.h"
#include "base/coding.h"
#include "remote/label_chains.h"
#include "support/file_content.h"
#include "world.h"

namespace varve::test {
namespace {

using remote::Extent;
using remote::LabelChain;
using remote::LabelChains;
using remote::LabelPart;

constexpr SeriesId kSeries{3};

LabelPart part_of(const std::string& labels, std::uint64_t head, std::size_t begin,
                  std::size_t end) {
  LabelPart part;
  part.series = kSeries;
  part.head = head;
  part.offset = begin;
  part.bytes = end - begin;
  part.checksum = base::checksum64(base::as_bytes(labels.substr(begin, end - begin)));
  part.before = remote::digest_of(labels.substr(0, begin));
  return part;
}

void add(LabelChains& chains, const std::string& labels, std::uint64_t head, std::size_t begin,
         std::size_t end) {
  chains.add(part_of(labels, head, begin, end), labels.substr(begin, end - begin),
             "part " + std::to_string(begin) + " " + std::to_string(end));
}

std::optional<LabelChain> newest(const LabelChains& chains) {
  std::optional<LabelChain> found;
  must(chains.visit_newest(kSeries, [&](LabelChain chain) -> Result<bool> {
    found = std::move(chain);
    return true;
  }));
  return found;
}

TEST(LabelLead, TellsThePlace) {
  const auto part = part_of("some labels", 7, 5, 11);
  const auto lead = remote::encode_lead(part, nullptr);
  EXPECT_EQ(lead.size(), remote::kLabelLeadBytes);
  EXPECT_TRUE(remote::may_have_lead(lead));
  const auto read = must(remote::decode_lead(lead + "labels", nullptr));
  EXPECT_EQ(read.series, kSeries);
  EXPECT_EQ(read.head, 7U);
  EXPECT_EQ(read.offset, 5U);
  EXPECT_EQ(read.end(), 11U);
  EXPECT_EQ(read.before, part.before);
  for (std::size_t i = 0; i < lead.size(); ++i) {
    auto damaged = lead;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    EXPECT_FALSE(remote::decode_lead(damaged, nullptr)) << i;
  }
}

// Few parts, and each byte is written few times.
TEST(LabelParts, AreMergedAsTheyGrow) {
  std::vector<Extent> parts;
  std::uint64_t bytes = 20'000;
  std::uint64_t written = 0;
  for (int update = 0; update < 200; ++update) {
    bytes += 250;
    parts.resize(remote::parts_to_keep(parts, bytes, 1U << 20));
    const auto rest = bytes - remote::bytes_of(parts);
    parts.push_back({.bytes = rest});
    written += rest;
    EXPECT_LE(parts.size(), 4U);
  }
  EXPECT_LE(written, 20'000 + 200 * 250 * 14);
}

TEST(LabelChains, JoinPartsInTheirOrder) {
  std::string labels = noise(1000, 1);
  LabelChains chains;
  add(chains, labels, 4, 700, 1000);
  add(chains, labels, 3, 100, 700);  // Merged.
  add(chains, labels, 2, 100, 300);
  add(chains, labels, 1, 0, 100);
  add(chains, noise(1000, 2), 9, 400, 1000);  // Follows foreign labels.
  chains.join();
  const auto chain = newest(chains);
  ASSERT_TRUE(chain);
  EXPECT_EQ(chain->labels, labels);
  EXPECT_EQ(chain->head, 4U);
  EXPECT_EQ(chains.newest_lost(kSeries, &*chain), "part 400 1000");
}

TEST(LabelChains, FollowWholeLabelsOfAnEarlierRelease) {
  std::string labels = noise(1000, 1);
  LabelChains chains;
  chains.add_whole(kSeries, labels.substr(0, 600));
  add(chains, labels, 5, 600, 1000);
  chains.join();
  const auto chain = newest(chains);
  ASSERT_TRUE(chain);
  EXPECT_EQ(chain->labels, labels);
  EXPECT_EQ(chains.newest_lost(kSeries, &*chain), std::nullopt);
}

// Replaced labels leave parts behind. The parts are removed in any order.
TEST(LabelChains, PartsOfReplacedLabelsAreNoLoss) {
  const std::string old = noise(1000, 1);
  const std::string labels = noise(800, 2);
  LabelChains chains;
  add(chains, old, 5, 600, 1000);
  add(chains, labels, 6, 0, 800);
  chains.join();
  const auto chain = newest(chains);
  ASSERT_TRUE(chain);
  EXPECT_EQ(chain->labels, labels);
  EXPECT_EQ(chains.newest_lost(kSeries, &*chain), std::nullopt);
  EXPECT_EQ(chains.newest_lost(kSeries, nullptr), "part 600 1000");
}

// Random states with lost parts: the search finds the newest labels or reports a loss.
TEST(LabelChains, AnyLossOfAMiddlePartIsFound) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random(seed);
    const auto labels = noise(2000, seed);
    std::vector<std::pair<LabelPart, std::string>> parts;
    std::vector<Extent> present;
    std::uint64_t bytes = 0;
    for (std::uint64_t head = 1; bytes < labels.size(); ++head) {
      bytes = std::min<std::uint64_t>(labels.size(), bytes + 1 + random() % 200);
      present.resize(remote::parts_to_keep(present, bytes, 1U << 20));
      const auto begin = remote::bytes_of(present);
      present.push_back({.bytes = bytes - begin});
      parts.emplace_back(part_of(labels, head, begin, bytes), labels.substr(begin, bytes - begin));
    }
    const auto last = parts.back();
    std::ranges::shuffle(parts, random);
    for (auto lost = random() % 4; lost > 0; --lost) parts.pop_back();
    const bool has_last = std::ranges::any_of(
        parts, [&](const auto& part) { return part.first.end() == labels.size(); });
    if (!has_last) continue;  // Only a catalog object can show the loss.
    LabelChains chains;
    for (const auto& [part, text] : parts) chains.add(part, text, "part");
    chains.join();
    const auto chain = newest(chains);
    const bool is_whole = chain && chain->labels == labels;
    EXPECT_NE(is_whole, chains.newest_lost(kSeries, chain ? &*chain : nullptr).has_value()) << seed;
  }
}

class StoredLabels : public testing::TestWithParam<std::tuple<bool, Placement>> {
 protected:
  StoredLabels() : world_(std::get<0>(GetParam()), Mishap::kNone, 0, std::get<1>(GetParam())) {
    must(world_.create());
    for (std::uint64_t i = 1; i < 13; ++i) {
      world_.store("v" + std::to_string(i), {{"a", noise(3000, i)}});
      world_.clock().seconds += 60;
      if (i == 5) world_.erase({"v2"});
      if (i == 7) world_.rename("v3", "renamed");
    }
    world_.clock().seconds += 60;
    world_.rename("v4", "last change");
  }

  /// Returns the objects with parts of labels, by the offset in the labels.
  [[nodiscard]] std::vector<std::pair<LabelPart, std::string>> parts() {
    std::vector<std::pair<LabelPart, std::string>> found;
    for (const auto& name : world_.names_with("/other/")) {
      const auto text = base::as_text(world_.objects().objects.at(name).bytes);
      if (name.ends_with(".copy") || !remote::may_have_lead(text)) continue;
      // Without the keys, the place can be read, but not authenticated.
      base::ByteReader reader(text.substr(16));
      LabelPart part;
      part.head = reader.u64();
      part.offset = reader.u64();
      part.bytes = reader.u64();
      found.emplace_back(part, name);
    }
    return found;
  }
  void lose(const std::string& part) {
    for (const auto& name : world_.names_with(part)) world_.objects().objects.erase(name);
  }
  Result<StoreRebuild> rebuild() {
    std::filesystem::remove_all(folder_);
    return repo::rebuild_from_store({.place = "s3://memory/p"}, folder_, world_.options(true),
                                    world_.hooks(), AttachRole::kReads);
  }
  Versions versions() {
    const auto repository =
        must(repo::RepositoryImpl::open(folder_, world_.options(true), world_.hooks()));
    return World::read_all_versions(*repository);
  }

  World world_;
  const std::string folder_ = world_.path() + "-rebuilt";
};

TEST_P(StoredLabels, ComeBackWithoutHeads) {
  EXPECT_TRUE(
      std::ranges::any_of(parts(), [](const auto& part) { return part.first.offset != 0; }));
  lose("/head/");
  lose("/cat/");
  const auto rebuilt = must(rebuild());
  for (const auto& problem : rebuilt.problems) ADD_FAILURE() << problem;
  EXPECT_TRUE(versions() == world_.local());
}

// An earlier release has left labels as one object, and another machine has taken over since. So
// the parts have labels of another catalog.
TEST_P(StoredLabels, AreNewerThanWholeLabels) {
  auto& objects = world_.objects().objects;
  const auto [part, name] = parts().front();
  auto whole = objects.at(name);
  std::ifstream file(world_.path() + "/series/00000001/labels", std::ios::binary);
  const auto labels = rest_of(file);
  whole.bytes.assign(base::as_bytes(labels).begin(), base::as_bytes(labels).end());
  objects[name.substr(0, name.rfind('/') + 1) + "0123456789abcdef-01234567"] = whole;
  const auto second = world_.path() + "-second";
  must(repo::attach_to_store({.place = "s3://memory/p"}, second, world_.options(), world_.hooks(),
                             AttachRole::kWrites));
  {
    const auto repository =
        must(repo::RepositoryImpl::open(second, world_.options(), world_.hooks()));
    const auto id = must(repository->find_series("s")).id;
    const auto number = must(repository->find_version(id, "last change")).number;
    must(repository->rename_version(id, number, "of the second machine"));
    must(repository->close());
  }
  lose("/head/");
  lose("/cat/");
  must(rebuild());
  auto wanted = world_.local();
  wanted["of the second machine"] = wanted.extract("last change").mapped();
  EXPECT_TRUE(versions() == wanted);
}

// The heads and a part of labels are lost. The part's changes are restored, or the loss has a line.
TEST_P(StoredLabels, ALostPartIsNamed) {
  lose("/head/");
  std::size_t named = 0;
  for (const auto& [part, object] : parts()) {
    SCOPED_TRACE(object);
    const auto kept = world_.objects().objects;
    lose(object);
    const auto rebuilt = must(rebuild());
    const bool is_same = versions() == world_.local();
    const bool has_line = std::ranges::any_of(rebuilt.problems, [](const auto& problem) {
      return problem.find("deletions") != std::string::npos;
    });
    EXPECT_TRUE(is_same || has_line);
    named += has_line ? 1 : 0;
    world_.objects().objects = kept;
  }
  EXPECT_GE(named, 2U);  // Also the last part.
}

// A flipped bit of a part or of the part's copy costs nothing.
TEST_P(StoredLabels, ACopyIsEnough) {
  lose("/head/");
  bool takes_copy = false;
  for (const auto& [part, object] : parts()) {
    takes_copy = !takes_copy;
    auto& bytes = world_.objects().objects.at(object + (takes_copy ? ".copy" : "")).bytes;
    bytes[bytes.size() * 2 / 3] ^= std::byte{1};
  }
  const auto rebuilt = must(rebuild());
  for (const auto& problem : rebuilt.problems) ADD_FAILURE() << problem;
  EXPECT_TRUE(versions() == world_.local());
}

INSTANTIATE_TEST_SUITE_P(All, StoredLabels,
                         testing::Combine(testing::Bool(),
                                          testing::Values(Placement::kLineage, Placement::kPool)));

}  // namespace
}  // namespace varve::test
