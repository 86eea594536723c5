// SPDX-License-Identifier: Apache-2.0
#include "open_version_model.h"
#include "varve/check.h"

namespace varve::test {
namespace {

TEST_P(OpenVersionModel, RandomOperationsGiveTheModelsTree) {
  SCOPED_TRACE("seed " + std::to_string(seed()));
  std::vector<std::pair<VersionNumber, NodePtr>> sealed;
  std::optional<VersionInfo> next;
  // An empty version, a clone of it, one that was kept open at the seal, and an empty one.
  for (int round = 0; round < 4; ++round) {
    const auto version_name = "v" + std::to_string(round);
    if (next) {
      go_on_from_sealed(next->number);
    } else if (round == 1) {
      go_on_from_sealed(
          must(repository_->clone_version(series_, number_, version_name + ".partial")).number);
    } else {
      start_version(version_name + ".partial");
    }
    compare_open(*version_, *root_);
    ASSERT_FALSE(HasFailure()) << "at the start of round " << round;
    for (int i = 1; i <= 2000; ++i) {
      step();
      ASSERT_FALSE(HasFailure()) << "at operation " << i << " of round " << round;
      if (i % 500 != 0) continue;
      compare_open(*version_, *root_);
      ASSERT_FALSE(HasFailure()) << "after operation " << i << " of round " << round;
    }
    const bool keep = round == 1;
    const auto outcome = seal(version_name, keep ? SealMode::kKeep : SealMode::kEnd);
    EXPECT_EQ(outcome.info.name, version_name);
    ASSERT_EQ(outcome.next.has_value(), keep);
    next = outcome.next;
    EXPECT_EQ(next ? next->name : "v1.partial", "v1.partial");
    const auto reader = must(repository_->reader(series_, number_));
    compare_ranks(*reader, *root_, outcome);
    ASSERT_FALSE(HasFailure()) << "after sealing round " << round;
    sealed.emplace_back(number_, root_);
  }
  repository_ = nullptr;
  open_repository();
  for (const auto& [number, root] : sealed) {
    const auto reader = must(repository_->reader(series_, number));
    compare_sealed(*reader, *root);
  }
  CheckOptions options;
  options.verify_chunks = true;
  const auto report = must(repository_->check(options, {}));
  EXPECT_GT(report.chunks, 0U);
  for (const auto& damage : report.damages) ADD_FAILURE() << damage.where << ": " << damage.what;
}

INSTANTIATE_TEST_SUITE_P(All, OpenVersionModel,
                         testing::Values(Setting{"Plain", Codec::kNone, 1, 3600000},
                                         Setting{"Zstd", Codec::kZstd, 2, 3600000},
                                         Setting{"Checkpoints", Codec::kZstd, 3, 3},
                                         Setting{"Encrypted", Codec::kZstd, 4, 3, true}),
                         [](const auto& setting) { return std::string(setting.param.name); });

}  // namespace
}  // namespace varve::test
