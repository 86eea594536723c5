// SPDX-License-Identifier: Apache-2.0
#include "tampered_values.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <random>
#include <span>
#include <vector>

#include "base/coding.h"
#include "meta/lmdb.h"
#include "meta/schema.h"
#include "support/temp_repository.h"

namespace varve::test {
namespace {

namespace fs = std::filesystem;

using Records = std::map<std::pair<meta::TableIndex, std::string>, std::string>;

meta::EnvOptions options_of(const std::string& folder) {
  meta::EnvOptions options;
  options.tables = meta::catalog::kTables;
  if (folder.ends_with("/overlay")) options.tables = meta::overlay::kTables;
  options.map_bytes = std::size_t{1} << 30;
  options.must_exist = true;
  options.without_keys = true;
  return options;
}

Records records_of(const meta::Env& env, std::size_t tables) {
  Records all;
  const auto txn = must(meta::ReadTxn::begin(env));
  for (meta::TableIndex table = 0; table < tables; ++table) {
    must(meta::for_each_prefix(txn, table, "",
                               [&](std::string_view key, std::string_view value) -> Result<bool> {
                                 all[{table, std::string(key)}] = value;
                                 return true;
                               }));
  }
  return all;
}

std::string hex(std::string_view text) {
  std::string out;
  for (const char c : text) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return out;
}

}  // namespace

std::optional<std::string> change_value(const std::string& folder, const std::string& older,
                                        ValueChange change, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto options = options_of(folder);
  Records old;
  if (change == ValueChange::kOlder) {
    if (!fs::exists(older + "/data.mdb")) return std::nullopt;
    old = records_of(must(meta::Env::open(older, options)), options.tables.size());
  }
  const auto env = must(meta::Env::open(folder, options));
  const auto records = records_of(env, options.tables.size());
  // Chooses the table first, because some have many records.
  std::map<meta::TableIndex, std::vector<Records::const_iterator>> tables;
  for (auto it = records.begin(); it != records.end(); ++it) {
    const auto was = old.find(it->first);
    if (change == ValueChange::kOlder && (was == old.end() || was->second == it->second)) continue;
    tables[it->first.first].push_back(it);
  }
  if (change == ValueChange::kSwapped) {
    std::erase_if(tables, [](const auto& table) { return table.second.size() < 2; });
  }
  if (tables.empty()) return std::nullopt;
  const auto& of_table =
      std::next(tables.begin(), static_cast<std::ptrdiff_t>(random() % tables.size()))->second;
  const auto one = of_table[random() % of_table.size()];
  const auto& [table, key] = one->first;
  auto txn = must(meta::WriteTxn::begin(env));
  switch (change) {
    case ValueChange::kSwapped: {
      const auto other = of_table[random() % of_table.size()];
      if (other == one) return std::nullopt;
      must(txn.put(table, key, other->second));
      must(txn.put(table, other->first.second, one->second));
      break;
    }
    case ValueChange::kOlder:
      must(txn.put(table, key, old.at(one->first)));
      break;
    case ValueChange::kErased:
      must(txn.erase(table, key));
      break;
    case ValueChange::kChanged: {
      auto value = one->second;
      value[random() % value.size()] ^= static_cast<char>(1U << random() % 8);
      must(txn.put(table, key, value));
      break;
    }
  }
  must(txn.commit());
  return fmt::format("value of {} in table {}", hex(key), options.tables[table]);
}

}  // namespace varve::test
