// SPDX-License-Identifier: Apache-2.0
#include "control/client.h"

#include <poll.h>

namespace varve::control {

namespace {

/// Longest delay between a signal to the writer of a stream and the same signal to the command.
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
  VARVE_TRY_ASSIGN(auto connection, DaemonConnection::open(repository, patience));
  return Client(std::move(connection));
}

Result<void> Client::sync() {
  VARVE_TRY(connection_.ask(request_for(Operation::kSync)));
  return {};
}

Result<SealReply> Client::seal(const SealRequest& request, int stop) {
  Request asked = request_for(Operation::kSeal);
  asked.seal = request;
  VARVE_TRY(connection_.send(asked));
  VARVE_TRY_ASSIGN(Reply reply, connection_.receive(stop));
  if (!reply.version) return lacks("version");
  return SealReply{*std::move(reply.version), std::move(reply.next), std::move(reply.warning)};
}

Result<VersionInfo> Client::open(const OpenRequest& request) {
  Request asked = request_for(Operation::kOpen);
  asked.open = request;
  VARVE_TRY_ASSIGN(Reply reply, connection_.ask(asked));
  if (!reply.version) return lacks("version");
  return *std::move(reply.version);
}

Result<VersionInfo> Client::clone(const OpenRequest& request) {
  Request asked = request_for(Operation::kClone);
  asked.open = request;
  VARVE_TRY_ASSIGN(Reply reply, connection_.ask(asked));
  if (!reply.version) return lacks("version");
  return *std::move(reply.version);
}

Result<std::vector<MetricSample>> Client::metrics() {
  VARVE_TRY_ASSIGN(Reply reply, connection_.ask_new(request_for(Operation::kMetrics), "metrics"));
  if (!reply.metrics) return lacks("metrics");
  return *std::move(reply.metrics);
}

Result<std::vector<VersionInfo>> Client::open_versions(const std::string& series) {
  Request asked = request_for(Operation::kOpenVersions);
  asked.series = series;
  VARVE_TRY_ASSIGN(Reply reply, connection_.ask(asked));
  if (!reply.versions) return lacks("versions");
  return *std::move(reply.versions);
}

Result<DeletionForecast> Client::remove(const DeleteRequest& request) {
  Request asked = request_for(Operation::kDelete);
  asked.removal = request;
  VARVE_TRY_ASSIGN(Reply reply, connection_.ask(asked));
  if (!reply.forecast) return lacks("sizes");
  return *std::move(reply.forecast);
}

Result<void> Client::lock(const LockRequest& request) {
  Request asked = request_for(Operation::kLock);
  asked.lock = request;
  VARVE_TRY(connection_.ask(asked));
  return {};
}

Result<void> Client::claim(const ClaimRequest& request) {
  Request asked = request_for(Operation::kClaim);
  asked.claim = request;
  VARVE_TRY(connection_.ask_new(asked, "claimed times"));
  return {};
}

Result<void> Client::rename(const RenameRequest& request) {
  Request asked = request_for(Operation::kRename);
  asked.rename = request;
  VARVE_TRY(connection_.ask_new(asked, "command to rename versions and series"));
  return {};
}

Result<StoreTaskReply> Client::store(const StoreTask& task, int stop,
                                     const std::function<void(const TransferProgress&)>& progress) {
  Request asked = request_for(task.stream ? Operation::kStoreStream : Operation::kStore);
  asked.store = task;
  VARVE_TRY(connection_.send(asked, task.stream ? task.stream->input->get() : -1));
  bool began = !task.stream;
  for (;;) {
    VARVE_TRY_ASSIGN(Reply reply, connection_.receive_any(stop));
    // A daemon of an older Varve answers at once.
    const bool is_unknown = !began && reply.error && reply.error->code() == ErrorCode::kInvalid &&
                            reply.error->message().find("not understood") != std::string::npos;
    if (is_unknown) return connection_.older("way to store archives and streams");
    if (reply.error) return *std::move(reply.error);
    began = true;
    if (reply.stored) return *std::move(reply.stored);
    if (reply.all_read) {
      // A signal to the writer of the stream may have come to the command, too.
      pollfd stopped = {.fd = stop, .events = POLLIN, .revents = 0};
      if (::poll(&stopped, 1, kStopPauseMs) > 0)
        return Error(ErrorCode::kInterrupted, "interrupted");
      if (task.stream->check_end) {
        auto ended = task.stream->check_end();
        if (!ended) return connection_.refuse_end(std::move(ended).error(), stop);
      }
      VARVE_TRY(connection_.send_more(request_for(Operation::kGoOn)));
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
  VARVE_TRY(connection_.send(asked));
  for (;;) {
    VARVE_TRY_ASSIGN(const Reply reply, connection_.receive(stop));
    if (reply.arranged) return *reply.arranged;
    if (!reply.progress) return lacks("report");
    if (progress) progress(*reply.progress);
  }
}

Result<ArrangeSettings> Client::arrange_settings(const std::optional<ArrangeSettings>& settings) {
  Request asked = request_for(Operation::kArrangeSettings);
  asked.settings = settings;
  VARVE_TRY_ASSIGN(const Reply reply, connection_.ask(asked));
  if (!reply.settings) return lacks("settings");
  return *reply.settings;
}

Result<SeriesSettings> Client::series_settings(const SeriesSettingsRequest& request) {
  Request asked = request_for(Operation::kSeriesSettings);
  asked.series_settings = request;
  VARVE_TRY_ASSIGN(const Reply reply, connection_.ask_new(asked, "settings of series"));
  if (!reply.series_settings) return lacks("settings");
  return *reply.series_settings;
}

Result<UpkeepSettings> Client::upkeep(const UpkeepRequest& request) {
  Request asked = request_for(Operation::kUpkeep);
  asked.upkeep = request;
  VARVE_TRY_ASSIGN(const Reply reply,
                   connection_.ask_new(asked, "the defaults of arranging and pruning"));
  if (!reply.upkeep) return lacks("defaults");
  return *reply.upkeep;
}

Result<PoolIndexChoice> Client::pool_index(const PoolIndexRequest& request) {
  Request asked = request_for(Operation::kPoolIndex);
  asked.pool_index = request;
  VARVE_TRY_ASSIGN(const Reply reply, connection_.ask_new(asked, "the index of the pool"));
  if (!reply.pool_index) return lacks("index of the pool");
  return *reply.pool_index;
}

Result<std::vector<PoolStream>> Client::pool_streams() {
  VARVE_TRY_ASSIGN(Reply reply, connection_.ask_new(request_for(Operation::kPoolStreams),
                                                    "the streams of the pool's index"));
  if (!reply.streams) return lacks("streams");
  return *std::move(reply.streams);
}

Result<DamageReply> Client::known_damage(const DamageRequest& request) {
  Request asked = request_for(Operation::kKnownDamage);
  asked.damage = request;
  VARVE_TRY_ASSIGN(Reply reply, connection_.ask_new(asked, "quarantine of damaged chunks"));
  if (!reply.damage) return lacks("damage");
  return *std::move(reply.damage);
}

Result<void> Client::adopt_keys(const KeysRequest& request) {
  Request asked = request_for(Operation::kKeys);
  asked.keys = request;
  VARVE_TRY(connection_.ask_new(asked, "way to change keys"));
  return {};
}

}  // namespace varve::control
