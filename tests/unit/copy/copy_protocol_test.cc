// SPDX-License-Identifier: Apache-2.0
// The stream between a source and a target, with another end that breaks the rules.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/coding.h"
#include "copy/local_target.h"
#include "copy/message.h"
#include "copy/message_stream.h"
#include "copy/raw_source.h"
#include "copy/remote_target.h"
#include "format/fingerprinter.h"
#include "support/temp_repository.h"
#include "varve/copy.h"

namespace varve::copy {
namespace {

using test::code_of;
using test::Conversation;
using test::must;
using test::RawSource;

constexpr std::string_view kBytes = "the bytes of a chunk";

ChunkRef chunk_of(std::string_view bytes) {
  return {static_cast<std::uint32_t>(bytes.size()),
          format::make_sha256_fingerprinter()->fingerprint(base::as_bytes(bytes)),
          {}};
}

Change change(ChangeKind kind, const std::string& name) {
  Change made;
  made.kind = kind;
  made.name = name;
  made.mode = S_IFREG | 0644;
  return made;
}

Change data(const std::string& name, std::string_view bytes) {
  Change written = change(ChangeKind::kData, name);
  written.mode = 0;
  written.chunks.push_back(chunk_of(bytes));
  return written;
}

class HostileSource : public testing::Test {
 protected:
  HostileSource() {
    must(Repository::create(place_.path() + "/r", test::small_chunks(Codec::kNone)));
    repository_ = test::reopen(place_.path() + "/r");
    source_ = std::make_unique<RawSource>(*repository_);
    source_->expect<HelloAnswer>(HelloRequest());
    series_ =
        static_cast<SeriesId>(source_->expect<NumberAnswer>(CreateSeriesRequest{"s", {}}).number);
  }

  void begin() {
    CopyBegin copy;
    copy.series = series_;
    copy.origin = {std::string(32, 'a'), SeriesId{1}, VersionNumber{1}, {5, 5}, true};
    source_->expect<NumberAnswer>(copy);
  }
  /// Sends changes with the bytes of their chunks. Returns the error that they end with.
  Error error_of(std::vector<Change> changes, std::vector<std::string> chunks = {}) {
    begin();
    const auto offered = source_->ask(ChangeBatch{std::move(changes)});
    if (const auto* const error = std::get_if<Error>(&offered)) return *error;
    source_->send(FillRequest{std::move(chunks)});
    const auto settled = source_->ask(SettleRequest());
    const auto* const error = std::get_if<Error>(&settled);
    return error != nullptr ? *error : Error(ErrorCode::kInterrupted, "no error");
  }

  const test::TempDirectory place_;
  std::unique_ptr<Repository> repository_;
  SeriesId series_{};
  std::unique_ptr<RawSource> source_;
};

TEST(CopyMessages, EveryErrorArrivesAndNoOtherCode) {
  for (int code = 0; code <= static_cast<int>(ErrorCode::kIncomplete); ++code) {
    const Error sent(static_cast<ErrorCode>(code), "why");
    const auto answer = must(decode_answer(base::as_bytes(encode_answer(sent))));
    const auto* const error = std::get_if<Error>(&answer);
    ASSERT_NE(error, nullptr) << code;
    EXPECT_EQ(error->code(), sent.code());
    EXPECT_EQ(error->message(), "why");
  }
  const Error unknown(static_cast<ErrorCode>(static_cast<int>(ErrorCode::kIncomplete) + 1), "why");
  EXPECT_EQ(code_of(decode_answer(base::as_bytes(encode_answer(unknown)))), ErrorCode::kCorrupt);
}

TEST(CopyMessages, EachKindOfTargetArrivesAndNoOther) {
  HelloRequest hello;
  for (int kind = 0; kind <= static_cast<int>(TargetKind::kExistingEncrypted); ++kind) {
    hello.setup.kind = static_cast<TargetKind>(kind);
    const auto request = must(decode_request(base::as_bytes(encode_request(hello))));
    EXPECT_EQ(std::get<HelloRequest>(request).setup.kind, hello.setup.kind);
  }
  hello.setup.kind = static_cast<TargetKind>(4);
  EXPECT_EQ(code_of(decode_request(base::as_bytes(encode_request(hello)))), ErrorCode::kCorrupt);
}

TEST_F(HostileSource, NamesThatAreNoNamesAreRefused) {
  for (const std::string& name :
       {std::string(".."), std::string("."), std::string("a/b"), std::string("a\0b", 3)}) {
    EXPECT_EQ(error_of({change(ChangeKind::kMake, name)}).code(), ErrorCode::kInvalid) << name;
  }
}

TEST_F(HostileSource, WaysOutOfTheVersionAreRefused) {
  EXPECT_EQ(error_of({Change()}).code(), ErrorCode::kInvalid);
  Change link = change(ChangeKind::kLink, "l");
  link.mode = 0;
  for (const char* const target : {"../x", "/etc/passwd", "", "a//b"}) {
    link.target = target;
    EXPECT_NE(error_of({link}).code(), ErrorCode::kInterrupted) << target;
  }
}

TEST_F(HostileSource, AttributesThatOnlyVarveSetsAreRefused) {
  Change attributes = change(ChangeKind::kAttributes, "");
  attributes.mode = S_IFDIR | 0755;
  attributes.xattrs = {{"user.varve.copied_from", "forged"}};
  EXPECT_EQ(error_of({attributes}).code(), ErrorCode::kInvalid);
}

TEST_F(HostileSource, ChunkWithAnotherFingerprintIsRefused) {
  const std::string forged(kBytes.size(), 'x');
  EXPECT_EQ(error_of({change(ChangeKind::kMake, "f"), data("f", kBytes)}, {forged}).code(),
            ErrorCode::kCorrupt);
}

TEST_F(HostileSource, AnotherNumberOfChunksIsRefused) {
  const std::vector<Change> changes{change(ChangeKind::kMake, "f"), data("f", kBytes)};
  EXPECT_EQ(error_of(changes).code(), ErrorCode::kInvalid);
  const std::string bytes(kBytes);
  EXPECT_EQ(error_of(changes, {bytes, bytes}).code(), ErrorCode::kInvalid);
}

TEST_F(HostileSource, DataOfADirectoryIsRefused) {
  Change folder = change(ChangeKind::kMake, "d");
  folder.mode = S_IFDIR | 0755;
  EXPECT_EQ(error_of({folder, data("d", kBytes)}, {std::string(kBytes)}).code(),
            ErrorCode::kInvalid);
}

TEST_F(HostileSource, SealedVersionStaysAsItIs) {
  EXPECT_EQ(error_of({change(ChangeKind::kMake, "f"), data("f", kBytes)}, {std::string(kBytes)})
                .message(),
            "no error");
  source_->expect<TargetVersion>(CopySeal{"v", {}, true, 0});
  EXPECT_TRUE(std::holds_alternative<Error>(source_->ask(CopySeal{"w", {}, true, 0})));
  EXPECT_TRUE(
      std::holds_alternative<Error>(source_->ask(ChangeBatch{{change(ChangeKind::kRemove, "f")}})));
  const auto version = must(repository_->find_version(series_, "v"));
  const auto reader = must(repository_->reader(series_, version.number));
  EXPECT_EQ(test::read_sealed(*reader, "f"), kBytes);
}

TEST_F(HostileSource, OffersWithoutDataAreBounded) {
  begin();
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(
        std::holds_alternative<std::vector<bool>>(source_->ask(ChangeBatch{{data("f", kBytes)}})));
  }
  EXPECT_TRUE(std::holds_alternative<Error>(source_->ask(ChangeBatch{{data("f", kBytes)}})));
}

TEST_F(HostileSource, NoRequestBeforeTheOneThatBegins) {
  for (const Request& request :
       {Request(SettleRequest()), Request(CopySeal{"v", {}, true, 0}), Request(DropRequest()),
        Request(ChangeBatch()), Request(CheckRequest{series_, {}, true, {}}),
        Request(CheckRequest{series_, {}, false, {}})}) {
    EXPECT_TRUE(std::holds_alternative<Error>(source_->ask(request))) << request.index();
  }
}

TEST_F(HostileSource, GarbageEndsTheCopy) {
  source_->send_bytes("\xff garbage");
  EXPECT_EQ(code_of(source_->served()), ErrorCode::kCorrupt);
}

TEST_F(HostileSource, DamagedMessageEndsTheCopy) {
  const std::string header("\x01\0\0\0\0\0\0\0\0\0\0\0x", 13);
  ASSERT_EQ(::write(source_->output(), header.data(), header.size()), 13);
  EXPECT_EQ(code_of(source_->served()), ErrorCode::kCorrupt);
}

TEST_F(HostileSource, LongMessageEndsTheCopy) {
  const std::string header("\xff\xff\xff\xff\0\0\0\0\0\0\0\0", 12);
  ASSERT_EQ(::write(source_->output(), header.data(), header.size()), 12);
  EXPECT_EQ(code_of(source_->served()), ErrorCode::kCorrupt);
}

TEST_F(HostileSource, EndInsideAMessageKeepsWhatIsThere) {
  EXPECT_EQ(error_of({change(ChangeKind::kMake, "f")}).message(), "no error");
  ASSERT_EQ(::write(source_->output(), "abc", 3), 3);
  EXPECT_EQ(code_of(source_->served()), ErrorCode::kUnavailable);
  EXPECT_EQ(must(repository_->open_versions(series_)).size(), 1U);
}

/// Returns the error of connecting to an end that does `other_end`.
ErrorCode code_of_connecting(const std::function<void(int in, int out)>& other_end) {
  Conversation conversation(other_end);
  RemoteTarget target(conversation.input(), conversation.output());
  return code_of(target.connect({}, false));
}

void say(int out, std::string_view text) {
  EXPECT_EQ(::write(out, text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

TEST(HostileTarget, OtherProgramsAreRecognised) {
  EXPECT_EQ(code_of_connecting([](int, int) {}), ErrorCode::kUnavailable);
  EXPECT_EQ(code_of_connecting([](int, int out) { say(out, "Welcome to this machine!\n"); }),
            ErrorCode::kUnavailable);
  EXPECT_EQ(code_of_connecting([](int, int out) { say(out, "varve-copy 5\n"); }),
            ErrorCode::kUnsupported);
  EXPECT_EQ(code_of_connecting([](int, int out) { say(out, std::string(5000, 'x')); }),
            ErrorCode::kUnavailable);
}

TEST(HostileTarget, AnswersToOtherQuestionsAreRefused) {
  EXPECT_EQ(code_of_connecting([](int in, int out) {
              MessageStream stream(in, out);
              must(stream.greet());
              must(stream.receive());
              must(stream.send(encode_answer(NumberAnswer{1})));
            }),
            ErrorCode::kCorrupt);
  EXPECT_EQ(code_of_connecting([](int in, int out) {
              MessageStream stream(in, out);
              must(stream.greet());
              must(stream.receive());
              must(stream.send("nonsense"));
            }),
            ErrorCode::kCorrupt);
}

TEST(CopyMessages, EachChangeOfOneByteIsRefusedOrAnotherMessage) {
  Change attributes = change(ChangeKind::kAttributes, "f");
  attributes.xattrs = {{"user.a", "1"}, {"user.b", "2"}};
  const Request request =
      ChangeBatch{{change(ChangeKind::kMake, "f"), data("f", kBytes), attributes}};
  const std::string encoded = encode_request(request);
  EXPECT_EQ(encode_request(must(decode_request(base::as_bytes(encoded)))), encoded);
  for (std::size_t at = 0; at < encoded.size(); ++at) {
    std::string other = encoded;
    other[at] = static_cast<char>(other[at] ^ 0x11);
    const auto decoded = decode_request(base::as_bytes(other));
    if (decoded) {
      EXPECT_NE(encode_request(*decoded), encoded);
    } else {
      EXPECT_EQ(decoded.error().code(), ErrorCode::kCorrupt);
    }
    EXPECT_FALSE(decode_request(base::as_bytes(std::string_view(encoded).substr(0, at))));
  }
}

}  // namespace
}  // namespace varve::copy
