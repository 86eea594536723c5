// SPDX-License-Identifier: Apache-2.0
#include "web/reception.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace varve::web {
namespace {

constexpr unsigned kTimeout = 408;
constexpr std::chrono::seconds kRequestTime{10};
constexpr std::chrono::seconds kDrainTime{2};

}  // namespace

void Reception::put(Connection connection) {
  if (connections_.size() >= kReceivingMax) connections_.pop_front();
  connections_.push_back(std::move(connection));
}

void Reception::add(base::UniqueFd socket) {
  put({std::move(socket), std::chrono::steady_clock::now() + kRequestTime});
}

void Reception::drain(base::UniqueFd socket) {
  ::shutdown(socket.get(), SHUT_WR);
  put({std::move(socket), std::chrono::steady_clock::now() + kDrainTime, true});
}

void Reception::add_waits(std::vector<struct pollfd>& waits) const {
  for (const auto& connection : connections_) waits.push_back({connection.socket.get(), POLLIN, 0});
}

int Reception::wait_ms() const {
  if (connections_.empty()) return -1;
  const auto first =
      std::min_element(connections_.begin(), connections_.end(),
                       [](const Connection& a, const Connection& b) { return a.end < b.end; });
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      first->end - std::chrono::steady_clock::now());
  return static_cast<int>(std::max<std::chrono::milliseconds::rep>(left.count(), 0) + 1);
}

bool Reception::read(Connection& connection, ParsedRequest& parsed) {
  std::array<char, 4096> buffer;
  while (true) {
    const ssize_t got = ::recv(connection.socket.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
    if (got <= 0) return false;
    // A single read for each call: a client sending without end must not hold the thread.
    if (connection.drains) return true;
    connection.bytes.append(buffer.data(), static_cast<std::size_t>(got));
    parsed = parse_request(connection.bytes);
    if (parsed.request || parsed.status != 0) return true;
  }
}

std::vector<Received> Reception::receive() {
  std::vector<Received> received;
  std::deque<Connection> rest;
  const auto now = std::chrono::steady_clock::now();
  for (auto& connection : connections_) {
    ParsedRequest parsed;
    if (!read(connection, parsed)) continue;
    if (!connection.drains && !parsed.request && parsed.status == 0 && now >= connection.end) {
      parsed.status = kTimeout;
    }
    if (parsed.request || parsed.status != 0) {
      received.push_back({std::move(connection.socket), std::move(parsed)});
    } else if (now < connection.end) {
      rest.push_back(std::move(connection));
    }
  }
  connections_ = std::move(rest);
  return received;
}

}  // namespace varve::web
