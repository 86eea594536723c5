// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string_view>

#include "varve/metrics.h"
#include "varve/repository.h"

namespace varve::test {

/// Returns the value of a counter or a gauge of the repository.
inline std::uint64_t metric(const Repository& repository, std::string_view name) {
  for (const auto& sample : const_cast<Repository&>(repository).metrics()) {
    if (sample.name == name) return sample.value;
  }
  throw std::runtime_error("there is no such metric");
}

/// Returns the number of catalog records that `call` reads.
template <typename Call>
std::uint64_t records_read(Repository& repository, const Call& call) {
  constexpr const char* kName = "varve_catalog_records_read_total";
  const auto before = metric(repository, kName);
  call();
  return metric(repository, kName) - before;
}

}  // namespace varve::test
