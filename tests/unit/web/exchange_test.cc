// SPDX-License-Identifier: Apache-2.0
#include "web/exchange.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <span>
#include <string>

#include "base/unique_fd.h"

namespace varve::web {
namespace {

/// A connection whose other end collects the answer.
class Connection {
 public:
  Connection() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    ours_ = base::UniqueFd(ends[0]);
    theirs_ = base::UniqueFd(ends[1]);
  }
  [[nodiscard]] int socket() const { return ours_.get(); }
  /// Closes the connection and returns the answer.
  std::string answer() {
    ours_.reset();
    std::string text;
    std::array<char, 4096> buffer;
    for (ssize_t got = 0; (got = ::read(theirs_.get(), buffer.data(), buffer.size())) > 0;) {
      text.append(buffer.data(), static_cast<std::size_t>(got));
    }
    return text;
  }
  void hang_up() { theirs_.reset(); }

 private:
  base::UniqueFd ours_;
  base::UniqueFd theirs_;
};

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

TEST(Exchange, BodyOfKnownLengthFollowsTheHeaders) {
  Connection connection;
  Exchange exchange(connection.socket(), false);
  ASSERT_TRUE(exchange.send_text(404, "nothing", {{"X", "y"}}));
  const std::string answer = connection.answer();
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 404 Not Found\r\n"));
  EXPECT_TRUE(answer.ends_with("\r\nX: y\r\n\r\nnothing\n"));
  EXPECT_NE(answer.find("\r\nContent-Length: 8\r\n"), std::string::npos);
  EXPECT_NE(answer.find("\r\nX-Content-Type-Options: nosniff\r\n"), std::string::npos);
  EXPECT_NE(answer.find("default-src 'none'"), std::string::npos);
}

TEST(Exchange, HeadHasNoBody) {
  Connection connection;
  Exchange exchange(connection.socket(), true);
  ASSERT_TRUE(exchange.send_text(200, "nothing"));
  const std::string answer = connection.answer();
  EXPECT_TRUE(answer.ends_with("\r\n\r\n"));
  EXPECT_NE(answer.find("\r\nContent-Length: 8\r\n"), std::string::npos);
}

TEST(Exchange, BodyOfUnknownLengthIsCompleteOnlyAfterEnd) {
  for (const bool ends : {false, true}) {
    Connection connection;
    Exchange exchange(connection.socket(), false);
    ASSERT_TRUE(exchange.begin(200, "a/b", std::nullopt, {}));
    ASSERT_TRUE(exchange.write(bytes_of("0123456789abcdef0")));
    ASSERT_TRUE(exchange.write({}));  // Would end the body.
    if (ends) {
      ASSERT_TRUE(exchange.end());
    }
    const std::string answer = connection.answer();
    EXPECT_TRUE(answer.ends_with(std::string("\r\n11\r\n0123456789abcdef0\r\n") +
                                 (ends ? "0\r\n\r\n" : "")));
  }
}

TEST(Exchange, ClosedConnectionIsAnError) {
  Connection connection;
  connection.hang_up();
  Exchange exchange(connection.socket(), false);
  EXPECT_FALSE(exchange.send_text(200, "nothing"));
  EXPECT_TRUE(exchange.has_begun());
}

TEST(Attachment, NameCannotEndTheHeader) {
  EXPECT_EQ(attachment("a b.txt"), "attachment; filename=\"a_b.txt\"; filename*=UTF-8''a%20b.txt");
  const std::string evil = attachment("\"\r\nX: y;\xff");
  EXPECT_EQ(evil, "attachment; filename=\"___X__y__\"; filename*=UTF-8''%22%0D%0AX%3A%20y%3B%FF");
}

}  // namespace
}  // namespace varve::web
