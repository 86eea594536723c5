// SPDX-License-Identifier: Apache-2.0
// A server on the loopback interface that answers each HTTP request with the bytes a test gives.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace varve::test {

/// Answers one connection after the other in a thread of its own. Each connection has one request.
class RawHttpServer {
 public:
  struct Answer {
    std::string bytes{};
    std::string endless{};  ///< Follows the bytes without end, unless it is empty.
  };
  /// Returns the answer to a request: its head and body. Called from the server's thread.
  using Handler = std::function<Answer(const std::string& request)>;

  explicit RawHttpServer(Handler handler) : handler_(std::move(handler)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof(address);
    auto* const raw = reinterpret_cast<sockaddr*>(&address);
    if (::bind(listener_, raw, bytes) == 0 && ::listen(listener_, 64) == 0 &&
        ::getsockname(listener_, raw, &bytes) == 0) {
      port_ = ntohs(address.sin_port);
    }
    thread_ = std::thread([this] { serve(); });
  }
  RawHttpServer(const RawHttpServer&) = delete;
  RawHttpServer& operator=(const RawHttpServer&) = delete;
  ~RawHttpServer() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
  }

  [[nodiscard]] std::string endpoint() const { return "http://127.0.0.1:" + std::to_string(port_); }
  /// Returns the requests so far.
  [[nodiscard]] std::vector<std::string> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  void serve() {
    while (true) {
      const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (client < 0) return;
      const auto request = read_request(client);
      if (!request.empty()) {
        const auto answer = handler_(request);
        {
          const std::lock_guard lock(mutex_);
          requests_.push_back(request);
        }
        bool is_open = send_all(client, answer.bytes);
        while (is_open && !answer.endless.empty()) is_open = send_all(client, answer.endless);
      }
      ::shutdown(client, SHUT_RDWR);
      ::close(client);
    }
  }
  static std::string read_request(int client) {
    std::string request;
    std::array<char, 65536> buffer{};
    std::size_t whole = std::string::npos;
    while (request.size() < whole) {
      const auto got = ::recv(client, buffer.data(), buffer.size(), 0);
      if (got <= 0) return {};
      request.append(buffer.data(), static_cast<std::size_t>(got));
      const auto end = request.find("\r\n\r\n");
      if (whole != std::string::npos || end == std::string::npos) continue;
      const auto length = request.find("Content-Length: ");
      whole = end + 4 + (length < end ? std::stoul(request.substr(length + 16)) : 0);
    }
    return request;
  }
  static bool send_all(int client, const std::string& bytes) {
    for (std::size_t sent = 0; sent < bytes.size();) {
      const auto more = ::send(client, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (more <= 0) return false;
      sent += static_cast<std::size_t>(more);
    }
    return true;
  }

  const Handler handler_;
  int listener_ = -1;
  int port_ = 0;
  mutable std::mutex mutex_;  // Guards the requests.
  std::vector<std::string> requests_;
  std::thread thread_;
};

/// Returns an HTTP answer with a body and its length.
inline std::string http_answer(int status, const std::string& body,
                               const std::string& headers = {}) {
  return "HTTP/1.1 " + std::to_string(status) +
         " x\r\nConnection: close\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" +
         headers + "\r\n" + body;
}

}  // namespace varve::test
