// SPDX-License-Identifier: Apache-2.0
#include "cli/store_usage_output.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fstream>
#include <vector>

#include "base/nearest_name.h"
#include "cli/output.h"
#include "cli/stats_export.h"

namespace varve::cli {
namespace {

constexpr std::size_t kPricesBytesMax = 64U << 10;
constexpr double kGigabyte = 1e9;
constexpr std::array<const char*, 6> kKinds = {"put", "get", "list", "remove", "head", "copy"};

std::string_view without_blanks(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  const auto first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

/// Sets a price. Returns false for an unknown key.
bool set_price(StorePrices& prices, const std::string& key, double value) {
  if (key == "stored") {
    prices.stored_gb_month = value;
  } else if (key == "received") {
    prices.received_gb = value;
  } else if (std::ranges::find(kKinds, key) != kKinds.end()) {
    prices.per_1000[key] = value;
  } else {
    return false;
  }
  return true;
}

double cost_of(const StoreRequests& requests, const StorePrices& prices) {
  const auto price = prices.per_1000.find(requests.kind);
  const double each = price == prices.per_1000.end() ? 0 : price->second / 1000;
  return each * static_cast<double>(requests.requests) +
         prices.received_gb * static_cast<double>(requests.bytes_received) / kGigabyte;
}

double monthly_cost(const StoreUsage& usage, const StorePrices& prices) {
  return prices.stored_gb_month * static_cast<double>(usage.bytes) / kGigabyte;
}

std::string money(double amount, const StorePrices& prices) {
  return fmt::format("{:.4f} {}", amount, prices.currency);
}

}  // namespace

Result<StorePrices> parse_prices(std::string_view text) {
  StorePrices prices;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const auto end = std::min(text.find('\n'), text.size());
    const auto line = without_blanks(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() == '#') continue;
    const auto refuse = [&](const std::string& why) {
      return Error(ErrorCode::kInvalid, fmt::format("line {}: {}", number, why));
    };
    const auto equals = line.find('=');
    if (equals == std::string_view::npos) return refuse("write KEY = NUMBER, such as put = 0.005");
    const std::string key(without_blanks(line.substr(0, equals)));
    const auto value = without_blanks(line.substr(equals + 1));
    if (key == "currency") {
      prices.currency = value;
      continue;
    }
    double price = 0;
    const auto parsed = std::from_chars(value.data(), value.data() + value.size(), price);
    const bool is_number = parsed.ec == std::errc() && parsed.ptr == value.data() + value.size();
    if (!is_number || !std::isfinite(price) || price < 0) {
      return refuse(fmt::format("{} is no price", value));
    }
    if (set_price(prices, key, price)) continue;
    std::vector<std::string> known(kKinds.begin(), kKinds.end());
    known.insert(known.end(), {"stored", "received", "currency"});
    return refuse(fmt::format("there is no key {}{}", key, base::nearest_name_hint(key, known)));
  }
  return prices;
}

Result<StorePrices> read_prices(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error(ErrorCode::kNotFound, path + ": the price table cannot be read");
  std::string text(kPricesBytesMax + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kPricesBytesMax) {
    return Error(ErrorCode::kInvalid, path + " has more than 64 KiB; it is no price table");
  }
  auto prices = parse_prices(text);
  if (!prices) return std::move(prices).error().with_context(path);
  return prices;
}

void print_store_usage(const StoreUsage& usage, const StorePrices* prices, bool exact) {
  std::string stored =
      fmt::format("{} in {} objects", size_text(usage.bytes, exact), usage.objects);
  if (usage.dropped_objects != 0) {
    stored += fmt::format("; {} more are removed after a day", usage.dropped_objects);
  }
  if (prices != nullptr) stored += "; " + money(monthly_cost(usage, *prices), *prices) + " a month";
  print("\n" + table({{usage.place, stored}}, "ll") + "\n");
  std::vector<std::vector<std::string>> rows{
      {"REQUESTS", "NUMBER", "REPEATED", "SENT", "RECEIVED"}};
  if (prices != nullptr) rows.front().emplace_back("COST");
  double sum = 0;
  for (const auto& one : usage.requests) {
    rows.push_back({one.kind, std::to_string(one.requests), std::to_string(one.repeated),
                    size_text(one.bytes_sent, exact), size_text(one.bytes_received, exact)});
    if (prices == nullptr) continue;
    sum += cost_of(one, *prices);
    rows.back().push_back(money(cost_of(one, *prices), *prices));
  }
  if (prices != nullptr) rows.push_back({"all", "", "", "", "", money(sum, *prices)});
  print(table(rows, prices != nullptr ? "lrrrrr" : "lrrrr"));
}

void print_store_usage_json(const StoreUsage& usage, const StorePrices* prices) {
  Json object{{"place", usage.place},
              {"objects", usage.objects},
              {"stored_bytes", usage.bytes},
              {"dropped_objects", usage.dropped_objects}};
  if (prices != nullptr) {
    object["cost_month"] = monthly_cost(usage, *prices);
    object["currency"] = prices->currency;
  }
  print_json("store_usage", std::move(object));
  for (const auto& one : usage.requests) {
    Json line{{"request", one.kind},
              {"requests", one.requests},
              {"repeated", one.repeated},
              {"sent_bytes", one.bytes_sent},
              {"received_bytes", one.bytes_received}};
    if (prices != nullptr) line["cost"] = cost_of(one, *prices);
    print_json("store_requests", std::move(line));
  }
}

std::string store_usage_metrics(std::string_view repository, const StoreUsage& usage) {
  const auto label = prometheus_label(repository);
  std::string text;
  const auto add = [&](std::string_view name, std::string_view help, std::uint64_t value) {
    add_prometheus_header(text, name, help, "gauge");
    text += fmt::format("{}{{repository=\"{}\"}} {}\n", name, label, value);
  };
  add("varve_repository_store_bytes", "Bytes of the objects that the newest state needs.",
      usage.bytes);
  add("varve_repository_store_objects", "Objects that the newest state needs.", usage.objects);
  const auto add_kinds = [&](std::string_view name, std::string_view help, auto member) {
    add_prometheus_header(text, name, help, "counter");
    for (const auto& one : usage.requests) {
      text += fmt::format("{}{{repository=\"{}\",request=\"{}\"}} {}\n", name, label, one.kind,
                          one.*member);
    }
  };
  add_kinds("varve_repository_store_requests_total", "Requests of all processes to the store.",
            &StoreRequests::requests);
  add_kinds("varve_repository_store_sent_bytes_total", "Bytes that all processes sent.",
            &StoreRequests::bytes_sent);
  add_kinds("varve_repository_store_received_bytes_total", "Bytes that all processes received.",
            &StoreRequests::bytes_received);
  return text;
}

}  // namespace varve::cli
