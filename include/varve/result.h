// SPDX-License-Identifier: Apache-2.0
// Varve's error handling: every fallible function returns Result<T>.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <new>
#include <optional>
#include <string>
#include <utility>

namespace varve {

/// The kinds of errors: a small closed set for callers to branch on.
enum class ErrorCode : std::uint8_t {
  kIo,                 ///< The operating system reported an error without its own code.
  kCorrupt,            ///< Bytes on disk do not match the checksum or the format.
  kNotFound,           ///< The series, version, file or attribute does not exist.
  kExists,             ///< The name is taken.
  kInvalid,            ///< The argument is not valid; nothing was done.
  kBusy,               ///< Still in use (writers, open files).
  kReadOnly,           ///< A change to a sealed version or a read-only repository.
  kNoSpace,            ///< The disk, or Varve's reserve on the disk, is full.
  kNotPermitted,       ///< Never allowed, or not before the end of a lock.
  kNotEmpty,           ///< The directory or series still has entries.
  kNotDirectory,       ///< The operation needs a directory.
  kIsDirectory,        ///< The operation does not accept a directory.
  kNameTooLong,        ///< A name over 255 bytes, a symlink over 4095.
  kOtherVersion,       ///< A move or link between two versions.
  kLocked,             ///< Another process holds the repository for writing.
  kNoRepository,       ///< The folder is not a Varve repository.
  kUnsupported,        ///< A newer format, or a feature missing in the build.
  kTooLarge,           ///< A value exceeds a fixed limit, such as the size of a file.
  kAttributeTooLarge,  ///< The extended attributes of a file exceed a limit.
  kStale,              ///< The file was removed while the caller still referred to it.
  kNoAttribute,        ///< The extended attribute is not set.
  kPastEnd,            ///< No data, or no hole, from the offset to the end of the file.
  kBadHandle,          ///< The file is not open, or not open for the operation.
  kInterrupted,        ///< The user asked to stop.
  kUnavailable,        ///< The storage or the daemon does not answer now, but may later.
  kUsage,              ///< The command line is wrong. Only front ends report kUsage.
  /// No key was given for an encrypted repository, or the key opens no key slot.
  kWrongKey,
  kRefused,  ///< The source of a store is empty, or lost most of its content.
  /// The changes are made, but files that a rebuild of the catalog needs could not be written.
  kIncomplete,
};

/// An error. The message tells the user the failure and the remedy.
///
/// The library has the functions that allocate and free: inline, the functions were a tenth of the
/// program, because most functions of Varve return errors. A moved-from error keeps its code, and
/// has an unspecified message.
class Error {
 public:
  Error(ErrorCode code, std::string message);
  Error(const Error& other);
  Error(Error&& other) noexcept
      : code_(other.code_),
        errno_(other.errno_),
        message_(std::exchange(other.message_, nullptr)) {}
  Error& operator=(const Error& other);
  Error& operator=(Error&& other) noexcept {
    code_ = other.code_;
    errno_ = other.errno_;
    std::swap(message_, other.message_);
    return *this;
  }
  ~Error() {
    if (message_ != nullptr) drop();
  }

  [[nodiscard]] ErrorCode code() const { return code_; }
  /// Returns the errno of the failed system call, or 0. The code tells the caller the remedy; the
  /// errno is for messages and for passing on to the kernel.
  [[nodiscard]] int errno_value() const { return errno_; }
  [[nodiscard]] const std::string& message() const;

  /// Returns the error with `where` in front of its message.
  [[nodiscard]] Error with_context(const std::string& where) &&;
  /// Returns the error with `text` behind its message.
  [[nodiscard]] Error with_more(const std::string& text) &&;
  /// Returns the error with the errno of the failed system call.
  [[nodiscard]] Error with_errno(int errno_value) && {
    errno_ = errno_value;
    return std::move(*this);
  }

 private:
  void drop() noexcept;

  ErrorCode code_;
  int errno_ = 0;
  std::string* message_;  // Owned. Null after a move.
};

/// A value or an Error. The names follow std::expected, which GCC 12 lacks in C++20.
///
/// The members are written out, because a std::variant for each type took a third of the build's
/// time. value() of an error and error() of a value end the program, as a failed assertion does.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)), has_value_(true) {}       // NOLINT(*-explicit-*)
  Result(Error error) : error_(std::move(error)), has_value_(false) {}  // NOLINT(*-explicit-*)
  Result(const Result& other) : has_value_(other.has_value_) { construct(other); }
  Result(Result&& other) noexcept : has_value_(other.has_value_) { construct(std::move(other)); }
  Result& operator=(const Result& other) {
    if (this != &other) *this = Result(other);
    return *this;
  }
  Result& operator=(Result&& other) noexcept {
    if (this == &other) return *this;
    destroy();
    has_value_ = other.has_value_;
    construct(std::move(other));
    return *this;
  }
  ~Result() { destroy(); }

  [[nodiscard]] bool has_value() const { return has_value_; }
  explicit operator bool() const { return has_value_; }

  [[nodiscard]] T& value() & { return expect(true), value_; }
  [[nodiscard]] const T& value() const& { return expect(true), value_; }
  [[nodiscard]] T&& value() && { return expect(true), std::move(value_); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  [[nodiscard]] Error& error() & { return expect(false), error_; }
  [[nodiscard]] const Error& error() const& { return expect(false), error_; }
  [[nodiscard]] Error&& error() && { return expect(false), std::move(error_); }

 private:
  void expect(bool value) const {
    if (has_value_ != value) std::abort();
  }
  template <typename Other>
  void construct(Other&& other) {
    if (has_value_)
      new (&value_) T(std::forward<Other>(other).value_);
    else
      new (&error_) Error(std::forward<Other>(other).error_);
  }
  void destroy() {
    if (has_value_)
      value_.~T();
    else
      error_.~Error();
  }

  union {
    T value_;
    Error error_;
  };
  bool has_value_;
};

/// Success, or an Error.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT(*-explicit-*)

  [[nodiscard]] bool has_value() const { return !error_.has_value(); }
  explicit operator bool() const { return has_value(); }
  [[nodiscard]] Error& error() & { return error_.value(); }
  [[nodiscard]] const Error& error() const& { return error_.value(); }
  [[nodiscard]] Error&& error() && { return std::move(error_).value(); }

 private:
  std::optional<Error> error_;
};

}  // namespace varve

#define VARVE_CONCAT_(a, b) a##b
#define VARVE_CONCAT(a, b) VARVE_CONCAT_(a, b)

/// Returns from the calling function with the expression's error, if any. Drops the value.
#define VARVE_TRY(expr)                                                  \
  do {                                                                   \
    auto varve_try_result_ = (expr);                                     \
    if (!varve_try_result_) return std::move(varve_try_result_).error(); \
  } while (false)

#define VARVE_TRY_ASSIGN_(tmp, target, expr) \
  auto tmp = (expr);                         \
  if (!tmp) return std::move(tmp).error();   \
  target = std::move(tmp).value()

/// Assigns the expression's value to `target`, or returns from the calling function with its error:
/// `VARVE_TRY_ASSIGN(auto x, f());`.
#define VARVE_TRY_ASSIGN(target, expr) \
  VARVE_TRY_ASSIGN_(VARVE_CONCAT(varve_result_, __LINE__), target, expr)
