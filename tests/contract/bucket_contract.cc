// SPDX-License-Identifier: Apache-2.0
// Checks each implementation against the promises of bucket::Bucket.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "bucket/abilities.h"
#include "bucket_subject.h"

namespace varve::bucket {
namespace {

using Bytes = std::vector<std::byte>;

Bytes bytes_of(std::size_t size, unsigned seed) {
  Bytes bytes(size);
  for (auto& byte : bytes)
    byte = static_cast<std::byte>((seed = seed * 1664525U + 1013904223U) >> 24U);
  return bytes;
}

Result<void> put(Bucket& bucket, const std::string& name, const Bytes& body,
                 PutCondition condition = PutCondition::kNone) {
  const std::array<std::span<const std::byte>, 1> parts{body};
  return bucket.put(name, parts, {.condition = condition});
}

class BucketContract : public testing::TestWithParam<test::BucketSubjectMaker> {
 protected:
  void SetUp() override {
    subject_ = GetParam().make();
    ASSERT_NE(subject_, nullptr);
    bucket_ = subject_->open("a/");
    ASSERT_NE(bucket_, nullptr);
  }
  Bytes all_of(const std::string& name) {
    auto got = bucket_->get_all(name, 1U << 30U);
    EXPECT_TRUE(got) << name << ": " << (got ? "" : got.error().message());
    return got ? *std::move(got) : Bytes{};
  }
  std::vector<std::string> names(Bucket& bucket, const std::string& prefix,
                                 const std::string& after = {}) {
    std::vector<std::string> found;
    const auto listed = list_all(bucket, prefix, after, [&](const ObjectInfo& object) {
      found.push_back(object.name);
      return Result<void>();
    });
    EXPECT_TRUE(listed) << listed.error().message();
    return found;
  }

  std::unique_ptr<test::BucketSubject> subject_;
  std::unique_ptr<Bucket> bucket_;
};

TEST_P(BucketContract, AnObjectHasTheBytesOfItsParts) {
  for (const std::size_t size : {0, 1, 5, 4096, 1 << 20}) {
    const auto body = bytes_of(size, 7);
    const auto span = std::span(body);
    const std::array<std::span<const std::byte>, 4> parts{
        span.first(size / 3), std::span<const std::byte>{}, span.subspan(size / 3, size / 2),
        span.subspan(size / 3 + size / 2)};
    ASSERT_TRUE(bucket_->put("x", parts, {}));
    EXPECT_EQ(all_of("x"), body) << size;
    EXPECT_EQ(bucket_->head("x")->bytes, size);
  }
}

TEST_P(BucketContract, ARangeEndsWithTheObject) {
  const auto body = bytes_of(1000, 3);
  ASSERT_TRUE(put(*bucket_, "x", body));
  const auto check = [&](std::size_t offset, std::size_t length, std::size_t expected) {
    Bytes out(length, std::byte{0xEE});
    const auto got = bucket_->get("x", offset, out);
    ASSERT_TRUE(got) << got.error().message();
    ASSERT_EQ(*got, expected) << offset << " " << length;
    const auto from = std::min(offset, body.size());
    EXPECT_TRUE(std::equal(out.begin(), out.begin() + expected, body.begin() + from));
    EXPECT_EQ(std::count(out.begin() + expected, out.end(), std::byte{0xEE}), length - expected);
  };
  check(0, 1000, 1000);
  check(0, 1, 1);
  check(999, 1, 1);
  check(1, 5000, 999);
  check(998, 3, 2);
  check(1000, 1, 0);
  check(5000, 10, 0);
  check(10, 0, 0);
}

TEST_P(BucketContract, AnEmptyObjectHasNoRange) {
  ASSERT_TRUE(put(*bucket_, "x", {}));
  Bytes out(10);
  EXPECT_EQ(*bucket_->get("x", 0, out), 0);
  EXPECT_TRUE(all_of("x").empty());
}

TEST_P(BucketContract, ALargerObjectThanExpectedIsNotRead) {
  ASSERT_TRUE(put(*bucket_, "x", bytes_of(1000, 1)));
  EXPECT_TRUE(bucket_->get_all("x", 1000));
  EXPECT_EQ(bucket_->get_all("x", 999).error().code(), ErrorCode::kTooLarge);
}

TEST_P(BucketContract, MissingObjectsAreNotFound) {
  Bytes out(10);
  EXPECT_EQ(bucket_->get("x", 0, out).error().code(), ErrorCode::kNotFound);
  EXPECT_EQ(bucket_->get_all("x", 10).error().code(), ErrorCode::kNotFound);
  EXPECT_EQ(bucket_->head("x").error().code(), ErrorCode::kNotFound);
  EXPECT_TRUE(bucket_->remove("x"));
}

TEST_P(BucketContract, APutReplacesAnObject) {
  ASSERT_TRUE(put(*bucket_, "x", bytes_of(1000, 1)));
  ASSERT_TRUE(put(*bucket_, "x", bytes_of(10, 2)));
  EXPECT_EQ(all_of("x"), bytes_of(10, 2));
}

TEST_P(BucketContract, AConditionalPutCreatesOnce) {
  ASSERT_TRUE(put(*bucket_, "x", bytes_of(10, 1), PutCondition::kIfAbsent));
  const auto second = put(*bucket_, "x", bytes_of(10, 2), PutCondition::kIfAbsent);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), ErrorCode::kExists);
  EXPECT_EQ(all_of("x"), bytes_of(10, 1));
  ASSERT_TRUE(bucket_->remove("x"));
  EXPECT_TRUE(put(*bucket_, "x", bytes_of(10, 3), PutCondition::kIfAbsent));
  EXPECT_EQ(all_of("x"), bytes_of(10, 3));
}

TEST_P(BucketContract, ARaceHasOneWinner) {
  constexpr int kRacers = 8;
  constexpr int kRaces = 10;
  for (int race = 0; race < kRaces; ++race) {
    const auto name = "race/" + std::to_string(race);
    std::atomic<int> winners = 0;
    std::atomic<unsigned> winner = 0;
    std::atomic<int> losers = 0;
    std::vector<std::thread> racers;
    for (unsigned i = 1; i <= kRacers; ++i) {
      racers.emplace_back([&, i] {
        const auto made = put(*bucket_, name, bytes_of(100, i), PutCondition::kIfAbsent);
        if (made) {
          ++winners;
          winner = i;
        } else if (made.error().code() == ErrorCode::kExists) {
          ++losers;
        }
      });
    }
    for (auto& racer : racers) racer.join();
    EXPECT_EQ(winners, 1);
    EXPECT_EQ(losers, kRacers - 1);
    EXPECT_EQ(all_of(name), bytes_of(100, winner));
  }
}

TEST_P(BucketContract, HeadDescribesAnObject) {
  ASSERT_TRUE(put(*bucket_, "x", bytes_of(123, 1)));
  const auto first = bucket_->head("x");
  ASSERT_TRUE(first);
  EXPECT_EQ(first->name, "x");
  EXPECT_EQ(first->bytes, 123);
  EXPECT_GT(first->modified.seconds, 1600000000);
  const auto page = bucket_->list("x", {}, 1);
  ASSERT_TRUE(page);
  ASSERT_EQ(page->objects.size(), 1);
  EXPECT_EQ(page->objects[0].bytes, 123);
  EXPECT_EQ(page->objects[0].modified.seconds, first->modified.seconds);
}

TEST_P(BucketContract, ListsShowTheEtagOfAPut) {
  const auto put_one = [&](unsigned seed) {
    const auto bytes = bytes_of(100, seed);
    const std::array<std::span<const std::byte>, 1> parts{bytes};
    std::string etag;
    PutOptions options;
    options.etag = &etag;
    EXPECT_TRUE(bucket_->put("x", parts, options));
    const auto page = bucket_->list("x", {}, 1);
    EXPECT_TRUE(page && page->objects.size() == 1 && page->objects[0].etag == etag);
    const auto head = bucket_->head("x");
    EXPECT_TRUE(head && head->etag == etag);
    return etag;
  };
  const auto first = put_one(1);
  EXPECT_FALSE(first.empty());
  EXPECT_NE(put_one(2), first);
  const auto copied = bucket_->copy_prefix("x", 50, "y", {});
  if (!copied) return;  // The store copies no ranges.
  const auto head = bucket_->head("y");
  const auto page = bucket_->list("y", {}, 1);
  ASSERT_TRUE(head && page && page->objects.size() == 1);
  EXPECT_EQ(page->objects[0].etag, head->etag);
  EXPECT_NE(head->etag, first);
}

// Names that signers, proxies and parsers of XML like to get wrong.
const std::vector<std::string>& odd_names() {
  static const std::vector<std::string> names = {
      "a b",        "a+b",          "a%20b",
      "a%2Fb",      "a&b",          "a=b",
      "a:b",        "a?b",          "a#b",
      "a;b",        "a,b",          "a@b",
      "a$b",        "a'b",          "a\"b",
      "a<b>",       "a\\b",         "a*b",
      "a!b(c)[d]",  "a~b_c-d.e",    "a^b`c{d}|e",
      "\xC3\xA9/x", "\xE2\x82\xAC", "\xF0\x9F\x98\x80",
      "&amp;",      "&#65;",        "<![CDATA[x]]>",
      "a/b/c",      "...",          std::string(200, 'n')};
  return names;
}

TEST_P(BucketContract, OddNamesAreDistinct) {
  unsigned seed = 0;
  std::set<std::string> expected;
  for (const auto& name : odd_names()) {
    expected.insert(name);
    const auto made = put(*bucket_, name, bytes_of(20, ++seed), PutCondition::kIfAbsent);
    ASSERT_TRUE(made) << name << ": " << made.error().message();
  }
  seed = 0;
  for (const auto& name : odd_names()) {
    EXPECT_EQ(all_of(name), bytes_of(20, ++seed)) << name;
    EXPECT_EQ(bucket_->head(name)->bytes, 20) << name;
    const auto page = bucket_->list(name, {}, 1);
    ASSERT_TRUE(page) << name;
    ASSERT_EQ(page->objects.size(), 1) << name;
    EXPECT_EQ(page->objects[0].name, name);
  }
  const auto listed = names(*bucket_, "");
  EXPECT_EQ(std::vector(expected.begin(), expected.end()), listed);
  for (std::size_t i = 0; i + 1 < listed.size(); ++i) {
    const auto page = bucket_->list("", listed[i], 1);
    ASSERT_TRUE(page);
    ASSERT_EQ(page->objects.size(), 1);
    EXPECT_EQ(page->objects[0].name, listed[i + 1]) << "after " << listed[i];
  }
  for (const auto& name : odd_names()) {
    ASSERT_TRUE(bucket_->remove(name));
    EXPECT_EQ(bucket_->head(name).error().code(), ErrorCode::kNotFound) << name;
  }
}

TEST_P(BucketContract, ObjectsAreListedInPages) {
  std::vector<std::string> expected;
  for (int i = 0; i < 25; ++i) {
    expected.push_back("n/" + std::to_string(100 + i));
    ASSERT_TRUE(put(*bucket_, expected.back(), {}));
  }
  ASSERT_TRUE(put(*bucket_, "m/1", {}));
  ASSERT_TRUE(put(*bucket_, "o/1", {}));
  const auto first = bucket_->list("n/", {}, 10);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->objects.size(), 10);
  EXPECT_EQ(first->objects.front().name, "n/100");
  EXPECT_EQ(first->objects.back().name, "n/109");
  EXPECT_FALSE(first->is_last);
  const auto last = bucket_->list("n/", "n/119", 10);
  ASSERT_TRUE(last);
  EXPECT_EQ(last->objects.size(), 5);
  EXPECT_TRUE(last->is_last);
  EXPECT_TRUE(bucket_->list("n/", "n/124", 10)->objects.empty());
  EXPECT_EQ(bucket_->list("n/", "a", 3)->objects.front().name, "n/100") << "after comes before n/";
  EXPECT_TRUE(bucket_->list("n/", "z", 3)->objects.empty());
  EXPECT_EQ(bucket_->list("n/12", {}, 10)->objects.size(), 5);
  EXPECT_EQ(names(*bucket_, "n/"), expected);
  EXPECT_EQ(names(*bucket_, "").size(), 27);
  EXPECT_TRUE(names(*bucket_, "nothing").empty());
}

TEST_P(BucketContract, APrefixHidesTheObjectsOutside) {
  const auto other = subject_->open("b/");
  ASSERT_NE(other, nullptr);
  ASSERT_TRUE(put(*bucket_, "x", bytes_of(1, 1)));
  ASSERT_TRUE(put(*other, "x", bytes_of(2, 2)));
  EXPECT_EQ(all_of("x").size(), 1);
  EXPECT_EQ(other->get_all("x", 10)->size(), 2);
  EXPECT_EQ(names(*other, ""), std::vector<std::string>{"x"});
  ASSERT_TRUE(other->remove("x"));
  EXPECT_EQ(all_of("x").size(), 1);
}

TEST_P(BucketContract, APrefixOfAnObjectIsCopied) {
  const auto body = bytes_of(3U << 20U, 9);
  ASSERT_TRUE(put(*bucket_, "from a+b=&?\xC3\xA9", body));
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{70000}, body.size()}) {
    const auto copied = bucket_->copy_prefix("from a+b=&?\xC3\xA9", bytes, "to c+d%", {});
    ASSERT_TRUE(copied) << copied.error().message();
    EXPECT_EQ(all_of("to c+d%"), Bytes(body.begin(), body.begin() + bytes)) << bytes;
  }
  EXPECT_EQ(all_of("from a+b=&?\xC3\xA9"), body);
  EXPECT_EQ(bucket_->copy_prefix("from a+b=&?\xC3\xA9", body.size() + 1, "y", {}).error().code(),
            ErrorCode::kInvalid);
  EXPECT_EQ(bucket_->copy_prefix("from a+b=&?\xC3\xA9", 0, "y", {}).error().code(),
            ErrorCode::kInvalid);
  EXPECT_EQ(bucket_->copy_prefix("missing", 1, "y", {}).error().code(), ErrorCode::kNotFound);
  EXPECT_EQ(bucket_->head("y").error().code(), ErrorCode::kNotFound);
  ASSERT_TRUE(put(*bucket_, "a%62", body));
  EXPECT_EQ(bucket_->copy_prefix("a%62", 1, "y", {}).error().code(), ErrorCode::kUnsupported);
  EXPECT_EQ(bucket_->head("y").error().code(), ErrorCode::kNotFound);
  EXPECT_TRUE(bucket_->remove_unfinished(""));
  const auto sent = bucket_->traffic()[static_cast<std::size_t>(RequestKind::kCopy)].bytes_sent;
  EXPECT_LT(sent, 4096) << "the bytes passed through the client";
}

TEST_P(BucketContract, ABatchCompletesEachReadOnce) {
  constexpr std::size_t kObjects = 10;
  constexpr std::size_t kReads = 100;
  constexpr std::size_t kObjectBytes = 10000;
  for (unsigned i = 0; i < kObjects; ++i) {
    ASSERT_TRUE(put(*bucket_, std::to_string(i), bytes_of(kObjectBytes, i)));
  }
  std::vector<Bytes> out(kReads, Bytes(100));
  std::vector<ObjectRead> reads;
  for (std::size_t i = 0; i < kReads; ++i) {
    // Every tenth object is missing, and every tenth read crosses the end.
    const auto name = i % 10 == 9 ? "missing" : std::to_string(i % kObjects);
    const auto offset = i % 10 == 8 ? kObjectBytes - 50 : i * 7;
    reads.push_back({.name = name, .offset = offset, .out = out[i]});
  }
  test::Completions completions(kReads);
  bucket_->read_many(reads, completions.receiver());
  const auto results = completions.wait();
  for (std::size_t i = 0; i < kReads; ++i) {
    ASSERT_EQ(results[i].size(), 1) << i;
    const auto& got = results[i][0];
    if (i % 10 == 9) {
      ASSERT_FALSE(got);
      EXPECT_EQ(got.error().code(), ErrorCode::kNotFound);
      continue;
    }
    ASSERT_TRUE(got) << got.error().message();
    ASSERT_EQ(*got, i % 10 == 8 ? 50 : 100) << i;
    const auto body = bytes_of(kObjectBytes, static_cast<unsigned>(i % kObjects));
    EXPECT_TRUE(std::equal(out[i].begin(), out[i].begin() + *got, body.begin() + reads[i].offset));
  }
  bucket_->read_many({}, [](std::size_t, Result<std::size_t>) { ADD_FAILURE(); });
}

TEST_P(BucketContract, InvalidNamesAreRefused) {
  Bytes out(1);
  const std::vector<std::string> invalid = {"",       "/", "a/",   "a//b", "../b/x",
                                            "a/../b", ".", "a\nb", "\xff", std::string(1025, 'x')};
  for (const auto& name : invalid) {
    EXPECT_EQ(put(*bucket_, name, {}).error().code(), ErrorCode::kInvalid) << name;
    EXPECT_EQ(bucket_->get(name, 0, out).error().code(), ErrorCode::kInvalid) << name;
    EXPECT_EQ(bucket_->get_all(name, 1).error().code(), ErrorCode::kInvalid) << name;
    EXPECT_EQ(bucket_->head(name).error().code(), ErrorCode::kInvalid) << name;
    EXPECT_EQ(bucket_->remove(name).error().code(), ErrorCode::kInvalid) << name;
    EXPECT_EQ(bucket_->copy_prefix(name, 1, "y", {}).error().code(), ErrorCode::kInvalid) << name;
    EXPECT_EQ(bucket_->copy_prefix("x", 1, name, {}).error().code(), ErrorCode::kInvalid) << name;
  }
}

TEST_P(BucketContract, ManyThreadsUseOneBucket) {
  constexpr unsigned kThreads = 8;
  constexpr unsigned kRounds = 10;
  std::vector<std::thread> threads;
  std::atomic<unsigned> right = 0;
  for (unsigned t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (unsigned i = 0; i < kRounds; ++i) {
        const auto name = "t" + std::to_string(t) + "/" + std::to_string(i);
        const auto body = bytes_of(1000 * t + i, t * 100 + i);
        if (!put(*bucket_, name, body)) continue;
        const auto got = bucket_->get_all(name, 100000);
        if (got && *got == body) ++right;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(right, kThreads * kRounds);
  EXPECT_EQ(names(*bucket_, "").size(), kThreads * kRounds);
}

TEST_P(BucketContract, TrafficIsCountedByKind) {
  const auto of = [this](RequestKind kind) {
    return bucket_->traffic()[static_cast<std::size_t>(kind)];
  };
  const auto before = bucket_->traffic();
  ASSERT_TRUE(put(*bucket_, "x", bytes_of(1000, 1)));
  Bytes out(100);
  ASSERT_TRUE(bucket_->get("x", 0, out));
  ASSERT_TRUE(bucket_->list("", {}, 10));
  ASSERT_TRUE(bucket_->head("x"));
  ASSERT_TRUE(bucket_->remove("x"));
  for (const auto kind : {RequestKind::kPut, RequestKind::kGet, RequestKind::kList,
                          RequestKind::kHead, RequestKind::kRemove}) {
    const auto counts = of(kind);
    const auto requests = before[static_cast<std::size_t>(kind)].requests;
    EXPECT_EQ(counts.requests - counts.repeated, requests + 1) << name_of(kind);
  }
  EXPECT_GE(of(RequestKind::kPut).bytes_sent, 1000);
  EXPECT_GE(of(RequestKind::kGet).bytes_received, 100);
  EXPECT_EQ(of(RequestKind::kCopy).requests, 0);
}

TEST_P(BucketContract, AStoppedBucketEndsItsCalls) {
  bucket_->stop();
  Bytes out(1);
  EXPECT_EQ(put(*bucket_, "x", {}).error().code(), ErrorCode::kInterrupted);
  EXPECT_EQ(bucket_->get("x", 0, out).error().code(), ErrorCode::kInterrupted);
  EXPECT_EQ(bucket_->list("", {}, 1).error().code(), ErrorCode::kInterrupted);
  test::Completions completions(1);
  bucket_->read_many({{.name = "x", .offset = 0, .out = out}}, completions.receiver());
  EXPECT_EQ(completions.wait()[0][0].error().code(), ErrorCode::kInterrupted);
}

TEST_P(BucketContract, AProbeFindsTheAbilitiesAndLeavesNothing) {
  const auto abilities = probe_abilities(*bucket_, "p/");
  ASSERT_TRUE(abilities) << abilities.error().message();
  EXPECT_EQ(abilities->conditions, Conditions::kHonoured);
  EXPECT_TRUE(abilities->copies_ranges);
  EXPECT_TRUE(abilities->lists_at_once);
  EXPECT_TRUE(abilities->removes);
  EXPECT_TRUE(names(*bucket_, "").empty());
}

// VARVE_TEST_S3_LOCKS says that the real store's bucket was made with object lock.
TEST_P(BucketContract, AProbeOfLocksSaysWhyThereAreNone) {
  const auto reason =
      try_lock(*bucket_, "probe/", LockMode::kGovernance, base::SystemClock().now().seconds);
  ASSERT_TRUE(reason) << reason.error().message();
  const bool has_locks =
      GetParam().name == "RealStore" && std::getenv("VARVE_TEST_S3_LOCKS") != nullptr;
  EXPECT_EQ(reason->empty(), has_locks) << *reason;
}

INSTANTIATE_TEST_SUITE_P(, BucketContract, testing::ValuesIn(test::bucket_subjects()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace varve::bucket
