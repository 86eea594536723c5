// SPDX-License-Identifier: Apache-2.0
#include "maintain/free_names.h"

#include <gtest/gtest.h>

#include <memory>

#include "base/coding.h"
#include "io/memory_file_system.h"
#include "support/temp_repository.h"

namespace varve::maintain {
namespace {

using varve::test::must;

class FreeNamesTest : public testing::Test {
 protected:
  FreeNamesTest() { must(files_->make_directory("/r")); }
  void write(const std::string& name, const std::string& text) {
    must(files_->write_file_atomically("/r", name, base::as_bytes(text)));
  }
  std::string text_of(const std::string& path) { return must(files_->read_file(path, 1 << 24)); }

  std::unique_ptr<io::FileSystem> files_ = io::make_memory_file_system();
};

TEST_F(FreeNamesTest, FirstUnusedNumberIsTaken) {
  EXPECT_EQ(must(free_name(*files_, "/r/labels")), "/r/labels-1");
  write("labels-1", "a");
  write("labels-3", "c");
  EXPECT_EQ(must(free_name(*files_, "/r/labels")), "/r/labels-2");
}

TEST_F(FreeNamesTest, RenamedFileReplacesNoOther) {
  write("labels.damaged-1", "earlier");
  write("labels", "now");
  EXPECT_EQ(must(rename_to_free_name(*files_, "/r/labels")), "/r/labels.damaged-2");
  EXPECT_EQ(text_of("/r/labels.damaged-1"), "earlier");
  EXPECT_EQ(text_of("/r/labels.damaged-2"), "now");
  EXPECT_FALSE(must(files_->exists("/r/labels")));
}

TEST_F(FreeNamesTest, CopyOfALongFileIsWhole) {
  std::string text(3000000, 'x');
  for (std::size_t i = 0; i < text.size(); i += 1000) text[i] = static_cast<char>('a' + i % 26);
  write("manifest", text);
  EXPECT_EQ(must(copy_to_free_name(*files_, "/r/manifest")), "/r/manifest.damaged-1");
  EXPECT_TRUE(text_of("/r/manifest.damaged-1") == text);
  EXPECT_TRUE(text_of("/r/manifest") == text);
}

TEST_F(FreeNamesTest, MissingFileIsAnError) {
  EXPECT_EQ(rename_to_free_name(*files_, "/r/none").error().code(), ErrorCode::kNotFound);
  EXPECT_EQ(copy_to_free_name(*files_, "/r/none").error().code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace varve::maintain
