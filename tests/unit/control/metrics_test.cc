// SPDX-License-Identifier: Apache-2.0
// Metrics over the control socket: their form, their bounds, and daemons that have none.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "base/metrics.h"
#include "control/client.h"
#include "control/protocol.h"
#include "control/server.h"
#include "control/socket.h"

namespace varve::control {
namespace {

using Samples = std::vector<MetricSample>;

std::string encoded(const Samples& samples) {
  Reply reply;
  reply.metrics = samples;
  return encode(reply);
}

Samples samples_of_each_kind() {
  base::Metrics metrics;
  metrics.counter("varve_a_total", "A \"thing\".").add(std::numeric_limits<std::uint64_t>::max());
  metrics.gauge("varve_b_bytes", "B.", {{"kind", "x\\"}, {"other", "'"}}).add(7);
  metrics.histogram("varve_c_seconds", "C.", {{"kind", "x"}}).record(std::chrono::hours(1));
  return metrics.sample();
}

/// Returns the longest samples that a registry allows.
Samples longest_samples() {
  Samples samples;
  for (std::size_t i = 0; i < base::Metrics::kMetricsMax; ++i) {
    MetricSample& sample = samples.emplace_back();
    const std::string number = std::to_string(1000 + i);
    sample.name =
        "varve_" + number + std::string(base::Metrics::kNameBytesMax - 18, 'x') + "_seconds";
    sample.help = std::string(base::Metrics::kHelpBytesMax, '"');
    sample.kind = MetricKind::kHistogram;
    sample.unit = MetricUnit::kSeconds;
    sample.value = std::numeric_limits<std::uint64_t>::max();
    for (std::size_t label = 0; label < base::Metrics::kLabelsMax; ++label) {
      sample.labels.push_back(
          {std::string(base::Metrics::kLabelBytesMax - 1, 'n') + std::to_string(label),
           std::string(base::Metrics::kLabelBytesMax, '"')});
    }
    sample.buckets.assign(kMetricBounds + 1, std::numeric_limits<std::uint64_t>::max());
  }
  return samples;
}

class ControlMetrics : public testing::Test {
 protected:
  ControlMetrics() {
    std::string name = (std::filesystem::temp_directory_path() / "varve-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~ControlMetrics() override { std::filesystem::remove_all(folder_); }

  /// Asks a daemon that answers the request for metrics with `line`.
  [[nodiscard]] Result<Samples> ask(const std::string& line) const {
    constexpr std::chrono::milliseconds kAnswerWait{20'000};
    auto listener = Listener::open(folder_);
    EXPECT_TRUE(listener);
    std::thread daemon([&] {
      const base::UniqueFd socket(::accept4(listener->get(), nullptr, nullptr, SOCK_CLOEXEC));
      static_cast<void>(receive_line(socket.get(), kAnswerWait));
      Reply hello;
      hello.identity.emplace().protocol = kProtocol;
      hello.identity->device = listener->repository().status.st_dev;
      hello.identity->inode = listener->repository().status.st_ino;
      static_cast<void>(send_line(socket.get(), encode(hello), kAnswerWait));
      static_cast<void>(receive_line(socket.get(), kAnswerWait));
      static_cast<void>(send_line(socket.get(), line, kAnswerWait));
    });
    auto client = Client::connect(folder_);
    EXPECT_TRUE(client);
    auto samples = client ? client->ask<Operation::kMetrics>() : client.error();
    daemon.join();
    return samples;
  }

  std::string folder_;
};

TEST(ControlProtocolMetrics, SamplesOfEachKindRoundTrip) {
  const Samples samples = samples_of_each_kind();
  const auto reply = decode_reply(encoded(samples));
  ASSERT_TRUE(reply);
  ASSERT_TRUE(reply->metrics);
  EXPECT_EQ(*reply->metrics, samples);
}

TEST(ControlProtocolMetrics, TheLongestSamplesFitIntoOneLine) {
  const Samples samples = longest_samples();
  const std::string line = encoded(samples);
  EXPECT_LT(line.size(), kLineBytesMax);
  const auto reply = decode_reply(line);
  ASSERT_TRUE(reply) << "the samples are within the bounds";
  EXPECT_EQ(*reply->metrics, samples);
}

TEST(ControlProtocolMetrics, SamplesThatNoRegistryHasAreRefused) {
  const Samples good = samples_of_each_kind();
  ASSERT_TRUE(decode_reply(encoded(good)));
  const auto refused = [&](auto change) {
    Samples samples = good;
    change(samples);
    return !decode_reply(encoded(samples)).has_value();
  };
  EXPECT_TRUE(refused([](Samples& all) { std::swap(all[0], all[1]); })) << "the order";
  EXPECT_TRUE(refused([](Samples& all) { all.push_back(all.back()); })) << "one comes twice";
  EXPECT_TRUE(refused([](Samples& all) {
    all.push_back(all.back());
    all.back().labels[0].value = "y";
    all.back().help = "Another help.";
  })) << "one family with two helps";
  EXPECT_TRUE(refused([](Samples& all) { all[2].buckets.pop_back(); }));
  EXPECT_TRUE(refused([](Samples& all) { all[0].help = "\x1b[2J"; }));
  EXPECT_TRUE(refused([](Samples& all) {
    all = longest_samples();
    all.push_back(all.back());
    all.back().name.replace(6, 1, "2");
  })) << "too many";
  const std::string sample = R"("name":"varve_a_total","help":"A.","unit":"none")";
  for (const std::string& metrics :
       {std::string("1"), std::string("[1]"), std::string("[{}]"),
        "[{" + sample + R"(,"kind":"x","value":1}])",
        "[{" + sample + R"(,"kind":"counter","value":-1}])",
        "[{" + sample + R"(,"kind":"counter","value":1,"labels":1}])"}) {
    EXPECT_FALSE(decode_reply(R"({"ok":true,"metrics":)" + metrics + "}")) << metrics;
  }
  EXPECT_TRUE(
      decode_reply(R"({"ok":true,"metrics":[{)" + sample + R"(,"kind":"counter","value":1}]})"));
}

TEST_F(ControlMetrics, AServerAnswersWithTheMetricsOfItsHandler) {
  Handlers handlers;
  handlers.set<Operation::kMetrics>([] { return Result<Samples>(longest_samples()); });
  const auto server = Server::start(folder_, handlers);
  ASSERT_TRUE(server);
  auto client = Client::connect(folder_);
  ASSERT_TRUE(client);
  const auto samples = client->ask<Operation::kMetrics>();
  ASSERT_TRUE(samples) << samples.error().message();
  EXPECT_EQ(*samples, longest_samples());
}

TEST_F(ControlMetrics, ADaemonOfAnOlderVarveIsNamed) {
  // The answer of a daemon that does not know the request.
  const auto samples =
      ask(R"({"code":"invalid","errno":0,"exit":1,)"
          R"("message":"the control socket's request was not understood","ok":false})");
  ASSERT_FALSE(samples);
  EXPECT_EQ(samples.error().code(), ErrorCode::kUnsupported);
  EXPECT_NE(samples.error().message().find("older Varve"), std::string::npos);
  EXPECT_NE(samples.error().message().find("mount it again"), std::string::npos);
}

TEST_F(ControlMetrics, AHostileReplyIsAnErrorAndNotAnOlderVarve) {
  for (const std::string& line :
       {std::string(R"({"ok":true,"metrics":[7]})"), std::string("no JSON"),
        std::string(R"({"ok":true})"), std::string(kLineBytesMax + 10, 'x')}) {
    const auto samples = ask(line);
    ASSERT_FALSE(samples);
    EXPECT_EQ(samples.error().message().find("older"), std::string::npos);
    EXPECT_NE(samples.error().code(), ErrorCode::kUnsupported);
    EXPECT_FALSE(samples.error().message().empty());
  }
}

TEST_F(ControlMetrics, AnErrorOfTheDaemonIsPassedOn) {
  const auto samples = ask(R"({"ok":false,"code":"io","message":"the disk is gone","errno":5})");
  ASSERT_FALSE(samples);
  EXPECT_EQ(samples.error().code(), ErrorCode::kIo);
  EXPECT_EQ(samples.error().message(), "the disk is gone");
}

}  // namespace
}  // namespace varve::control
