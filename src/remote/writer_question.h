// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

#include "varve/result.h"

namespace varve::remote {

/// Asks the object store whether another folder writes, in a separate thread, so that a silent
/// store delays the caller by at most `patience`. The first question starts the thread.
/// Thread-safe. docs/decisions/116.
class WriterQuestion {
 public:
  using Milliseconds = std::chrono::milliseconds;
  /// Sends the requests of one question. Returns whether the store answered.
  using Ask = std::function<bool()>;

  /// How old the last answer may be.
  struct Ages {
    Milliseconds fresh{};  ///< A younger answer needs no question.
    Milliseconds stale{};  ///< The caller waits for the answer to an older one.
  };

  explicit WriterQuestion(Ask ask, Milliseconds patience = Milliseconds(3000));
  WriterQuestion(const WriterQuestion&) = delete;
  WriterQuestion& operator=(const WriterQuestion&) = delete;
  ~WriterQuestion() { stop(); }

  /// Asks unless the last answer is young enough. After a question without an answer, no call waits
  /// for a minute: a store out of reach delays few changes.
  void ask(const Ages& ages);
  /// Ends the thread, for good. The caller ends a request in progress.
  void stop();

 private:
  using Time = std::chrono::steady_clock::time_point;
  void run(const std::stop_token& stop);

  const Ask ask_;
  const Milliseconds patience_;
  std::mutex mutex_;  // Innermost. Guards the members below.
  std::condition_variable_any wake_;
  bool stopping_ = false;
  bool wanted_ = false;
  bool answered_ = true;     // The last question has an answer.
  std::uint64_t begun_ = 0;  // Questions.
  std::uint64_t ended_ = 0;
  Time asked_at_ = Time();  // The beginning of the last ended question.
  std::jthread thread_;
};

}  // namespace varve::remote
