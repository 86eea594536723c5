// SPDX-License-Identifier: Apache-2.0
#include "control/control_handlers.h"

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/thread_pool.h"

namespace varve::control {
namespace {

constexpr std::chrono::milliseconds kCancelPoll{100};

/// Stops an operation once the command no longer waits for the result. Checks on another thread,
/// because an operation may sleep for long.
class CancelWatch {
 public:
  explicit CancelWatch(const std::function<bool()>& cancelled)
      : thread_([this, &cancelled](const std::stop_token& done) { run(done, cancelled); }) {}
  [[nodiscard]] const StopRequest& stop() const { return stop_; }

 private:
  void run(const std::stop_token& done, const std::function<bool()>& cancelled) {
    base::name_this_thread("varve-watch");
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock lock(mutex);
    while (!done.stop_requested() && !cancelled()) {
      wake.wait_for(lock, done, kCancelPoll, [] { return false; });
    }
    stop_.stop();
  }

  StopRequest stop_;
  std::jthread thread_;  // Last: the thread uses `stop_`.
};

}  // namespace

void add_handlers(const std::shared_ptr<RepositoryControl>& control, Handlers& handlers) {
  handlers.seal = [control](const SealRequest& request, const std::function<bool()>& cancelled) {
    if (!request.wait) return control->seal(request, StopRequest());
    const CancelWatch watch(cancelled);
    return control->seal(request, watch.stop());
  };
  handlers.open = [control](const OpenRequest& request) { return control->open(request); };
  handlers.clone = [control](const OpenRequest& request) { return control->clone(request); };
  handlers.metrics = [control] { return control->metrics(); };
  handlers.open_versions = [control](const std::string& name) {
    return control->open_versions(name);
  };
  handlers.sync = [control] { return control->sync(); };
  handlers.remove = [control](const DeleteRequest& request) { return control->remove(request); };
  handlers.lock = [control](const LockRequest& request) { return control->lock(request); };
  handlers.claim = [control](const ClaimRequest& request) { return control->claim(request); };
  handlers.rename = [control](const RenameRequest& request) { return control->rename(request); };
  handlers.arrange = [control](const ArrangeRequest& request,
                               const std::function<bool()>& cancelled,
                               const std::function<void(const ArrangeProgress&)>& progress) {
    const CancelWatch watch(cancelled);
    return control->arrange(request, watch.stop(), progress);
  };
  handlers.store = [control](const StoreTask& task, const std::function<bool()>& cancelled,
                             const std::function<void(const TransferProgress&)>& progress) {
    const CancelWatch watch(cancelled);
    return control->store(task, watch.stop(), progress);
  };
  handlers.settings = [control](const std::optional<ArrangeSettings>& settings) {
    return control->arrange_settings(settings);
  };
  handlers.series_settings = [control](const SeriesSettingsRequest& request) {
    return control->series_settings(request);
  };
  handlers.upkeep = [control](const UpkeepRequest& request) { return control->upkeep(request); };
  handlers.pool_index = [control](const PoolIndexRequest& request) {
    return control->pool_index(request);
  };
  handlers.pool_streams = [control] { return control->pool_streams(); };
  handlers.adopt_keys = [control](const KeysRequest& request) {
    return control->adopt_keys(request);
  };
  handlers.known_damage = [control](const DamageRequest& request) {
    return control->known_damage(request);
  };
}

}  // namespace varve::control
