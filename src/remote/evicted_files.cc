// SPDX-License-Identifier: Apache-2.0
#include "remote/evicted_files.h"

#include "remote/bucket_config.h"
#include "remote/folder_state.h"
#include "remote/local_data.h"

namespace varve::remote {

Result<bool> EvictedFiles::is_evicted(const std::string& path) {
  return data_.is_evicted(path.substr(root_.size() + 1));
}

std::uint64_t EvictedFiles::cached_file_bytes() const { return cached_file_bytes_of(config_); }

std::uint64_t EvictedFiles::cached_block_bytes() const { return cached_block_bytes_of(config_); }

Result<std::uint64_t> EvictedFiles::number(std::string_view purpose) {
  return state_.number(purpose);
}

Result<void> EvictedFiles::set_number(std::string_view purpose, std::uint64_t value) {
  return state_.set_number(purpose, value);
}

}  // namespace varve::remote
