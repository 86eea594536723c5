// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "varve/backup.h"
#include "version/open_state.h"

namespace varve::version {

/// Does VersionWriter::read_known(). Takes no lock of the version.
void read_known_chunks(OpenState& state, std::span<const WantedChunk> wanted, KnownChunks which,
                       std::span<bool> found);

}  // namespace varve::version
