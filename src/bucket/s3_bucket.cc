// SPDX-License-Identifier: Apache-2.0
#include "bucket/s3_bucket.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <utility>

#include "bucket/s3_answers.h"
#include "bucket/s3_headers.h"

namespace varve::bucket {
namespace {

// Checks the answer to a get of a range.
Result<void> check_range(const S3Answer& answer, std::uint64_t offset, std::size_t wanted) {
  const auto text = header(answer, "content-range");
  if (answer.status == 416) {
    // "bytes */100" may contain the length.
    const auto slash = text.find('/');
    std::uint64_t total = 0;
    if (slash != std::string_view::npos) {
      std::from_chars(text.data() + slash + 1, text.data() + text.size(), total);
    }
    if (total > offset) return wrong_answer("no range of an object that has it");
    return {};
  }
  if (answer.status == 200 && offset == 0) return {};  // The whole object, which is short enough.
  const auto range = parse_content_range(text);
  if (answer.status != 206 || !range) return wrong_answer("no Content-Range");
  const auto bytes = range->last - range->first + 1;
  const bool is_all = bytes == wanted || range->last + 1 == range->total;
  if (range->first != offset || bytes != answer.out_bytes || bytes > wanted || !is_all) {
    return wrong_answer("another range than requested");
  }
  return {};
}

Result<void> check_whole(const S3Answer& answer) {
  const auto expected = header(answer, kSha256Header);
  if (expected.empty()) return {};
  const std::array<std::span<const std::byte>, 1> parts{std::as_bytes(std::span(answer.body))};
  VARVE_TRY_ASSIGN(const auto sha256, sha256_hex(parts));
  if (sha256 != expected) return wrong_answer("other bytes than those that were written");
  return {};
}

}  // namespace

S3Bucket::S3Bucket(Location location, std::unique_ptr<S3Client> client)
    : location_(std::move(location)), client_(std::move(client)) {}

Result<std::unique_ptr<S3Bucket>> S3Bucket::create(const Location& location,
                                                   const ObjectStoreOptions& options,
                                                   S3Tuning tuning) {
  VARVE_TRY_ASSIGN(auto client, S3Client::create(location.bucket, options, std::move(tuning)));
  return std::unique_ptr<S3Bucket>(new S3Bucket(location, std::move(client)));
}

Result<void> S3Bucket::check_name(const std::string& name) const {
  if (is_valid_name(name, location_.prefix.size())) return {};
  return Error(ErrorCode::kInvalid,
               fmt::format("{}: no object can have this name: {}", describe(), name));
}

S3Request S3Bucket::request(RequestKind kind, const char* method, const std::string& name) const {
  return {.kind = kind, .method = method, .key = location_.prefix + name};
}

Result<void> S3Bucket::put(const std::string& name,
                           std::span<const std::span<const std::byte>> parts,
                           const PutOptions& options) {
  VARVE_TRY(check_name(name));
  auto put = request(RequestKind::kPut, "PUT", name);
  put.has_body = true;
  put.is_change = true;
  put.parts.assign(parts.begin(), parts.end());
  for (const auto part : parts) put.body_bytes += part.size();
  if (put.body_bytes > kPutBytesMax) {
    return Error(ErrorCode::kTooLarge,
                 fmt::format("{}: {} bytes are too many for an object", name, put.body_bytes));
  }
  VARVE_TRY_ASSIGN(put.payload_sha256, sha256_hex(parts));
  put.headers.emplace_back(kSha256Header, put.payload_sha256);
  add_checksum(parts, put.payload_sha256, put.headers);
  if (options.lock.on()) {
    put.headers.emplace_back("x-amz-object-lock-mode", lock_mode_text(options.lock.mode));
    put.headers.emplace_back("x-amz-object-lock-retain-until-date",
                             lock_end_text(options.lock, store_seconds()));
  }
  if (!options.storage_class.empty()) {
    put.headers.emplace_back("x-amz-storage-class", options.storage_class);
  }
  const auto take_etag = [&](const Result<S3Answer>& answer) {
    if (!answer || options.etag == nullptr) return;
    const auto etag = plain_etag(header(*answer, "etag"));
    if (!etag.empty()) *options.etag = etag;
  };
  if (options.condition == PutCondition::kNone) {
    const auto answer = client_->call(std::move(put));
    take_etag(answer);
    return drop_answer(answer);
  }

  VARVE_TRY_ASSIGN(const auto mark, new_mark(fmt::format("put {} {}", put.payload_sha256, name)));
  put.headers.emplace_back("if-none-match", "*");
  put.headers.emplace_back(kMarkHeader, mark);
  const auto answer = client_->call(std::move(put));
  take_etag(answer);
  if (answer) return {};
  if (answer.error().code() == ErrorCode::kExists) {
    // An earlier try, whose answer was lost, may have created the object.
    VARVE_TRY_ASSIGN(const bool is_ours, has_mark(name, mark));
    if (is_ours) return {};
  }
  return answer.error();
}

S3Request S3Bucket::get_request(const std::string& name, std::uint64_t offset,
                                std::span<std::byte> out) const {
  auto get = request(RequestKind::kGet, "GET", name);
  get.out = out;
  get.accepted = 416;
  get.headers.emplace_back("range", fmt::format("bytes={}-{}", offset, offset + out.size() - 1));
  get.check = [offset, wanted = out.size()](const S3Answer& answer) {
    return check_range(answer, offset, wanted);
  };
  return get;
}

Result<std::size_t> S3Bucket::get(const std::string& name, std::uint64_t offset,
                                  std::span<std::byte> out) {
  VARVE_TRY(check_name(name));
  if (out.empty()) return std::size_t{0};
  VARVE_TRY_ASSIGN(const auto answer, client_->call(get_request(name, offset, out)));
  return answer.out_bytes;
}

void S3Bucket::read_many(std::vector<ObjectRead> reads, ReadCompletion done) {
  const auto shared = std::make_shared<const ReadCompletion>(std::move(done));
  for (std::size_t i = 0; i < reads.size(); ++i) {
    const auto& read = reads[i];
    const auto checked = check_name(read.name);
    if (!checked) {
      (*shared)(i, checked.error());
    } else if (read.out.empty()) {
      (*shared)(i, std::size_t{0});
    } else {
      client_->submit(get_request(read.name, read.offset, read.out),
                      [shared, i](const Result<S3Answer>& answer) {
                        if (answer) {
                          (*shared)(i, answer->out_bytes);
                        } else {
                          (*shared)(i, answer.error());
                        }
                      });
    }
  }
}

Result<std::vector<std::byte>> S3Bucket::get_all(const std::string& name, std::size_t bytes_max) {
  VARVE_TRY(check_name(name));
  auto get = request(RequestKind::kGet, "GET", name);
  get.is_object = true;
  get.answer_bytes_max = std::max(bytes_max, kSmallAnswerBytesMax);
  get.check = check_whole;
  VARVE_TRY_ASSIGN(const auto answer, client_->call(std::move(get)));
  const auto& body = answer.body;
  if (body.size() > bytes_max) {
    return Error(ErrorCode::kTooLarge,
                 fmt::format("{}: {} has more than {} bytes", describe(), name, bytes_max));
  }
  std::vector<std::byte> bytes(body.size());
  if (!body.empty()) std::memcpy(bytes.data(), body.data(), body.size());
  return bytes;
}

Result<S3Answer> S3Bucket::head_answer(const std::string& name) {
  const auto head = request(RequestKind::kHead, "HEAD", name);
  auto answer = client_->call(head);
  const bool may_be_refused = !answer && (answer.error().code() == ErrorCode::kNotPermitted ||
                                          answer.error().code() == ErrorCode::kIo);
  if (!may_be_refused) return answer;
  // An answer to HEAD cannot give the reason of a refusal. A list can: the client then follows the
  // store's clock, or gets other credentials.
  VARVE_TRY(list({}, {}, 1));
  return client_->call(head);
}

Result<ObjectInfo> S3Bucket::head(const std::string& name) {
  VARVE_TRY(check_name(name));
  VARVE_TRY_ASSIGN(const auto answer, head_answer(name));
  const auto length = header(answer, "content-length");
  const auto modified = parse_http_time(std::string(header(answer, "last-modified")));
  ObjectInfo info{.name = name};
  const auto [end, error] =
      std::from_chars(length.data(), length.data() + length.size(), info.bytes);
  if (error != std::errc() || end != length.data() + length.size() || !modified) {
    return wrong_answer("no Content-Length or no Last-Modified").with_context(describe());
  }
  info.modified = *modified;
  info.storage_class = header(answer, "x-amz-storage-class");
  info.etag = plain_etag(header(answer, "etag"));
  info.lock_mode = header(answer, "x-amz-object-lock-mode");
  info.locked_until = parse_iso_time(header(answer, "x-amz-object-lock-retain-until-date"));
  const auto version = header(answer, "x-amz-version-id");
  if (version != "null") info.version = version;
  return info;
}

Result<bool> S3Bucket::has_mark(const std::string& name, const std::string& mark) {
  const auto answer = head_answer(name);
  if (!answer && answer.error().code() == ErrorCode::kNotFound) return false;
  if (!answer) return answer.error();
  return header(*answer, kMarkHeader) == mark;
}

Result<ListPage> S3Bucket::list(const std::string& prefix, const std::string& after,
                                std::size_t objects_max) {
  auto list = request(RequestKind::kList, "GET", {});
  list.key.clear();
  list.query = {{"list-type", "2"},
                {"prefix", location_.prefix + prefix},
                {"max-keys", std::to_string(std::clamp<std::size_t>(objects_max, 1, kListMax))},
                {"encoding-type", "url"}};
  // Nothing is listed at or before the prefix itself.
  const auto start = location_.prefix + after;
  if (!start.empty()) list.query.emplace_back("start-after", start);
  list.answer_bytes_max = kPageBytesMax;
  ListPage page;
  list.check = [&](const S3Answer& answer) -> Result<void> {
    VARVE_TRY_ASSIGN(page, read_list_page(answer.body, location_.prefix, prefix, after, kListMax));
    return {};
  };
  VARVE_TRY(drop_answer(client_->call(std::move(list))));
  return page;
}

Result<void> S3Bucket::remove(const std::string& name) {
  VARVE_TRY(check_name(name));
  auto remove = request(RequestKind::kRemove, "DELETE", name);
  remove.is_change = true;
  const auto removed = drop_answer(client_->call(std::move(remove)));
  if (!removed && removed.error().code() == ErrorCode::kNotFound) return {};
  return removed;
}

}  // namespace varve::bucket
