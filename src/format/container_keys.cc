// SPDX-License-Identifier: Apache-2.0
#include "format/container_keys.h"

#include <algorithm>

#include "base/coding.h"
#include "format/container.h"

namespace varve::format {

std::string ContainerKey::associated_data(const ContainerPart& part) const {
  std::string text;
  base::ByteWriter w(text);
  w.u32(kContainerMagic);
  w.u32(static_cast<std::uint32_t>(part.store));
  w.u32(static_cast<std::uint32_t>(part.number));
  w.u32(part.features);
  w.u32(part.seal.total_bytes);
  w.u32(part.index);
  w.u64(part.bound);
  w.text(ring_->repository_id());
  return text;
}

crypto::Tag ContainerKey::seal(const ContainerPart& part, std::span<std::byte> text) const {
  const auto associated = associated_data(part);
  return aead_.seal(crypto::nonce_of(part.index), base::as_bytes(associated), text);
}

Result<void> ContainerKey::open(const ContainerPart& part, std::span<const std::byte> sealed,
                                const crypto::Tag& tag, std::span<std::byte> out) const {
  const auto associated = associated_data(part);
  if (aead_.open(crypto::nonce_of(part.index), base::as_bytes(associated), sealed, tag, out)) {
    return {};
  }
  return Error(ErrorCode::kCorrupt, "it is damaged, or belongs to another place");
}

std::optional<ContainerKey> ContainerKeys::find(const crypto::Salt& salt) const {
  const auto found = std::find_if(known_.rbegin(), known_.rend(),
                                  [&](const Known& known) { return known.first == salt; });
  if (found == known_.rend()) return std::nullopt;
  std::rotate(found.base() - 1, found.base(), known_.end());
  return known_.back().second;
}

Result<ContainerKey> ContainerKeys::key_of(const crypto::Salt& salt) const {
  {
    const std::lock_guard lock(mutex_);
    if (auto known = find(salt)) return std::move(*known);
  }
  VARVE_TRY_ASSIGN(auto aead, ring_->of_container(salt));
  ContainerKey key(std::move(aead), ring_);
  const std::lock_guard lock(mutex_);
  if (find(salt)) return key;  // Another thread was faster.
  if (known_.size() == kKnownMax) known_.erase(known_.begin());
  known_.emplace_back(salt, key);
  return key;
}

}  // namespace varve::format
