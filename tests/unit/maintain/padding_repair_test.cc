// SPDX-License-Identifier: Apache-2.0
// Damage to the padding of containers: checks and repairs agree that nothing is lost.
#include <gtest/gtest.h>

#include "repair_fixture.h"

namespace varve::test {
namespace {

class PaddingRepair : public RepairTest {
 protected:
  static constexpr std::uint64_t kBlock = 4096;

  /// Returns a segment whose last byte is padding.
  std::string padded_segment() {
    for (const auto& at : fs::directory_iterator(in_series("active"))) {
      const auto path = at.path().string();
      if (byte_at(path, fs::file_size(path) - 1) == 0 &&
          byte_at(path, fs::file_size(path) - 2) == 0)
        return path;
    }
    throw std::runtime_error("no segment ends in padding");
  }
  static int byte_at(const std::string& file, std::uint64_t offset) {
    std::ifstream stream(file, std::ios::binary);
    stream.seekg(static_cast<std::streamoff>(offset));
    return stream.get();
  }
  std::vector<Damage> damages() {
    repository_.reset();
    repository_ = reopen(path_);
    CheckOptions options;
    options.verify_chunks = true;
    return must(repository_->check(options, {})).damages;
  }
  void expect_repaired_padding() {
    const auto found = damages();
    ASSERT_EQ(found.size(), 1U);
    EXPECT_NE(found[0].what.find("no file is affected"), std::string::npos) << found[0].what;
    EXPECT_TRUE(found[0].affected.empty());
    const auto report = repair();
    ASSERT_EQ(steps_.size(), 1U);
    EXPECT_EQ(steps_[0].kind, RepairStep::Kind::kPadding);
    EXPECT_EQ(report.chunks_quarantined, 0U);
    repair();
    EXPECT_TRUE(steps_.empty());
    expect_whole({"v1", "v2", "v3", "v4"});
  }
};

TEST_P(PaddingRepair, FlippedPaddingIsWrittenAgain) {
  const auto segment = padded_segment();
  const auto size = fs::file_size(segment);
  repository_.reset();
  flip(segment, size - 1);
  ASSERT_NO_FATAL_FAILURE(expect_repaired_padding());
  EXPECT_EQ(fs::file_size(segment), size);
  EXPECT_EQ(byte_at(segment, size - 1), 0);
}

TEST_P(PaddingRepair, CutPaddingIsWrittenAgain) {
  const auto segment = padded_segment();
  const auto size = fs::file_size(segment);
  for (const std::uint64_t cut : {1U, 2U}) {
    repository_.reset();
    fs::resize_file(segment, size - cut);
    ASSERT_NO_FATAL_FAILURE(expect_repaired_padding());
    EXPECT_EQ(fs::file_size(segment), size);
  }
}

TEST_P(PaddingRepair, LostFramesBeforeTheCutStayLost) {
  const auto segment = padded_segment();
  const auto size = fs::file_size(segment);
  repository_.reset();
  fs::resize_file(segment, size - 2 * kBlock);
  const auto report = repair();
  EXPECT_GT(report.chunks_quarantined, 0U);
  EXPECT_EQ(fs::file_size(segment), size);
  const auto first = damages();
  EXPECT_FALSE(first.empty());
  for (const auto& damage : first) EXPECT_FALSE(damage.affected.empty()) << damage.what;
  repair();
  EXPECT_TRUE(steps_.empty());
  EXPECT_EQ(damages().size(), first.size());
}

INSTANTIATE_TEST_SUITE_P(Codecs, PaddingRepair, testing::Values(Codec::kNone, Codec::kZstd));

}  // namespace
}  // namespace varve::test
