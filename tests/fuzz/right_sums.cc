// SPDX-License-Identifier: Apache-2.0
#include "right_sums.h"

#include <fmt/format.h>

#include <cstdint>

#include "base/coding.h"
#include "checks.h"
#include "format/alias_file.h"
#include "format/container.h"
#include "format/manifest.h"

namespace varve::fuzz {
namespace {

constexpr std::uint32_t kSealedFlag = 2;  // Of a container.

template <typename T>
T load(const std::string& bytes, std::size_t at) {
  return base::load_le<T>(base::as_bytes(bytes).data() + at);
}

}  // namespace

void sum_manifest(std::string& bytes) {
  if (bytes.size() < format::kManifestHeaderBytes) return;
  constexpr std::size_t kSummed = format::kManifestHeaderBytes - sizeof(std::uint64_t);
  put64(bytes, kSummed, sum(bytes, 0, kSummed));
  for (std::size_t at = format::kManifestHeaderBytes;
       bytes.size() - at >= format::kManifestBlockHeaderBytes;) {
    const auto stored = load<std::uint32_t>(bytes, at);
    const std::size_t data = at + format::kManifestBlockHeaderBytes;
    if (stored > bytes.size() - data) return;
    put64(bytes, at + 12, sum(bytes, data, data + stored));
    at = data + stored;
  }
}

void sum_containers(std::string& bytes) {
  for (std::size_t at = 0; bytes.size() - at >= format::kContainerFixedHeaderBytes;) {
    if ((load<std::uint32_t>(bytes, at + 8) & kSealedFlag) != 0) {
      const std::size_t all = load<std::uint32_t>(bytes, at + 20);
      if (all < format::kContainerFixedHeaderBytes || all > bytes.size() - at) return;
      put64(bytes, at + 112, sum(bytes, at + format::kContainerFixedHeaderBytes, at + all));
      put64(bytes, at + 120, sum(bytes, at, at + 120));
      at += all;
      continue;
    }
    const std::size_t header_bytes = load<std::uint32_t>(bytes, at + 32);
    const std::size_t data_bytes = load<std::uint32_t>(bytes, at + 36);
    const bool compact = (load<std::uint32_t>(bytes, at + 8) & 1) != 0;
    if (header_bytes < format::kContainerFixedHeaderBytes || header_bytes > bytes.size() - at)
      return;
    put64(bytes, at + 48, sum(bytes, at + format::kContainerFixedHeaderBytes, at + header_bytes));
    put64(bytes, at + 120, sum(bytes, at, at + 120));
    const auto all = header_bytes + format::padded_bytes(data_bytes, compact);
    if (all > bytes.size() - at) return;
    at += all;
  }
}

void sum_text(std::string& bytes) {
  const auto last = bytes.rfind("checksum = ");
  if (last == std::string::npos) return;
  bytes.replace(last, std::string::npos, fmt::format("checksum = {:016x}\n", sum(bytes, 0, last)));
}

std::optional<format::ParityHeader> sum_parity(std::string& bytes) {
  constexpr auto kHeader = format::kParityHeaderBytes;
  if (bytes.size() < kHeader) return std::nullopt;
  put64(bytes, 56, sum(bytes, 0, 56));
  auto header = format::decode_parity_header(base::as_bytes(bytes));
  if (!header || header->index_bytes() > bytes.size()) return std::nullopt;
  const auto sums_at = kHeader + header->member_bytes();
  header->members_checksum = sum(bytes, kHeader, sums_at);
  header->sums_checksum = sum(bytes, sums_at, header->index_bytes());
  put64(bytes, 24, header->members_checksum);
  put64(bytes, 32, header->sums_checksum);
  put64(bytes, 56, sum(bytes, 0, 56));
  return *header;
}

void sum_aliases(std::string& bytes) {
  constexpr auto kHeader = format::kAliasHeaderBytes;
  if (bytes.size() < kHeader) return;
  put64(bytes, kHeader - 8, sum(bytes, 0, kHeader - 8));
  for (std::size_t at = kHeader; bytes.size() - at >= format::kAliasBlockHeaderBytes;) {
    const std::size_t all = format::kAliasBlockHeaderBytes + load<std::uint32_t>(bytes, at + 8);
    if (all > bytes.size() - at) return;
    put64(bytes, at, sum(bytes, at + 8, at + all));
    at += all;
  }
}

void sum_sealed(std::string& bytes) {
  constexpr std::size_t kHeader = 64;
  constexpr std::size_t kText = 40;  // Where the text begins in a block.
  if (bytes.size() < kHeader) return;
  put64(bytes, kHeader - 8, sum(bytes, 0, kHeader - 8));
  const std::size_t full = load<std::uint32_t>(bytes, 8);
  std::uint64_t number = 0;
  for (std::size_t at = kHeader; at + kText < bytes.size(); at += kText + full) {
    const std::size_t length = load<std::uint32_t>(bytes, at + 8);
    if (length > bytes.size() - at - kText) return;
    put64(bytes, at, sum(bytes, at + 8, at + kText + length) ^ number++);
  }
}

void sum_sealed_containers(std::string& bytes) {
  constexpr auto kFixed = format::kContainerFixedHeaderBytes;
  for (std::size_t at = 0; bytes.size() - at >= kFixed;) {
    put64(bytes, at + 120, sum(bytes, at, at + 120));
    const auto length = format::container_length(base::as_bytes(bytes).subspan(at, kFixed));
    if (!length || *length < kFixed || *length > bytes.size() - at) return;
    put64(bytes, at + 112, sum(bytes, at + kFixed, at + *length));
    put64(bytes, at + 120, sum(bytes, at, at + 120));
    at += *length;
  }
}

void sum_snapshot(std::string& bytes) {
  if (bytes.size() >= 8) put64(bytes, bytes.size() - 8, sum(bytes, 0, bytes.size() - 8));
}

void sum_file(std::string_view path, std::string& bytes) {
  if (bytes.starts_with("VVSF")) {
    sum_sealed(bytes);
  } else if (path.ends_with(".seg") || path.ends_with(".vol")) {
    sum_containers(bytes);
  } else if (path.ends_with(".par")) {
    sum_parity(bytes);
  } else if (path.find("/manifests/") != std::string_view::npos || path.ends_with("/labels")) {
    sum_manifest(bytes);
  } else if (path.ends_with(".als")) {
    sum_aliases(bytes);
  } else if (path.ends_with(".snap")) {
    sum_snapshot(bytes);
  } else {
    sum_text(bytes);
  }
}

void sum_encrypted_file(std::string_view path, std::string& bytes) {
  if (path.ends_with(".seg") || path.ends_with(".vol")) {
    sum_sealed_containers(bytes);
  } else if (path.ends_with(".par")) {
    sum_parity(bytes);
  } else if (path.ends_with("varve.repo") || path.ends_with("varve.keys")) {
    sum_text(bytes);
  } else {
    sum_sealed(bytes);
  }
}

}  // namespace varve::fuzz
