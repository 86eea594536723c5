// SPDX-License-Identifier: Apache-2.0
#include "cli/store_source.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "control/stop_request.h"
#include "support/temp_repository.h"

namespace varve::cli {
namespace {

TEST(ListedPath, IsRelativeToTheDirectory) {
  const struct {
    const char* path;
    const char* directory;
    const char* relative;
  } cases[] = {{"a/b", "/d", "a/b"},     {"./a//b/", "/d", "a/b"},  {".", "/d", ""},
               {"/d/a", "/d/", "a"},     {"/d", "/d", ""},          {"/d/./a", "/d", "a"},
               {"/etc/a", "/", "etc/a"}, {"a/../b", "/d", "a/../b"}};
  for (const auto& one : cases) {
    const auto relative = listed_path(one.path, one.directory);
    ASSERT_TRUE(relative) << one.path;
    EXPECT_EQ(*relative, one.relative) << one.path;
  }
  EXPECT_EQ(listed_path("/da/b", "/d").error().code(), ErrorCode::kInvalid);
}

TEST(SourceOptions, PatternsOfTheCommandLineComeLast) {
  const test::TempDirectory place;
  std::ofstream(place.path() + "/patterns") << "# comment\n\n*.o\n!a b \n!last";
  SourceArguments arguments;
  arguments.excludes = {"#x"};
  arguments.exclude_files = {place.path() + "/patterns"};
  const auto options = read_source_options(arguments, "/d", {});
  ASSERT_TRUE(options) << options.error().message();
  EXPECT_EQ(options->excludes, (std::vector<std::string>{"*.o", "!a b ", "!last", "#x"}));
  EXPECT_FALSE(options->only);
  arguments.exclude_files = {place.path() + "/missing"};
  EXPECT_EQ(read_source_options(arguments, "/d", {}).error().code(), ErrorCode::kNotFound);
}

TEST(SourceOptions, AListEndsItsNamesWithNewlinesOrNulBytes) {
  const test::TempDirectory place;
  SourceArguments arguments;
  arguments.files_from = place.path() + "/list";
  const std::string list("a\nb\0c\n", 6);
  std::ofstream(arguments.files_from) << list;
  EXPECT_FALSE(read_source_options(arguments, "/d", {}));  // No name has a NUL byte.
  arguments.null_ends = true;
  const auto options = read_source_options(arguments, "/d", {});
  ASSERT_TRUE(options) << options.error().message();
  EXPECT_EQ(options->only, (std::vector<std::string>{"a\nb", "c\n"}));
  std::ofstream(arguments.files_from) << "";
  EXPECT_FALSE(read_source_options(arguments, "/d", {}));
}

TEST(SourceOptions, AnAbsolutePatternBelowTheDirectoryBecomesRelative) {
  const test::TempDirectory place;
  const std::string directory = std::filesystem::canonical(place.path()).native() + "/home";
  std::filesystem::create_directory(directory);
  std::filesystem::create_directory_symlink(directory, place.path() + "/link");
  std::ofstream(place.path() + "/patterns") << directory << "/*/.cache/\n!" << directory << "/k\n";
  SourceArguments arguments;
  arguments.exclude_files = {place.path() + "/patterns"};
  arguments.excludes = {directory + "/a/.cache", directory + "x/a", "/a/.cache", "home/a"};
  const std::vector<std::string> wanted = {"/*/.cache/",      "!/k",       "/a/.cache",
                                           directory + "x/a", "/a/.cache", "home/a"};
  for (const std::string& named : {directory, directory + "/./", place.path() + "/link"}) {
    const auto options = read_source_options(arguments, named, {});
    ASSERT_TRUE(options) << options.error().message();
    EXPECT_EQ(options->excludes, wanted) << named;
  }
  const auto root = read_source_options(arguments, "/", {});
  ASSERT_TRUE(root) << root.error().message();
  EXPECT_EQ(root->excludes[2], directory + "/a/.cache");
}

TEST(SourceOptions, APatternThatIsTheDirectoryItselfIsRefused) {
  const test::TempDirectory place;
  const std::string directory = std::filesystem::canonical(place.path()).native() + "/home";
  const std::string link = place.path() + "/link";
  std::filesystem::create_directory(directory);
  std::filesystem::create_directory_symlink(directory, link);
  for (const std::string& named : {directory, directory + "/./", link}) {
    for (const std::string& pattern :
         {directory, directory + "/", "!" + directory, directory + "/../home", link, link + "/"}) {
      SourceArguments arguments;
      arguments.excludes = {pattern};
      EXPECT_EQ(read_source_options(arguments, named, {}).error().code(), ErrorCode::kUsage)
          << pattern << " of " << named;
      std::ofstream(place.path() + "/patterns") << "*.o\n" << pattern << "\n";
      arguments.excludes.clear();
      arguments.exclude_files = {place.path() + "/patterns"};
      EXPECT_EQ(read_source_options(arguments, named, {}).error().code(), ErrorCode::kUsage);
    }
  }
  SourceArguments arguments;
  arguments.excludes = {directory};
  EXPECT_TRUE(read_source_options(arguments, place.path(), {}));
  std::filesystem::create_directories(directory + directory);
  EXPECT_TRUE(read_source_options(arguments, directory, {}));  // Matches an entry below.
}

TEST(SourceOptions, AListInUtf16IsRefusedWithAdvice) {
  const test::TempDirectory place;
  const std::string list = place.path() + "/list";
  std::ofstream(list) << std::string(
      "\xFF\xFE"
      "a\0\n\0b\0\n\0",
      10);
  SourceArguments names;
  names.files_from = list;
  SourceArguments patterns;
  patterns.exclude_files = {list};
  for (const SourceArguments& arguments : {names, patterns}) {
    const auto options = read_source_options(arguments, "/d", {});
    ASSERT_FALSE(options);
    EXPECT_EQ(options.error().code(), ErrorCode::kUsage);
    EXPECT_NE(options.error().message().find("UTF-16"), std::string::npos);
  }
}

TEST(SourceOptions, APatternThatCanMatchBelowTheDirectoryKeepsItsMeaning) {
  const test::TempDirectory place;
  const std::string directory = std::filesystem::canonical(place.path()).native() + "/home";
  std::filesystem::create_directories(directory + directory);
  SourceArguments arguments;
  arguments.excludes = {directory + "/a/.cache"};
  const auto options = read_source_options(arguments, directory, {});
  ASSERT_TRUE(options) << options.error().message();
  EXPECT_EQ(options->excludes, arguments.excludes);
}

TEST(SourceOptions, LinesLoseTheByteOrderMarkAndTheCarriageReturn) {
  const test::TempDirectory place;
  SourceArguments arguments;
  arguments.files_from = place.path() + "/list";
  arguments.exclude_files = {place.path() + "/patterns", place.path() + "/more"};
  std::ofstream(arguments.files_from) << "\xEF\xBB\xBF"
                                         "a b\r\n\r\nc\xEF\xBB\xBF\r\r\nlast\r";
  std::ofstream(arguments.exclude_files[0]) << "\xEF\xBB\xBF# comment\r\n\r\n*.o\r\n";
  std::ofstream(arguments.exclude_files[1]) << "\xEF\xBB\xBF*.tmp\r\n";
  const auto options = read_source_options(arguments, "/d", {});
  ASSERT_TRUE(options) << options.error().message();
  EXPECT_EQ(options->only, (std::vector<std::string>{"a b", "c\xEF\xBB\xBF\r", "last"}));
  EXPECT_EQ(options->excludes, (std::vector<std::string>{"*.o", "*.tmp"}));
}

TEST(SourceOptions, AStopEndsTheWaitForAFifo) {
  const test::TempDirectory place;
  const std::string fifo = place.path() + "/fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  SourceArguments listed;
  listed.files_from = fifo;
  SourceArguments excluded;
  excluded.exclude_files = {fifo};
  for (const SourceArguments& arguments : {listed, excluded}) {
    control::StopRequest without_writer;
    without_writer.stop();
    EXPECT_EQ(read_source_options(arguments, "/d", without_writer).error().code(),
              ErrorCode::kInterrupted);
    control::StopRequest stop;
    base::UniqueFd writer;
    std::thread other([&] {
      writer = base::UniqueFd(::open(fifo.c_str(), O_WRONLY | O_CLOEXEC));
      EXPECT_EQ(::write(writer.get(), "name", 4), 4);
      stop.stop();
    });
    EXPECT_EQ(read_source_options(arguments, "/d", stop).error().code(), ErrorCode::kInterrupted);
    other.join();
  }
}

TEST(SourceOptions, AFifoIsReadToItsEnd) {
  const test::TempDirectory place;
  SourceArguments arguments;
  arguments.files_from = place.path() + "/fifo";
  ASSERT_EQ(::mkfifo(arguments.files_from.c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(arguments.files_from) << "a\nb\n"; });
  const auto options = read_source_options(arguments, "/d", {});
  writer.join();
  ASSERT_TRUE(options) << options.error().message();
  EXPECT_EQ(options->only, (std::vector<std::string>{"a", "b"}));
}

TEST(SourceOptions, NamesThatEndInNulBytesKeepAllTheirBytes) {
  const test::TempDirectory place;
  SourceArguments arguments;
  arguments.files_from = place.path() + "/list";
  arguments.null_ends = true;
  std::ofstream(arguments.files_from) << std::string(
      "\xEF\xBB\xBF"
      "a\r\0b\r\0",
      9);
  const auto options = read_source_options(arguments, "/d", {});
  ASSERT_TRUE(options) << options.error().message();
  EXPECT_EQ(options->only, (std::vector<std::string>{"\xEF\xBB\xBF"
                                                     "a\r",
                                                     "b\r"}));
}

}  // namespace
}  // namespace varve::cli
