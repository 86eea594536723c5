// SPDX-License-Identifier: Apache-2.0
#include "bucket/s3_core.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <random>
#include <utility>

namespace varve::bucket {
namespace {

// Interval for checking patience and second gets.
constexpr std::chrono::milliseconds kTick{20};
constexpr unsigned kWrongAnswersMax = 4;
constexpr unsigned kCorrectionsMax = 4;
// A single failure is not reported.
constexpr unsigned kTriesBeforeReport = 3;
// Time between the renewal of credentials and their expiry.
constexpr std::int64_t kRenewBeforeSeconds = 60;
// The slowest transfer that is not aborted, in bytes per second.
constexpr std::uint64_t kSlowestRate = 16384;
constexpr int kChangeStalls = 4;
// A failed renewal of credentials waits as long as a request after this number of tries.
constexpr unsigned kTriesOfRenewal = 6;
const char* const kDefaultRegion = "us-east-1";

Error stopped() { return {ErrorCode::kInterrupted, "the bucket was stopped"}; }

}  // namespace

S3Client::Core::Core(Endpoint endpoint, std::string bucket, const ObjectStoreOptions& options,
                     S3Tuning tuning, std::unique_ptr<HttpEngine> engine)
    : endpoint_(std::move(endpoint)),
      bucket_(std::move(bucket)),
      source_(options.credentials),
      tuning_(std::move(tuning)),
      region_(options.region.empty() ? kDefaultRegion : options.region),
      backoff_(tuning_.wait_first, tuning_.wait_most, std::random_device{}()),
      engine_(std::move(engine)),
      renewer_(std::make_unique<base::ThreadPool>(1, "varve-s3-keys")) {}

S3Client::Core::~Core() {
  stop();
  renewer_.reset();  // The renewer's work calls the engine.
  engine_.reset();
}

void S3Client::Core::submit(S3Request request, Done done) {
  auto call = std::make_shared<Call>();
  call->request = std::move(request);
  call->done = std::move(done);
  engine_->run([this, call] { begin(call); });
}

void S3Client::Core::stop() {
  std::mutex mutex;
  std::condition_variable ended;
  bool has_ended = false;
  engine_->run([&] {
    is_stopped_ = true;
    while (!calls_.empty()) end(*calls_.begin(), stopped());
    const std::lock_guard lock(mutex);
    has_ended = true;
    ended.notify_all();
  });
  std::unique_lock lock(mutex);
  ended.wait(lock, [&] { return has_ended; });
}

void S3Client::Core::interrupt_reads() {
  engine_->run([this] {
    std::vector<CallPointer> reads;
    for (const auto& call : calls_) {
      if (!call->request.is_change) reads.push_back(call);
    }
    for (const auto& call : reads) {
      end(call,
          Error(ErrorCode::kUnavailable,
                place(call->request) + ": the read was interrupted, because the program ends"));
    }
    if (!reads.empty()) start_ready();
  });
}

Traffic S3Client::Core::traffic() const {
  const std::lock_guard lock(mutex_);
  return traffic_;
}

std::optional<std::int64_t> S3Client::Core::clock_ahead() const {
  const std::lock_guard lock(mutex_);
  return clock_ahead_;
}

std::optional<std::chrono::microseconds> S3Client::Core::round_trip() const {
  const std::lock_guard lock(mutex_);
  return round_trip_;
}

Timestamp S3Client::Core::now() const {
  auto time = clock_.now();
  time.seconds += clock_offset_;
  return time;
}

std::string S3Client::Core::place(const S3Request& request) const {
  return fmt::format("s3://{}/{}", bucket_, request.key);
}

void S3Client::Core::begin(const CallPointer& call) {
  calls_.insert(call);
  if (is_stopped_) return end(call, stopped());
  call->begun = Clock::now();
  if (call->request.out) get_times_.begin();
  ready_.push_back(call);
  start_ready();
  schedule_tick();
}

// Starts waiting requests, as far as the limit and the credentials allow.
void S3Client::Core::start_ready() {
  if (need_credentials()) renew_credentials();
  if (!credentials_ || are_expired_) return;
  while (in_flight_ < tuning_.requests_max && !ready_.empty()) {
    const auto call = std::move(ready_.front());
    ready_.pop_front();
    if (!call->has_ended) try_once(call);
  }
}

void S3Client::Core::try_once(const CallPointer& call) {
  call->first = send(call, call->request.out, false);
  call->first_sent = Clock::now();
}

std::optional<HttpEngine::RequestId> S3Client::Core::send(const CallPointer& call,
                                                          std::optional<std::span<std::byte>> out,
                                                          bool is_second) {
  auto request = signed_request(call->request);
  if (!request) {
    end(call, request.error());
    return std::nullopt;
  }
  request->out = out;
  call->region = region_;
  ++in_flight_;
  {
    const std::lock_guard lock(mutex_);
    auto& counts = traffic_.at(static_cast<std::size_t>(call->request.kind));
    ++counts.requests;
    if (++call->tries > 1) ++counts.repeated;
  }
  return engine_->start(*request, [this, call, is_second](HttpAnswer answer) {
    receive(call, is_second, std::move(answer));
  });
}

Result<HttpRequest> S3Client::Core::signed_request(const S3Request& request) const {
  const auto time = now();
  const auto host = endpoint_.host(region_);
  SignedParts parts{.method = request.method,
                    .path = endpoint_.path(request.key),
                    .query = request.query,
                    .headers = request.headers,
                    .payload_sha256 = request.payload_sha256};
  if (parts.payload_sha256.empty()) {
    VARVE_TRY_ASSIGN(parts.payload_sha256, sha256_hex({}));
  }
  parts.headers.emplace_back("host", host);
  parts.headers.emplace_back("x-amz-content-sha256", parts.payload_sha256);
  parts.headers.emplace_back("x-amz-date", signing_time(time));
  if (!credentials_->session_token.empty()) {
    parts.headers.emplace_back("x-amz-security-token", credentials_->session_token);
  }
  VARVE_TRY_ASSIGN(auto signature, authorization(parts, *credentials_, region_, time));
  const auto query = query_text(request.query);
  const auto bytes = request.body_bytes + (request.out ? request.out->size() : 0);
  // A store may work on a change for long before the answer.
  const auto stall = request.is_change ? kChangeStalls * tuning_.stall : tuning_.stall;
  HttpRequest http{
      .method = request.method,
      .url = fmt::format("{}://{}{}{}{}", endpoint_.scheme(), host, uri_encode(parts.path, true),
                         query.empty() ? "" : "?", query),
      .headers = std::move(parts.headers),
      .parts = request.parts,
      .body_bytes = request.body_bytes,
      .has_body = request.has_body,
      .answer_bytes_max = request.answer_bytes_max,
      .stall = stall,
      .timeout = 2 * stall + std::chrono::seconds(bytes / kSlowestRate)};
  http.headers.emplace_back("authorization", std::move(signature));
  return http;
}

void S3Client::Core::receive(const CallPointer& call, bool is_second, HttpAnswer answer) {
  --in_flight_;
  (is_second ? call->second : call->first).reset();
  const auto date = parse_http_time(std::string(answer.header("date")));
  {
    const std::lock_guard lock(mutex_);
    auto& counts = traffic_.at(static_cast<std::size_t>(call->request.kind));
    counts.bytes_sent += answer.bytes_sent;
    counts.bytes_received += answer.bytes_received;
    if (date) clock_ahead_ = date->seconds - clock_.now().seconds;
    if (call->request.out && answer.first_byte_after.count() > 0) {
      round_trip_ =
          std::min(round_trip_.value_or(answer.first_byte_after), answer.first_byte_after);
    }
  }
  const auto judgement = judge(call->request, answer, place(call->request), call->region);
  const bool other_is_running = call->first || call->second;
  // A failure counts only if no other answer is pending.
  if (judgement.step != NextStep::kEnd && other_is_running) return start_ready();
  if (judgement.step == NextStep::kEnd && is_second) {
    cancel(call);
    std::memcpy(call->request.out->data(), call->second_out.data(), answer.out_bytes);
  }
  act(call, judgement, answer);
  start_ready();
}

void S3Client::Core::act(const CallPointer& call, const Judgement& judgement, HttpAnswer& answer) {
  if (judgement.step == NextStep::kEnd) {
    if (is_in_trouble_) report({});
    if (call->request.out) {
      get_times_.add(call->request.out->size(), Clock::now() - call->first_sent);
    }
    return end(call, S3Answer{.status = answer.status,
                              .headers = std::move(answer.headers),
                              .body = std::move(answer.body),
                              .out_bytes = answer.out_bytes});
  }
  call->last_error = judgement.error;
  const bool is_wrong = judgement.step == NextStep::kRepeatWrong;
  if (is_wrong) ++call->wrong_answers;
  const bool is_refused = judgement.step == NextStep::kFailAndRenew;
  if (is_refused) are_expired_ = true;  // The user may have replaced the credentials.
  if (judgement.step == NextStep::kFail || is_refused || !call->request.may_repeat ||
      call->wrong_answers >= kWrongAnswersMax) {
    return end(call, *call->last_error);
  }
  if (judgement.step == NextStep::kRepeat || is_wrong) {
    if (call->tries >= kTriesBeforeReport) report(judgement.error->message());
    return repeat_after(call, std::max(backoff_.wait_after(call->tries), judgement.wait_least));
  }
  if (++call->corrections > kCorrectionsMax) return end(call, *call->last_error);
  correct(call, judgement);
}

// Repeats a request with another region, time or credentials.
void S3Client::Core::correct(const CallPointer& call, const Judgement& judgement) {
  if (judgement.step == NextStep::kOtherRegion) region_ = judgement.region;
  if (judgement.step == NextStep::kOtherClock) {
    clock_offset_ = judgement.store_time->seconds - clock_.now().seconds;
  }
  if (judgement.step == NextStep::kNewCredentials) are_expired_ = true;
  repeat_after(call, call->corrections > 1 ? backoff_.wait_after(call->corrections)
                                           : std::chrono::milliseconds(0));
}

void S3Client::Core::repeat_after(const CallPointer& call, std::chrono::milliseconds wait) {
  engine_->run_at(Clock::now() + wait, [this, call] {
    if (call->has_ended) return;
    ready_.push_back(call);
    start_ready();
  });
}

void S3Client::Core::cancel(const CallPointer& call) {
  for (auto* const request : {&call->first, &call->second}) {
    if (!*request) continue;
    engine_->cancel(**request);
    request->reset();
    --in_flight_;
  }
}

void S3Client::Core::end(const CallPointer& call, Result<S3Answer> answer) {
  if (call->has_ended) return;
  const CallPointer keep = call;
  keep->has_ended = true;
  cancel(keep);
  calls_.erase(keep);
  keep->done(std::move(answer));
}

void S3Client::Core::report(const std::string& trouble) {
  is_in_trouble_ = !trouble.empty();
  if (tuning_.trouble) tuning_.trouble(trouble);
}

std::chrono::milliseconds S3Client::Core::patience(const S3Request& request) const {
  return request.is_change ? tuning_.change_patience : tuning_.read_patience;
}

void S3Client::Core::schedule_tick() {
  if (is_ticking_ || calls_.empty()) return;
  is_ticking_ = true;
  engine_->run_at(Clock::now() + kTick, [this] {
    is_ticking_ = false;
    tick();
    schedule_tick();
  });
}

// Ends calls that waited too long, and sends late gets a second time.
void S3Client::Core::tick() {
  const auto time = Clock::now();
  std::vector<CallPointer> late;
  for (const auto& call : calls_) {
    const auto limit = patience(call->request);
    if (limit.count() > 0 && time - call->begun >= limit) {
      late.push_back(call);
    } else if (call->request.out && call->first && !call->second) {
      const auto after = get_times_.late_after(call->request.out->size());
      if (after && time - call->first_sent >=
                       std::max<GetTimes::Duration>(*after, tuning_.second_get_least)) {
        send_second(call);
      }
    }
  }
  for (const auto& call : late) {
    auto error = call->last_error.value_or(
        Error(ErrorCode::kUnavailable, place(call->request) + ": the store does not answer"));
    end(call, Error(ErrorCode::kUnavailable, error.message()));
  }
  if (!late.empty()) start_ready();
}

void S3Client::Core::send_second(const CallPointer& call) {
  if (in_flight_ >= tuning_.requests_max || !get_times_.take_second()) return;
  call->second_out.resize(call->request.out->size());
  call->second = send(call, std::span(call->second_out), true);
}

bool S3Client::Core::need_credentials() const {
  if (ready_.empty() || are_renewing_) return false;
  if (!credentials_ || are_expired_) return true;
  return credentials_->expires &&
         credentials_->expires->seconds - now().seconds < kRenewBeforeSeconds;
}

void S3Client::Core::renew_credentials() {
  are_renewing_ = true;
  renewer_->run([this] {
    auto credentials = source_();
    engine_->run([this, credentials = std::move(credentials)] { take_credentials(credentials); });
  });
}

void S3Client::Core::take_credentials(Result<StoreCredentials> credentials) {
  are_renewing_ = false;
  if (credentials) {
    credentials_ = std::move(credentials).value();
    are_expired_ = false;
    // Credentials that expire at once must not cause endless renewals.
    if (need_credentials()) credentials_->expires.reset();
  } else if (credentials_ && !are_expired_) {
    credentials_->expires.reset();  // The store will report the expiry.
  } else {
    const auto waiting = std::exchange(ready_, {});
    for (const auto& call : waiting) {
      if (call->has_ended) continue;
      // The first credentials tell whether the source works; later failures may be transient.
      if (!credentials_) {
        end(call, credentials.error());
        continue;
      }
      call->last_error = credentials.error();
      report(credentials.error().message());
      repeat_after(call, backoff_.wait_after(kTriesOfRenewal));
    }
  }
  start_ready();
}

}  // namespace varve::bucket
