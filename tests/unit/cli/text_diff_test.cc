// SPDX-License-Identifier: Apache-2.0
#include "cli/text_diff.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace varve::cli {
namespace {

std::string shown(const TextDiff& diff) {
  std::string text;
  for (const DiffLine& line : diff.lines) {
    text += static_cast<char>(line.kind);
    text += line.text;
    text += '|';
  }
  return text;
}

TEST(TextDiff, EqualTextsHaveNoLines) {
  EXPECT_EQ(shown(diff_texts("", "")), "");
  EXPECT_EQ(shown(diff_texts("a\nb\n", "a\nb\n")), "");
  EXPECT_EQ(shown(diff_texts("a\nb", "a\nb\n")), "");  // A last newline is no line.
}

TEST(TextDiff, ChangesHaveThreeLinesAround) {
  EXPECT_EQ(shown(diff_texts("", "a\n")), "+a|");
  EXPECT_EQ(shown(diff_texts("a\n", "")), "-a|");
  EXPECT_EQ(shown(diff_texts("a\nb\nc\n", "a\nx\nc\n")), " a|-b|+x| c|");
  EXPECT_EQ(shown(diff_texts("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nx\n6\n7\n8\n9\n")),
            "@| 2| 3| 4|-5|+x| 6| 7| 8|@|");
}

TEST(TextDiff, LinesHaveTheirNumbers) {
  const TextDiff diff = diff_texts("a\nb\n", "b\nc\n");
  ASSERT_EQ(shown(diff), "-a| b|+c|");
  EXPECT_EQ(diff.lines[0].before, 1);
  EXPECT_EQ(diff.lines[0].after, 0);
  EXPECT_EQ(diff.lines[1].before, 2);
  EXPECT_EQ(diff.lines[1].after, 1);
  EXPECT_EQ(diff.lines[2].before, 0);
  EXPECT_EQ(diff.lines[2].after, 2);
}

TEST(TextDiff, RandomTextsAreRebuiltFromIt) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    const auto text = [&] {
      std::string made;
      for (auto lines = random() % 30; lines > 0; --lines) {
        made += static_cast<char>('a' + random() % 4);
        made += '\n';
      }
      return made;
    };
    const std::string before = text();
    const std::string after = text();
    const TextDiff diff = diff_texts(before, after);
    ASSERT_FALSE(diff.is_coarse);
    // Applies the changes to the first text; unlisted lines are equal in both.
    std::string rebuilt;
    std::size_t next = 1;
    const auto keep_until = [&](std::size_t number) {
      for (; next < number; ++next) rebuilt += before.substr(2 * (next - 1), 2);
    };
    for (const DiffLine& line : diff.lines) {
      if (line.kind == DiffLine::Kind::kAdded) {
        rebuilt += std::string(line.text) + "\n";
      } else if (line.kind != DiffLine::Kind::kGap) {
        keep_until(line.before);
        if (line.kind == DiffLine::Kind::kSame) rebuilt += std::string(line.text) + "\n";
        next = line.before + 1U;
      }
    }
    keep_until(before.size() / 2 + 1);
    ASSERT_EQ(rebuilt, after) << before << "->" << after;
  }
}

TEST(TextDiff, TextsThatDifferTooMuchAreCoarse) {
  std::string before = "same\n";
  std::string after = "same\n";
  for (std::size_t i = 0; i < kEditsMax; ++i) {
    before += "a" + std::to_string(i) + "\n";
    after += "b" + std::to_string(i) + "\n";
  }
  before += "end\n";
  after += "end\n";
  const TextDiff diff = diff_texts(before, after);
  EXPECT_TRUE(diff.is_coarse);
  EXPECT_EQ(diff.lines.size(), 2 * kEditsMax + 2);
  EXPECT_EQ(diff.lines.front().text, "same");
  EXPECT_EQ(diff.lines.back().text, "end");
}

TEST(TextDiff, NulMakesBinary) {
  EXPECT_FALSE(is_binary("text\xff"));
  EXPECT_TRUE(is_binary(std::string("a\0b", 3)));
}

}  // namespace
}  // namespace varve::cli
