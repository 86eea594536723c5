// SPDX-License-Identifier: Apache-2.0
// Runs tests/s3/store.py, the object store of the tests, and commands it.
#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "bucket/s3_bucket.h"
#include "bucket/s3_tuning.h"
#include "varve/object_store.h"

namespace varve::test {

inline StoreCredentials store_credentials(const std::string& id, const std::string& secret,
                                          std::string token = {}) {
  return {.access_key_id = id,
          .secret_access_key = *Secret::copy_of(std::as_bytes(std::span(secret))),
          .session_token = std::move(token)};
}

/// Short waits between tries, so that a test of a failure ends soon, and much patience, for a busy
/// machine.
inline bucket::S3Tuning quick_tuning() {
  using std::chrono::milliseconds;
  return {.wait_first = milliseconds(2),
          .wait_most = milliseconds(20),
          .read_patience = milliseconds(200000),
          .change_patience = milliseconds(200000),
          .stall = milliseconds(30000)};
}

/// An object store in another process, on the loopback interface, without objects. The test's
/// environment names the script in VARVE_TEST_S3_STORE.
class S3StoreProcess {
 public:
  explicit S3StoreProcess(bool has_tls = false) : has_tls_(has_tls) {
    const char* const script = std::getenv("VARVE_TEST_S3_STORE");
    std::array<int, 2> in{};
    std::array<int, 2> out{};
    if (script == nullptr || ::pipe2(in.data(), O_CLOEXEC) != 0) return;
    if (::pipe2(out.data(), O_CLOEXEC) != 0) return;
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    std::string name = script;
    // The distribution's Python, as in tests/fuse/lib.sh.
    std::string python = ::access("/usr/bin/python3", X_OK) == 0 ? "/usr/bin/python3" : "python3";
    std::string tls = "--tls";
    std::array<char*, 4> words{python.data(), name.data(), has_tls ? tls.data() : nullptr, nullptr};
    if (::posix_spawnp(&child_, python.c_str(), &actions, nullptr, words.data(), ::environ) != 0) {
      child_ = -1;
    }
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(in[0]);
    ::close(out[1]);
    commands_ = ::fdopen(in[1], "w");
    answers_ = ::fdopen(out[0], "r");
    const auto first = read_line();
    if (first.starts_with("port ")) port_ = std::stoi(first.substr(5));
  }
  S3StoreProcess(const S3StoreProcess&) = delete;
  S3StoreProcess& operator=(const S3StoreProcess&) = delete;
  ~S3StoreProcess() {
    if (commands_ != nullptr) std::fclose(commands_);
    if (answers_ != nullptr) std::fclose(answers_);
    if (child_ > 0) ::waitpid(child_, nullptr, 0);
  }

  [[nodiscard]] bool is_running() const { return port_ != 0; }
  /// Returns the store's answer to a command.
  std::string command(const std::string& text) {
    std::fprintf(commands_, "%s\n", text.c_str());
    std::fflush(commands_);
    return read_line();
  }
  [[nodiscard]] ObjectStoreOptions options() const {
    return {
        .endpoint = (has_tls_ ? "https://127.0.0.1:" : "http://127.0.0.1:") + std::to_string(port_),
        .credentials = [] { return store_credentials("AKIDTEST", "secret/of+the=test"); }};
  }
  /// Returns the path of the certificate of a store with TLS.
  [[nodiscard]] static std::string certificate() {
    const std::string script = std::getenv("VARVE_TEST_S3_STORE");
    return script.substr(0, script.rfind('/') + 1) + "test-certificate.pem";
  }
  /// Returns a bucket of the store.
  [[nodiscard]] std::unique_ptr<bucket::S3Bucket> open(
      const std::string& prefix, bucket::S3Tuning tuning = quick_tuning()) const {
    return open(prefix, options(), std::move(tuning));
  }
  [[nodiscard]] static std::unique_ptr<bucket::S3Bucket> open(const std::string& prefix,
                                                              const ObjectStoreOptions& options,
                                                              bucket::S3Tuning tuning) {
    auto bucket = bucket::S3Bucket::create({.bucket = "varve-test", .prefix = prefix}, options,
                                           std::move(tuning));
    return bucket ? *std::move(bucket) : nullptr;
  }

 private:
  std::string read_line() {
    std::array<char, 256> line{};
    if (answers_ == nullptr || std::fgets(line.data(), line.size(), answers_) == nullptr) return {};
    std::string text = line.data();
    if (text.ends_with('\n')) text.pop_back();
    return text;
  }

  const bool has_tls_;
  pid_t child_ = -1;
  std::FILE* commands_ = nullptr;
  std::FILE* answers_ = nullptr;
  int port_ = 0;
};

}  // namespace varve::test
