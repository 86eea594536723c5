// SPDX-License-Identifier: Apache-2.0
#include "crypto/gcm_library.h"

#include <atomic>

#if __has_include(<intel-ipsec-mb.h>) && !defined(VARVE_STATIC)
#define VARVE_GCM_LIBRARY
#endif

#ifdef VARVE_GCM_LIBRARY
#include <dlfcn.h>
#include <intel-ipsec-mb.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/assert.h"
#include "crypto/authentic.h"
#endif

namespace varve::crypto {

namespace {
std::atomic<bool> library_is_avoided = false;
}  // namespace

void avoid_gcm_library(bool avoid) { library_is_avoided = avoid; }

#ifdef VARVE_GCM_LIBRARY

struct GcmKey::Expanded {
  gcm_key_data data;
};
struct GcmStream::State {
  gcm_context_data data;
};

namespace {

constexpr std::size_t kTextBytesMax = std::size_t{1} << 30;
/// The library of the header: a new soname is a new layout of its structures.
constexpr const char* kSoname = IMB_VERSION_NUM < 0x20000 ? "libIPSec_MB.so.1" : "libIPSec_MB.so.2";

const std::uint8_t* octets(const std::byte* bytes) {
  return reinterpret_cast<const std::uint8_t*>(bytes);
}
std::uint8_t* octets(std::byte* bytes) { return reinterpret_cast<std::uint8_t*>(bytes); }

/// The state of one text. Contains the end of the key stream, and is therefore wiped.
class TextState {
 public:
  TextState() = default;
  TextState(const TextState&) = delete;
  TextState& operator=(const TextState&) = delete;
  ~TextState() { wipe(std::as_writable_bytes(std::span(&data_, 1))); }
  [[nodiscard]] gcm_context_data* get() { return &data_; }

 private:
  gcm_context_data data_;
};

// Returns nullopt if the library refuses the arguments: the library then writes no tag, and only
// reports the refusal in a variable shared by all threads. A tag of zeros has a probability of
// 2^-128.
std::optional<Tag> transform(aes_gcm_enc_dec_t function, const gcm_key_data& key,
                             const Nonce& nonce, std::span<const std::byte> associated,
                             const std::byte* in, std::span<std::byte> out) {
  VARVE_ASSERT(associated.size() <= kTextBytesMax && out.size() <= kTextBytesMax);
  TextState state;
  Tag tag{};
  // The library refuses null pointers, also with a length of 0.
  const auto* const no_bytes = octets(nonce.data());
  function(&key, state.get(), out.empty() ? octets(tag.data()) : octets(out.data()),
           out.empty() ? no_bytes : octets(in), out.size(), octets(nonce.data()),
           associated.empty() ? no_bytes : octets(associated.data()), associated.size(),
           octets(tag.data()), tag.size());
  return std::ranges::count(tag, std::byte{0}) == kTagBytes ? std::nullopt : std::optional(tag);
}

/// The library, loaded and started.
class Library {
 public:
  Library() {
    void* const library = ::dlopen(kSoname, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return;
    const auto version = find<decltype(&imb_get_version)>(library, "imb_get_version");
    const auto size = find<decltype(&imb_get_mb_mgr_size)>(library, "imb_get_mb_mgr_size");
    const auto place = find<decltype(&imb_set_pointers_mb_mgr)>(library, "imb_set_pointers_mb_mgr");
    const auto start = find<decltype(&init_mb_mgr_auto)>(library, "init_mb_mgr_auto");
    // Older libraries may lack functions of the manager.
    if (version == nullptr || size == nullptr || place == nullptr || start == nullptr ||
        version() < IMB_VERSION_NUM) {
      return;
    }
    // Zeros of the kernel, mostly untouched: Varve uses only a few functions of the manager.
    void* const memory =
        ::mmap(nullptr, size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    auto* const manager = place(memory, 0, 0);
    IMB_ARCH code = IMB_ARCH_NONE;
    start(manager, &code);
    constexpr std::uint64_t kNeeded = IMB_FEATURE_AESNI | IMB_FEATURE_PCLMULQDQ;
    if (manager->imb_errno != 0 || code < IMB_ARCH_SSE ||
        (manager->features & kNeeded) != kNeeded) {
      return;
    }
    if (gives_published_answer(*manager)) manager_ = manager;
  }

  /// Returns null if the library must not be used.
  [[nodiscard]] const IMB_MGR* manager() const { return manager_; }

 private:
  template <typename Function>
  static Function find(void* library, const char* name) {
    return reinterpret_cast<Function>(::dlsym(library, name));
  }
  static bool gives_published_answer(const IMB_MGR& manager);

  const IMB_MGR* manager_ = nullptr;
};

template <std::size_t kSize>
std::array<std::byte, kSize> bytes_of(const std::array<std::uint8_t, kSize>& values) {
  std::array<std::byte, kSize> bytes{};
  std::ranges::copy(std::as_bytes(std::span(values)), bytes.begin());
  return bytes;
}

// Test case 16 of "The Galois/Counter Mode of Operation", McGrew and Viega. A library incompatible
// with the header fails here, and not in a repository.
bool Library::gives_published_answer(const IMB_MGR& manager) {
  constexpr std::array<std::uint8_t, kKeyBytes> kKey = {
      0xfe, 0xff, 0xe9, 0x92, 0x86, 0x65, 0x73, 0x1c, 0x6d, 0x6a, 0x8f,
      0x94, 0x67, 0x30, 0x83, 0x08, 0xfe, 0xff, 0xe9, 0x92, 0x86, 0x65,
      0x73, 0x1c, 0x6d, 0x6a, 0x8f, 0x94, 0x67, 0x30, 0x83, 0x08};
  const auto nonce = bytes_of<kNonceBytes>(
      {0xca, 0xfe, 0xba, 0xbe, 0xfa, 0xce, 0xdb, 0xad, 0xde, 0xca, 0xf8, 0x88});
  const auto associated =
      bytes_of<20>({0xfe, 0xed, 0xfa, 0xce, 0xde, 0xad, 0xbe, 0xef, 0xfe, 0xed,
                    0xfa, 0xce, 0xde, 0xad, 0xbe, 0xef, 0xab, 0xad, 0xda, 0xd2});
  const auto text = bytes_of<60>(
      {0xd9, 0x31, 0x32, 0x25, 0xf8, 0x84, 0x06, 0xe5, 0xa5, 0x59, 0x09, 0xc5, 0xaf, 0xf5, 0x26,
       0x9a, 0x86, 0xa7, 0xa9, 0x53, 0x15, 0x34, 0xf7, 0xda, 0x2e, 0x4c, 0x30, 0x3d, 0x8a, 0x31,
       0x8a, 0x72, 0x1c, 0x3c, 0x0c, 0x95, 0x95, 0x68, 0x09, 0x53, 0x2f, 0xcf, 0x0e, 0x24, 0x49,
       0xa6, 0xb5, 0x25, 0xb1, 0x6a, 0xed, 0xf5, 0xaa, 0x0d, 0xe6, 0x57, 0xba, 0x63, 0x7b, 0x39});
  const auto sealed = bytes_of<60>(
      {0x52, 0x2d, 0xc1, 0xf0, 0x99, 0x56, 0x7d, 0x07, 0xf4, 0x7f, 0x37, 0xa3, 0x2a, 0x84, 0x42,
       0x7d, 0x64, 0x3a, 0x8c, 0xdc, 0xbf, 0xe5, 0xc0, 0xc9, 0x75, 0x98, 0xa2, 0xbd, 0x25, 0x55,
       0xd1, 0xaa, 0x8c, 0xb0, 0x8e, 0x48, 0x59, 0x0d, 0xbb, 0x3d, 0xa7, 0xb0, 0x8b, 0x10, 0x56,
       0x82, 0x88, 0x38, 0xc5, 0xf6, 0x1e, 0x63, 0x93, 0xba, 0x7a, 0x0a, 0xbc, 0xc9, 0xf6, 0x62});
  const auto tag = bytes_of<kTagBytes>({0x76, 0xfc, 0x6e, 0xce, 0x0f, 0x4e, 0x17, 0x68, 0xcd, 0xdf,
                                        0x88, 0x53, 0xbb, 0x2d, 0x55, 0x1b});
  gcm_key_data key;
  manager.gcm256_pre(kKey.data(), &key);
  auto out = text;
  return is_authentic(tag,
                      transform(manager.gcm256_enc, key, nonce, associated, out.data(), out)) &&
         out == sealed &&
         is_authentic(tag,
                      transform(manager.gcm256_dec, key, nonce, associated, sealed.data(), out)) &&
         out == text;
}

const IMB_MGR* manager() {
  static const Library library;  // Stays loaded, because the library has no state to end.
  return library.manager();
}

}  // namespace

GcmKey::GcmKey(std::unique_ptr<Expanded> expanded) : expanded_(std::move(expanded)) {}

GcmKey::~GcmKey() { wipe(std::as_writable_bytes(std::span(expanded_.get(), 1))); }

std::unique_ptr<const GcmKey> GcmKey::expand(const SecretKey& key) {
  if (library_is_avoided.load(std::memory_order_relaxed) || manager() == nullptr) return nullptr;
  auto expanded = std::make_unique_for_overwrite<Expanded>();
  manager()->gcm256_pre(octets(key.bytes().data()), &expanded->data);
  return std::unique_ptr<const GcmKey>(new GcmKey(std::move(expanded)));
}

Tag GcmKey::seal(const Nonce& nonce, std::span<const std::byte> associated,
                 std::span<std::byte> text) const {
  const auto tag =
      transform(manager()->gcm256_enc, expanded_->data, nonce, associated, text.data(), text);
  VARVE_ASSERT(tag.has_value());
  return *tag;
}

std::optional<Tag> GcmKey::open(const Nonce& nonce, std::span<const std::byte> associated,
                                const std::byte* sealed, std::span<std::byte> out) const {
  return transform(manager()->gcm256_dec, expanded_->data, nonce, associated, sealed, out);
}

GcmStream::GcmStream(const GcmKey& key, const Nonce& nonce)
    : key_(key), state_(std::make_unique<State>()) {
  manager()->gcm256_init(&key_.expanded_->data, &state_->data, octets(nonce.data()),
                         octets(nonce.data()), 0);
}

GcmStream::~GcmStream() { wipe(std::as_writable_bytes(std::span(state_.get(), 1))); }

void GcmStream::decrypt(std::span<const std::byte> sealed, std::span<std::byte> out) const {
  VARVE_ASSERT(sealed.size() == out.size() && out.size() <= kTextBytesMax);
  manager()->gcm256_dec_update(&key_.expanded_->data, &state_->data, octets(out.data()),
                               octets(sealed.data()), out.size());
}

#else  // Without the library.

struct GcmKey::Expanded {};

GcmKey::GcmKey(std::unique_ptr<Expanded> expanded) : expanded_(std::move(expanded)) {}
GcmKey::~GcmKey() = default;
std::unique_ptr<const GcmKey> GcmKey::expand(const SecretKey& /*key*/) { return nullptr; }
Tag GcmKey::seal(const Nonce& /*nonce*/, std::span<const std::byte> /*associated*/,
                 std::span<std::byte> /*text*/) const {
  return {};
}
std::optional<Tag> GcmKey::open(const Nonce& /*nonce*/, std::span<const std::byte> /*associated*/,
                                const std::byte* /*sealed*/, std::span<std::byte> /*out*/) const {
  return std::nullopt;
}
struct GcmStream::State {};
GcmStream::GcmStream(const GcmKey& key, const Nonce& /*nonce*/) : key_(key) {}
GcmStream::~GcmStream() = default;
void GcmStream::decrypt(std::span<const std::byte> /*sealed*/, std::span<std::byte> /*out*/) const {
}

#endif

}  // namespace varve::crypto
