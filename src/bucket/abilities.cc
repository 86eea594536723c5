// SPDX-License-Identifier: Apache-2.0
#include "bucket/abilities.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <charconv>
#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "base/coding.h"
#include "base/random_bytes.h"

namespace varve::bucket {
namespace {

constexpr std::size_t kProbeBytes = 64;
// Least time until the end of a one-day lock that begins now, in seconds.
constexpr std::int64_t kLockLeast = std::int64_t{23} * 60 * 60;

Result<void> put_filled(Bucket& bucket, const std::string& name, char content,
                        PutCondition condition, const ObjectLock& lock = {},
                        std::string* etag = nullptr) {
  const std::vector bytes(kProbeBytes, static_cast<std::byte>(content));
  const std::array<std::span<const std::byte>, 1> parts{bytes};
  return bucket.put(name, parts, {.condition = condition, .lock = lock, .etag = etag});
}

// Objects with random names. The destructor removes the objects.
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
  Result<void> put(const std::string& name, char content, PutCondition condition,
                   const ObjectLock& lock = {}) {
    return put_filled(bucket_, name, content, condition, lock);
  }
  // Returns the content of an object written by put().
  Result<char> get(const std::string& name, std::size_t bytes) {
    VARVE_TRY_ASSIGN(const auto got, bucket_.get_all(name, kProbeBytes));
    if (got.size() != bytes || std::ranges::count(got, got[0]) != std::ssize(got)) {
      return Error(ErrorCode::kCorrupt,
                   bucket_.describe() + ": the store returned other bytes than those written");
    }
    return static_cast<char>(got[0]);
  }
  // Returns the listed object; nullopt for an object missing in the list.
  Result<std::optional<ObjectInfo>> listed(const std::string& name) {
    VARVE_TRY_ASSIGN(const auto page, bucket_.list(name, {}, 1));
    if (page.objects.empty() || page.objects[0].name != name) return std::optional<ObjectInfo>();
    return std::optional(page.objects[0]);
  }

  Result<Conditions> conditions(const Races& races);
  Result<bool> copies_ranges(const std::string& from);
  Result<bool> removes(const std::string& name);
  Result<std::string> locks(LockMode mode, std::int64_t local_seconds);

 private:
  Result<std::string> removes_locked(const std::string& name);

  Bucket& bucket_;
  const std::string prefix_;  // Prefix of the names of this probe.
  std::vector<std::string> names_;
};

// Runs each client of the races in a separate thread. All clients begin a race together: a store
// that first looks for an object and then writes the object has several winners only if the
// requests of two clients overlap.
class RaceTrack {
 public:
  RaceTrack(std::vector<Bucket*> clients, std::vector<std::string> names)
      : clients_(std::move(clients)),
        names_(std::move(names)),
        winners_(names_.size()),
        start_(std::ssize(clients_)) {}

  void run() {
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < clients_.size(); ++i) threads.emplace_back([this, i] { race(i); });
    for (auto& thread : threads) thread.join();
  }
  // Returns kRefused if a request was refused, and otherwise nullopt: the winners decide.
  [[nodiscard]] Result<std::optional<Conditions>> outcome() const {
    if (failed_) return *failed_;
    return is_refused_ ? std::optional(Conditions::kRefused) : std::nullopt;
  }
  // The contents of the clients that created the object of a race.
  [[nodiscard]] const std::string& winners(std::size_t race) const { return winners_[race]; }

 private:
  void race(std::size_t client) {
    const auto content = static_cast<char>('a' + client);
    for (std::size_t i = 0; i < names_.size(); ++i) {
      start_.arrive_and_wait();
      if (is_over_) continue;
      note(i, content, put_filled(*clients_[client], names_[i], content, PutCondition::kIfAbsent));
    }
  }
  void note(std::size_t race, char content, const Result<void>& made) {
    const std::lock_guard lock(mutex_);
    if (made) {
      winners_[race] += content;
    } else if (made.error().code() == ErrorCode::kUnsupported) {
      is_refused_ = true;
    } else if (made.error().code() != ErrorCode::kExists) {
      failed_ = made.error();
    }
    is_over_ = is_refused_ || failed_;
  }

  const std::vector<Bucket*> clients_;
  const std::vector<std::string> names_;  // The object of each race.
  std::mutex mutex_;                      // Guards the three members below.
  std::vector<std::string> winners_;
  bool is_refused_ = false;
  std::optional<Error> failed_;
  std::atomic<bool> is_over_ = false;  // The outcome is known already.
  std::barrier<> start_;
};

Result<Conditions> Probe::conditions(const Races& races) {
  std::vector<std::string> names;
  for (int i = 0; i < races.races; ++i) names.push_back(new_name());
  auto clients = races.clients;
  if (clients.empty()) clients.assign(kRaceClients, &bucket_);
  RaceTrack track(std::move(clients), names);
  track.run();
  VARVE_TRY_ASSIGN(const auto outcome, track.outcome());
  if (outcome) return *outcome;
  // A late client wins, too, if the store ignores the condition.
  const auto late = put(names[0], 'z', PutCondition::kIfAbsent);
  if (late) return Conditions::kIgnored;
  if (late.error().code() != ErrorCode::kExists) return late.error();
  for (std::size_t i = 0; i < names.size(); ++i) {
    VARVE_TRY_ASSIGN(const auto content, get(names[i], kProbeBytes));
    if (track.winners(i) != std::string(1, content)) return Conditions::kIgnored;
  }
  return Conditions::kHonoured;
}

Result<bool> Probe::copies_ranges(const std::string& from) {
  const auto to = new_name();
  const auto copied = bucket_.copy_prefix(from, kProbeBytes / 2, to, {});
  if (!copied) {
    const auto code = copied.error().code();
    // A key may have permission to write, but not to copy.
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

bool passes(const Error& error) {
  return error.code() == ErrorCode::kUnavailable || error.code() == ErrorCode::kInterrupted ||
         error.code() == ErrorCode::kCorrupt;
}

// Tries to remove a locked object for good. Returns an empty text if the removal fails.
Result<std::string> Probe::removes_locked(const std::string& name) {
  VARVE_TRY_ASSIGN(const auto info, bucket_.head(name));
  const auto removed =
      info.version.empty() ? bucket_.remove(name) : bucket_.remove_version(name, info.version);
  if (!removed && passes(removed.error())) return removed.error();
  return std::string(removed ? "the store removes locked objects all the same" : "");
}

Result<std::string> Probe::locks(LockMode mode, std::int64_t local_seconds) {
  const auto name = new_name();
  const auto refused = [&](const Error& error) -> Result<std::string> {
    return passes(error) ? Result<std::string>(error) : error.message();
  };
  const auto put_locked = put(name, 'l', PutCondition::kNone, {1, mode});
  if (!put_locked) return refused(put_locked.error());
  VARVE_TRY_ASSIGN(const auto first, bucket_.head(name));
  const auto now = local_seconds + bucket_.clock_ahead().value_or(0);
  if (!first.locked_until || first.locked_until->seconds < now + kLockLeast) {
    return std::string(
        "the store accepts locks and shows none; the key needs the right s3:GetObjectRetention");
  }
  const auto extended = bucket_.lock(name, {2, mode});
  if (!extended) return refused(extended.error());
  VARVE_TRY_ASSIGN(const auto second, bucket_.head(name));
  if (!second.locked_until || second.locked_until->seconds <= first.locked_until->seconds) {
    return std::string("the store does not extend locks");
  }
  return removes_locked(name);
}

Result<std::string> new_prefix(const std::string& prefix) {
  VARVE_TRY_ASSIGN(const auto random, base::random_bytes<8>());
  return fmt::format("{}probe-{:016x}", prefix, base::load_le<std::uint64_t>(random.data()));
}

std::string yes_or_no(bool value) { return value ? "yes" : "no"; }

constexpr std::string_view kProbedAt = "probed";
constexpr std::string_view kClockAhead = "clock-ahead";
constexpr std::string_view kRacedAt = "raced";

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

Result<Abilities> probe_abilities(Bucket& bucket, const std::string& prefix, const Races& races) {
  VARVE_TRY_ASSIGN(auto names, new_prefix(prefix));
  Probe probe(bucket, std::move(names));
  Abilities abilities;
  const auto name = probe.new_name();
  std::string etag;
  VARVE_TRY(put_filled(bucket, name, '1', PutCondition::kNone, {}, &etag));
  VARVE_TRY(probe.get(name, kProbeBytes));
  VARVE_TRY_ASSIGN(const auto shown, probe.listed(name));
  abilities.lists_at_once = shown.has_value();
  if (shown) abilities.lists_etags = !etag.empty() && shown->etag == etag;
  VARVE_TRY_ASSIGN(const auto info, bucket.head(name));
  abilities.keeps_versions = !info.version.empty();
  VARVE_TRY_ASSIGN(abilities.conditions, probe.conditions(races));
  VARVE_TRY_ASSIGN(abilities.copies_ranges, probe.copies_ranges(name));
  VARVE_TRY_ASSIGN(abilities.removes, probe.removes(name));
  VARVE_TRY_ASSIGN(const auto left, probe.listed(name));
  if (left.has_value() == abilities.removes) abilities.lists_at_once = false;
  return abilities;
}

Result<std::string> try_lock(Bucket& bucket, const std::string& prefix, LockMode mode,
                             std::int64_t local_seconds) {
  VARVE_TRY_ASSIGN(auto names, new_prefix(prefix));
  return Probe(bucket, std::move(names)).locks(mode, local_seconds);
}

std::vector<AbilityText> texts_of(const Abilities& abilities) {
  const auto& locks = abilities.locks;
  const auto& etags = abilities.lists_etags;
  return {{"conditional requests", std::string(name_of(abilities.conditions))},
          {"copies of ranges", yes_or_no(abilities.copies_ranges)},
          {"lists show changes at once", yes_or_no(abilities.lists_at_once)},
          {"may remove objects", yes_or_no(abilities.removes)},
          {"keeps old versions", yes_or_no(abilities.keeps_versions)},
          {"object lock", locks ? yes_or_no(*locks) : "not tried"},
          {"lists show ETags", etags ? yes_or_no(*etags) : "not tried"}};
}

std::vector<std::string> differences(const Abilities& before, const Abilities& now) {
  std::vector<std::string> found;
  const auto old_texts = texts_of(before);
  const auto new_texts = texts_of(now);
  for (std::size_t i = 0; i < old_texts.size(); ++i) {
    const auto& was = old_texts[i].value;
    const auto& is = new_texts[i].value;
    if (was == is || was == "not tried" || is == "not tried") continue;
    found.push_back(fmt::format("{}: {} now, {} before", old_texts[i].name, is, was));
  }
  return found;
}

std::string encode_probe(const ProbeRecord& record) {
  std::string text;
  for (const auto& [name, value] : texts_of(record.abilities)) {
    text += fmt::format("{} = {}\n", name, value);
  }
  text += fmt::format("{} = {}\n{} = {}\n", kProbedAt, record.seconds, kClockAhead,
                      record.clock_ahead_s);
  return record.raced_s == 0 ? text : text + fmt::format("{} = {}\n", kRacedAt, record.raced_s);
}

std::optional<ProbeRecord> decode_probe(std::string_view text) {
  std::map<std::string, std::string, std::less<>> values;
  while (!text.empty()) {
    const auto end = text.find('\n');
    const auto line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const auto equals = line.find(" = ");
    if (equals == std::string_view::npos) return std::nullopt;
    values.emplace(line.substr(0, equals), line.substr(equals + 3));
  }
  const auto number = [&](std::string_view key, std::int64_t& out) {
    const auto found = values.find(key);
    if (found == values.end()) return false;
    const auto& value = found->second;
    const auto* const last = value.data() + value.size();
    const auto [at, failed] = std::from_chars(value.data(), last, out);
    return failed == std::errc() && at == last;
  };
  ProbeRecord record;
  if (!number(kProbedAt, record.seconds) || !number(kClockAhead, record.clock_ahead_s)) {
    return std::nullopt;
  }
  if (!number(kRacedAt, record.raced_s)) record.raced_s = 0;
  // The names are the names of texts_of(). An unknown value counts as "no".
  const auto names = texts_of(record.abilities);
  const auto value = [&](std::size_t i) { return values[names[i].name]; };
  auto& abilities = record.abilities;
  abilities.conditions = Conditions::kRefused;
  for (const auto one : {Conditions::kHonoured, Conditions::kIgnored}) {
    if (value(0) == name_of(one)) abilities.conditions = one;
  }
  abilities.copies_ranges = value(1) == "yes";
  abilities.lists_at_once = value(2) == "yes";
  abilities.removes = value(3) == "yes";
  abilities.keeps_versions = value(4) == "yes";
  if (value(5) == "yes" || value(5) == "no") abilities.locks = value(5) == "yes";
  if (value(6) == "yes" || value(6) == "no") abilities.lists_etags = value(6) == "yes";
  return record;
}

}  // namespace varve::bucket
