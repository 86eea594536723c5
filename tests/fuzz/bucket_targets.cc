// SPDX-License-Identifier: Apache-2.0
#include "bucket_targets.h"

#include <algorithm>
#include <charconv>

#include "bucket/s3_answers.h"
#include "bucket/s3_request.h"
#include "checks.h"

namespace varve::fuzz {
namespace {

const std::string kPrefix = "p/";
const std::string kBelow = "n";
const std::string kAfter = "n0";

void require_printable(const std::string& text) {
  require(std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; }),
          "a message is printable");
}

std::string sample_page() {
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListBucketResult "
         "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><EncodingType>url</EncodingType>"
         "<IsTruncated>true</IsTruncated><Contents><Key>p/n1%2B+x</Key><LastModified>"
         "2013-09-17T18:07:53.000Z</LastModified><ETag>&quot;1&quot;</ETag><Size>5</Size>"
         "<StorageClass>STANDARD</StorageClass></Contents><Contents><Key>p/n2</Key><LastModified>"
         "2013-09-17T18:07:54Z</LastModified><Size>18446744073709551615</Size></Contents>"
         "</ListBucketResult>";
}
std::string sample_error() {
  return "<Error><Code>PermanentRedirect</Code><Message>elsewhere</Message><Region>eu-1</Region>"
         "</Error>";
}

// Takes the text to the end of a line.
std::string_view take_line(std::string_view& text) {
  const auto end = std::min(text.find('\n'), text.size());
  const auto line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

}  // namespace

void store_document(Bytes input) {
  const auto text = text_of(input);
  const auto page = bucket::read_list_page(text, kPrefix, kBelow, kAfter, bucket::kListMax);
  if (page) {
    std::string last = kAfter;
    for (const auto& object : page->objects) {
      require(object.name > last && object.name.starts_with(kBelow), "names are below and ascend");
      require_printable(object.storage_class);
      require(bucket::plain_etag(object.etag) == object.etag || object.etag.front() == '"',
              "an ETag is plain");
      require_printable(object.etag);
      last = object.name;
    }
    require(page->is_last || !page->objects.empty(), "a list makes progress");
    require(page->objects.size() <= bucket::kListMax, "a page has a limit");
  }
  const auto error = bucket::read_store_error(text);
  require_printable(error.code);
  require_printable(error.message);
  const auto uploads = bucket::read_unfinished(text);
  for (const auto& upload : uploads ? *uploads : std::vector<bucket::UnfinishedUpload>()) {
    require(!upload.key.empty() && !upload.upload_id.empty(), "an upload has a name");
  }
  const auto value = bucket::read_value(text, "InitiateMultipartUploadResult", "UploadId");
  require(!value || !value->empty(), "a value is not empty");
}

std::vector<std::string> store_document_seeds() {
  return {sample_page(), sample_error(),
          "<ListMultipartUploadsResult><EncodingType>url</EncodingType><Upload><Key>p/a%2B</Key>"
          "<UploadId>1</UploadId></Upload></ListMultipartUploadsResult>",
          "<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>",
          "<!DOCTYPE l [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]><ListBucketResult>&b;"
          "</ListBucketResult>"};
}

void store_answer(Bytes input) {
  auto text = text_of(input);
  bucket::HttpAnswer answer{.outcome = bucket::HttpOutcome::kAnswered};
  const auto status = take_line(text);
  std::from_chars(status.data(), status.data() + status.size(), answer.status);
  while (!text.empty()) {
    const auto line = take_line(text);
    if (line.empty()) break;
    const auto colon = std::min(line.find(':'), line.size());
    answer.headers.emplace_back(line.substr(0, colon),
                                line.substr(std::min(colon + 1, line.size())));
  }
  answer.body = text;
  static_cast<void>(bucket::parse_content_range(answer.header("content-range")));
  const bucket::S3Request request{.method = "GET"};
  const auto judgement = bucket::judge(request, answer, "s3://b/x", "us-east-1");
  const bool is_success = answer.status >= 200 && answer.status <= 299;
  require((judgement.step == bucket::NextStep::kEnd) == is_success, "only status 2xx succeeds");
  require(is_success || judgement.error.has_value(), "a failure has an error");
  require(judgement.wait_least.count() <= 20000, "a wait has a limit");
  if (judgement.step == bucket::NextStep::kOtherRegion) {
    require(bucket::is_region_name(judgement.region), "a region is a name");
  }
  require(judgement.step != bucket::NextStep::kOtherClock || judgement.store_time.has_value(),
          "another clock has a time");
  if (judgement.error) require_printable(judgement.error->message());
}

std::vector<std::string> store_answer_seeds() {
  return {
      "206\ncontent-range:bytes 0-9/10\n\nxxxxxxxxxx",
      "301\nx-amz-bucket-region:eu-1\n\n" + sample_error(),
      "403\ndate:Sun, 06 Nov 1994 08:49:37 GMT\n\n<Error><Code>RequestTimeTooSkewed</Code></Error>",
      "503\nretry-after:5\n\n<Error><Code>SlowDown</Code></Error>",
      "400\n\n<Error><Code>ExpiredToken</Code></Error>",
      "404\n\n",
      "200\n\n" + sample_page()};
}

}  // namespace varve::fuzz
