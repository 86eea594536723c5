// SPDX-License-Identifier: Apache-2.0
#include "setting_targets.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/coding.h"
#include "base/glob.h"
#include "bucket/abilities.h"
#include "bucket/location.h"
#include "checks.h"
#include "cli/instance.h"
#include "control/store_access.h"
#include "io/memory_file_system.h"
#include "remote/bucket_config.h"
#include "remote/local_notes.h"
#include "transfer/exclude_rules.h"
#include "varve/encryption.h"

namespace varve::fuzz {
namespace {

constexpr std::size_t kComparedBytes = 300;  // The slow implementation takes the square of them.
constexpr const char* kNotesFolder = "/r/replica";
constexpr const char* kNotesPath = "/r/replica/files";

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (true) {
    const auto end = text.find('\n');
    lines.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return lines;
    text.remove_prefix(end + 1);
  }
}

std::vector<std::string_view> components_of(std::string_view path) {
  std::vector<std::string_view> found;
  while (!path.empty()) {
    const auto end = std::min(path.find('/'), path.size());
    found.push_back(path.substr(0, end));
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return found;
}

// Returns the number of bytes of the first part of a pattern without *, and whether that part
// matches a byte. The pattern is complete.
std::pair<std::size_t, bool> slow_step(std::string_view pattern, unsigned char byte) {
  if (pattern[0] == '?') return {1, true};
  if (pattern[0] == '\\') return {2, static_cast<unsigned char>(pattern[1]) == byte};
  if (pattern[0] != '[') return {1, static_cast<unsigned char>(pattern[0]) == byte};
  std::size_t at = 1;
  const bool is_negated = pattern[at] == '!' || pattern[at] == '^';
  if (is_negated) ++at;
  bool is_found = false;
  for (bool is_first = true; is_first || pattern[at] != ']'; is_first = false) {
    const auto member = [&] {
      if (pattern[at] == '\\') ++at;
      return static_cast<unsigned char>(pattern[at++]);
    };
    const auto low = member();
    auto high = low;
    if (pattern[at] == '-' && pattern[at + 1] != ']') {
      ++at;
      high = member();
    }
    is_found = is_found || (low <= byte && byte <= high);
  }
  return {at + 1, is_found != is_negated};
}

// Tries every meaning of each *: matches[i] says whether the rest of the pattern matches the name
// from byte i on.
bool slow_glob(std::string_view pattern, std::string_view name) {
  if (pattern.empty()) return name.empty();
  std::vector<std::size_t> starts;
  for (std::size_t at = 0; at < pattern.size();) {
    starts.push_back(at);
    at += pattern[at] == '*' ? 1 : slow_step(pattern.substr(at), 0).first;
  }
  std::vector<bool> matches(name.size() + 1);
  matches[name.size()] = true;
  for (auto start = starts.rbegin(); start != starts.rend(); ++start) {
    const auto part = pattern.substr(*start);
    std::vector<bool> now(name.size() + 1);
    for (std::size_t i = name.size() + 1; i-- > 0;) {
      if (part[0] == '*') {
        now[i] = matches[i] || (i < name.size() && now[i + 1]);
      } else if (i < name.size()) {
        now[i] = matches[i + 1] && slow_step(part, static_cast<unsigned char>(name[i])).second;
      }
    }
    matches = std::move(now);
  }
  return matches[0];
}

// The same for the components of a path, of which ** takes any number. At the end of a pattern, **
// takes at least one.
bool slow_path(const std::vector<std::string_view>& pattern,
               const std::vector<std::string_view>& path) {
  std::vector<bool> matches(path.size() + 1);
  matches[path.size()] = true;
  for (std::size_t at = pattern.size(); at-- > 0;) {
    std::vector<bool> now(path.size() + 1);
    for (std::size_t i = path.size() + 1; i-- > 0;) {
      if (pattern[at] == "**" && at + 1 == pattern.size()) {
        now[i] = i < path.size();
      } else if (pattern[at] == "**") {
        now[i] = matches[i] || (i < path.size() && now[i + 1]);
      } else if (i < path.size()) {
        now[i] = matches[i + 1] && slow_glob(pattern[at], path[i]);
      }
    }
    matches = std::move(now);
  }
  return matches[0];
}

void compare_pattern(const std::string& pattern, std::string_view path) {
  if (pattern.size() + path.size() > kComparedBytes) return;
  const auto name = path.substr(path.rfind('/') + 1);
  if (base::check_glob(pattern)) {
    require(base::glob_matches(pattern, name) == slow_glob(pattern, name),
            "a pattern matches a name in every implementation");
  }
  const auto glob = base::PathGlob::parse(pattern);
  if (!glob) return;
  const auto parts = components_of(pattern.starts_with('/') ? std::string_view(pattern).substr(1)
                                                            : std::string_view(pattern));
  require(glob->matches(path) ==
              (glob->of_name() ? slow_glob(pattern, name) : slow_path(parts, components_of(path))),
          "a pattern matches a path in every implementation");
}

bool is_line(std::string_view text) { return text.find('\n') == std::string_view::npos; }

}  // namespace

void credentials(Bytes input) {
  const auto json = Secret::copy_of(input.first(std::min(input.size(), Secret::kBytesMax)));
  if (!json) return;
  const auto parsed = control::parse_credentials(*json);
  if (!parsed) {
    require(parsed.error().code() == ErrorCode::kInvalid, "other texts are invalid");
    return;
  }
  require(!parsed->access_key_id.empty() && !parsed->secret_access_key.empty(),
          "credentials have a name and a secret");
  const auto is_plain = [](char c) { return c > ' ' && c <= '~'; };
  require(std::ranges::all_of(parsed->access_key_id, is_plain) &&
              std::ranges::all_of(parsed->session_token, is_plain),
          "what is sent in headers is printable");
}

std::vector<std::string> credentials_seeds() {
  return {R"({"Version": 1, "AccessKeyId": "AKIA0", "SecretAccessKey": "abc/+"})",
          R"({"Version":1,"AccessKeyId":"A","SecretAccessKey":"s","SessionToken":"t=",)"
          R"("Expiration":"2026-03-01T12:00:00Z","More":[{"a":[1.5e3,null,true,"\u00e9"]}]})",
          R"({"Version":1,"AccessKeyId":"A","SecretAccessKey":"s",)"
          R"("Expiration":"2026-03-01T12:00:00.5+01:00"})"};
}

void instance(Bytes input) {
  const auto text = text_of(input);
  static_cast<void>(cli::split_words(text));
  const auto values = cli::parse_instance(text);
  if (!values) {
    require(values.error().code() == ErrorCode::kInvalid, "other texts are invalid");
    return;
  }
  cli::Instance one{"/etc/varve/one.conf", *values};
  for (const auto& [key, value] : *values) {
    require(key.starts_with("VARVE_") || key.starts_with("AWS_"), "a key is one of Varve");
    require(is_line(value), "a value is one line");
  }
  for (const auto* const command : {"store", "prune", "status", "scrub", "mount", "ls"}) {
    const auto words = one.words_for(command, {});
    require(words || words.error().code() == ErrorCode::kInvalid, "a quote has no end");
  }
}

std::vector<std::string> instance_seeds() {
  return {
      "# The laptop\nVARVE_REPO=/srv/backup\nVARVE_SOURCE = \"/home\"\n; more\n"
      "VARVE_STORE=--exclude '*.o' --exclude=\"a b\"\nVARVE_KEEP=--keep-last 7\nOTHER=1\n",
      "VARVE_REPO=s3://bucket/prefix\r\nAWS_REGION=eu-1\nVARVE_OPTIONS=ro,noexec", "VARVE_RPO=/x",
      "VARVE_STATUS='\n", "a 'b c' \"d'\" '' e"};
}

void patterns(Bytes input) {
  auto rules = lines_of(text_of(input));
  const auto path = std::move(rules.back());
  rules.pop_back();
  for (const auto& rule : rules) compare_pattern(rule, path);
  const auto parsed = transfer::ExcludeRules::parse(rules);
  if (!parsed) {
    require(parsed.error().code() == ErrorCode::kInvalid, "other patterns are invalid");
    return;
  }
  const bool as_file = parsed->excludes(path, false);
  const bool as_directory = parsed->excludes(path, true);
  const auto is_limited = [](const std::string& rule) { return rule.ends_with('/'); };
  require(as_file == as_directory || std::ranges::any_of(rules, is_limited),
          "a rule for all types does not ask for the type");
}

std::vector<std::string> patterns_seeds() {
  return {"*.o\n!keep.o\n/build/\na/**/b*\nsrc/a/x/bc.o",
          "[a-z0-9]*[!x]?\n**/[]]\n\\[*\\]\na/b/[x]",
          "a/**\n**/a/**/b\n**/**\na*b*c*d\na/aab/abcbcd", "[\\]-a]\n[^\\\\-z]x\n[a-]\na-",
          "**\n/*\n.\n//\n["};
}

void bucket_config(Bytes input) {
  const auto text = text_of(input);
  const auto location = bucket::parse_location(text);
  require(!location || bucket::parse_location(bucket::text_of(*location)).has_value(),
          "a place that is written again is a place");
  const auto config = remote::decode_config(text);
  if (!config) {
    require(config.error().code() == ErrorCode::kInvalid, "other texts are invalid");
    return;
  }
  const auto again = remote::decode_config(remote::encode_config(*config));
  require(again && *again == *config, "an encoded configuration decodes to the same");
  require(!config->place.empty(), "a configuration has a place");
}

std::vector<std::string> bucket_config_seeds() {
  remote::BucketConfig full{.place = "s3://bucket/a/b",
                            .reads_only = true,
                            .endpoint = "https://store.example:9000",
                            .region = "eu-1",
                            .volume_class = "STANDARD_IA",
                            .cache_bytes = 1U << 30,
                            .staging_bytes = 5};
  return {remote::encode_config(full), remote::encode_config({.place = "s3://bucket"}),
          "s3://bucket/prefix/"};
}

void probe_record(Bytes input) {
  const auto record = bucket::decode_probe(text_of(input));
  if (!record) return;
  const auto again = bucket::decode_probe(bucket::encode_probe(*record));
  require(again && *again == *record, "an encoded record decodes to the same record");
  require(bucket::differences(record->abilities, again->abilities).empty(),
          "equal abilities have no differences");
}

std::vector<std::string> probe_record_seeds() {
  bucket::ProbeRecord record;
  record.seconds = 1'764'000'000;
  record.clock_ahead_s = -3;
  std::vector<std::string> seeds{bucket::encode_probe(record)};
  record.abilities.conditions = bucket::Conditions::kIgnored;
  record.abilities.removes = true;
  record.abilities.locks = true;
  seeds.push_back(bucket::encode_probe(record));
  return seeds;
}

void local_notes(Bytes input) {
  const auto files = io::make_memory_file_system();
  require(files->make_directory("/r") && files->make_directory(kNotesFolder), "a folder in memory");
  const auto file = files->open(kNotesPath, io::OpenMode::kReadWrite);
  require(file && (*file)->write_at(0, input), "a file in memory");
  const auto notes = remote::LocalNotes::load(*files, "/r");
  if (!notes) {
    require(notes.error().code() == ErrorCode::kCorrupt, "notes are damaged or valid");
    return;
  }
  const auto added = (*notes)->add(remote::LocalNote::kChanged, "pool/volumes/0001");
  require(added.has_value(), "a note is added in memory");
  const auto again = remote::LocalNotes::load(*files, "/r");
  require(again.has_value(), "written notes are read");
  for (const auto note : {remote::LocalNote::kChanged, remote::LocalNote::kDamaged}) {
    require((*again)->paths(note) == (*notes)->paths(note), "written notes are the same");
  }
}

std::vector<std::string> local_notes_seeds() {
  return {"# Data files that stay in this folder.\nchanged series/1/active/0001\ndamaged a b\n",
          "changed catalog\nother line\nchanged \n"};
}

}  // namespace varve::fuzz
