// SPDX-License-Identifier: Apache-2.0
// A source that sends any request to serve_copy(), in any order.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <functional>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>

#include "base/coding.h"
#include "base/unique_fd.h"
#include "copy/message.h"
#include "copy/message_stream.h"
#include "support/temp_repository.h"
#include "varve/copy.h"

namespace varve::test {

/// Two pipes, and a thread at their other end.
class Conversation {
 public:
  explicit Conversation(const std::function<void(int in, int out)>& other_end) {
    ::signal(SIGPIPE, SIG_IGN);
    int to[2];
    int from[2];
    if (::pipe2(to, O_CLOEXEC) != 0 || ::pipe2(from, O_CLOEXEC) != 0) {
      throw std::runtime_error("pipe");
    }
    output_ = base::UniqueFd(to[1]);
    input_ = base::UniqueFd(from[0]);
    thread_ = std::thread([other_end, in = to[0], out = from[1]] {
      const base::UniqueFd input(in);
      const base::UniqueFd output(out);
      other_end(in, out);
    });
  }
  ~Conversation() { finish(); }
  void finish() {
    output_ = base::UniqueFd();
    if (thread_.joinable()) thread_.join();
  }
  [[nodiscard]] int input() const { return input_.get(); }
  [[nodiscard]] int output() const { return output_.get(); }

 private:
  base::UniqueFd input_;
  base::UniqueFd output_;
  std::thread thread_;
};

/// A connection to a target that is a repository of this process.
class RawSource {
 public:
  /// Lifetime: the repository outlives the object.
  explicit RawSource(Repository& repository, const SourceRights& rights = {})
      : conversation_([this, &repository, rights](int in, int out) {
          served_ = serve_copy(
              [&](const TargetSetup&, bool) -> Result<Repository*> { return &repository; }, rights,
              in, out);
        }),
        stream_(conversation_.input(), conversation_.output()) {
    must(stream_.greet());
  }

  copy::Answer ask(const copy::Request& request) {
    must(stream_.send(copy::encode_request(request)));
    return must(copy::decode_answer(base::as_bytes(must(stream_.receive()).value())));
  }
  /// Returns the code of the error that answers a request; nullopt for another answer.
  std::optional<ErrorCode> refusal(const copy::Request& request) {
    const auto answer = ask(request);
    const auto* const error = std::get_if<Error>(&answer);
    return error != nullptr ? std::optional(error->code()) : std::nullopt;
  }
  template <typename Wanted>
  Wanted expect(const copy::Request& request) {
    auto answer = ask(request);
    const auto* const error = std::get_if<Error>(&answer);
    if (auto* const wanted = std::get_if<Wanted>(&answer)) return std::move(*wanted);
    ADD_FAILURE() << "request " << request.index() << ": "
                  << (error != nullptr ? error->message() : "another answer");
    return {};
  }
  /// Sends a message that has no answer.
  void send(const copy::Request& request) { must(stream_.send(copy::encode_request(request))); }
  void send_bytes(std::string_view message) { must(stream_.send(message)); }
  [[nodiscard]] int output() const { return conversation_.output(); }
  /// Ends the connection. Returns the result of serve_copy().
  Result<void> served() {
    conversation_.finish();
    return served_;
  }

 private:
  Result<void> served_;
  Conversation conversation_;
  copy::MessageStream stream_;
};

}  // namespace varve::test
