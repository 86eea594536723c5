// SPDX-License-Identifier: Apache-2.0
#include "control/store_access.h"

#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>

#include "control/command_output.h"
#include "support/environment_variable.h"
#include "support/temp_repository.h"

namespace varve::control {
namespace {

std::string text_of(const Secret& secret) {
  const auto bytes = secret.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// An environment without credentials, with the files of AWS in a folder of the test.
class StoreAccessTest : public testing::Test {
 protected:
  StoreAccessTest() {
    for (const auto* name :
         {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE",
          "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3",
          "AWS_CA_BUNDLE", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"}) {
      set(name, "");
    }
    set("HOME", folder_.path());
    std::filesystem::create_directory(folder_.path() + "/.aws");
  }
  void set(const char* name, const std::string& value) { variables_.emplace_back(name, value); }
  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder_.path() + "/.aws/" + name) << text;
  }
  static Result<StoreCredentials> credentials(const StoreAccess& access = {}) {
    auto options = object_store_options(access);
    if (!options) return options.error();
    return options->credentials();
  }

  test::TempDirectory folder_;
  std::deque<test::EnvironmentVariable> variables_;
};

const char* const kJson =
    R"(printf '{"Version": 1, "AccessKeyId": "id", "SecretAccessKey": "s/+", "SessionToken": "t",)"
    R"( "Expiration": "2026-03-01T12:00:00Z"}')";

TEST_F(StoreAccessTest, NoCredentialsAreNotPermitted) {
  const auto got = credentials();
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code(), ErrorCode::kNotPermitted);
  const auto options = object_store_options({});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->endpoint, "");
  EXPECT_EQ(options->region, "");
}

TEST_F(StoreAccessTest, TheEnvironmentHasCredentials) {
  set("AWS_ACCESS_KEY_ID", "id");
  set("AWS_SECRET_ACCESS_KEY", "secret");
  set("AWS_SESSION_TOKEN", "token");
  set("AWS_ENDPOINT_URL", "https://h");
  set("AWS_DEFAULT_REGION", "r-1");
  const auto got = credentials();
  ASSERT_TRUE(got);
  EXPECT_EQ(got->access_key_id, "id");
  EXPECT_EQ(text_of(got->secret_access_key), "secret");
  EXPECT_EQ(got->session_token, "token");
  EXPECT_EQ(object_store_options({})->endpoint, "https://h");
  EXPECT_EQ(object_store_options({})->region, "r-1");
  EXPECT_EQ(object_store_options({.endpoint = "https://i", .region = "r-2"})->endpoint,
            "https://i");
  EXPECT_EQ(object_store_options({.endpoint = "https://i", .region = "r-2"})->region, "r-2");
}

TEST_F(StoreAccessTest, AProfileHasCredentialsAndSettings) {
  write("credentials",
        "# keys\n[default]\naws_access_key_id = id0\naws_secret_access_key=secret0\n"
        "[ backup ]\r\naws_access_key_id = id1\r\naws_secret_access_key = se=cret1\r\n");
  write("config",
        "[default]\nregion = r-0\n[profile backup]\nregion = r-1\ns3 =\n  endpoint_url = nested\n"
        "endpoint_url = https://h\nca_bundle = /ca\naws_access_key_id = other\n");
  EXPECT_EQ(credentials()->access_key_id, "id0");
  EXPECT_EQ(object_store_options({})->region, "r-0");
  const StoreAccess backup{.profile = "backup"};
  EXPECT_EQ(credentials(backup)->access_key_id, "id1");
  EXPECT_EQ(text_of(credentials(backup)->secret_access_key), "se=cret1");
  EXPECT_EQ(object_store_options(backup)->region, "r-1");
  EXPECT_EQ(object_store_options(backup)->endpoint, "https://h");
  EXPECT_EQ(object_store_options(backup)->ca_file, "/ca");
  EXPECT_EQ(object_store_options({.profile = "missing"}).error().code(), ErrorCode::kNotFound);
  set("AWS_PROFILE", "backup");
  EXPECT_EQ(credentials()->access_key_id, "id1");
  set("AWS_ACCESS_KEY_ID", "id2");
  set("AWS_SECRET_ACCESS_KEY", "secret2");
  EXPECT_EQ(credentials()->access_key_id, "id2") << "the environment comes first";
  EXPECT_EQ(credentials(backup)->access_key_id, "id1") << "a named profile comes before it";
}

TEST(CommandOutput, ACommandEndsAtItsLimit) {
  for (const auto* command :
       {"exec sleep 100", "exec >&-; exec sleep 100", "trap '' TERM; exec sleep 100"}) {
    const auto got = output_of_command(command, "the command", std::chrono::milliseconds(100));
    ASSERT_FALSE(got) << command;
    EXPECT_EQ(got.error().code(), ErrorCode::kUnavailable) << command;
    EXPECT_EQ(got.error().message(), "the command did not end within 0.1 s");
  }
  EXPECT_TRUE(output_of_command("echo x", "the command", std::chrono::seconds(60)));
}

TEST_F(StoreAccessTest, ACommandPrintsCredentials) {
  const auto got = credentials({.credentials_command = kJson});
  ASSERT_TRUE(got) << got.error().message();
  EXPECT_EQ(got->access_key_id, "id");
  EXPECT_EQ(text_of(got->secret_access_key), "s/+");
  EXPECT_EQ(got->session_token, "t");
  EXPECT_EQ(got->expires, (Timestamp{.seconds = 1772366400}));
  write("config", std::string("[default]\ncredential_process = ") + kJson + "\n");
  EXPECT_EQ(credentials()->access_key_id, "id");
  EXPECT_EQ(credentials({.credentials_command = "exit 3"}).error().code(), ErrorCode::kIo);
}

TEST_F(StoreAccessTest, ACommandIsRunForEachUse) {
  const auto options = object_store_options(
      {.credentials_command =
           "cd \"$HOME\"; echo >>runs; printf '{\"Version\": 1, \"AccessKeyId\": "
           "\"%s\", \"SecretAccessKey\": \"s\"}' $(wc -l <runs)"});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->credentials()->access_key_id, "1");
  EXPECT_EQ(options->credentials()->access_key_id, "2");
}

TEST(StoreCredentialsJson, HasAKnownForm) {
  const auto parse = [](std::string_view text) {
    return parse_credentials(*Secret::copy_of(std::as_bytes(std::span(text))));
  };
  const std::string keys = R"("AccessKeyId": "a", "SecretAccessKey": "b")";
  EXPECT_TRUE(parse("{\"Version\": 1, " + keys + "}"));
  EXPECT_FALSE(parse("{\"Version\": 1, " + keys + "}")->expires);
  EXPECT_EQ(
      parse("{\"Version\": 1, \"Expiration\": \"2026-03-01T13:30:00.25+01:30\", " + keys + "}")
          ->expires,
      (Timestamp{.seconds = 1772366400}));
  for (const auto& text :
       {std::string(), std::string("x"), std::string("[]"), "{" + keys + "}",
        "{\"Version\": 2, " + keys + "}", "{\"Version\": \"1\", " + keys + "}",
        std::string("{\"Version\": 1, \"AccessKeyId\": \"a\"}"),
        std::string("{\"Version\": 1, \"AccessKeyId\": \"a\", \"SecretAccessKey\": \"\"}"),
        std::string("{\"Version\": 1, \"AccessKeyId\": 1, \"SecretAccessKey\": \"b\"}"),
        "{\"Version\": 1, \"Expiration\": \"soon\", " + keys + "}",
        "{\"Version\": 1, \"Expiration\": \"2026-03-01T12:00:00\", " + keys + "}",
        "{\"Version\": 1, \"Expiration\": \"2026-03-01T12:00:00.\", " + keys + "}"}) {
    const auto got = parse(text);
    ASSERT_FALSE(got) << text;
    EXPECT_EQ(got.error().code(), ErrorCode::kInvalid);
  }
}

}  // namespace
}  // namespace varve::control
