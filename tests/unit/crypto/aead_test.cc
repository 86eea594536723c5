// SPDX-License-Identifier: Apache-2.0
// Known answers of the primitives, through the interface that Varve uses.
#include "crypto/aead.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "crypto/gcm_library.h"
#include "crypto/hmac.h"

namespace varve::crypto {
namespace {

using Bytes = std::vector<std::byte>;

Bytes from_hex(std::string_view hex) {
  Bytes bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}
Bytes from_text(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}
template <typename Array>
Array array_of(std::string_view hex) {
  Array array{};
  const auto bytes = from_hex(hex);
  EXPECT_EQ(bytes.size(), array.size());
  std::copy(bytes.begin(), bytes.end(), array.begin());
  return array;
}
SecretKey key_of(std::string_view hex) {
  return *SecretKey::copy_of(array_of<std::array<std::byte, kKeyBytes>>(hex));
}

struct Vector {
  Cipher cipher;
  bool openssl_alone;
  std::string key, nonce, associated, text, sealed, tag;
};

Vector aes_256_gcm() {  // Test case 16 of "The Galois/Counter Mode of Operation", McGrew and Viega.
  return {Cipher::kAes256Gcm,
          false,
          "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308",
          "cafebabefacedbaddecaf888",
          "feedfacedeadbeeffeedfacedeadbeefabaddad2",
          "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
          "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
          "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
          "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662",
          "76fc6ece0f4e1768cddf8853bb2d551b"};
}
Vector openssl_alone(Vector vector) {
  vector.openssl_alone = true;
  return vector;
}
Vector chacha20_poly1305() {  // RFC 8439, 2.8.2.
  return {Cipher::kChaCha20Poly1305,
          false,
          "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f",
          "070000004041424344454647",
          "50515253c0c1c2c3c4c5c6c7",
          "4c616469657320616e642047656e746c656d656e206f662074686520636c6173"
          "73206f66202739393a204966204920636f756c64206f6666657220796f75206f"
          "6e6c79206f6e652074697020666f7220746865206675747572652c2073756e73"
          "637265656e20776f756c642062652069742e",
          "d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d6"
          "3dbea45e8ca9671282fafb69da92728b1a71de0a9e060b2905d6a5b67ecd3b36"
          "92ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc"
          "3ff4def08e4b7a9de576d26586cec64b6116",
          "1ae10b594f09e26a7e902ecbd0600691"};
}

class AeadVector : public testing::TestWithParam<Vector> {
 protected:
  void SetUp() override { avoid_gcm_library(GetParam().openssl_alone); }
  void TearDown() override { avoid_gcm_library(false); }
};

TEST_P(AeadVector, SealsAndOpensAsPublished) {
  const auto& vector = GetParam();
  const Aead aead(vector.cipher, key_of(vector.key));
  const auto nonce = array_of<Nonce>(vector.nonce);
  const auto associated = from_hex(vector.associated);
  auto text = from_hex(vector.text);
  const auto tag = aead.seal(nonce, associated, text);
  EXPECT_EQ(text, from_hex(vector.sealed));
  EXPECT_TRUE(is_authentic(tag, array_of<Tag>(vector.tag)));
  Bytes out(text.size());
  EXPECT_TRUE(aead.open(nonce, associated, text, tag, out));
  EXPECT_EQ(out, from_hex(vector.text));
  EXPECT_TRUE(aead.open(nonce, associated, text, tag));
  EXPECT_EQ(text, out);
}

TEST_P(AeadVector, AnyChangedByteIsRefused) {
  const auto& vector = GetParam();
  const Aead aead(vector.cipher, key_of(vector.key));
  const auto nonce = array_of<Nonce>(vector.nonce);
  const auto tag = array_of<Tag>(vector.tag);
  const auto associated = from_hex(vector.associated);
  const auto sealed = from_hex(vector.sealed);
  const auto changed = [](auto bytes, std::size_t at) {
    bytes[at] ^= std::byte{1};
    return bytes;
  };
  Bytes out(sealed.size());
  for (std::size_t i = 0; i < sealed.size(); ++i) {
    out.assign(sealed.size(), std::byte{7});
    EXPECT_FALSE(aead.open(nonce, associated, changed(sealed, i), tag, out));
    EXPECT_EQ(out, Bytes(sealed.size())) << "bytes of a text that does not open";
  }
  for (std::size_t i = 0; i < tag.size(); ++i) {
    EXPECT_FALSE(aead.open(nonce, associated, sealed, changed(tag, i), out));
  }
  for (std::size_t i = 0; i < nonce.size(); ++i) {
    EXPECT_FALSE(aead.open(changed(nonce, i), associated, sealed, tag, out));
  }
  for (std::size_t i = 0; i < associated.size(); ++i) {
    EXPECT_FALSE(aead.open(nonce, changed(associated, i), sealed, tag, out));
  }
  EXPECT_FALSE(aead.open(nonce, {}, sealed, tag, out));
  EXPECT_FALSE(Aead(vector.cipher, *SecretKey::random()).open(nonce, associated, sealed, tag, out));
}

INSTANTIATE_TEST_SUITE_P(Ciphers, AeadVector,
                         testing::Values(aes_256_gcm(), openssl_alone(aes_256_gcm()),
                                         chacha20_poly1305()),
                         [](const auto& of) {
                           if (of.param.cipher != Cipher::kAes256Gcm) return "chacha";
                           return of.param.openssl_alone ? "aes_openssl" : "aes";
                         });

TEST(Aead, SealedZerosAreToldFromAllElse) {
  for (const auto cipher : {Cipher::kAes256Gcm, Cipher::kChaCha20Poly1305}) {
    const Aead aead(cipher, *SecretKey::random());
    Bytes text(9001);
    (void)aead.seal(nonce_of(1), from_text("place"), text);
    EXPECT_TRUE(aead.is_sealed_zeros(nonce_of(1), text));
    EXPECT_TRUE(aead.is_sealed_zeros(nonce_of(1), {}));
    EXPECT_FALSE(aead.is_sealed_zeros(nonce_of(2), text));
    EXPECT_FALSE(Aead(cipher, *SecretKey::random()).is_sealed_zeros(nonce_of(1), text));
    EXPECT_FALSE(aead.is_sealed_zeros(nonce_of(1), Bytes(16)));
    for (std::size_t i = 0; i < text.size(); i += 250) {
      text[i] ^= std::byte{1};
      EXPECT_FALSE(aead.is_sealed_zeros(nonce_of(1), text)) << i;
      text[i] ^= std::byte{1};
    }
    text.back() ^= std::byte{0x80};
    EXPECT_FALSE(aead.is_sealed_zeros(nonce_of(1), text)) << "the last byte";
    // The context that it used serves the next text.
    Bytes next = from_text("next");
    const auto tag = aead.seal(nonce_of(3), {}, next);
    EXPECT_TRUE(aead.open(nonce_of(3), {}, next, tag));
  }
}

TEST(Aead, AnEmptyTextHasATag) {
  const Aead aead(Cipher::kAes256Gcm, *SecretKey::random());
  const auto associated = from_text("place");
  const auto tag = aead.seal(nonce_of(1), associated, {});
  EXPECT_TRUE(aead.open(nonce_of(1), associated, std::span<std::byte>(), tag));
  EXPECT_FALSE(aead.open(nonce_of(2), associated, std::span<std::byte>(), tag));
}

TEST(DeriveKey, EqualsAnIndependentHkdf) {  // Python's hmac, by the two steps of RFC 5869.
  Bytes bytes;
  for (int i = 0; i < 64; ++i) bytes.push_back(static_cast<std::byte>(i < 32 ? i : 0x80 + i));
  const auto key = *SecretKey::copy_of(std::span(bytes).first<kKeyBytes>());
  const auto salt = std::span<const std::byte>(bytes).last(32);
  const auto hex = [](const SecretKey& of) { return Bytes(of.bytes().begin(), of.bytes().end()); };
  EXPECT_EQ(hex(*derive_key(key, salt, "varve test")),
            from_hex("d7d37251630000835fa11e58b261fab94720790ba1e7f49c01de45e3570a0d12"));
  EXPECT_EQ(hex(*derive_key(key, {}, "")),
            from_hex("37ad29109f43265287804b674e2653d0a513718907f97fca97c95bded8104bbf"));
}

TEST(HmacSha256, EqualsRfc4231) {  // Case 1. HMAC fills its key of 20 bytes with zeros.
  const auto key = key_of("0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b000000000000000000000000");
  EXPECT_TRUE(is_authentic(
      hmac_sha256(key, from_text("Hi There")),
      array_of<Mac>("b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7")));
}

}  // namespace
}  // namespace varve::crypto
