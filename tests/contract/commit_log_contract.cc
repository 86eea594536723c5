// SPDX-License-Identifier: Apache-2.0
// Checks the log of commits on each kind of bucket: that a number has one commit, and that each
// writer learns of another one's.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/coding.h"
#include "bucket_subject.h"
#include "remote/commit_log.h"
#include "remote/head.h"
#include "support/temp_repository.h"

namespace varve::remote {
namespace {

using test::must;

const std::string kId(32, 'a');

class CommitLogContract : public testing::TestWithParam<test::BucketSubjectMaker> {
 protected:
  void SetUp() override {
    subject_ = GetParam().make();
    ASSERT_NE(subject_, nullptr);
    bucket_ = subject_->open("p/");
    ASSERT_NE(bucket_, nullptr);
    log_.emplace(*bucket_, kId);
  }
  void put(const std::string& name, const std::string& text) {
    const std::array<std::span<const std::byte>, 1> parts{base::as_bytes(text)};
    must(bucket_->put(name, parts, {}));
  }
  /// Creates commits 1 to `last`, whose texts are "1", "2" and so on.
  void create_up_to(std::uint64_t last) {
    for (std::uint64_t number = 1; number <= last; ++number) {
      ASSERT_EQ(must(log_->create(commit(number - 1), commit(number))), std::nullopt);
    }
  }
  static Commit commit(std::uint64_t number) { return {number, std::to_string(number)}; }

  std::unique_ptr<test::BucketSubject> subject_;
  std::unique_ptr<bucket::Bucket> bucket_;
  std::optional<CommitLog> log_;
};

TEST_P(CommitLogContract, ACommitIsCreatedOnce) {
  EXPECT_EQ(must(log_->create({}, {1, "one"})), std::nullopt);
  EXPECT_EQ(must(log_->create({}, {1, "one"})), std::nullopt) << "its answer may have been lost";
  EXPECT_EQ(must(log_->create({}, {1, "other"})), (Commit{1, "one"}));
  EXPECT_EQ(must(log_->read(1)), "one");
  EXPECT_EQ(test::code_of(log_->read(2)), ErrorCode::kNotFound);
}

TEST_P(CommitLogContract, OneOfManyWritersCreatesEachCommit) {
  constexpr int kWriters = 8;
  constexpr std::uint64_t kCommits = 10;
  Commit previous;
  for (std::uint64_t number = 1; number <= kCommits; ++number) {
    std::vector<Result<std::optional<Commit>>> outcomes(kWriters, std::optional<Commit>());
    {
      std::vector<std::jthread> writers;
      for (int i = 0; i < kWriters; ++i) {
        writers.emplace_back([&, i] {
          outcomes[i] = log_->create(previous, {number, std::to_string(i)});
        });
      }
    }
    const auto text = must(log_->read(number));
    for (int i = 0; i < kWriters; ++i) {
      const auto other = must(outcomes[i]);
      if (text == std::to_string(i)) {
        EXPECT_EQ(other, std::nullopt);
      } else {
        EXPECT_EQ(other, (Commit{number, text}));
      }
    }
    previous = {number, text};
  }
}

// Only a store that lets two writers create one commit replaces a commit.
TEST_P(CommitLogContract, AReplacedCommitIsFoundBeforeTheNextOneIsCreated) {
  create_up_to(2);
  put(log_->name(2), "of another writer");
  EXPECT_EQ(must(log_->create(commit(2), commit(3))), (Commit{2, "of another writer"}));
  EXPECT_EQ(test::code_of(log_->read(3)), ErrorCode::kNotFound);
  must(bucket_->remove(log_->name(2)));
  EXPECT_EQ(test::code_of(log_->create(commit(2), commit(3))), ErrorCode::kNotFound);
}

TEST_P(CommitLogContract, AWriterThatWasStalledFindsALaterCommit) {
  create_up_to(3);
  must(bucket_->remove(log_->name(1)));
  must(bucket_->remove(log_->name(2)));
  EXPECT_EQ(must(log_->create(commit(1), {2, "late"})), (Commit{3, "3"}));
  EXPECT_EQ(must(log_->create({}, {1, "late"})), (Commit{3, "3"}));
}

TEST_P(CommitLogContract, AnotherCommitThanTheKnownOneIsFound) {
  EXPECT_EQ(must(log_->other_than({})), std::nullopt);
  create_up_to(2);
  EXPECT_EQ(must(log_->other_than({})), (Commit{1, "1"}));
  EXPECT_EQ(must(log_->other_than({1, "1"})), (Commit{2, "2"}));
  EXPECT_EQ(must(log_->other_than({2, "2"})), std::nullopt);
  EXPECT_EQ(must(log_->other_than({2, "own"})), (Commit{2, "2"}));
  EXPECT_EQ(test::code_of(log_->other_than({3, "3"})), ErrorCode::kNotFound);
  must(bucket_->remove(log_->name(1)));
  EXPECT_EQ(must(log_->other_than({1, "1"})), (Commit{2, "2"}));
}

TEST_P(CommitLogContract, CommitsAreListedInTheirOrder) {
  EXPECT_EQ(must(log_->newest()), std::nullopt);
  create_up_to(12);
  for (const auto* const name : {"-1", "0000000000", "0000000013.bak", "99999999999", "zzz"}) {
    put(head_prefix(kId) + name, "no commit");
  }
  put(head_name(std::string(32, 'b'), 20), "of another repository");
  std::vector<std::uint64_t> numbers;
  must(log_->list(9, [&](std::uint64_t number, Timestamp created) {
    numbers.push_back(number);
    EXPECT_GT(created.seconds, 0);
  }));
  EXPECT_EQ(numbers, (std::vector<std::uint64_t>{10, 11, 12}));
  EXPECT_EQ(must(log_->newest()), 12U);
  EXPECT_EQ(must(log_->newest(12)), std::nullopt);
  EXPECT_EQ(must(log_->later_than(11)), (Commit{12, "12"}));
  EXPECT_EQ(must(log_->later_than(12)), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(, CommitLogContract, testing::ValuesIn(test::bucket_subjects()),
                         [](const auto& of) { return of.param.name; });

TEST(CommitLog, ACommitThatAnotherWriterReplacedIsNotAcknowledged) {
  const auto objects = std::make_shared<test::MemoryObjects>();
  test::MemoryBucket bucket(objects);
  test::MemoryBucket other(objects);
  CommitLog log(bucket, kId);
  // The store lets the other writer create the commit, too, just after the first writer.
  bucket.set_faults([&](std::uint64_t request, bucket::RequestKind, const std::string& name) {
    if (request != 1) return test::Fault::kNone;
    const std::array<std::span<const std::byte>, 1> parts{base::as_bytes("other")};
    must(other.put(name, parts, {}));
    return test::Fault::kNone;
  });
  EXPECT_EQ(must(log.create({}, {1, "own"})), (Commit{1, "other"}));
}

/// Two writers whose requests fail: one of them at the request `k`, in each way.
class CommitLogFaults : public testing::TestWithParam<test::Fault> {
 protected:
  using Outcome = Result<std::optional<Commit>>;

  /// Creates until an answer arrives, as a writer does.
  static std::optional<Commit> insist(CommitLog& log, const std::string& text) {
    while (true) {
      auto outcome = log.create({}, {1, text});
      if (outcome) return *std::move(outcome);
      EXPECT_EQ(outcome.error().code(), ErrorCode::kUnavailable);
    }
  }
};

TEST_P(CommitLogFaults, NoNumberHasTwoCommits) {
  constexpr std::uint64_t kRequestsMax = 4;  // Put, get, list, get.
  for (std::uint64_t k = 0; k < kRequestsMax; ++k) {
    for (const bool other_commits_before : {false, true}) {
      for (const bool is_removed : {false, true}) {
        const auto objects = std::make_shared<test::MemoryObjects>();
        test::MemoryBucket first_bucket(objects);
        test::MemoryBucket second_bucket(objects);
        CommitLog first(first_bucket, kId);
        CommitLog second(second_bucket, kId);
        if (other_commits_before) must(second.create({}, {1, "second"}));
        first_bucket.fail_at(k, GetParam());
        const auto begun = first.create({}, {1, "first"});
        // The second writer goes on while the first one waits for its answer.
        const auto other = must(second.create({}, {1, "second"}));
        if (!other) {
          must(second.create({1, "second"}, {2, "second"}));
          if (is_removed) must(second_bucket.remove(second.name(1)));
        }
        first_bucket.apply_late();
        const auto own = begun ? *begun : insist(first, "first");
        EXPECT_NE(own.has_value(), other.has_value()) << "one of the two goes on, at request " << k;
        if (own) {
          EXPECT_EQ(own->text, "second");
        }
        if (other) {
          EXPECT_EQ(*other, (Commit{1, "first"}));
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, CommitLogFaults,
                         testing::Values(test::Fault::kNone, test::Fault::kBefore,
                                         test::Fault::kLost, test::Fault::kLater));

}  // namespace
}  // namespace varve::remote
