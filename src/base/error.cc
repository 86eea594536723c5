// SPDX-License-Identifier: Apache-2.0
// Errors of the public API.
#include <string>
#include <utility>

#include "varve/result.h"

namespace varve {

Error::Error(ErrorCode code, std::string message)
    : code_(code), message_(new std::string(std::move(message))) {}

Error::Error(const Error& other)
    : code_(other.code_), errno_(other.errno_), message_(new std::string(other.message())) {}

Error& Error::operator=(const Error& other) {
  if (this != &other) *this = Error(other);
  return *this;
}

const std::string& Error::message() const {
  static const std::string kMoved;
  return message_ != nullptr ? *message_ : kMoved;
}

Error Error::with_context(const std::string& where) && {
  if (message_ == nullptr) message_ = new std::string;
  *message_ = where + ": " + *message_;
  return std::move(*this);
}

Error Error::with_more(const std::string& text) && {
  if (message_ == nullptr) message_ = new std::string;
  *message_ += text;
  return std::move(*this);
}

void Error::drop() noexcept { delete message_; }

}  // namespace varve
