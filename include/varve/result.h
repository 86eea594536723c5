// SPDX-License-Identifier: Apache-2.0
// Varve's error handling: every fallible function returns Result<T>.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

namespace varve {

/// What went wrong, as a small closed set that callers may branch on.
enum class ErrorCode : std::uint8_t {
  kIo,            ///< The operating system refused; errno_value() says how.
  kCorrupt,       ///< Bytes on disk do not match their checksum or their format.
  kNotFound,      ///< No such series, version, file or attribute.
  kExists,        ///< The name is taken.
  kInvalid,       ///< The argument makes no sense; nothing was done.
  kBusy,          ///< Somebody is still using it (writers, open files).
  kReadOnly,      ///< A sealed version or a read-only repository.
  kNoSpace,       ///< The disk, or Varve's reserve on it, is full.
  kNotPermitted,  ///< Never allowed (see docs: misuse table).
  kNotEmpty,      ///< A directory that still has entries.
  kNotDirectory,  ///< A directory was needed.
  kIsDirectory,   ///< A directory was given where none may stand.
  kNameTooLong,   ///< A name over 255 bytes, a symlink over 4095.
  kOtherVersion,  ///< A move or link between two versions.
  kLocked,        ///< Another process holds the repository for writing.
  kNoRepository,  ///< The folder is not a Varve repository.
  kUnsupported,   ///< A newer format, or a feature this build lacks.
  kTooLarge,      ///< A value over a fixed limit (file size, xattr).
  kStale,         ///< The file was removed while the caller still referred to it.
  kNoAttribute,   ///< The extended attribute is not set.
  kInterrupted,   ///< The user asked to stop.
};

/// An error with a message that says what happened and what to do about it.
class Error {
 public:
  Error(ErrorCode code, std::string message, int errno_value = 0)
      : code_(code), errno_(errno_value), message_(std::move(message)) {}

  [[nodiscard]] ErrorCode code() const { return code_; }
  /// The operating system's errno if one led here, else 0.
  [[nodiscard]] int errno_value() const { return errno_; }
  [[nodiscard]] const std::string& message() const { return message_; }

  /// Puts `where` in front of the message on its way up.
  [[nodiscard]] Error with_context(const std::string& where) && {
    message_ = where + ": " + message_;
    return std::move(*this);
  }

 private:
  ErrorCode code_;
  int errno_;
  std::string message_;
};

/// A value or an Error. Spelled like std::expected, which GCC 12 lacks in C++20.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT(*-explicit-*)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(*-explicit-*)

  [[nodiscard]] bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  [[nodiscard]] T& value() & { return std::get<0>(state_); }
  [[nodiscard]] const T& value() const& { return std::get<0>(state_); }
  [[nodiscard]] T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::get<0>(std::move(state_)); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  [[nodiscard]] Error& error() & { return std::get<1>(state_); }
  [[nodiscard]] const Error& error() const& { return std::get<1>(state_); }
  [[nodiscard]] Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() : state_(std::monostate{}) {}
  Result(Error error) : state_(std::move(error)) {}  // NOLINT(*-explicit-*)

  [[nodiscard]] bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }
  [[nodiscard]] Error& error() & { return std::get<1>(state_); }
  [[nodiscard]] const Error& error() const& { return std::get<1>(state_); }
  [[nodiscard]] Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<std::monostate, Error> state_;
};

}  // namespace varve

#define VARVE_CONCAT_(a, b) a##b
#define VARVE_CONCAT(a, b) VARVE_CONCAT_(a, b)

/// Returns the error of a Result expression to the caller, drops its value.
#define VARVE_TRY(expr)                                                  \
  do {                                                                   \
    auto varve_try_result_ = (expr);                                     \
    if (!varve_try_result_) return std::move(varve_try_result_).error(); \
  } while (false)

#define VARVE_TRY_ASSIGN_(tmp, target, expr) \
  auto tmp = (expr);                         \
  if (!tmp) return std::move(tmp).error();   \
  target = std::move(tmp).value()

/// `VARVE_TRY_ASSIGN(auto x, f());`: x is f's value, or the error is returned.
#define VARVE_TRY_ASSIGN(target, expr) \
  VARVE_TRY_ASSIGN_(VARVE_CONCAT(varve_result_, __LINE__), target, expr)
