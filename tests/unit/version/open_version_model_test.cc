// SPDX-License-Identifier: Apache-2.0
#include "open_version_model.h"

namespace varve::test {
namespace {

TEST_P(OpenVersionModel, RandomOperationsGiveTheModelsTree) {
  SCOPED_TRACE("seed " + std::to_string(GetParam().seed));
  std::vector<std::pair<VersionNumber, NodePtr>> sealed;
  for (int round = 0; round < 2; ++round) {
    const auto version_name = "v" + std::to_string(round);
    start_version(version_name + ".partial");
    for (int i = 1; i <= 2500; ++i) {
      step();
      ASSERT_FALSE(HasFailure()) << "at operation " << i << " of round " << round;
      if (i % 500 != 0) continue;
      compare_open(*version_, *root_);
      ASSERT_FALSE(HasFailure()) << "after operation " << i << " of round " << round;
    }
    const auto outcome = seal("");
    EXPECT_EQ(outcome.info.name, version_name);
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
  const auto report = must(check_repository(*repository_, options, {}));
  EXPECT_GT(report.chunks, 0U);
  for (const auto& damage : report.damages) ADD_FAILURE() << damage.where << ": " << damage.what;
}

INSTANTIATE_TEST_SUITE_P(All, OpenVersionModel,
                         testing::Values(Setting{"Plain", Codec::kNone, 1, 3600000},
                                         Setting{"Zstd", Codec::kZstd, 2, 3600000},
                                         Setting{"Checkpoints", Codec::kZstd, 3, 3}),
                         [](const auto& setting) { return std::string(setting.param.name); });

}  // namespace
}  // namespace varve::test
