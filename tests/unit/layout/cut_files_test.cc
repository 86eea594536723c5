// SPDX-License-Identifier: Apache-2.0
// Arranging a segment that was cut at its end.
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "base/coding.h"
#include "history_model.h"
#include "store/segment_files.h"

namespace varve::layout {
namespace {

/// A history whose first version has nothing in common with the others, so that arranging moves all
/// its chunks.
class CutFile : public testing::Test {
 protected:
  CutFile() {
    ArrangeSettings settings;
    settings.policy = ArrangePolicyKind::kOriginal;
    settings.window = 1;
    history_.set(settings);
    history_.step_bytes_max = 1U << 20;
    history_.batch_bytes_max = 1U << 20;
    for (int i = 0; i < 3; ++i) {
      std::vector<Content> stream(4000);
      std::iota(stream.begin(), stream.end(), i == 0 ? 0 : 4000);
      history_.open();
      history_.write(stream);
      history_.seal();
    }
    const auto txn = must(meta::ReadTxn::begin(history_.catalog()));
    must(catalog::for_each_container(txn, kStore,
                                     [this](const format::ContainerRecord& record) -> Result<bool> {
                                       first_ = record;
                                       return false;
                                     }));
  }

  /// Returns the number of chunks that the first container has.
  std::uint64_t located() {
    std::uint64_t chunks = 0;
    const auto txn = must(meta::ReadTxn::begin(history_.catalog()));
    must(catalog::for_each_location(txn, kStore, ChunkId{},
                                    [&](const catalog::LocationRecord& at) -> Result<bool> {
                                      if (at.container == first_.number) chunks += at.count;
                                      return true;
                                    }));
    return chunks;
  }

  History history_{31};
  format::ContainerRecord first_;
};

TEST_F(CutFile, FramesBeforeTheCutAreMoved) {
  const auto before = located();
  const auto path = kFolder + "/" + store::segment_path(first_.segment);
  const auto image = must(history_.files.read_file(path, 64U << 20));
  const auto file = must(history_.files.open(path, io::OpenMode::kReadWrite));
  must(file->truncate(first_.offset + first_.header_bytes + first_.data_bytes - 1));
  ASSERT_TRUE(must(history_.arrange()));
  EXPECT_GT(located(), 0U) << "the last frame stays";
  EXPECT_LT(located(), before);
  must(file->write_at(0, base::as_bytes(image)));
  ASSERT_TRUE(must(history_.arrange()));
  EXPECT_EQ(located(), 0U);
  history_.check();
}

}  // namespace
}  // namespace varve::layout
