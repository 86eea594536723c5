// SPDX-License-Identifier: Apache-2.0
// The codecs shared by all rooms of a repository.
#pragma once

#include <memory>
#include <utility>

#include "crypto/key_ring.h"
#include "format/fingerprinter.h"
#include "format/frame_codec.h"
#include "varve/options.h"

namespace varve::format {

/// The codecs of one repository. Thread-safe and immutable.
/// Lifetime: the repository makes the codecs once and hands out references; the codecs must outlive
/// every user.
class DataCodecs {
 public:
  /// Creates the codecs chosen by the parameters, which must be valid. `keys` is null for a plain
  /// repository.
  explicit DataCodecs(const RepositoryParameters& parameters,
                      std::shared_ptr<const crypto::KeyRing> keys = nullptr)
      : keys_(std::move(keys)),
        frames_(keys_ == nullptr
                    ? make_plain_frame_codec(compression_of(parameters))
                    : make_sealed_frame_codec(compression_of(parameters),
                                              std::make_unique<const ContainerKeys>(keys_))),
        fingerprinter_(make_sha256_fingerprinter()) {}

  [[nodiscard]] const FrameCodec& frames() const { return *frames_; }
  [[nodiscard]] const Fingerprinter& fingerprinter() const { return *fingerprinter_; }

  /// Returns the keys of an encrypted repository, or null.
  [[nodiscard]] const std::shared_ptr<const crypto::KeyRing>& keys() const { return keys_; }

 private:
  const std::shared_ptr<const crypto::KeyRing> keys_;
  std::unique_ptr<const FrameCodec> frames_;
  std::unique_ptr<const Fingerprinter> fingerprinter_;
};

}  // namespace varve::format
