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
  handlers.write_left_files = [control] { return control->write_left_files(); };
  for_each_operation([&](const auto& row) {
    handlers.simple[row.operation] = [control, &row](const Request& request) {
      return answer_simple(row, request,
                           [&](const auto&... in) { return ((*control).*row.run)(in...); });
    };
  });
}

}  // namespace varve::control
