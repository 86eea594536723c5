// SPDX-License-Identifier: Apache-2.0
#include "bucket/abilities.h"

#include <fmt/format.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

namespace varve::bucket {
namespace {

constexpr std::size_t kProbeBytes = 64;

// Objects with random names, which the destructor removes.
class Probe {
 public:
  Probe(Bucket& bucket, std::string prefix) : bucket_(bucket), prefix_(std::move(prefix)) {}
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;
  ~Probe() {
    for (const auto& name : names_) static_cast<void>(bucket_.remove(name));
  }

  [[nodiscard]] std::string new_name() {
    names_.push_back(fmt::format("{}-{}", prefix_, names_.size()));
    return names_.back();
  }
  Result<void> put(const std::string& name, char content, PutCondition condition) {
    const std::vector bytes(kProbeBytes, static_cast<std::byte>(content));
    const std::array<std::span<const std::byte>, 1> parts{bytes};
    return bucket_.put(name, parts, {.condition = condition});
  }
  // Returns the content of an object, which put() wrote.
  Result<char> get(const std::string& name, std::size_t bytes) {
    VARVE_TRY_ASSIGN(const auto got, bucket_.get_all(name, kProbeBytes));
    if (got.size() != bytes || std::ranges::count(got, got[0]) != std::ssize(got)) {
      return Error(ErrorCode::kCorrupt,
                   bucket_.describe() + ": the store returned other bytes than those written");
    }
    return static_cast<char>(got[0]);
  }
  Result<bool> is_listed(const std::string& name) {
    VARVE_TRY_ASSIGN(const auto page, bucket_.list(name, {}, 1));
    return !page.objects.empty() && page.objects[0].name == name;
  }

  Result<Conditions> conditions();
  Result<bool> copies_ranges(const std::string& from);
  Result<bool> removes(const std::string& name);

 private:
  Bucket& bucket_;
  const std::string prefix_;  // Of the names of this probe.
  std::vector<std::string> names_;
};

Result<Conditions> Probe::conditions() {
  const auto name = new_name();
  std::mutex mutex;  // Guards the three below.
  std::string winners;
  bool is_refused = false;
  std::optional<Error> failed;
  const auto write = [&](char content) {
    const auto made = put(name, content, PutCondition::kIfAbsent);
    const std::lock_guard lock(mutex);
    if (made) {
      winners += content;
    } else if (made.error().code() == ErrorCode::kUnsupported) {
      is_refused = true;
    } else if (made.error().code() != ErrorCode::kExists) {
      failed = made.error();
    }
  };
  std::vector<std::thread> racers;
  for (int i = 0; i < kProbeRacers; ++i) racers.emplace_back(write, static_cast<char>('a' + i));
  for (auto& racer : racers) racer.join();
  if (failed) return *failed;
  if (is_refused) return Conditions::kRefused;
  write('z');
  if (failed) return *failed;
  VARVE_TRY_ASSIGN(const auto content, get(name, kProbeBytes));
  return winners == std::string(1, content) ? Conditions::kHonoured : Conditions::kIgnored;
}

Result<bool> Probe::copies_ranges(const std::string& from) {
  const auto to = new_name();
  const auto copied = bucket_.copy_prefix(from, kProbeBytes / 2, to, {});
  if (!copied) {
    const auto code = copied.error().code();
    // A key may be allowed to write, and not to copy.
    const bool is_refused = code == ErrorCode::kUnsupported || code == ErrorCode::kNotPermitted;
    return is_refused ? Result<bool>(false) : copied.error();
  }
  VARVE_TRY_ASSIGN(const auto content, get(to, kProbeBytes / 2));
  return content == '1';
}

Result<bool> Probe::removes(const std::string& name) {
  const auto removed = bucket_.remove(name);
  if (!removed && removed.error().code() == ErrorCode::kNotPermitted) return false;
  VARVE_TRY(removed);
  return true;
}

}  // namespace

std::string_view name_of(Conditions conditions) {
  switch (conditions) {
    case Conditions::kHonoured:
      return "honoured";
    case Conditions::kIgnored:
      return "ignored";
    case Conditions::kRefused:
      return "refused";
  }
  return "";
}

Result<Abilities> probe_abilities(Bucket& bucket, const std::string& prefix) {
  std::array<unsigned char, 8> random{};
  if (RAND_bytes(random.data(), static_cast<int>(random.size())) != 1) {
    return Error(ErrorCode::kIo, "no random bytes from OpenSSL");
  }
  Probe probe(bucket, fmt::format("{}probe-{:02x}", prefix, fmt::join(random, "")));
  Abilities abilities;
  const auto name = probe.new_name();
  VARVE_TRY(probe.put(name, '1', PutCondition::kNone));
  VARVE_TRY(probe.get(name, kProbeBytes));
  VARVE_TRY_ASSIGN(abilities.lists_at_once, probe.is_listed(name));
  VARVE_TRY_ASSIGN(abilities.conditions, probe.conditions());
  VARVE_TRY_ASSIGN(abilities.copies_ranges, probe.copies_ranges(name));
  VARVE_TRY_ASSIGN(abilities.removes, probe.removes(name));
  VARVE_TRY_ASSIGN(const bool is_listed, probe.is_listed(name));
  if (is_listed == abilities.removes) abilities.lists_at_once = false;
  return abilities;
}

}  // namespace varve::bucket
