// SPDX-License-Identifier: Apache-2.0
#include "control/server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>

#include "control/client.h"
#include "control/socket.h"

namespace varve::control {
namespace {

constexpr std::chrono::milliseconds kServerPatience{20'000};

/// A server in a folder whose path is longer than a socket address allows.
class ControlServer : public testing::Test {
 protected:
  ControlServer() {
    std::string name = (std::filesystem::temp_directory_path() / "varve-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
    folder_ = root_ + "/" + std::string(120, 'd');
    std::filesystem::create_directory(folder_);
    handlers_.seal = [](const SealRequest& request, const std::function<bool()>&) {
      SealReply reply;
      reply.sealed.name = request.version + "!";
      if (request.keep) reply.next.emplace().name = request.version;
      return Result<SealReply>(reply);
    };
    handlers_.set<Operation::kOpen>([](const OpenRequest& request) {
      VersionInfo info;
      info.name =
          request.version + fmt::format(" {:o} {} {}", request.mode, request.uid, request.gid);
      return Result<VersionInfo>(info);
    });
    handlers_.set<Operation::kClone>([](const OpenRequest& request) {
      VersionInfo info;
      info.name = request.version + " of " + request.source;
      return Result<VersionInfo>(info);
    });
    handlers_.set<Operation::kSync>([] { return Result<void>(); });
    handlers_.set<Operation::kOpenVersions>([](const std::string&) {
      return Result<std::vector<VersionInfo>>(Error(ErrorCode::kCorrupt, "torn"));
    });
  }
  ~ControlServer() override { std::filesystem::remove_all(root_); }

  std::string root_;
  std::string folder_;
  Handlers handlers_;
};

TEST_F(ControlServer, AnswersSeveralRequestsOfOneClient) {
  const auto server = Server::start(folder_, handlers_);
  ASSERT_TRUE(server);
  auto client = Client::connect(folder_);
  ASSERT_TRUE(client);
  EXPECT_TRUE(client->ask<Operation::kSync>());
  for (const bool keep : {false, true}) {
    const auto sealed =
        client->seal({.version = "s/v", .new_name = {}, .wait = false, .keep = keep});
    ASSERT_TRUE(sealed);
    EXPECT_EQ(sealed->sealed.name, "s/v!");
    ASSERT_EQ(sealed->next.has_value(), keep);
    EXPECT_EQ(sealed->next.value_or(VersionInfo()).name, keep ? "s/v" : "");
  }
  const auto opened = client->ask<Operation::kOpen>(
      OpenRequest{.version = "s/w", .source = {}, .mode = 0750, .uid = 4000000000, .gid = 7});
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->name, "s/w 750 4000000000 7");
  const auto cloned =
      client->ask<Operation::kClone>(OpenRequest{.version = "s/x", .source = "s/latest"});
  ASSERT_TRUE(cloned);
  EXPECT_EQ(cloned->name, "s/x of s/latest");
  const auto versions = client->ask<Operation::kOpenVersions>(std::string("s"));
  ASSERT_FALSE(versions);
  EXPECT_EQ(versions.error().code(), ErrorCode::kCorrupt);
}

TEST_F(ControlServer, AnswersRequestsOfRetention) {
  handlers_.set<Operation::kDelete>([](const DeleteRequest& request) {
    if (request.series != "s") {
      return Result<DeletionForecast>(Error(ErrorCode::kNotPermitted, "locked"));
    }
    DeletionForecast forecast;
    forecast.versions = request.versions;
    forecast.freed_bytes = request.forecast_only ? 1 : 2;
    return Result<DeletionForecast>(forecast);
  });
  Timestamp locked_until;
  handlers_.set<Operation::kLock>([&](const LockRequest& request) {
    locked_until = request.until;
    return Result<void>();
  });
  handlers_.set<Operation::kArrangeSettings>([](const std::optional<ArrangeSettings>& settings) {
    return Result<ArrangeSettings>(settings.value_or(ArrangeSettings{.fan = 9}));
  });
  const auto server = Server::start(folder_, handlers_);
  ASSERT_TRUE(server);
  auto client = Client::connect(folder_);
  ASSERT_TRUE(client);
  for (const bool forecast_only : {true, false}) {
    const auto removed = client->ask<Operation::kDelete>(DeleteRequest{
        .series = "s", .versions = {VersionNumber{5}}, .forecast_only = forecast_only});
    ASSERT_TRUE(removed);
    EXPECT_EQ(removed->versions, std::vector{VersionNumber{5}});
    EXPECT_EQ(removed->freed_bytes, forecast_only ? 1U : 2U);
  }
  const auto refused =
      client->ask<Operation::kDelete>(DeleteRequest{.series = "t", .versions = {VersionNumber{5}}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kNotPermitted);
  EXPECT_TRUE(client->ask<Operation::kLock>(
      LockRequest{.series = "s", .version = VersionNumber{5}, .until = {77, 0}}));
  EXPECT_EQ(locked_until.seconds, 77);
  const auto stored =
      client->ask<Operation::kArrangeSettings>(std::optional(ArrangeSettings{.fan = 3}));
  ASSERT_TRUE(stored);
  EXPECT_EQ(stored->fan, 3U);
  const auto in_force = client->ask<Operation::kArrangeSettings>(std::optional<ArrangeSettings>());
  ASSERT_TRUE(in_force);
  EXPECT_EQ(in_force->fan, 9U);
}

TEST_F(ControlServer, ArrangingTellsOfProgressAndEndsWithAReport) {
  handlers_.arrange = [](const ArrangeRequest&, const std::function<bool()>& cancelled,
                         const std::function<void(const ArrangeProgress&)>& progress) {
    ArrangeReport report;
    const auto begin = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(500)) {
      ++report.done.steps;
      progress(report.done);
    }
    report.finished = !cancelled();
    return Result<ArrangeReport>(report);
  };
  const auto server = Server::start(folder_, handlers_);
  ASSERT_TRUE(server);
  auto client = Client::connect(folder_);
  ASSERT_TRUE(client);
  for (int round = 0; round < 2; ++round) {
    std::uint64_t steps_seen = 0;
    const auto report = client->arrange({.series = "s"}, -1, [&](const ArrangeProgress& done) {
      EXPECT_GT(done.steps, steps_seen);
      steps_seen = done.steps;
    });
    ASSERT_TRUE(report);
    EXPECT_TRUE(report->finished);
    EXPECT_GT(steps_seen, 0U);
    EXPECT_GE(report->done.steps, steps_seen);
  }
}

TEST_F(ControlServer, LinesSentTogetherAreReceivedOneByOne) {
  const auto listener = Listener::open(folder_);
  ASSERT_TRUE(listener);
  const auto sender = connect_to(folder_, kServerPatience);
  ASSERT_TRUE(sender);
  const base::UniqueFd receiver(::accept4(listener->get(), nullptr, nullptr, SOCK_CLOEXEC));
  ASSERT_TRUE(receiver.valid());
  const std::string longest(10000, 'x');
  ASSERT_TRUE(send_line(sender->socket.get(), "one\ntwo\n" + longest, kServerPatience));
  for (const std::string& line : {std::string("one"), std::string("two"), longest}) {
    const auto received = receive_line(receiver.get(), kServerPatience);
    ASSERT_TRUE(received);
    EXPECT_EQ(*received, line);
  }
}

// Returns the number of open descriptors of this process.
std::size_t open_descriptors() {
  std::size_t count = 0;
  for (const auto& one : std::filesystem::directory_iterator("/proc/self/fd")) {
    count += one.path().empty() ? 0 : 1;
  }
  return count;
}

TEST_F(ControlServer, AStreamComesWithItsRequestAndIsClosedAfterIt) {
  handlers_.store = [](const StoreTask& task, const std::function<bool()>&,
                       const std::function<void(const TransferProgress&)>&) {
    char text[16] = {};
    const auto got = ::read(task.stream->input->get(), text, sizeof text);
    StoreTaskReply reply;
    reply.version.name = task.stream->file + std::string(text, got > 0 ? got : 0);
    return Result<StoreTaskReply>(std::move(reply));
  };
  const auto server = Server::start(folder_, handlers_);
  ASSERT_TRUE(server);
  auto client = Client::connect(folder_);
  ASSERT_TRUE(client);
  ASSERT_TRUE(client->ask<Operation::kSync>());
  const auto before = open_descriptors();
  for (int i = 0; i < 20; ++i) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    ASSERT_EQ(::write(ends[1], "bytes", 5), 5);
    ::close(ends[1]);
    StoreTask task;
    task.version = "s/v";
    task.stream = StreamSource{"f:", std::make_shared<base::UniqueFd>(ends[0]), {}};
    const auto stored = client->store(task, -1, {});
    ASSERT_TRUE(stored) << stored.error().message();
    EXPECT_EQ(stored->version.name, "f:bytes");
  }
  ASSERT_TRUE(client->ask<Operation::kSync>());  // The worker of the last store has ended.
  EXPECT_EQ(open_descriptors(), before);
}

TEST_F(ControlServer, AStreamThatDoesNotComeIsAnErrorAndOthersAreClosed) {
  handlers_.store = [](const StoreTask&, const std::function<bool()>&,
                       const std::function<void(const TransferProgress&)>&) {
    return Result<StoreTaskReply>(Error(ErrorCode::kIo, "called"));
  };
  const auto server = Server::start(folder_, handlers_);
  ASSERT_TRUE(server);
  const auto before = open_descriptors();
  {
    const auto connected = connect_to(folder_, kServerPatience);
    ASSERT_TRUE(connected);
    const int socket = connected->socket.get();
    Request request;
    request.operation = Operation::kStoreStream;
    request.store.stream.emplace();
    ASSERT_TRUE(send_line(socket, encode(request), kServerPatience));
    const auto line = receive_line(socket, kServerPatience);
    ASSERT_TRUE(line);
    const auto refused = decode_reply(*line);
    ASSERT_TRUE(refused && refused->error);
    EXPECT_EQ(refused->error->code(), ErrorCode::kInvalid);
    const base::UniqueFd passed(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    request.operation = Operation::kHello;
    for (int i = 0; i < 50; ++i) {
      ASSERT_TRUE(send_line_with(socket, encode(request), passed.get(), kServerPatience));
      ASSERT_TRUE(receive_line(socket, kServerPatience));
    }
    EXPECT_LT(open_descriptors(), before + 10);  // The connection, the file, the last one passed.
  }
  for (int i = 0; i < 1000 && open_descriptors() != before; ++i) ::usleep(10000);
  EXPECT_EQ(open_descriptors(), before);
}

TEST_F(ControlServer, SocketIsTheOwnersOnlyAndGoesWithTheServer) {
  const std::string path = folder_ + "/" + std::string(kSocketName);
  {
    const auto server = Server::start(folder_, handlers_);
    ASSERT_TRUE(server);
    struct stat values {};
    ASSERT_EQ(::stat(path.c_str(), &values), 0);
    EXPECT_EQ(values.st_mode & 0777, 0600U);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  const auto client = Client::connect(folder_);
  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().code(), ErrorCode::kNotFound);
}

TEST_F(ControlServer, ReplacesTheSocketOfADeadDaemon) {
  {
    // The socket's file stays, as after kill -9.
    const base::UniqueFd left_over(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const std::filesystem::path before = std::filesystem::current_path();
    std::filesystem::current_path(folder_);
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = "control.sock"};
    ASSERT_EQ(::bind(left_over.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    std::filesystem::current_path(before);
  }
  ASSERT_FALSE(Client::connect(folder_));
  const auto server = Server::start(folder_, handlers_);
  ASSERT_TRUE(server);
  EXPECT_TRUE(Client::connect(folder_));
}

TEST_F(ControlServer, WaitingRequestIsCancelledWhenTheClientLeaves) {
  std::mutex mutex;
  std::condition_variable changed;
  bool waiting = false;
  bool cancelled_seen = false;
  handlers_.seal = [&](const SealRequest&, const std::function<bool()>& cancelled) {
    {
      const std::lock_guard lock(mutex);
      waiting = true;
      changed.notify_all();
    }
    while (!cancelled()) continue;
    const std::lock_guard lock(mutex);
    cancelled_seen = true;
    changed.notify_all();
    return Result<SealReply>(Error(ErrorCode::kInterrupted, "cancelled"));
  };
  const auto server = Server::start(folder_, handlers_);
  ASSERT_TRUE(server);
  auto connected = connect_to(folder_, kServerPatience);
  ASSERT_TRUE(connected);
  Request request;
  request.operation = Operation::kSeal;
  request.seal.version = "s/v";
  ASSERT_TRUE(send_line(connected->socket.get(), encode(request), kServerPatience));
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return waiting; });
  connected->socket.reset();
  changed.wait(lock, [&] { return cancelled_seen; });
  EXPECT_TRUE(cancelled_seen);
}

}  // namespace
}  // namespace varve::control
