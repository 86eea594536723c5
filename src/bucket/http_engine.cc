// SPDX-License-Identifier: Apache-2.0
#include "bucket/http_engine.h"

#include <algorithm>
#include <csignal>
#include <deque>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "base/thread_pool.h"
#include "bucket/curl_library.h"
#include "bucket/http_transfer.h"

namespace varve::bucket {
namespace {

// Longest wait of the thread without any event.
constexpr int kPollMs = 1000;

}  // namespace

class HttpEngine::Loop {
 public:
  explicit Loop(HttpSettings settings)
      : settings_(std::move(settings)), multi_(curl().multi_init(), curl().multi_cleanup) {
    if (!multi_) return;
    curl().multi_setopt(multi_.get(), CURLMOPT_MAXCONNECTS,
                        static_cast<long>(settings_.connections_max));
    curl().multi_setopt(multi_.get(), CURLMOPT_PIPELINING, static_cast<long>(CURLPIPE_NOTHING));
  }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  ~Loop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    if (multi_) curl().multi_wakeup(multi_.get());
    if (thread_.joinable()) thread_.join();
    for (auto& [id, transfer] : transfers_)
      curl().multi_remove_handle(multi_.get(), transfer->easy());
    transfers_.clear();
    idle_.clear();
  }

  bool begin() {
    if (!multi_) return false;
    try {
      thread_ = std::thread([this] { work(); });
    } catch (const std::system_error&) {
      return false;
    }
    return true;
  }

  void run(Work work) {
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(work));
    }
    curl().multi_wakeup(multi_.get());
  }
  void run_at(Clock::time_point time, Work work) { timers_.emplace(time, std::move(work)); }

  RequestId start(const HttpRequest& request, Done done) {
    const auto id = ++last_id_;
    CurlEasy easy(nullptr, curl().easy_cleanup);
    if (idle_.empty()) {
      easy.reset(curl().easy_init());
    } else {
      easy = std::move(idle_.back());
      idle_.pop_back();
    }
    auto transfer =
        std::make_unique<HttpTransfer>(std::move(easy), settings_, request, std::move(done));
    const bool is_added =
        transfer->is_ready() && curl().multi_add_handle(multi_.get(), transfer->easy()) == CURLM_OK;
    if (is_added) {
      transfers_.emplace(id, std::move(transfer));
      return id;
    }
    HttpAnswer answer{.outcome = HttpOutcome::kNotPossible,
                      .trouble = "libcurl refuses the request's settings"};
    run_at(Clock::now(),
           [done = std::move(transfer->done()), answer = std::move(answer)] { done(answer); });
    return id;
  }

  void cancel(RequestId id) {
    const auto found = transfers_.find(id);
    if (found != transfers_.end()) static_cast<void>(remove(found, false));
  }

 private:
  using Transfers = std::map<RequestId, std::unique_ptr<HttpTransfer>>;

  // Takes out and returns a transfer. Keeps the transfer's handle for another transfer only after
  // an answer: libcurl 7.88 refuses options on a handle whose host name was not found.
  std::unique_ptr<HttpTransfer> remove(Transfers::iterator at, bool is_answered) {
    auto transfer = std::move(at->second);
    transfers_.erase(at);
    curl().multi_remove_handle(multi_.get(), transfer->easy());
    if (is_answered && idle_.size() < settings_.connections_max) {
      idle_.push_back(transfer->take_easy());
    }
    return transfer;
  }

  void work() {
    base::name_this_thread("varve-http");
    // OpenSSL writes to closed connections; signals are for the other threads.
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    while (run_queue()) {
      run_timers();
      int running = 0;
      curl().multi_perform(multi_.get(), &running);
      end_transfers();
      time_out_transfers();
      curl().multi_poll(multi_.get(), nullptr, 0, wait_ms(), nullptr);
    }
  }

  // Returns false when the engine ends.
  bool run_queue() {
    while (true) {
      std::deque<Work> works;
      bool is_stopping = false;
      {
        const std::lock_guard lock(mutex_);
        works.swap(queue_);
        is_stopping = stopping_;
      }
      if (works.empty()) return !is_stopping;
      for (auto& next : works) next();
    }
  }

  void run_timers() {
    while (!timers_.empty() && timers_.begin()->first <= Clock::now()) {
      const auto next = std::move(timers_.begin()->second);
      timers_.erase(timers_.begin());
      next();
    }
  }

  void end_transfers() {
    int left = 0;
    while (const auto* message = curl().multi_info_read(multi_.get(), &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      const auto code = message->data.result;
      const auto* const easy = message->easy_handle;
      const auto found = std::ranges::find_if(
          transfers_, [&](const auto& entry) { return entry.second->easy() == easy; });
      if (found == transfers_.end()) continue;
      auto answer = found->second->finish(code);
      const auto transfer = remove(found, answer.outcome == HttpOutcome::kAnswered);
      transfer->done()(std::move(answer));
    }
  }

  void time_out_transfers() {
    const auto now = Clock::now();
    std::vector<RequestId> late;
    for (const auto& [id, transfer] : transfers_) {
      if (transfer->deadline() <= now) late.push_back(id);
    }
    for (const auto id : late) {
      const auto found = transfers_.find(id);
      if (found == transfers_.end()) continue;
      auto answer = found->second->time_out();
      const auto transfer = remove(found, false);
      transfer->done()(std::move(answer));
    }
  }

  // Returns the time until the next timer or deadline.
  [[nodiscard]] int wait_ms() const {
    const auto now = Clock::now();
    auto next = now + std::chrono::milliseconds(kPollMs);
    if (!timers_.empty()) next = std::min(next, timers_.begin()->first);
    for (const auto& [id, transfer] : transfers_) next = std::min(next, transfer->deadline());
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(next - now).count();
    return static_cast<int>(std::max<std::int64_t>(wait, 0));
  }

  const HttpSettings settings_;
  const std::unique_ptr<CURLM, decltype(&curl_multi_cleanup)> multi_;

  std::mutex mutex_;  // Innermost. Guards the queue and the flag.
  std::deque<Work> queue_;
  bool stopping_ = false;

  // Used only by the thread.
  Transfers transfers_;
  std::vector<CurlEasy> idle_;
  std::multimap<Clock::time_point, Work> timers_;
  RequestId last_id_ = 0;

  std::thread thread_;
};

HttpEngine::HttpEngine(std::unique_ptr<Loop> loop) : loop_(std::move(loop)) {}
HttpEngine::~HttpEngine() = default;

Result<std::unique_ptr<HttpEngine>> HttpEngine::create(HttpSettings settings) {
  VARVE_TRY(load_curl());
  auto loop = std::make_unique<Loop>(std::move(settings));
  if (!loop->begin()) return Error(ErrorCode::kIo, "no memory or no thread for requests");
  return std::unique_ptr<HttpEngine>(new HttpEngine(std::move(loop)));
}

void HttpEngine::run(Work work) { loop_->run(std::move(work)); }
void HttpEngine::run_at(Clock::time_point time, Work work) { loop_->run_at(time, std::move(work)); }
HttpEngine::RequestId HttpEngine::start(const HttpRequest& request, Done done) {
  return loop_->start(request, std::move(done));
}
void HttpEngine::cancel(RequestId id) { loop_->cancel(id); }

}  // namespace varve::bucket
