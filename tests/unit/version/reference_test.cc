// SPDX-License-Identifier: Apache-2.0
// The references that a seal takes from the changes alone, held against a walk of the whole tree.
#include "clone_fixture.h"
#include "open_version_model.h"
#include "reference_oracle.h"
#include "varve/retention.h"

namespace varve::test {
namespace {

class ReferenceHistory : public OpenVersionModel {};

TEST_P(ReferenceHistory, ChangesGiveTheCountsOfTheWholeTree) {
  SCOPED_TRACE("seed " + std::to_string(seed()));
  constexpr int kVersions = 8;
  start_version("v0.partial");
  for (int round = 0; round < kVersions; ++round) {
    const auto operations = round == 0 ? 1500 : 20 + static_cast<int>(below(400));
    for (int i = 0; i < operations; ++i) {
      step();
      ASSERT_FALSE(HasFailure()) << "at operation " << i << " of round " << round;
    }
    const auto outcome = seal("v" + std::to_string(round), SealMode::kEnd);
    compare_ranks(*must(repository_->reader(series_, number_)), *root_, outcome);
    version_ = nullptr;
    repository_ = nullptr;
    expect_exact_references(path_, series_);
    ASSERT_FALSE(HasFailure()) << "after sealing round " << round;
    open_repository();
    const auto next = "v" + std::to_string(round + 1) + ".partial";
    go_on_from_sealed(must(repository_->clone_version(series_, number_, next)).number);
  }
}

INSTANTIATE_TEST_SUITE_P(All, ReferenceHistory,
                         testing::Values(Setting{"Plain", Codec::kNone, 11, 3600000},
                                         Setting{"Other", Codec::kNone, 12, 3600000},
                                         Setting{"Checkpoints", Codec::kNone, 13, 3}),
                         [](const auto& setting) { return std::string(setting.param.name); });

class ReferenceTest : public CloneTest {
 protected:
  void expect_exact() {
    version_.reset();
    repository_.reset();
    expect_exact_references(path_, series_);
    repository_ = reopen(path_);
  }
  // Removes one of two files with the same data, and seals.
  VersionNumber seal_without(VersionNumber base, const std::string& name, const char* version) {
    clone(base, version);
    must(version_->unlink(kRootIno, name));
    return seal();
  }
  VersionNumber seal_copies() {
    for (const char* name : {"a", "b", "c"}) {
      write_file(*version_, kRootIno, name, noise(50000, 1));
    }
    return seal();
  }
};

TEST_F(ReferenceTest, ChunkOfARemovedCopyStaysUntilTheLastCopyGoes) {
  const auto one = seal_copies();
  const auto two = seal_without(one, "a", "two");
  expect_exact();
  const auto three = seal_without(two, "b", "three");
  expect_exact();
  EXPECT_EQ(read_sealed(*reader(three), "c"), noise(50000, 1));
  seal_without(three, "c", "four");
  expect_exact();
}

TEST_F(ReferenceTest, TableOfAnotherVersionIsCountedAgain) {
  const auto one = seal_copies();
  with_catalog([&](const meta::Env& env) {
    auto txn = must(meta::WriteTxn::begin(env));
    must(txn.put(meta::catalog::kReferences, meta::series_key(series_), base::be32(77)));
    must(txn.commit());
  });
  seal_without(one, "a", "two");
  expect_exact();
}

TEST_F(ReferenceTest, CatalogWithoutTheTableIsCountedAgain) {
  const auto one = seal_copies();
  with_catalog([&](const meta::Env& env) {
    auto txn = must(meta::WriteTxn::begin(env));
    must(txn.clear(meta::catalog::kReferences));
    must(txn.commit());
  });
  seal_without(one, "a", "two");
  expect_exact();
}

TEST_F(ReferenceTest, TableThatContradictsTheChangesIsCountedAgain) {
  const auto one = seal_copies();
  // The version seems to refer to none of its chunks.
  with_catalog([&](const meta::Env& env) {
    auto txn = must(meta::WriteTxn::begin(env));
    must(catalog::erase_references(txn, series_));
    must(catalog::put_version_chunks(txn, series_, one, {}));
    must(txn.put(meta::catalog::kReferences, meta::series_key(series_),
                 base::be32(static_cast<std::uint32_t>(one))));
    must(txn.commit());
  });
  seal_without(one, "a", "two");
  expect_exact();
}

TEST_F(ReferenceTest, DamagedRecordIsCountedAgain) {
  const auto one = seal_copies();
  with_catalog([&](const meta::Env& env) {
    auto txn = must(meta::WriteTxn::begin(env));
    const auto first = must(catalog::stored_references(txn, series_)).at(0).first;
    const auto key = meta::series_key(series_) + base::be64(first / 4096 * 4096);
    must(txn.put(meta::catalog::kReferences, key, "\xff\xff"));
    must(txn.commit());
  });
  seal_without(one, "a", "two");
  expect_exact();
}

TEST_F(ReferenceTest, DeletedNewestVersionIsCountedAgain) {
  const auto one = seal_copies();
  const auto two = seal_without(one, "a", "two");
  must(repository_->delete_versions(series_, {two}, {}));
  seal_without(one, "b", "three");
  expect_exact();
}

}  // namespace
}  // namespace varve::test
