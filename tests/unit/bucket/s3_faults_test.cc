// SPDX-License-Identifier: Apache-2.0
// The bucket of a store whose requests fail. tests/s3/store.py has the faults.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "bucket/abilities.h"
#include "bucket/open_bucket.h"
#include "support/repeated_random.h"
#include "support/s3_store_process.h"

namespace varve::bucket {
namespace {

using Bytes = std::vector<std::byte>;
using std::chrono::milliseconds;

Bytes bytes_of(std::size_t size, int value) { return Bytes(size, static_cast<std::byte>(value)); }

Result<void> put(Bucket& bucket, const std::string& name, const Bytes& body,
                 PutCondition condition = PutCondition::kNone) {
  const std::array<std::span<const std::byte>, 1> parts{body};
  return bucket.put(name, parts, {.condition = condition});
}

std::uint64_t repeated(const Bucket& bucket) {
  std::uint64_t all = 0;
  for (const auto& counts : bucket.traffic()) all += counts.repeated;
  return all;
}

class S3Faults : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(store_.is_running()); }
  void fault(const std::string& kind, int at, int count = 1) {
    ASSERT_EQ(
        store_.command("fault " + kind + " " + std::to_string(at) + " " + std::to_string(count)),
        "ok");
  }
  void set(const std::string& name, const std::string& value) {
    ASSERT_EQ(store_.command("set " + name + " " + value), "ok");
  }

  test::S3StoreProcess store_;
};

// Does one of everything. Returns the first failure.
std::string use(Bucket& bucket) {
  const auto failed = [](const char* what, const auto& result) {
    return std::string(what) + ": " + (result ? "wrong" : result.error().message());
  };
  if (const auto made = put(bucket, "a", bytes_of(1000, 1)); !made) return failed("put", made);
  const auto once = put(bucket, "b", bytes_of(1000, 2), PutCondition::kIfAbsent);
  if (!once) return failed("create", once);
  const auto again = put(bucket, "b", bytes_of(1000, 3), PutCondition::kIfAbsent);
  if (again || again.error().code() != ErrorCode::kExists) return failed("create again", again);
  Bytes out(500);
  const auto got = bucket.get("b", 700, out);
  if (!got || *got != 300 || out[299] != std::byte{2}) return failed("get", got);
  const auto all = bucket.get_all("b", 1000);
  if (!all || *all != bytes_of(1000, 2)) return failed("get all", all);
  const auto head = bucket.head("a");
  if (!head || head->bytes != 1000) return failed("head", head);
  const auto copied = bucket.copy_prefix("b", 10, "c", {});
  if (!copied) return failed("copy", copied);
  const auto copy = bucket.get_all("c", 1000);
  if (!copy || *copy != bytes_of(10, 2)) return failed("get the copy", copy);
  const auto page = bucket.list("", "", 10);
  if (!page || page->objects.size() != 3) return failed("list", page);
  for (const auto* name : {"a", "b", "c"}) {
    if (const auto removed = bucket.remove(name); !removed) return failed("remove", removed);
  }
  const auto missing = bucket.head("a");
  if (missing || missing.error().code() != ErrorCode::kNotFound) return failed("missing", missing);
  if (const auto left = bucket.remove_unfinished(""); !left) return failed("unfinished", left);
  return {};
}

TEST_F(S3Faults, APassingFaultAtAnyRequestIsNotSeen) {
  const auto bucket = store_.open("p/");
  fault("busy", 0, 0);
  ASSERT_EQ(use(*bucket), "");
  const auto requests = std::stoi(store_.command("requests"));
  ASSERT_GT(requests, 15);
  for (const auto* kind : {"busy", "slow_down", "timeout", "conflict", "throttled", "error",
                           "reset", "lost", "lost_error", "cut"}) {
    for (int at = 0; at < requests; ++at) {
      fault(kind, at);
      ASSERT_EQ(use(*bucket), "") << kind << " at request " << at;
      EXPECT_EQ(store_.command("objects"), "0 0") << kind << " at request " << at;
    }
  }
  // libcurl itself repeats a request whose old connection broke, and cuts change short answers
  // only.
  EXPECT_GE(repeated(*bucket), 7 * requests);
}

TEST_F(S3Faults, SeveralFaultsInARowAreNotSeen) {
  const auto bucket = store_.open("p/");
  for (const auto* kind : {"busy", "reset", "lost"}) {
    for (int at = 0; at < 6; ++at) {
      fault(kind, at, 6);
      ASSERT_EQ(use(*bucket), "") << kind << " from request " << at;
    }
  }
}

TEST_F(S3Faults, AnObjectOfAnotherWriterIsNotOursAfterALostAnswer) {
  const auto bucket = store_.open("p/");
  const auto other = store_.open("p/");
  ASSERT_TRUE(put(*other, "x", bytes_of(10, 1), PutCondition::kIfAbsent));
  fault("lost", 0);
  // The same bytes: only the mark tells who wrote them.
  const auto made = put(*bucket, "x", bytes_of(10, 1), PutCondition::kIfAbsent);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), ErrorCode::kExists);
}

// As by two futures of a virtual machine that goes back to a snapshot.
TEST_F(S3Faults, AnObjectOfAWriterWithTheSameRandomBytesIsNotOurs) {
  const auto bucket = store_.open("p/");
  const auto other = store_.open("p/");
  const test::RepeatedRandom repeated;
  ASSERT_TRUE(put(*other, "x", bytes_of(10, 1), PutCondition::kIfAbsent));
  const auto made = put(*bucket, "x", bytes_of(10, 2), PutCondition::kIfAbsent);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), ErrorCode::kExists);
}

TEST_F(S3Faults, AnUnansweredReadIsUnavailable) {
  auto tuning = test::quick_tuning();
  tuning.read_patience = milliseconds(100);
  const auto bucket = store_.open("p/", tuning);
  const auto patient = store_.open("p/");
  ASSERT_TRUE(put(*patient, "x", bytes_of(10, 1)));
  Bytes out(10);
  for (const auto* kind : {"busy", "reset", "hang"}) {
    fault(kind, 0, 1000000);
    const auto got = bucket->get("x", 0, out);
    ASSERT_FALSE(got) << kind;
    EXPECT_EQ(got.error().code(), ErrorCode::kUnavailable) << got.error().message();
  }
  fault("busy", 0, 0);
  EXPECT_TRUE(patient->get("x", 0, out));
}

TEST_F(S3Faults, ARequestThatHangsIsRepeated) {
  auto tuning = test::quick_tuning();
  tuning.stall = milliseconds(1000);
  const auto bucket = store_.open("p/", tuning);
  fault("hang", 0);
  EXPECT_TRUE(put(*bucket, "x", bytes_of(10, 1)));
  fault("hang", 0);
  EXPECT_EQ(*bucket->get_all("x", 10), bytes_of(10, 1));
  EXPECT_GE(repeated(*bucket), 2);
}

TEST_F(S3Faults, AChangeWaitsUntilItIsStoppedAndSaysWhy) {
  auto tuning = test::quick_tuning();
  tuning.change_patience = milliseconds(0);
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> troubles;
  tuning.trouble = [&](const std::string& trouble) {
    const std::lock_guard lock(mutex);
    troubles.push_back(trouble);
    changed.notify_all();
  };
  const auto bucket = store_.open("p/", tuning);
  fault("busy", 0, 5);
  EXPECT_TRUE(put(*bucket, "x", bytes_of(10, 1)));
  {
    const std::lock_guard lock(mutex);
    ASSERT_GE(troubles.size(), 2);
    EXPECT_NE(troubles.front().find("503"), std::string::npos) << troubles.front();
    EXPECT_EQ(troubles.back(), "") << "the end of the trouble";
    troubles.clear();
  }
  fault("busy", 0, 1000000);
  std::thread stopper([&] {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return !troubles.empty(); });
    lock.unlock();
    bucket->stop();
  });
  const auto made = put(*bucket, "y", bytes_of(10, 1));
  stopper.join();
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), ErrorCode::kInterrupted);
}

TEST_F(S3Faults, InterruptedReadsEndAndAChangeGoesOn) {
  const auto bucket = store_.open("p/");
  ASSERT_TRUE(put(*bucket, "x", bytes_of(10, 1)));
  fault("hang", 0, 2);
  std::promise<ErrorCode> read;
  Bytes out(10);
  bucket->read_many({{.name = "x", .offset = 0, .out = out}},
                    [&](std::size_t, const Result<std::size_t>& got) {
                      read.set_value(got ? ErrorCode::kInvalid : got.error().code());
                    });
  std::optional<Result<ListPage>> page;
  std::thread listing([&] { page = bucket->list("", {}, 10); });
  while (store_.command("requests") != "2") std::this_thread::yield();
  fault("busy", 0, 2);
  std::optional<Result<void>> made;
  std::thread writing([&] { made = put(*bucket, "y", bytes_of(10, 1)); });
  while (store_.command("requests") == "0") std::this_thread::yield();
  bucket->interrupt_reads();
  listing.join();
  writing.join();
  EXPECT_EQ(read.get_future().get(), ErrorCode::kUnavailable);
  ASSERT_FALSE(*page);
  EXPECT_EQ(page->error().code(), ErrorCode::kUnavailable);
  EXPECT_TRUE(*made);
  EXPECT_EQ(*bucket->get_all("x", 10), bytes_of(10, 1)) << "later reads go on";
}

TEST_F(S3Faults, ABucketEndsWhileReadsAreInFlight) {
  auto bucket = store_.open("p/");
  ASSERT_TRUE(put(*bucket, "x", bytes_of(10, 1)));
  fault("hang", 0, 1000000);
  std::vector<Bytes> out(20, Bytes(10));
  std::vector<ObjectRead> reads;
  for (auto& each : out) reads.push_back({.name = "x", .offset = 0, .out = each});
  std::atomic<int> interrupted = 0;
  bucket->read_many(reads, [&](std::size_t, const Result<std::size_t>& got) {
    if (!got && got.error().code() == ErrorCode::kInterrupted) ++interrupted;
  });
  bucket.reset();
  EXPECT_EQ(interrupted, 20);
}

TEST_F(S3Faults, AWrongClockIsFollowed) {
  for (const auto* offset : {"3600", "-86400", "0"}) {
    const auto bucket = store_.open("p/");
    set("clock_offset", offset);
    EXPECT_EQ(use(*bucket), "");
  }
}

TEST_F(S3Faults, AnotherRegionIsFollowed) {
  set("region", "eu-test-7");
  const auto bucket = store_.open("p/");
  EXPECT_EQ(use(*bucket), "");
}

TEST_F(S3Faults, ExpiredCredentialsAreRenewed) {
  set("token", "second");
  std::atomic<int> calls = 0;
  auto options = store_.options();
  options.credentials = [&] {
    return test::store_credentials("AKIDTEST", "secret/of+the=test",
                                   ++calls == 1 ? "first" : "second");
  };
  const auto bucket = test::S3StoreProcess::open("p/", options, test::quick_tuning());
  EXPECT_EQ(use(*bucket), "");
  EXPECT_EQ(calls, 2);
  set("token", "third");
  const auto made = put(*bucket, "x", bytes_of(10, 1));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), ErrorCode::kNotPermitted);
  EXPECT_LE(calls, 8) << "asked for without end";
}

TEST_F(S3Faults, CredentialsAreRenewedBeforeTheyExpire) {
  std::atomic<int> calls = 0;
  auto options = store_.options();
  options.credentials = [&]() -> Result<StoreCredentials> {
    auto credentials = test::store_credentials("AKIDTEST", "secret/of+the=test");
    if (++calls == 1) credentials.expires = base::SystemClock().now();
    return credentials;
  };
  const auto bucket = test::S3StoreProcess::open("p/", options, test::quick_tuning());
  EXPECT_EQ(use(*bucket), "");
  options.credentials = []() -> Result<StoreCredentials> {
    return Error(ErrorCode::kIo, "no such command");
  };
  const auto without = test::S3StoreProcess::open("p/", options, test::quick_tuning());
  EXPECT_EQ(without->list("", "", 1).error().code(), ErrorCode::kIo);
}

TEST_F(S3Faults, AUsedUpQuotaIsAFullDisk) {
  set("quota", "100");
  const auto bucket = store_.open("p/");
  const auto made = put(*bucket, "x", bytes_of(101, 1));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), ErrorCode::kNoSpace);
  EXPECT_EQ(repeated(*bucket), 0);
  EXPECT_TRUE(put(*bucket, "x", bytes_of(100, 1)));
}

TEST_F(S3Faults, WrongSettingsEndTheOpeningWithAdvice) {
  const auto error = [&](const ObjectStoreOptions& options, const std::string& bucket) {
    const auto opened =
        open_bucket({.bucket = bucket, .prefix = "p/"}, options, test::quick_tuning());
    EXPECT_FALSE(opened);
    return opened ? Error(ErrorCode::kIo, "") : opened.error();
  };
  auto options = store_.options();
  EXPECT_TRUE(open_bucket({.bucket = "varve-test", .prefix = "p/"}, options, test::quick_tuning()));
  EXPECT_EQ(error(options, "other-bucket").code(), ErrorCode::kInvalid);
  EXPECT_NE(error(options, "other-bucket").message().find("no such bucket"), std::string::npos);
  options.credentials = [] { return test::store_credentials("AKIDTEST", "the-wrong-secret"); };
  EXPECT_EQ(error(options, "varve-test").code(), ErrorCode::kNotPermitted);
  EXPECT_NE(error(options, "varve-test").message().find("secret access key"), std::string::npos);
  EXPECT_EQ(error(options, "varve-test").message().find("the-wrong"), std::string::npos);
  options.credentials = [] { return test::store_credentials("OTHER", "the-wrong-secret"); };
  EXPECT_EQ(error(options, "varve-test").code(), ErrorCode::kNotPermitted);
  options.region = "evil/../";
  EXPECT_EQ(error(options, "varve-test").code(), ErrorCode::kInvalid);
  options.region = "";
  options.endpoint = "ftp://h";
  EXPECT_EQ(error(options, "varve-test").code(), ErrorCode::kInvalid);
  options.credentials = {};
  EXPECT_EQ(error(options, "varve-test").code(), ErrorCode::kNotPermitted);
}

TEST(S3Certificates, MustBeTrustedAndNameTheHost) {
  const test::S3StoreProcess store(true);
  ASSERT_TRUE(store.is_running());
  auto options = store.options();
  const auto open = [&] {
    auto opened =
        open_bucket({.bucket = "varve-test", .prefix = "p/"}, options, test::quick_tuning());
    return opened ? std::string() : opened.error().message();
  };
  EXPECT_NE(open().find("certificate is not valid"), std::string::npos) << open();
  options.ca_file = test::S3StoreProcess::certificate();
  EXPECT_EQ(open(), "");
  options.endpoint.replace(options.endpoint.find("127.0.0.1"), 9, "localhost");
  EXPECT_NE(open().find("certificate is not valid"), std::string::npos) << open();
  options.ca_file = "/nonexistent";
  EXPECT_NE(open().find("certificate is not valid"), std::string::npos) << open();
}

TEST_F(S3Faults, AProbeTellsWhatTheStoreLacks) {
  set("ignores_conditions", "1");
  set("removes", "0");
  const auto bucket = store_.open("p/");
  const auto abilities = probe_abilities(*bucket, "");
  ASSERT_TRUE(abilities) << abilities.error().message();
  EXPECT_EQ(abilities->conditions, Conditions::kIgnored);
  EXPECT_FALSE(abilities->removes);
  EXPECT_TRUE(abilities->copies_ranges);
}

TEST_F(S3Faults, ALateGetIsSentASecondTime) {
  auto tuning = test::quick_tuning();
  tuning.second_get_least = milliseconds(20);
  const auto bucket = store_.open("p/", tuning);
  ASSERT_TRUE(put(*bucket, "x", bytes_of(1000, 7)));
  Bytes out(1000);
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(bucket->get("x", 0, out));
  const auto before = repeated(*bucket);
  // The first request never ends. Without a second one, the read would wait for its stall.
  fault("hang", 0);
  out.assign(1000, std::byte{0});
  ASSERT_EQ(*bucket->get("x", 0, out), 1000);
  EXPECT_EQ(out, bytes_of(1000, 7));
  EXPECT_GT(repeated(*bucket), before);
}

TEST_F(S3Faults, TheRoundTripIsTheShortestOfAllGets) {
  const auto bucket = store_.open("p/");
  ASSERT_TRUE(put(*bucket, "x", bytes_of(1000, 7)));
  EXPECT_FALSE(bucket->round_trip()) << "before the first get";
  Bytes out(1000);
  set("slow_ms", "300");
  fault("slow", 0);
  ASSERT_TRUE(bucket->get("x", 0, out));
  ASSERT_TRUE(bucket->round_trip());
  // The store's wait may begin before the client knows that its request is sent.
  const auto slow = *bucket->round_trip();
  EXPECT_GE(slow, milliseconds(10));
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(bucket->get("x", 0, out));
  EXPECT_LT(*bucket->round_trip(), slow);
}

TEST_F(S3Faults, OnlySoManyRequestsAreInFlight) {
  auto tuning = test::quick_tuning();
  tuning.requests_max = 4;
  const auto bucket = store_.open("p/", tuning);
  ASSERT_TRUE(put(*bucket, "x", bytes_of(10, 1)));
  set("slow_ms", "50");
  fault("slow", 0, 1000000);
  std::vector<Bytes> out(20, Bytes(10));
  std::vector<ObjectRead> reads;
  for (auto& each : out) reads.push_back({.name = "x", .offset = 0, .out = each});
  std::mutex mutex;
  std::condition_variable ended;
  int left = 20;
  bucket->read_many(reads, [&](std::size_t, const Result<std::size_t>& got) {
    EXPECT_TRUE(got);
    const std::lock_guard lock(mutex);
    if (--left == 0) ended.notify_all();
  });
  std::unique_lock lock(mutex);
  ended.wait(lock, [&] { return left == 0; });
  EXPECT_EQ(store_.command("most"), "4");
}

}  // namespace
}  // namespace varve::bucket
