// SPDX-License-Identifier: Apache-2.0
// Tests clients and daemons that misbehave or have another version.
#include "control/client.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "control/server.h"
#include "control/socket.h"

namespace varve::control {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPatience = 20s;

class ControlClient : public testing::Test {
 protected:
  ControlClient() {
    std::string name = (std::filesystem::temp_directory_path() / "varve-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    handlers_.set<Operation::kOpenVersions>([](const std::string&) {
      return Result<std::vector<VersionInfo>>(std::vector<VersionInfo>(3));
    });
  }
  ~ControlClient() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] base::UniqueFd connect() const {
    auto connected = connect_to(folder_, kPatience);
    return connected ? std::move(connected->socket) : base::UniqueFd();
  }
  /// Returns the next error that the daemon sends, decoded as a client of protocol 1 does.
  static std::string error_on(const base::UniqueFd& socket) {
    const auto line = receive_line(socket.get(), kPatience);
    if (!line) return line.error().message();
    const auto reply = decode_reply(*line);
    return reply && reply->error ? reply->error->message() : "no error";
  }
  static bool closes(const base::UniqueFd& socket) {
    const auto line = receive_line(socket.get(), kPatience);
    return !line && line.error().code() == ErrorCode::kNotFound;
  }

  std::string folder_;
  Handlers handlers_;
};

TEST_F(ControlClient, ClientsThatAreSilentOrSlowAreDisconnected) {
  const auto server = Server::start(folder_, handlers_, {.first_request = 200ms, .idle = 200ms});
  ASSERT_TRUE(server);
  const base::UniqueFd silent = connect();
  const base::UniqueFd slow = connect();
  ASSERT_TRUE(silent.valid() && slow.valid());
  const auto begin = Clock::now();
  bool open = true;
  while (open && Clock::now() - begin < kPatience) {
    open = ::send(slow.get(), "{", 1, MSG_NOSIGNAL) == 1;
    std::this_thread::sleep_for(10ms);  // The interval of this client.
  }
  EXPECT_FALSE(open);
  EXPECT_TRUE(closes(silent));
}

TEST_F(ControlClient, ClientThatReadsNoReplyIsDisconnected) {
  const auto server = Server::start(folder_, handlers_, {.write = 100ms});
  ASSERT_TRUE(server);
  const base::UniqueFd greedy = connect();
  const Request hello;
  const std::string line = encode(hello) + "\n";
  const auto begin = Clock::now();
  bool open = true;
  while (open && Clock::now() - begin < kPatience) {
    const ssize_t sent =
        ::send(greedy.get(), line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    open = sent > 0 || errno == EAGAIN;
  }
  EXPECT_FALSE(open);
  auto other = Client::connect(folder_);
  ASSERT_TRUE(other);
  EXPECT_TRUE(other->ask<Operation::kOpenVersions>(std::string("s")));
}

TEST_F(ControlClient, ServerEndsWhileClientsReadNothing) {
  handlers_.set<Operation::kDelete>([](const DeleteRequest&) {
    DeletionForecast forecast;
    forecast.versions.assign(400'000, VersionNumber{4'000'000'000});
    return Result<DeletionForecast>(forecast);
  });
  auto server = Server::start(folder_, handlers_, {.write = 1h});
  ASSERT_TRUE(server);
  const base::UniqueFd greedy = connect();
  Request request;
  request.operation = Operation::kDelete;
  request.removal.series = "s";
  ASSERT_TRUE(send_line(greedy.get(), encode(request), kPatience));
  const auto arrived = wait_to_receive(greedy.get(), kPatience);
  ASSERT_TRUE(arrived && *arrived);
  const auto begin = Clock::now();
  server->reset();
  EXPECT_LT(Clock::now() - begin, 5s);
}

TEST_F(ControlClient, OneConnectionTooManyIsToldSo) {
  const auto server = Server::start(folder_, handlers_, {.connections_max = 3});
  ASSERT_TRUE(server);
  std::vector<base::UniqueFd> held(3);
  for (base::UniqueFd& socket : held) socket = connect();
  const base::UniqueFd beyond = connect();
  EXPECT_NE(error_on(beyond).find("too many"), std::string::npos);
  EXPECT_TRUE(closes(beyond));
  const auto refused = Client::connect(folder_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kBusy);
  held.pop_back();
  const auto begin = Clock::now();
  bool served = false;
  while (!served && Clock::now() - begin < kPatience) served = Client::connect(folder_).has_value();
  EXPECT_TRUE(served);
}

TEST_F(ControlClient, LongOperationIsToldFromAHangingDaemon) {
  handlers_.set<Operation::kOpenVersions>([](const std::string&) {
    std::this_thread::sleep_for(1s);  // A long operation.
    return Result<std::vector<VersionInfo>>(std::vector<VersionInfo>(3));
  });
  const auto server = Server::start(folder_, handlers_, {.heartbeat = 50ms});
  ASSERT_TRUE(server);
  auto client = Client::connect(folder_, {.silence = 400ms, .stopped = 400ms});
  ASSERT_TRUE(client);
  const auto versions = client->ask<Operation::kOpenVersions>(std::string("s"));
  ASSERT_TRUE(versions) << versions.error().message();
  EXPECT_EQ(versions->size(), 3U);
}

TEST_F(ControlClient, DaemonThatHangsIsNotWaitedForLong) {
  const auto listener = Listener::open(folder_);
  ASSERT_TRUE(listener);
  const auto client = Client::connect(folder_, {.silence = 300ms, .stopped = 300ms});
  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().code(), ErrorCode::kUnavailable);
  EXPECT_NE(client.error().message().find(std::to_string(::getpid())), std::string::npos);
}

TEST_F(ControlClient, ConnectionThatWasIdleIsMadeAgain) {
  const auto server = Server::start(folder_, handlers_, {.idle = 50ms});
  ASSERT_TRUE(server);
  auto client = Client::connect(folder_);
  ASSERT_TRUE(client);
  std::this_thread::sleep_for(300ms);  // Longer than a connection may be idle.
  EXPECT_TRUE(client->ask<Operation::kOpenVersions>(std::string("s")));
}

TEST_F(ControlClient, DaemonOfTheFirstProtocolIsNamed) {
  const auto listener = Listener::open(folder_);
  ASSERT_TRUE(listener);
  std::thread daemon([&] {
    const base::UniqueFd socket(::accept4(listener->get(), nullptr, nullptr, SOCK_CLOEXEC));
    (void)receive_line(socket.get(), kPatience);
    (void)send_line(socket.get(),
                    R"({"ok":false,"code":"invalid","message":"not understood","errno":0})",
                    kPatience);
  });
  const auto client = Client::connect(folder_);
  daemon.join();
  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().code(), ErrorCode::kUnsupported);
  EXPECT_NE(client.error().message().find("older version"), std::string::npos);
}

TEST_F(ControlClient, DaemonOfALaterProtocolIsNamed) {
  const auto listener = Listener::open(folder_);
  ASSERT_TRUE(listener);
  std::thread daemon([&] {
    const base::UniqueFd socket(::accept4(listener->get(), nullptr, nullptr, SOCK_CLOEXEC));
    (void)receive_line(socket.get(), kPatience);
    (void)send_line(socket.get(), R"({"ok":true,"identity":{"protocol":77,"more":[]}})", kPatience);
  });
  const auto client = Client::connect(folder_);
  daemon.join();
  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().code(), ErrorCode::kUnsupported);
  EXPECT_NE(client.error().message().find("newer version"), std::string::npos);
}

TEST_F(ControlClient, CommandOfAnotherProtocolIsRefusedAndNothingIsDone) {
  bool sealed = false;
  handlers_.seal = [&](const SealRequest&, const std::function<bool()>&) {
    sealed = true;
    return Result<SealReply>(SealReply{});
  };
  const auto server = Server::start(folder_, handlers_);
  ASSERT_TRUE(server);
  const base::UniqueFd socket = connect();
  for (const char* line :
       {R"({"op":"seal","version":"s/v"})", R"({"op":"seal","protocol":77,"version":"s/v"})",
        R"({"op":"an operation of the future","protocol":77})"}) {
    ASSERT_TRUE(send_line(socket.get(), line, kPatience));
    EXPECT_NE(error_on(socket).find("protocol"), std::string::npos) << line;
  }
  EXPECT_FALSE(sealed);
}

TEST_F(ControlClient, DaemonOfAnotherRepositoryIsRefused) {
  const auto server = Server::start(folder_, handlers_);
  ASSERT_TRUE(server);
  const std::string elsewhere = folder_ + "/elsewhere";
  std::filesystem::create_directory(elsewhere);
  std::filesystem::create_hard_link(folder_ + "/control.sock", elsewhere + "/control.sock");
  const auto client = Client::connect(elsewhere);
  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().code(), ErrorCode::kNotPermitted);
  std::filesystem::remove(elsewhere + "/control.sock");
  std::filesystem::create_symlink(folder_ + "/control.sock", elsewhere + "/control.sock");
  EXPECT_FALSE(Client::connect(elsewhere));
}

TEST_F(ControlClient, RequestOfAClientThatIsGoneIsNotCarriedOut) {
  std::mutex mutex;
  std::condition_variable changed;
  bool busy = false;
  bool released = false;
  int requests = 0;
  handlers_.identify = [&](Identity&) {  // Called by the thread that receives requests.
    std::unique_lock lock(mutex);
    busy = true;
    changed.notify_all();
    changed.wait(lock, [&] { return released; });
  };
  handlers_.set<Operation::kOpenVersions>([&](const std::string&) {
    const std::lock_guard lock(mutex);
    ++requests;
    return Result<std::vector<VersionInfo>>(std::vector<VersionInfo>());
  });
  const auto server = Server::start(folder_, handlers_);
  ASSERT_TRUE(server);
  std::optional<Result<Client>> client;
  std::thread other([&] { client.emplace(Client::connect(folder_)); });
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return busy; });
  }
  Request request;
  request.operation = Operation::kOpenVersions;
  request.series = "s";
  base::UniqueFd gone = connect();
  ASSERT_TRUE(send_line(gone.get(), encode(request), kPatience));
  ::shutdown(gone.get(), SHUT_WR);
  {
    const std::lock_guard lock(mutex);
    released = true;
    changed.notify_all();
  }
  other.join();
  EXPECT_TRUE(closes(gone));
  ASSERT_TRUE(*client);
  ASSERT_TRUE((*client)->ask<Operation::kOpenVersions>(std::string("s")));
  const std::lock_guard lock(mutex);
  EXPECT_EQ(requests, 1);
}

}  // namespace
}  // namespace varve::control
