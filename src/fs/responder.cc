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

Responder::Responder()
    : general_(std::make_unique<base::ThreadPool>(kGeneralThreads, "varve-fs")),
      sealed_(std::make_unique<base::ThreadPool>(kSealedThreads, "varve-read")) {}

void Responder::shut_down() {
  general_.reset();
  sealed_.reset();
}

void Responder::finish(fuse_req_t req, const char* operation, Result<Reply> result) {
  auto* const later = result ? std::get_if<Later>(&result->content) : nullptr;
  if (later == nullptr) {
    send_reply(req, operation, result);
    return;
  }
  base::ThreadPool& pool = later->workers == Workers::kSealed ? *sealed_ : *general_;
  pool.run([this, req, operation, work = std::move(later->work)] { answer(req, operation, work); });
}

void Responder::fail(fuse_req_t req, const char* operation, const std::exception& stray) {
  base::log(base::LogLevel::kError, fmt::format("unexpected exception: {}", stray.what()));
  send_reply(req, operation, Reply(Refusal{EIO}));
}

}  // namespace varve::fs
