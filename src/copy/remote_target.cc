// SPDX-License-Identifier: Apache-2.0
#include "copy/remote_target.h"

#include <sys/stat.h>

#include <utility>
#include <variant>

#include "base/coding.h"
#include "varve/version_name.h"

namespace varve::copy {

template <typename Wanted>
Result<Wanted> RemoteTarget::receive() {
  VARVE_TRY_ASSIGN(const auto message, stream_.receive());
  if (!message) {
    return Error(ErrorCode::kUnavailable,
                 "the other end of the copy is gone; the same command continues the copy");
  }
  VARVE_TRY_ASSIGN(auto answer, decode_answer(base::as_bytes(*message)));
  if (auto* const error = std::get_if<Error>(&answer)) {
    return Error(error->code(), "the target: " + error->message());
  }
  if (auto* const wanted = std::get_if<Wanted>(&answer)) return std::move(*wanted);
  return Error(ErrorCode::kCorrupt, "the other end of the copy answered another question");
}

template <typename Wanted>
Result<Wanted> RemoteTarget::ask(const Request& request) {
  VARVE_TRY(stream_.send(encode_request(request)));
  // After an error, the source leaves offers without asking for the answers.
  for (; offers_ > 0; --offers_) {
    const auto dropped = receive<std::vector<bool>>();
    if (!dropped && dropped.error().code() == ErrorCode::kUnavailable) return dropped.error();
  }
  return receive<Wanted>();
}

Result<void> RemoteTarget::command(const Request& request) {
  VARVE_TRY(ask<DoneAnswer>(request));
  return {};
}

Result<std::string> RemoteTarget::connect(const TargetSetup& setup, bool dry_run) {
  VARVE_TRY(stream_.greet());
  VARVE_TRY_ASSIGN(const auto hello, ask<HelloAnswer>(HelloRequest{setup, dry_run}));
  repository_id_ = hello.repository;
  return repository_id_;
}

Result<std::vector<TargetSeries>> RemoteTarget::series() {
  return ask<std::vector<TargetSeries>>(SeriesRequest());
}

Result<std::vector<TargetVersion>> RemoteTarget::versions(SeriesId series) {
  return ask<std::vector<TargetVersion>>(VersionsRequest{series});
}

Result<SeriesId> RemoteTarget::create_series(const std::string& name,
                                             const SeriesSettings& settings) {
  VARVE_TRY_ASSIGN(const auto made, ask<NumberAnswer>(CreateSeriesRequest{name, settings}));
  return static_cast<SeriesId>(made.number);
}

Result<void> RemoteTarget::rename_series(SeriesId series, const std::string& name) {
  return command(RenameSeriesRequest{series, name});
}

Result<void> RemoteTarget::rename_version(SeriesId series, VersionNumber number,
                                          const std::string& name) {
  return command(RenameVersionRequest{series, number, name});
}

Result<void> RemoteTarget::lock_version(SeriesId series, VersionNumber number,
                                        const Timestamp& until) {
  return command(LockRequest{series, number, until});
}

Result<std::vector<std::string>> RemoteTarget::delete_versions(
    SeriesId series, const std::vector<VersionNumber>& numbers) {
  VARVE_TRY_ASSIGN(auto held, ask<ReasonsAnswer>(DeleteRequest{series, numbers}));
  return std::move(held.reasons);
}

// The target makes its own link `latest`, and refuses a link `latest` made by a program at the
// source.
Result<void> RemoteTarget::set_beside(SeriesId series, const std::vector<BesideFile>& files) {
  BesideRequest request{series, files};
  std::erase_if(request.files, [](const BesideFile& file) {
    return file.folder.empty() && file.name == kLatestName && is_type(file.mode, S_IFLNK);
  });
  return command(request);
}

Result<std::uint64_t> RemoteTarget::begin(const CopyBegin& copy) {
  VARVE_TRY_ASSIGN(const auto durable, ask<NumberAnswer>(copy));
  return durable.number;
}

Result<void> RemoteTarget::offer(ChangeBatch batch) {
  VARVE_TRY(stream_.send(encode_request(std::move(batch))));
  ++offers_;
  return {};
}

Result<std::vector<bool>> RemoteTarget::wanted() {
  if (offers_ == 0) return Error(ErrorCode::kInvalid, "no batch waits for an answer");
  --offers_;
  return receive<std::vector<bool>>();
}

Result<void> RemoteTarget::fill(std::vector<std::string> chunks) {
  return stream_.send(encode_request(FillRequest{std::move(chunks)}));
}

Result<void> RemoteTarget::settle() { return command(SettleRequest()); }

Result<std::vector<Difference>> RemoteTarget::check(SeriesId series,
                                                    std::optional<VersionNumber> sealed, bool first,
                                                    const ChangeBatch& batch) {
  return ask<std::vector<Difference>>(
      CheckRequest{series, sealed.value_or(VersionNumber{}), first, batch});
}

Result<TargetVersion> RemoteTarget::seal(const CopySeal& copy) { return ask<TargetVersion>(copy); }

Result<void> RemoteTarget::drop() { return command(DropRequest()); }

Result<void> RemoteTarget::finish() { return command(FinishRequest()); }

}  // namespace varve::copy
