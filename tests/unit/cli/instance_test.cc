// SPDX-License-Identifier: Apache-2.0
#include "cli/instance.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/environment_variable.h"
#include "support/temp_repository.h"

namespace varve::cli {
namespace {

using test::code_of;
using test::EnvironmentVariable;
using test::must;
using test::TempDirectory;
using Line = std::vector<std::string>;

/// The files of an ordinary user.
class InstanceTest : public testing::Test {
 protected:
  InstanceTest() {
    std::filesystem::create_directory(folder_);
    std::filesystem::permissions(folder_, std::filesystem::perms(0755));
  }
  void write(const std::string& name, const std::string& text, unsigned mode = 0644) {
    const std::string path = folder_ + "/" + name + ".conf";
    std::ofstream(path, std::ios::binary) << text;
    std::filesystem::permissions(path, std::filesystem::perms(mode));
  }

  TempDirectory directory_;
  const std::string folder_ = directory_.path() + "/varve";
  EnvironmentVariable config_{"XDG_CONFIG_HOME", directory_.path()};
  EnvironmentVariable repository_{"VARVE_REPO", ""};
};

TEST_F(InstanceTest, LinesAreThoseOfAnEnvironmentFile) {
  const auto values = must(parse_instance(
      "# a comment\n\n ; another\nVARVE_REPO=/srv/backup\n VARVE_KEEP = \"--keep-last 3\" \r\n"
      "VARVE_SOURCE='/home/a b'\nTZ=UTC\nVARVE_STORE=--exclude \"a b\" -x"));
  EXPECT_EQ(values.size(), 4U) << "keys of other programs do not count";
  EXPECT_EQ(values.at("VARVE_REPO"), "/srv/backup");
  EXPECT_EQ(values.at("VARVE_KEEP"), "--keep-last 3");
  EXPECT_EQ(values.at("VARVE_SOURCE"), "/home/a b");
  EXPECT_EQ(values.at("VARVE_STORE"), "--exclude \"a b\" -x");
}

TEST_F(InstanceTest, WrongLinesAreNamed) {
  const auto refused = [](const std::string& text, const std::string& said) {
    const auto parsed = parse_instance("VARVE_REPO=/r\n" + text);
    ASSERT_EQ(code_of(parsed), ErrorCode::kInvalid) << text;
    EXPECT_NE(parsed.error().message().find("line 2: " + said), std::string::npos)
        << parsed.error().message();
  };
  refused("nonsense", "write KEY=VALUE");
  refused("=x", "write KEY=VALUE");
  refused("VARVE_REPRO=/x", "unknown key VARVE_REPRO; did you mean \"VARVE_REPO\"?");
  refused("VARVE_REPO=/x", "VARVE_REPO is given twice");
  refused("VARVE_SOURCE=home", "VARVE_SOURCE must be an absolute path");
  refused("VARVE_KEEP=--keep-last 3 \\", "a value must be on one line");
}

TEST_F(InstanceTest, ValuesAreSplitAtBlanksOutsideQuotes) {
  EXPECT_EQ(must(split_words("  a\tb  'c d' e\"f g\"h '' ")), (Line{"a", "b", "c d", "ef gh", ""}));
  EXPECT_EQ(must(split_words("$(id) `id` $HOME *")), (Line{"$(id)", "`id`", "$HOME", "*"}));
  EXPECT_TRUE(must(split_words("")).empty());
  EXPECT_EQ(code_of(split_words("'a b")), ErrorCode::kInvalid);
}

TEST_F(InstanceTest, ACommandGetsItsOptionsBehindItsName) {
  write("home", "VARVE_REPO=/r\nVARVE_KEEP=--keep-last 3\nVARVE_STORE=-x\nVARVE_OPTIONS=ro\n");
  Line store{"-q", "-R", "home", "store", "--json"};
  must(take_instance(store));
  EXPECT_EQ(store, (Line{"-q", "store", "-x", "--json"}));
  EXPECT_STREQ(std::getenv("VARVE_REPO"), "/r");
  Line prune{"--instance=home", "prune", "s"};
  must(take_instance(prune));
  EXPECT_EQ(prune, (Line{"prune", "--keep-last", "3", "s"}));
  Line own_rule{"-Rhome", "prune", "--keep-daily", "7"};
  must(take_instance(own_rule));
  EXPECT_EQ(own_rule, (Line{"prune", "--keep-daily", "7"})) << "rules do not mix";
  Line mount{"-R", "home", "mount"};
  must(take_instance(mount));
  EXPECT_EQ(mount, (Line{"mount", "-o", "ro"}));
  Line behind{"ls", "-R", "home"};
  must(take_instance(behind));
  EXPECT_EQ(behind, (Line{"ls", "-R", "home"})) << "only before the command";
}

TEST_F(InstanceTest, AFileThatOthersCanChangeIsRefused) {
  write("group", "VARVE_REPO=/r\n", 0664);
  EXPECT_EQ(code_of(read_instance("group")), ErrorCode::kNotPermitted);
  write("others", "VARVE_REPO=/r\n", 0646);
  EXPECT_EQ(code_of(read_instance("others")), ErrorCode::kNotPermitted);
  write("mine", "VARVE_REPO=/r\n", 0600);
  EXPECT_EQ(must(read_instance("mine")).value("VARVE_REPO"), "/r");
  std::filesystem::permissions(folder_, std::filesystem::perms(0777));
  const auto folder = read_instance("mine");
  ASSERT_EQ(code_of(folder), ErrorCode::kNotPermitted);
  EXPECT_NE(folder.error().message().find("chmod go-w"), std::string::npos);
}

TEST_F(InstanceTest, WhatIsNoTextIsRefused) {
  write("nul", std::string("VARVE_REPO=/r\0x\n", 16));
  EXPECT_EQ(code_of(read_instance("nul")), ErrorCode::kInvalid);
  write("huge", std::string(1 << 20, '#'));
  EXPECT_EQ(code_of(read_instance("huge")), ErrorCode::kInvalid);
  std::filesystem::create_directory(folder_ + "/folder.conf");
  EXPECT_EQ(code_of(read_instance("folder")), ErrorCode::kInvalid);
  for (const char* name : {"", "..", "../x", "a/b", ".hidden", "-x", "a b", "a\n"}) {
    EXPECT_EQ(code_of(read_instance(name)), ErrorCode::kUsage) << name;
  }
  const auto absent = read_instance("absent");
  ASSERT_EQ(code_of(absent), ErrorCode::kNotFound);
  EXPECT_NE(absent.error().message().find("/etc/varve/absent.conf"), std::string::npos);
}

TEST_F(InstanceTest, TheEnvironmentHasDefaultsForTheFile) {
  write("home", "VARVE_REPO=/r\n");
  const EnvironmentVariable keep("VARVE_KEEP", "--keep-last 2");
  const Instance instance = must(read_instance("home"));
  EXPECT_EQ(instance.value("VARVE_KEEP"), "--keep-last 2");
  EXPECT_EQ(Instance().value("VARVE_KEEP"), "") << "without -R the variable means nothing";
}

}  // namespace
}  // namespace varve::cli
