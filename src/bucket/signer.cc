// SPDX-License-Identifier: Apache-2.0
#include "bucket/signer.h"

#include <fmt/chrono.h>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <cctype>
#include <ctime>
#include <memory>

namespace varve::bucket {
namespace {

constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256";
using Digest = std::array<unsigned char, 32>;
using DigestContext = std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)>;

Error openssl_failed() { return {ErrorCode::kIo, "OpenSSL failed to sign a request"}; }

std::string hex_digits(std::span<const unsigned char> bytes) {
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

// Writes the digest of the parts. Returns its length, or 0 if OpenSSL fails.
unsigned digest(const EVP_MD* method, std::span<const std::span<const std::byte>> parts,
                Digest& out) {
  const DigestContext context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  unsigned bytes = 0;
  if (!context || EVP_DigestInit_ex(context.get(), method, nullptr) != 1) return 0;
  for (const auto part : parts) {
    if (EVP_DigestUpdate(context.get(), part.data(), part.size()) != 1) return 0;
  }
  return EVP_DigestFinal_ex(context.get(), out.data(), &bytes) == 1 ? bytes : 0;
}

bool hmac(std::span<const unsigned char> key, std::string_view text, Digest& out) {
  unsigned bytes = 0;
  return HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
              reinterpret_cast<const unsigned char*>(text.data()), text.size(), out.data(),
              &bytes) != nullptr &&
         bytes == out.size();
}

// Sets `key` to the signing key of one day.
bool derive(const StoreCredentials& credentials, std::string_view day, const std::string& region,
            Digest& key) {
  constexpr std::string_view kStart = "AWS4";
  const auto secret = credentials.secret_access_key.bytes();
  std::vector<unsigned char> first(kStart.begin(), kStart.end());
  first.reserve(kStart.size() + secret.size());
  std::ranges::transform(secret, std::back_inserter(first),
                         [](std::byte byte) { return static_cast<unsigned char>(byte); });
  const bool is_derived = hmac(first, day, key) && hmac(Digest(key), region, key) &&
                          hmac(Digest(key), "s3", key) && hmac(Digest(key), "aws4_request", key);
  OPENSSL_cleanse(first.data(), first.size());
  return is_derived;
}

// Removes blanks at both ends, and repeated blanks.
std::string trimmed(std::string_view value) {
  std::string text;
  for (const char c : value) {
    if (c == ' ' && (text.empty() || text.back() == ' ')) continue;
    text += c;
  }
  if (text.ends_with(' ')) text.pop_back();
  return text;
}

}  // namespace

Result<std::string> sha256_hex(std::span<const std::span<const std::byte>> parts) {
  Digest out;
  if (digest(EVP_sha256(), parts, out) != out.size()) return openssl_failed();
  return hex_digits(out);
}

std::string md5_base64(std::span<const std::span<const std::byte>> parts) {
  Digest out;
  const auto bytes = digest(EVP_md5(), parts, out);
  if (bytes == 0) return {};
  std::string text(4 * ((bytes + 2) / 3) + 1, '\0');
  const int length = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()), out.data(),
                                     static_cast<int>(bytes));
  text.resize(static_cast<std::size_t>(length));
  return text;
}

std::string uri_encode(std::string_view text, bool keeps_slash) {
  std::string encoded;
  for (const char c : text) {
    const bool is_plain = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                          (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' || c == '~';
    if (is_plain || (c == '/' && keeps_slash)) {
      encoded += c;
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

std::string query_text(const Fields& query) {
  Fields encoded;
  encoded.reserve(query.size());
  for (const auto& [name, value] : query) {
    encoded.emplace_back(uri_encode(name, false), uri_encode(value, false));
  }
  std::ranges::sort(encoded);
  std::string text;
  for (const auto& [name, value] : encoded) {
    if (!text.empty()) text += '&';
    text += name + "=" + value;
  }
  return text;
}

std::string signing_time(const Timestamp& time) {
  return fmt::format("{:%Y%m%dT%H%M%SZ}", fmt::gmtime(static_cast<std::time_t>(time.seconds)));
}

Result<std::string> authorization(const SignedParts& request, const StoreCredentials& credentials,
                                  const std::string& region, const Timestamp& time) {
  auto headers = request.headers;
  std::ranges::sort(headers);
  std::string lines;
  std::vector<std::string> names;
  for (const auto& [name, value] : headers) {
    lines += name + ":" + trimmed(value) + "\n";
    names.push_back(name);
  }
  const auto signed_headers = fmt::format("{}", fmt::join(names, ";"));
  const auto canonical =
      fmt::format("{}\n{}\n{}\n{}\n{}\n{}", request.method, uri_encode(request.path, true),
                  query_text(request.query), lines, signed_headers, request.payload_sha256);
  const std::array<std::span<const std::byte>, 1> parts{std::as_bytes(std::span(canonical))};
  VARVE_TRY_ASSIGN(const auto canonical_sha256, sha256_hex(parts));

  const auto stamp = signing_time(time);
  const auto day = stamp.substr(0, stamp.find('T'));
  const auto scope = fmt::format("{}/{}/s3/aws4_request", day, region);
  const auto to_sign = fmt::format("{}\n{}\n{}\n{}", kAlgorithm, stamp, scope, canonical_sha256);
  Digest key;
  Digest signature;
  const bool is_signed = derive(credentials, day, region, key) && hmac(key, to_sign, signature);
  OPENSSL_cleanse(key.data(), key.size());
  if (!is_signed) return openssl_failed();
  return fmt::format("{} Credential={}/{},SignedHeaders={},Signature={}", kAlgorithm,
                     credentials.access_key_id, scope, signed_headers, hex_digits(signature));
}

}  // namespace varve::bucket
