// SPDX-License-Identifier: Apache-2.0
#include "bucket/s3_answers.h"

#include <gtest/gtest.h>

#include <string>

#include "bucket/xml_reader.h"

namespace varve::bucket {
namespace {

std::string object(const std::string& key, const std::string& size = "5") {
  return "<Contents><Key>" + key + "</Key><LastModified>2013-09-17T18:07:53.000Z</LastModified>" +
         "<ETag>&quot;x&quot;</ETag><Size>" + size +
         "</Size><StorageClass>STANDARD</StorageClass></Contents>";
}
std::string page(const std::string& contents, const std::string& truncated = "false",
                 const std::string& encoding = "url") {
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
         "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>b</Name>"
         "<EncodingType>" +
         encoding + "</EncodingType><IsTruncated>" + truncated + "</IsTruncated>" + contents +
         "<CommonPrefixes><Prefix>p/x</Prefix></CommonPrefixes></ListBucketResult>";
}
Result<ListPage> read(const std::string& document, const std::string& after = {},
                      std::size_t objects_max = 10) {
  return read_list_page(document, "p/", "", after, objects_max);
}

TEST(ListPageAnswer, HasTheObjectsBelowThePrefix) {
  const auto got = read(page(object("p/a%2Fb+c%2B") + object("p/b", "18446744073709551615")));
  ASSERT_TRUE(got) << got.error().message();
  ASSERT_EQ(got->objects.size(), 2);
  EXPECT_EQ(got->objects[0].name, "a/b c+");
  EXPECT_EQ(got->objects[0].bytes, 5);
  EXPECT_EQ(got->objects[0].modified.seconds, 1379441273);
  EXPECT_EQ(got->objects[0].storage_class, "STANDARD");
  EXPECT_EQ(got->objects[1].bytes, 18446744073709551615U);
  EXPECT_TRUE(got->is_last);
  EXPECT_FALSE(read(page(object("p/a"), "true"))->is_last);
  EXPECT_TRUE(read(page(""))->objects.empty());
}

TEST(ListPageAnswer, IsOnlyDecodedIfTheStoreEncodedIt) {
  EXPECT_EQ(read(page(object("p/a%2Fb+c"), "false", ""))->objects[0].name, "a%2Fb+c");
  EXPECT_EQ(read(page(object("p/a&amp;&#65;&lt;"), "false", ""))->objects[0].name, "a&A<");
}

TEST(ListPageAnswer, WithAWrongValueIsCorrupt) {
  const auto long_name = "p/" + std::string(kXmlTextBytesMax, 'x');
  for (const auto& document : {std::string(),
                               std::string("x"),
                               std::string("<Error><Code>x</Code></Error>"),
                               std::string("<ListBucketResult/>"),
                               page(object("p/a")).substr(0, 300),
                               page(object("q/a")),
                               page(object("a")),
                               page(object("")),
                               page(object("p/")),
                               page(object("p/b") + object("p/a")),
                               page(object("p/a") + object("p/a")),
                               page(object("p/a", "")),
                               page(object("p/a", "-1")),
                               page(object("p/a", "5x")),
                               page(object("p/a", "18446744073709551616")),
                               page(object("p/a%")),
                               page(object("p/a%4")),
                               page(object("p/a%zz")),
                               page("", "true"),
                               page(object("p/a"), "yes"),
                               page(object("p/a"), ""),
                               page("<Contents></Contents>"),
                               page(object(long_name)),
                               page(object("p/a")) + "<x/>"}) {
    const auto got = read(document);
    ASSERT_FALSE(got) << document.substr(0, 400);
    EXPECT_EQ(got.error().code(), ErrorCode::kCorrupt) << document.substr(0, 400);
  }
  EXPECT_FALSE(read(page(object("p/a")), "a")) << "at the name after which it begins";
  EXPECT_TRUE(read(page(object("p/b")), "a"));
  EXPECT_FALSE(read(page(object("p/a") + object("p/b")), "", 1)) << "more than requested";
}

TEST(XmlReader, RefusesADocumentType) {
  const std::string laughs =
      "<?xml version=\"1.0\"?><!DOCTYPE l [<!ENTITY a \"ha\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;\">"
      "<!ENTITY c \"&b;&b;&b;&b;&b;&b;&b;\">]><l>&c;</l>";
  int elements = 0;
  const auto got = read_xml(laughs, [&](std::string_view, const std::string&) {
    ++elements;
    return Result<void>();
  });
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code(), ErrorCode::kCorrupt);
  EXPECT_EQ(elements, 0);
  EXPECT_FALSE(read_xml("<!DOCTYPE l SYSTEM \"file:///etc/passwd\"><l/>",
                        [](std::string_view, const std::string&) { return Result<void>(); }));
}

TEST(XmlReader, LimitsTheDepth) {
  const auto nested = [](std::size_t levels) {
    std::string text;
    for (std::size_t i = 0; i < levels; ++i) text += "<a>";
    for (std::size_t i = 0; i < levels; ++i) text += "</a>";
    return read_xml(text, [](std::string_view, const std::string&) { return Result<void>(); });
  };
  EXPECT_TRUE(nested(kXmlDepthMax));
  EXPECT_FALSE(nested(kXmlDepthMax + 1));
  EXPECT_FALSE(nested(100000));
}

TEST(XmlReader, GivesPathsAndTexts) {
  std::string seen;
  ASSERT_TRUE(read_xml("<a>1<b x='y'>2</b>3<c/><!-- d --><b><![CDATA[<4>]]></b></a>",
                       [&](std::string_view path, const std::string& text) {
                         seen += std::string(path) + "=" + text + ";";
                         return Result<void>();
                       }));
  EXPECT_EQ(seen, "a/b=2;a/c=;a/b=<4>;a=13;");
}

TEST(XmlReader, ReturnsTheErrorOfAnElement) {
  const auto got = read_xml("<a><b/><c/></a>", [](std::string_view path, const std::string&) {
    EXPECT_EQ(path, "a/b") << "went on after an error";
    return Result<void>(Error(ErrorCode::kNoSpace, "x"));
  });
  EXPECT_EQ(got.error().code(), ErrorCode::kNoSpace);
}

TEST(StoreErrorAnswer, IsReadFromAnyBytes) {
  const auto error = read_store_error(
      "<Error><Code>NoSuchKey</Code><Message>a\x1b[31m&#10;b</Message><Region>eu-1</Region></"
      "Error>");
  EXPECT_EQ(error.code, "NoSuchKey") << "the code is before the damage";
  EXPECT_EQ(error.message, "");
  const auto clean = read_store_error(
      "<Error><Code>NoSuchKey</Code><Message>a&#10;b\xC3\xA9</Message><Region>eu-1</Region></"
      "Error>");
  EXPECT_EQ(clean.code, "NoSuchKey");
  EXPECT_EQ(clean.message, "a?b??") << "a terminal would obey it";
  EXPECT_EQ(clean.region, "eu-1");
  EXPECT_EQ(read_store_error("<html>502 Bad Gateway").code, "");
  EXPECT_EQ(read_store_error("").code, "");
  EXPECT_EQ(read_store_error("<Error><Code>Slow").code, "");
  const auto endless = "<Error><Message>" + std::string(10000, 'x') + "</Message></Error>";
  EXPECT_EQ(read_store_error(endless).message.size(), 200);
}

TEST(UnfinishedUploads, HaveNames) {
  const auto got = read_unfinished(
      "<ListMultipartUploadsResult><EncodingType>url</EncodingType><Upload><Key>p/a%2B</Key>"
      "<UploadId>1+2</UploadId></Upload></ListMultipartUploadsResult>");
  ASSERT_TRUE(got);
  ASSERT_EQ(got->size(), 1);
  EXPECT_EQ((*got)[0].key, "p/a+");
  EXPECT_EQ((*got)[0].upload_id, "1+2");
  EXPECT_TRUE(read_unfinished("<ListMultipartUploadsResult/>")->empty());
  EXPECT_FALSE(read_unfinished("<Other/>"));
  EXPECT_FALSE(
      read_unfinished("<ListMultipartUploadsResult><Upload><Key>a</Key></Upload>"
                      "</ListMultipartUploadsResult>"));
}

TEST(AnswerTime, IsInUtc) {
  EXPECT_EQ(parse_iso_time("1970-01-01T00:00:00Z")->seconds, 0);
  EXPECT_EQ(parse_iso_time("2038-01-19T03:14:08.999Z")->seconds, 2147483648);
  for (const auto* text :
       {"", "Z", "1970-01-01T00:00:00", "1970-01-01 00:00:00Z", "1970-13-01T00:00:00Z",
        "1970-00-01T00:00:00Z", "1970-01-32T00:00:00Z", "1970-01-01T24:00:00Z",
        "1970-01-01T00:60:00Z", "1970-01-01T00:00:61Z", "1970-01-01T00:00:00.Z.Z",
        "1970-01-01T00:00:00xZ", "197a-01-01T00:00:00Z"}) {
    EXPECT_FALSE(parse_iso_time(text)) << text;
  }
}

TEST(ContentRangeHeader, IsCheckedWhenParsed) {
  const auto range = parse_content_range("bytes 5-9/10");
  ASSERT_TRUE(range);
  EXPECT_EQ(range->first, 5);
  EXPECT_EQ(range->last, 9);
  EXPECT_EQ(range->total, 10);
  for (const auto* text : {"", "bytes", "bytes 5-9", "bytes */10", "bytes 5-4/10", "bytes 5-10/10",
                           "bytes -1-9/10", "bytes 5-9/*", "bytes 5/9-10", "items 5-9/10",
                           "bytes 5-9/10x", "bytes 5-99999999999999999999/10"}) {
    EXPECT_FALSE(parse_content_range(text)) << text;
  }
}

}  // namespace
}  // namespace varve::bucket
