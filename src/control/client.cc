// SPDX-License-Identifier: Apache-2.0
#include "control/client.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "control/socket.h"

namespace varve::control {

namespace {

/// Time in which a signal to the writer of a stream also reaches this process.
constexpr int kStopPauseMs = 50;

Error lacks(std::string_view what) {
  return {ErrorCode::kInvalid, "the daemon's answer lacks the " + std::string(what)};
}

Request request_for(Operation operation) {
  Request request;
  request.operation = operation;
  return request;
}
}  // namespace

Result<Client> Client::connect(const std::string& repository, const ClientPatience& patience) {
  Client client(repository, patience);
  VARVE_TRY(client.connect());
  return client;
}

Result<void> Client::connect() {
  VARVE_TRY_ASSIGN(Connected connected, connect_to(repository_, patience_.silence));
  socket_ = std::move(connected.socket);
  process_ = connected.process;
  user_ = connected.user;
  // A daemon that refuses the connection sends the reason and disconnects without reading this
  // request.
  const auto sent =
      send_line(socket_.get(), encode(request_for(Operation::kHello)), patience_.silence);
  if (!sent && sent.error().code() == ErrorCode::kUnavailable) return silent();
  const auto reply = receive(-1);
  if (!reply && reply.error().code() == ErrorCode::kInvalid) {
    // A daemon of protocol 1 does not know the request.
    return daemon_refused(1, process_);
  }
  if (!reply) return reply.error();
  if (!reply->identity) return lacks("identity");
  identity_ = *reply->identity;
  if (identity_.protocol != kProtocol) return daemon_refused(identity_.protocol, process_);
  const struct stat& folder = connected.repository.status;
  if (identity_.device != folder.st_dev || identity_.inode != folder.st_ino) {
    // The socket of another repository, or a link, has replaced the repository's socket.
    return Error(
        ErrorCode::kNotPermitted,
        fmt::format(
            "{}: the daemon that answers there (process {}) has opened another repository, {}",
            repository_, process_, identity_.repository));
  }
  return {};
}

/// Sends a request. Connects again first if the daemon has dropped the idle connection.
Result<void> Client::send(const Request& request, int passed) {
  pollfd closed = {.fd = socket_.get(), .events = POLLRDHUP, .revents = 0};
  if (::poll(&closed, 1, 0) > 0) VARVE_TRY(connect());
  const auto line = encode(request);
  const auto sent = passed < 0 ? send_line(socket_.get(), line, patience_.silence)
                               : send_line_with(socket_.get(), line, passed, patience_.silence);
  if (!sent && sent.error().code() == ErrorCode::kUnavailable) return silent();
  return sent;
}

Result<Reply> Client::ask(const Request& request) {
  VARVE_TRY(send(request));
  return receive(-1);
}

Result<Reply> Client::receive(int stop) {
  VARVE_TRY_ASSIGN(Reply reply, receive_any(stop));
  if (reply.error) return *std::move(reply.error);
  return reply;
}

Result<Reply> Client::receive_any(int stop) {
  for (;;) {
    auto line = receive_sign_of_life(stop);
    if (!line && line.error().code() == ErrorCode::kNotFound) {
      return Error(ErrorCode::kIo, "the daemon ended before it answered; see the system log");
    }
    if (!line) return std::move(line).error();
    VARVE_TRY_ASSIGN(Reply reply, decode_reply(*line));
    if (!reply.working) return reply;
  }
}

/// Receives the next line, of any kind.
Result<std::string> Client::receive_sign_of_life(int stop) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kLook{250};
  const Clock::time_point begin = Clock::now();
  Clock::time_point seen_running = begin;
  for (;;) {
    VARVE_TRY_ASSIGN(const bool ready, wait_to_receive(socket_.get(), kLook, stop));
    if (ready) break;
    const Clock::time_point now = Clock::now();
    if (!is_stopped(process_)) seen_running = now;
    if (now - begin > patience_.silence || now - seen_running > patience_.stopped) return silent();
  }
  auto line = receive_line(socket_.get(), patience_.silence, stop);
  if (!line && line.error().code() == ErrorCode::kUnavailable) return silent();
  return line;
}

Error Client::silent() const {
  return {ErrorCode::kUnavailable,
          fmt::format("{}: {}", repository_, advice_for_silence(process_))};
}

Error Client::older(std::string_view lack) const {
  return {ErrorCode::kUnsupported,
          fmt::format("{}: the daemon (process {}) is of an older Varve and has no {}; unmount the "
                      "repository with `varve umount` and mount it again with this version",
                      repository_, process_, lack)};
}

Result<void> Client::ping() {
  VARVE_TRY(ask(request_for(Operation::kPing)));
  return {};
}

Result<void> Client::sync() {
  VARVE_TRY(ask(request_for(Operation::kSync)));
  return {};
}

Result<SealReply> Client::seal(const SealRequest& request, int stop) {
  Request asked = request_for(Operation::kSeal);
  asked.seal = request;
  VARVE_TRY(send(asked));
  VARVE_TRY_ASSIGN(Reply reply, receive(stop));
  if (!reply.version) return lacks("version");
  return SealReply{*std::move(reply.version), std::move(reply.next), std::move(reply.warning)};
}

Result<VersionInfo> Client::open(const OpenRequest& request) {
  Request asked = request_for(Operation::kOpen);
  asked.open = request;
  VARVE_TRY_ASSIGN(Reply reply, ask(asked));
  if (!reply.version) return lacks("version");
  return *std::move(reply.version);
}

Result<VersionInfo> Client::clone(const OpenRequest& request) {
  Request asked = request_for(Operation::kClone);
  asked.open = request;
  VARVE_TRY_ASSIGN(Reply reply, ask(asked));
  if (!reply.version) return lacks("version");
  return *std::move(reply.version);
}

Result<RepositoryStats> Client::stats() {
  VARVE_TRY_ASSIGN(Reply reply, ask(request_for(Operation::kStats)));
  if (!reply.stats) return lacks("sizes");
  return *reply.stats;
}

Result<std::vector<MetricSample>> Client::metrics() {
  VARVE_TRY(send(request_for(Operation::kMetrics)));
  VARVE_TRY_ASSIGN(Reply reply, receive_any(-1));
  // The request has no members to get wrong, so the error means an unknown request.
  if (reply.error && reply.error->code() == ErrorCode::kInvalid) {
    return older("metrics");
  }
  if (reply.error) return *std::move(reply.error);
  if (!reply.metrics) return lacks("metrics");
  return *std::move(reply.metrics);
}

Result<std::vector<VersionInfo>> Client::open_versions(const std::string& series) {
  Request asked = request_for(Operation::kOpenVersions);
  asked.series = series;
  VARVE_TRY_ASSIGN(Reply reply, ask(asked));
  if (!reply.versions) return lacks("versions");
  return *std::move(reply.versions);
}

Result<DeletionForecast> Client::remove(const DeleteRequest& request) {
  Request asked = request_for(Operation::kDelete);
  asked.removal = request;
  VARVE_TRY_ASSIGN(Reply reply, ask(asked));
  if (!reply.forecast) return lacks("sizes");
  return *std::move(reply.forecast);
}

Result<void> Client::lock(const LockRequest& request) {
  Request asked = request_for(Operation::kLock);
  asked.lock = request;
  VARVE_TRY(ask(asked));
  return {};
}

Result<void> Client::claim(const ClaimRequest& request) {
  Request asked = request_for(Operation::kClaim);
  asked.claim = request;
  VARVE_TRY(ask_new(asked, "claimed times"));
  return {};
}

Result<void> Client::rename(const RenameRequest& request) {
  Request asked = request_for(Operation::kRename);
  asked.rename = request;
  VARVE_TRY(ask_new(asked, "command to rename versions and series"));
  return {};
}

/// Ends a store whose stream must not become a version. Returns `reason` once the daemon has
/// dropped the version.
Error Client::refuse_end(Error reason, int stop) {
  ::shutdown(socket_.get(), SHUT_WR);  // In place of the answer.
  if (reason.code() == ErrorCode::kInterrupted) return reason;
  for (auto reply = receive_any(stop); reply && !reply->error; reply = receive_any(stop)) continue;
  return reason;
}

Result<StoreTaskReply> Client::store(const StoreTask& task, int stop,
                                     const std::function<void(const TransferProgress&)>& progress) {
  Request asked = request_for(task.stream ? Operation::kStoreStream : Operation::kStore);
  asked.store = task;
  VARVE_TRY(send(asked, task.stream ? task.stream->input->get() : -1));
  bool began = !task.stream;
  for (;;) {
    VARVE_TRY_ASSIGN(Reply reply, receive_any(stop));
    // A daemon of an older Varve answers at once.
    const bool is_unknown = !began && reply.error && reply.error->code() == ErrorCode::kInvalid &&
                            reply.error->message().find("not understood") != std::string::npos;
    if (is_unknown) return older("way to store archives and streams");
    if (reply.error) return *std::move(reply.error);
    began = true;
    if (reply.stored) return *std::move(reply.stored);
    if (reply.all_read) {
      // A signal to the writer of the stream may have come to this process, too.
      pollfd stopped = {.fd = stop, .events = POLLIN, .revents = 0};
      if (::poll(&stopped, 1, kStopPauseMs) > 0)
        return Error(ErrorCode::kInterrupted, "interrupted");
      if (task.stream->check_end) {
        auto ended = task.stream->check_end();
        if (!ended) return refuse_end(std::move(ended).error(), stop);
      }
      VARVE_TRY(send_line(socket_.get(), encode(request_for(Operation::kGoOn)), patience_.silence));
      continue;
    }
    if (!reply.transfer) return lacks("report");
    if (progress) progress(*reply.transfer);
  }
}

Result<ArrangeReport> Client::arrange(const ArrangeRequest& request, int stop,
                                      const std::function<void(const ArrangeProgress&)>& progress) {
  Request asked = request_for(Operation::kArrange);
  asked.arrange = request;
  VARVE_TRY(send(asked));
  for (;;) {
    VARVE_TRY_ASSIGN(const Reply reply, receive(stop));
    if (reply.arranged) return *reply.arranged;
    if (!reply.progress) return lacks("report");
    if (progress) progress(*reply.progress);
  }
}

Result<ArrangeSettings> Client::arrange_settings(const std::optional<ArrangeSettings>& settings) {
  Request asked = request_for(Operation::kArrangeSettings);
  asked.settings = settings;
  VARVE_TRY_ASSIGN(const Reply reply, ask(asked));
  if (!reply.settings) return lacks("settings");
  return *reply.settings;
}

Result<SeriesSettings> Client::series_settings(const SeriesSettingsRequest& request) {
  Request asked = request_for(Operation::kSeriesSettings);
  asked.series_settings = request;
  VARVE_TRY_ASSIGN(const Reply reply, ask_new(asked, "settings of series"));
  if (!reply.series_settings) return lacks("settings");
  return *reply.series_settings;
}

Result<UpkeepSettings> Client::upkeep(const UpkeepRequest& request) {
  Request asked = request_for(Operation::kUpkeep);
  asked.upkeep = request;
  VARVE_TRY_ASSIGN(const Reply reply, ask_new(asked, "the defaults of arranging and pruning"));
  if (!reply.upkeep) return lacks("defaults");
  return *reply.upkeep;
}

Result<PoolIndexChoice> Client::pool_index(const PoolIndexRequest& request) {
  Request asked = request_for(Operation::kPoolIndex);
  asked.pool_index = request;
  VARVE_TRY_ASSIGN(const Reply reply, ask_new(asked, "the index of the pool"));
  if (!reply.pool_index) return lacks("index of the pool");
  return *reply.pool_index;
}

Result<std::vector<PoolStream>> Client::pool_streams() {
  VARVE_TRY_ASSIGN(Reply reply, ask_new(request_for(Operation::kPoolStreams),
                                        "the streams of the pool's index"));
  if (!reply.streams) return lacks("streams");
  return *std::move(reply.streams);
}

Result<DamageReply> Client::known_damage(const DamageRequest& request) {
  Request asked = request_for(Operation::kKnownDamage);
  asked.damage = request;
  VARVE_TRY_ASSIGN(Reply reply, ask_new(asked, "quarantine of damaged chunks"));
  if (!reply.damage) return lacks("damage");
  return *std::move(reply.damage);
}

Result<void> Client::adopt_keys(const KeysRequest& request) {
  Request asked = request_for(Operation::kKeys);
  asked.keys = request;
  VARVE_TRY(ask_new(asked, "way to change keys"));
  return {};
}

Result<Reply> Client::ask_new(const Request& request, const char* what) {
  VARVE_TRY(send(request));
  VARVE_TRY_ASSIGN(Reply reply, receive_any(-1));
  // The operation itself never fails with kInvalid, so the daemon does not know the request.
  if (reply.error && reply.error->code() == ErrorCode::kInvalid) return older(what);
  if (reply.error) return *std::move(reply.error);
  return reply;
}

}  // namespace varve::control
