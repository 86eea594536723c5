// SPDX-License-Identifier: Apache-2.0
#include "copy/copy_server.h"

#include <type_traits>
#include <utility>
#include <variant>

#include "base/coding.h"
#include "base/log.h"
#include "copy/confined_target.h"
#include "copy/local_target.h"

namespace varve::copy {
namespace {

Answer answer_of(Result<void> done) {
  if (!done) return std::move(done).error();
  return DoneAnswer();
}

/// Returns the value, or the error, as an answer.
template <typename Value>
Answer answer_of(Result<Value> got) {
  if (!got) return std::move(got).error();
  return std::move(*got);
}
Answer number_of(const Result<std::uint64_t>& number) {
  if (!number) return number.error();
  return NumberAnswer{*number};
}

/// Calls the function of the target for each request but the first.
struct Caller {
  Target& target;

  Answer operator()(const HelloRequest& /*request*/) const {
    return Error(ErrorCode::kInvalid, "the target is open already");
  }
  Answer operator()(const SeriesRequest& /*request*/) const { return answer_of(target.series()); }
  Answer operator()(const VersionsRequest& request) const {
    return answer_of(target.versions(request.series));
  }
  Answer operator()(const CreateSeriesRequest& request) const {
    const auto made = target.create_series(request.name, request.settings);
    if (!made) return made.error();
    return NumberAnswer{static_cast<std::uint64_t>(*made)};
  }
  Answer operator()(const RenameSeriesRequest& request) const {
    return answer_of(target.rename_series(request.series, request.name));
  }
  Answer operator()(const RenameVersionRequest& request) const {
    return answer_of(target.rename_version(request.series, request.number, request.name));
  }
  Answer operator()(const LockRequest& request) const {
    return answer_of(target.lock_version(request.series, request.number, request.until));
  }
  Answer operator()(const DeleteRequest& request) const {
    auto held = target.delete_versions(request.series, request.numbers);
    if (!held) return std::move(held).error();
    return ReasonsAnswer{std::move(*held)};
  }
  Answer operator()(const BesideRequest& request) const {
    return answer_of(target.set_beside(request.series, request.files));
  }
  Answer operator()(const CopyBegin& begin) const { return number_of(target.begin(begin)); }
  Answer operator()(ChangeBatch& batch) const {
    auto offered = target.offer(std::move(batch));
    if (!offered) return std::move(offered).error();
    return answer_of(target.wanted());
  }
  Answer operator()(FillRequest& request) const {
    return answer_of(target.fill(std::move(request.chunks)));
  }
  Answer operator()(const SettleRequest& /*request*/) const { return answer_of(target.settle()); }
  Answer operator()(const CheckRequest& request) const {
    const auto sealed =
        request.sealed == VersionNumber{} ? std::nullopt : std::optional(request.sealed);
    return answer_of(target.check(request.series, sealed, request.first, request.batch));
  }
  Answer operator()(const CopySeal& seal) const { return answer_of(target.seal(seal)); }
  Answer operator()(const DropRequest& /*request*/) const { return answer_of(target.drop()); }
  Answer operator()(const FinishRequest& /*request*/) const { return answer_of(target.finish()); }
};

}  // namespace

// A copy interrupted by the end of the stream continues from the changes made durable here.
Result<void> CopyServer::run() {
  auto answered = answer_all();
  if (target_ && is_receiving_ && !failed_fill_) {
    const auto settled = target_->settle();
    if (!settled) base::log(base::LogLevel::kWarning, settled.error().message());
  }
  return answered;
}

Result<void> CopyServer::answer_all() {
  while (true) {
    VARVE_TRY_ASSIGN(auto request, next_request());
    if (!request) return {};
    if (const auto answered = answer(*request)) VARVE_TRY(stream_.send(encode_answer(*answered)));
  }
}

// The bytes of the message are free before the request is answered.
Result<std::optional<Request>> CopyServer::next_request() {
  VARVE_TRY_ASSIGN(const auto message, stream_.receive());
  if (!message) return std::optional<Request>();
  VARVE_TRY_ASSIGN(auto request, decode_request(base::as_bytes(*message)));
  return std::optional(std::move(request));
}

std::optional<Answer> CopyServer::answer(Request& request) {
  if (const auto* const greeting = std::get_if<HelloRequest>(&request); greeting && !target_) {
    return hello(*greeting);
  }
  if (!target_) return Error(ErrorCode::kInvalid, "the target is not open");
  const bool is_fill = std::holds_alternative<FillRequest>(request);
  const bool begins =
      std::holds_alternative<CopyBegin>(request) || std::holds_alternative<DropRequest>(request);
  if (begins) {
    failed_fill_.reset();
  } else if (failed_fill_) {
    if (is_fill) return std::nullopt;
    return *failed_fill_;
  }
  Answer answered = std::visit(Caller{*target_}, request);
  const auto* const error = std::get_if<Error>(&answered);
  if (std::holds_alternative<CopyBegin>(request)) is_receiving_ = error == nullptr;
  const bool ends = std::holds_alternative<CopySeal>(request) && error == nullptr;
  if (ends || std::holds_alternative<DropRequest>(request)) is_receiving_ = false;
  if (!is_fill) return answered;
  if (error != nullptr) failed_fill_ = *error;
  return std::nullopt;
}

Answer CopyServer::hello(const HelloRequest& request) {
  const auto repository = open_(request.setup, request.dry_run);
  if (!repository) return repository.error();
  if (*repository == nullptr) return HelloAnswer();
  auto confined = ConfinedTarget::confine(std::make_unique<LocalTarget>(**repository), **repository,
                                          rights_, clock_);
  if (!confined) return std::move(confined).error();
  target_ = std::move(*confined);
  return HelloAnswer{(*repository)->id()};
}

}  // namespace varve::copy
