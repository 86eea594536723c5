// SPDX-License-Identifier: Apache-2.0
#include "base/glob.h"

#include <cstddef>
#include <optional>
#include <string>

namespace varve::base {
namespace {

/// A part of a pattern for one byte.
struct GlobStep {
  std::size_t length = 0;  ///< Bytes of the pattern; 0 if a set has no end.
  bool matches = false;
};

GlobStep match_set(std::string_view pattern, unsigned char byte) {
  std::size_t at = 1;
  const bool negated = at < pattern.size() && (pattern[at] == '!' || pattern[at] == '^');
  if (negated) ++at;
  const std::size_t first = at;
  bool found = false;
  const auto take = [&] {
    if (pattern[at] == '\\' && at + 1 < pattern.size()) ++at;
    return static_cast<unsigned char>(pattern[at++]);
  };
  while (at < pattern.size() && (pattern[at] != ']' || at == first)) {
    const unsigned char low = take();
    unsigned char high = low;
    if (at + 1 < pattern.size() && pattern[at] == '-' && pattern[at + 1] != ']') {
      ++at;
      high = take();
    }
    found = found || (low <= byte && byte <= high);
  }
  if (at >= pattern.size()) return {};
  return {at + 1, found != negated};
}

GlobStep match_one(std::string_view pattern, unsigned char byte) {
  if (pattern[0] == '?') return {1, true};
  if (pattern[0] == '[') return match_set(pattern, byte);
  const std::size_t at = pattern[0] == '\\' && pattern.size() > 1 ? 1 : 0;
  return {at + 1, static_cast<unsigned char>(pattern[at]) == byte};
}

}  // namespace

bool glob_matches(std::string_view pattern, std::string_view name) {
  // The last * takes one more byte at each mismatch. An earlier * needs no second try.
  std::size_t at = 0;
  std::size_t done = 0;
  std::size_t star = std::string_view::npos;
  std::size_t star_done = 0;
  while (done < name.size()) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      star_done = done;
      continue;
    }
    if (at < pattern.size()) {
      const auto step = match_one(pattern.substr(at), static_cast<unsigned char>(name[done]));
      if (step.length == 0) return false;
      if (step.matches) {
        at += step.length;
        ++done;
        continue;
      }
    }
    if (star == std::string_view::npos) return false;
    at = star + 1;
    done = ++star_done;
  }
  while (at < pattern.size() && pattern[at] == '*') ++at;
  return at == pattern.size();
}

Result<void> check_glob(std::string_view pattern) {
  const auto refuse = [&](const std::string& reason) {
    return Error(ErrorCode::kInvalid, "the pattern \"" + std::string(pattern) + "\" " + reason);
  };
  for (std::size_t at = 0; at < pattern.size();) {
    if (pattern[at] == '\\' && at + 1 == pattern.size()) {
      return refuse("ends in a backslash; write two of them for the byte itself");
    }
    if (pattern[at] != '[') {
      at += pattern[at] == '\\' ? 2 : 1;
      continue;
    }
    const std::size_t length = match_set(pattern.substr(at), 0).length;
    if (length == 0) {
      return refuse("has a [ without a ]; write a backslash before it for the byte itself");
    }
    if (pattern.substr(at + 1, length - 1).find("[:") != std::string_view::npos) {
      return refuse("has a class such as [:alpha:], which is not supported; write [A-Za-z]");
    }
    at += length;
  }
  return {};
}

namespace {

constexpr std::string_view kAnyDirectories = "**";

/// Removes and returns the first component of a path; nullopt at its end.
std::optional<std::string_view> take_component(std::string_view& path) {
  if (path.empty()) return std::nullopt;
  const std::size_t end = path.find('/');
  const std::string_view first = path.substr(0, end);
  path.remove_prefix(end == std::string_view::npos ? path.size() : end + 1);
  return first;
}

/// Returns whether the components of a pattern match all of a path. As with the * of a name, only
/// the last ** before a mismatch needs another try.
bool path_matches(const std::vector<std::string>& pattern, std::string_view path) {
  std::size_t at = 0;
  std::optional<std::size_t> any;
  std::string_view any_path;
  while (!path.empty()) {
    if (at < pattern.size() && pattern[at] == kAnyDirectories) {
      any = at++;
      any_path = path;
      // At the end, ** matches everything inside the directory.
      if (at == pattern.size()) return true;
      continue;
    }
    std::string_view rest = path;
    if (at < pattern.size() && glob_matches(pattern[at], *take_component(rest))) {
      ++at;
      path = rest;
      continue;
    }
    if (!any) return false;
    at = *any + 1;
    take_component(any_path);
    path = any_path;
  }
  return at == pattern.size();
}

}  // namespace

Result<PathGlob> PathGlob::parse(std::string_view pattern) {
  PathGlob glob;
  std::string_view rest = pattern;
  glob.of_name_ = rest.find('/') == std::string_view::npos;
  if (rest.starts_with('/')) rest.remove_prefix(1);
  const auto refuse = [&](const std::string& reason) {
    return Error(ErrorCode::kInvalid, "the pattern \"" + std::string(pattern) + "\" " + reason);
  };
  if (rest.empty()) return refuse("matches nothing; give a name or a path");
  while (!rest.empty()) {
    const std::string_view component = *take_component(rest);
    if (component.empty() || component == "." || component == "..") {
      return refuse("matches nothing; give it without //, . and .. components");
    }
    VARVE_TRY(check_glob(component));
    glob.components_.emplace_back(component);
  }
  return glob;
}

bool PathGlob::matches(std::string_view path) const {
  return of_name_ ? glob_matches(components_.front(), path.substr(path.rfind('/') + 1))
                  : path_matches(components_, path);
}

}  // namespace varve::base
