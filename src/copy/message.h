// SPDX-License-Identifier: Apache-2.0
// The messages between a source and a target in separate processes, with a message for each
// function of Target.
//
// The source sends requests, and the target answers each request, in order. There are two
// exceptions. The source may send the next offer before receiving the answer to the last offer. A
// `Fill` has no answer: the error of a `Fill` is the answer to the next request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "copy/change.h"
#include "copy/message_reader.h"  // IWYU pragma: export
#include "copy/target.h"
#include "varve/copy.h"
#include "varve/result.h"

namespace varve::copy {

struct HelloRequest {
  TargetSetup setup;
  bool dry_run = false;
};
struct SeriesRequest {};
struct VersionsRequest {
  SeriesId series{};
};
struct CreateSeriesRequest {
  std::string name;
  SeriesSettings settings;
};
struct RenameSeriesRequest {
  SeriesId series{};
  std::string name;
};
struct RenameVersionRequest {
  SeriesId series{};
  VersionNumber number{};
  std::string name;
};
struct LockRequest {
  SeriesId series{};
  VersionNumber number{};
  Timestamp until;
};
struct DeleteRequest {
  SeriesId series{};
  std::vector<VersionNumber> numbers;
};
struct BesideRequest {
  SeriesId series{};
  std::vector<BesideFile> files;
};
struct FillRequest {
  std::vector<std::string> chunks;
};
struct SettleRequest {};
struct CheckRequest {
  SeriesId series{};
  VersionNumber sealed{};  ///< 0 for the open copy.
  bool first = false;
  ChangeBatch batch;
};
struct DropRequest {};
struct FinishRequest {};

using Request = std::variant<HelloRequest, SeriesRequest, VersionsRequest, CreateSeriesRequest,
                             RenameSeriesRequest, RenameVersionRequest, LockRequest, DeleteRequest,
                             BesideRequest, CopyBegin, ChangeBatch, FillRequest, SettleRequest,
                             CheckRequest, CopySeal, DropRequest, FinishRequest>;

struct DoneAnswer {};
struct HelloAnswer {
  std::string repository;  ///< Repository::id(); "" if a dry run finds no repository.
};
struct NumberAnswer {
  std::uint64_t number = 0;
};
struct ReasonsAnswer {
  std::vector<std::string> reasons;
};

using Answer = std::variant<DoneAnswer, Error, HelloAnswer, std::vector<TargetSeries>,
                            std::vector<TargetVersion>, NumberAnswer, ReasonsAnswer,
                            std::vector<bool>, std::vector<Difference>, TargetVersion>;

[[nodiscard]] std::string encode_request(const Request& request);
/// Errors: kCorrupt for bytes never returned by encode_request(), and for values beyond the limits,
/// including the memory limit (kMessageMemoryMax).
[[nodiscard]] Result<Request> decode_request(std::span<const std::byte> bytes);
[[nodiscard]] std::string encode_answer(const Answer& answer);
/// Errors: as decode_request().
[[nodiscard]] Result<Answer> decode_answer(std::span<const std::byte> bytes);

}  // namespace varve::copy
