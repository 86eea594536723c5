// SPDX-License-Identifier: Apache-2.0
// The entries that store_tree() leaves out on request.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "fake_version.h"
#include "file_tree.h"
#include "transfer/exclude_rules.h"
#include "varve/backup.h"

namespace varve::testing {
namespace {

namespace fs = std::filesystem;

bool excluded(const std::vector<std::string>& patterns, const std::string& path,
              bool is_directory = false) {
  const auto rules = transfer::ExcludeRules::parse(patterns);
  EXPECT_TRUE(rules) << patterns.front();
  return rules && rules->excludes(path, is_directory);
}

TEST(ExcludeRules, PatternsAreThoseOfGitignore) {
  EXPECT_TRUE(excluded({"*.o"}, "a.o"));
  EXPECT_TRUE(excluded({"*.o"}, "deep/er/a.o"));
  EXPECT_FALSE(excluded({"*.o"}, "a.o/c"));
  EXPECT_TRUE(excluded({"/a"}, "a"));
  EXPECT_FALSE(excluded({"/a"}, "b/a"));
  EXPECT_TRUE(excluded({"b/a"}, "b/a"));
  EXPECT_FALSE(excluded({"b/a"}, "c/b/a"));
  EXPECT_TRUE(excluded({"**/b/a"}, "c/d/b/a"));
  EXPECT_TRUE(excluded({"**/b/a"}, "b/a"));
  EXPECT_TRUE(excluded({"b/**/a"}, "b/a"));
  EXPECT_TRUE(excluded({"b/**/a"}, "b/c/d/a"));
  EXPECT_FALSE(excluded({"b/**/a"}, "b/c/d/e"));
  EXPECT_TRUE(excluded({"b/**"}, "b/c/d"));
  EXPECT_FALSE(excluded({"b/**"}, "b", true));
  EXPECT_TRUE(excluded({"tmp/"}, "x/tmp", true));
  EXPECT_FALSE(excluded({"tmp/"}, "x/tmp", false));
  EXPECT_FALSE(excluded({"b/*"}, "b/c/d"));
  EXPECT_TRUE(excluded({"#a"}, "#a"));
  EXPECT_TRUE(excluded({"\\!a"}, "!a"));
}

TEST(ExcludeRules, TheLastPatternThatMatchesDecides) {
  EXPECT_FALSE(excluded({"*.o", "!keep.o"}, "keep.o"));
  EXPECT_TRUE(excluded({"!keep.o", "*.o"}, "keep.o"));
  EXPECT_FALSE(excluded({"/a/*", "!/a/b/"}, "a/b", true));
  EXPECT_TRUE(excluded({"/a/*", "!/a/b/"}, "a/c", true));
}

TEST(ExcludeRules, APatternThatMatchesNothingIsRefused) {
  for (const char* bad : {"", "/", "!", "!/", "//a", "a//b", "./a", "a/../b", "[", "a/[b"}) {
    EXPECT_FALSE(transfer::ExcludeRules::parse({bad})) << bad;
  }
}

/// Returns the paths of all entries.
void collect(const FakeNode& node, const std::string& path, std::set<std::string>& paths) {
  for (const auto& [name, child] : node.children) {
    const std::string below = path.empty() ? name : path + "/" + name;
    paths.insert(below);
    collect(*child, below, paths);
  }
}

class SourceFilterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"cache/a", "cache/CACHEDIR.TAG", "no cache/CACHEDIR.TAG", "d/x.o",
                             "d/x.c", "d/deep/y.o", "e/z"}) {
      fs::create_directories(fs::path(source_ + "/" + name).parent_path());
      write_file(source_ + "/" + name, "content");
    }
    write_file(source_ + "/cache/CACHEDIR.TAG",
               "Signature: 8a477f597d28d172789f06886806bc55\n# made by a test");
  }
  std::set<std::string> stored(const StoreOptions& options) {
    FakeWriter writer;
    const auto report = store_tree(writer, source_, {}, options);
    EXPECT_TRUE(report) << report.error().message();
    if (report) problems_ = report->problems;
    std::set<std::string> paths;
    collect(*writer.root(), "", paths);
    if (report) {
      EXPECT_EQ(report->entries, paths.size());
    }
    return paths;
  }

  const TemporaryDirectory place_;
  const std::string source_ = place_ / "in";
  std::vector<std::string> problems_;
};

TEST_F(SourceFilterTest, ExcludedEntriesAreLeftOutWithAllBelow) {
  StoreOptions options;
  options.excludes = {"*.o", "/cache", "no cache/", "!y.o"};
  EXPECT_EQ(stored(options),
            (std::set<std::string>{"d", "d/x.c", "d/deep", "d/deep/y.o", "e", "e/z"}));
  EXPECT_TRUE(problems_.empty());
}

TEST_F(SourceFilterTest, ACacheKeepsOnlyItsTag) {
  StoreOptions options;
  options.without_caches = true;
  options.excludes = {"/d", "/e"};
  EXPECT_EQ(stored(options), (std::set<std::string>{"cache", "cache/CACHEDIR.TAG", "no cache",
                                                    "no cache/CACHEDIR.TAG"}));
}

TEST_F(SourceFilterTest, OnlyTheListedPathsAreStored) {
  StoreOptions options;
  options.only = {"d/deep", "e/z", "gone", "e/z/below", "cache/a"};
  options.excludes = {"cache"};
  EXPECT_EQ(stored(options), (std::set<std::string>{"d", "d/deep", "d/deep/y.o", "e", "e/z"}));
  EXPECT_EQ(problems_.size(), 2U);
  for (const auto& list : {std::vector<std::string>{}, {"/d"}, {"d/../e"}, {""}, {"d//x.o"}}) {
    options.only = list;
    FakeWriter writer;
    EXPECT_FALSE(store_tree(writer, source_, {}, options));
  }
}

}  // namespace
}  // namespace varve::testing
