// SPDX-License-Identifier: Apache-2.0
#include "fs/responder.h"

#include <fmt/core.h>

#include <cerrno>
#include <cstddef>
#include <utility>
#include <variant>

#include "base/log.h"

namespace varve::fs {
namespace {
constexpr std::size_t kGeneralThreads = 32;
constexpr std::size_t kSealedThreads = 4;
}  // namespace

Responder::Responder(Repository& repository)
    : metrics_(*registry_),
      general_(std::make_unique<base::ThreadPool>(kGeneralThreads, "varve-fs")),
      sealed_(std::make_unique<base::ThreadPool>(kSealedThreads, "varve-read")) {
  repository.add_metrics([registry = registry_] { return registry->sample(); });
}

void Responder::shut_down() {
  general_.reset();
  sealed_.reset();
}

void Responder::finish(const Request& request, Result<Reply> result) {
  auto* const later = result ? std::get_if<Later>(&result->content) : nullptr;
  if (later == nullptr) {
    send(request, result);
    return;
  }
  base::ThreadPool& pool = later->workers == Workers::kSealed ? *sealed_ : *general_;
  pool.run([this, request, work = std::move(later->work)] { run(request, work); });
}

void Responder::fail(const Request& request, const std::exception& stray) {
  base::log(base::LogLevel::kError, fmt::format("unexpected exception: {}", stray.what()));
  send(request, Reply(Refusal{EIO}));
}

void Responder::send(const Request& request, const Result<Reply>& result) {
  send_reply(request.req, log_name(request.operation), result);
  const RequestMetrics::OfOperation& metrics = metrics_.of(request.operation);
  metrics.seconds->record(Clock::now() - request.arrived);
  if (is_errno(result)) metrics.errors->add();
  metrics_.in_progress().remove();
}

}  // namespace varve::fs
