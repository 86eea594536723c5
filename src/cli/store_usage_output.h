// SPDX-License-Identifier: Apache-2.0
// Requests, bytes and their price, for `varve stats`.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "varve/replication.h"
#include "varve/result.h"

namespace varve::cli {

/// The prices of a store.
struct StorePrices {
  std::string currency = "USD";
  std::map<std::string, double> per_1000{};  ///< By kind of request.
  double stored_gb_month = 0;                ///< For 10^9 bytes and a month.
  double received_gb = 0;                    ///< For 10^9 bytes read from the store.
};

/// Parses the text of a price table: lines KEY = NUMBER. Keys are put, get, list, remove, head and
/// copy for 1,000 requests, stored for a GB and month, received for a GB; and currency = WORD.
/// Lines that begin with # are comments; a missing price is 0.
/// Errors: kInvalid for any other line, with the line number.
[[nodiscard]] Result<StorePrices> parse_prices(std::string_view text);
/// Reads the file of a price table. Errors: the errors of reading the file and of parse_prices().
[[nodiscard]] Result<StorePrices> read_prices(const std::string& path);

/// Prints the usage of the object store by a repository. `prices` may be null.
void print_store_usage(const StoreUsage& usage, const StorePrices* prices, bool exact);
void print_store_usage_json(const StoreUsage& usage, const StorePrices* prices);

/// Returns the figures in the text format of Prometheus.
[[nodiscard]] std::string store_usage_metrics(std::string_view repository, const StoreUsage& usage);

}  // namespace varve::cli
