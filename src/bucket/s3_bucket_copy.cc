// SPDX-License-Identifier: Apache-2.0
// Copies inside the store: an upload in parts, with a range of another object as the only part.
#include <fmt/core.h>

#include <array>
#include <set>
#include <string>
#include <utility>

#include "bucket/s3_answers.h"
#include "bucket/s3_bucket.h"
#include "bucket/s3_headers.h"

namespace varve::bucket {

Result<void> S3Bucket::copy_prefix(const std::string& from, std::uint64_t bytes,
                                   const std::string& to, const PutOptions& options) {
  VARVE_TRY(check_name(from));
  VARVE_TRY(check_name(to));
  // Ceph 16 decodes the header x-amz-copy-source twice.
  VARVE_TRY(check_copied_name(location_.prefix, from));
  if (bytes > kPutBytesMax) {
    return Error(ErrorCode::kTooLarge,
                 fmt::format("{}: {} bytes are too many for one copy", from, bytes));
  }
  VARVE_TRY_ASSIGN(const auto source, head(from));
  if (bytes == 0 || bytes > source.bytes) {
    return Error(ErrorCode::kInvalid, fmt::format("{}: cannot copy {} bytes of {}, which has {}",
                                                  describe(), bytes, from, source.bytes));
  }
  VARVE_TRY_ASSIGN(const auto mark, new_mark(fmt::format("copy {} {} {}", bytes, from, to)));
  auto begin = request(RequestKind::kCopy, "POST", to);
  begin.query = {{"uploads", ""}};
  begin.has_body = true;
  begin.is_change = true;
  begin.headers.emplace_back(kMarkHeader, mark);
  if (!options.storage_class.empty()) {
    begin.headers.emplace_back("x-amz-storage-class", options.storage_class);
  }
  std::string upload_id;
  begin.check = [&](const S3Answer& answer) -> Result<void> {
    VARVE_TRY_ASSIGN(upload_id,
                     read_value(answer.body, "InitiateMultipartUploadResult", "UploadId"));
    return {};
  };
  VARVE_TRY(drop_answer(client_->call(std::move(begin))));
  const auto copied = copy_part(from, bytes, to, upload_id, mark);
  if (!copied) static_cast<void>(abort_upload(to, upload_id));
  return copied;
}

Result<void> S3Bucket::copy_part(const std::string& from, std::uint64_t bytes,
                                 const std::string& to, const std::string& upload_id,
                                 const std::string& mark) {
  auto copy = request(RequestKind::kCopy, "PUT", to);
  copy.query = {{"partNumber", "1"}, {"uploadId", upload_id}};
  copy.has_body = true;
  copy.is_change = true;
  copy.headers.emplace_back(
      "x-amz-copy-source",
      uri_encode("/" + location_.bucket + "/" + location_.prefix + from, true));
  copy.headers.emplace_back("x-amz-copy-source-range", fmt::format("bytes=0-{}", bytes - 1));
  std::string etag;
  copy.check = [&](const S3Answer& answer) -> Result<void> {
    VARVE_TRY(check_document(answer, "CopyPartResult"));
    VARVE_TRY_ASSIGN(etag, read_value(answer.body, "CopyPartResult", "ETag"));
    return {};
  };
  VARVE_TRY(drop_answer(client_->call(std::move(copy))));

  // The store's own text is sent back to the store, so text that could end the element is refused.
  if (etag.find_first_of("<>&") != std::string::npos) {
    return wrong_answer("a strange ETag").with_context(describe());
  }
  const auto document = fmt::format(
      "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Part>"
      "<PartNumber>1</PartNumber><ETag>{}</ETag></Part></CompleteMultipartUpload>",
      etag);
  auto complete = request(RequestKind::kCopy, "POST", to);
  complete.query = {{"uploadId", upload_id}};
  complete.parts = {std::as_bytes(std::span(document))};
  complete.has_body = true;
  complete.body_bytes = document.size();
  complete.is_change = true;
  complete.headers.emplace_back("content-type", "application/xml");
  VARVE_TRY_ASSIGN(complete.payload_sha256, sha256_hex(complete.parts));
  complete.check = [](const S3Answer& answer) {
    return check_document(answer, "CompleteMultipartUploadResult");
  };
  const auto answer = client_->call(std::move(complete));
  if (answer) return {};
  if (answer.error().code() == ErrorCode::kNotFound) {
    // An earlier try, whose answer was lost, may have completed the upload.
    VARVE_TRY_ASSIGN(const bool is_ours, has_mark(to, mark));
    if (is_ours) return {};
  }
  return answer.error();
}

Result<void> S3Bucket::abort_upload(const std::string& name, const std::string& upload_id) {
  auto abort = request(RequestKind::kRemove, "DELETE", name);
  abort.query = {{"uploadId", upload_id}};
  abort.is_change = true;
  const auto aborted = drop_answer(client_->call(std::move(abort)));
  if (!aborted && aborted.error().code() == ErrorCode::kNotFound) return {};
  return aborted;
}

Result<void> S3Bucket::remove_unfinished(const std::string& prefix) {
  // A store may list an upload for some time after its end, and a hostile store for ever.
  std::set<std::pair<std::string, std::string>> removed;
  while (removed.size() <= kUnfinishedMax) {
    auto list = request(RequestKind::kList, "GET", {});
    list.key.clear();
    list.query = {{"uploads", ""}, {"prefix", location_.prefix + prefix}, {"encoding-type", "url"}};
    list.answer_bytes_max = kPageBytesMax;
    std::vector<UnfinishedUpload> uploads;
    list.check = [&](const S3Answer& answer) -> Result<void> {
      VARVE_TRY_ASSIGN(uploads, read_unfinished(answer.body));
      return {};
    };
    VARVE_TRY(drop_answer(client_->call(std::move(list))));
    std::erase_if(uploads, [&](const UnfinishedUpload& upload) {
      return !upload.key.starts_with(location_.prefix + prefix) ||
             removed.contains({upload.key, upload.upload_id});
    });
    if (uploads.empty()) return {};
    for (const auto& upload : uploads) {
      VARVE_TRY(abort_upload(upload.key.substr(location_.prefix.size()), upload.upload_id));
      removed.emplace(upload.key, upload.upload_id);
    }
  }
  return Error(ErrorCode::kCorrupt,
               fmt::format("{} lists more than {} unfinished uploads, and does not end", describe(),
                           kUnfinishedMax));
}

}  // namespace varve::bucket
