// SPDX-License-Identifier: Apache-2.0
// Compares the disk of a random history with the model, and takes over what a crash left open.
#include <algorithm>
#include <stdexcept>

#include "random_history.h"
#include "varve/check.h"
#include "varve/copy.h"

namespace varve::test {
namespace {

std::string text(VersionNumber number) {
  return std::to_string(static_cast<std::uint32_t>(number));
}

// Returns the first path at which the trees differ, or "".
std::string difference(const VersionTree& a, const VersionTree& b) {
  for (const auto* tree : {&a, &b}) {
    for (const auto& [path, node] : *tree) {
      if (node_at(a, path) != node_at(b, path)) return path;
    }
  }
  return "";
}

}  // namespace

void RandomHistory::fail(const std::string& what) const {
  throw std::runtime_error("seed " + std::to_string(seed_) + ", step " + std::to_string(step_) +
                           " (" + step_name_ + "): " + what);
}

void RandomHistory::settle() {
  for (auto& line : lines_) settle(line);
  std::set<std::string> used = copied_;
  for (const auto& line : lines_) {
    for (const auto& [number, sealed] : line.sealed) used.insert(*sealed.tree.at("id").content);
  }
  check_copy();
  used.insert(copied_.begin(), copied_.end());
  std::erase_if(trees_, [&](const auto& one) { return !used.contains(one.first); });
}

void RandomHistory::settle(Line& line) {
  auto series = repository_->find_series(line.name);
  if (!series && line.new_name) {
    series = repository_->find_series(*line.new_name);
    if (series) line.name = *line.new_name;
  }
  if (!series || series->id != line.id) fail("the series " + line.name + " is lost");

  std::map<VersionNumber, std::string> found;
  for (const auto& version : must(repository_->versions(line.id))) {
    if (version.state == VersionState::kSealed) found[version.number] = version.name;
  }
  std::optional<VersionNumber> just_sealed;
  if (line.sealing && found.contains(line.open->number)) {
    just_sealed = line.open->number;
    line.sealed[*just_sealed] = {found.at(*just_sealed), line.open->tree};
  }
  const auto gone =
      std::erase_if(line.deleting, [&](VersionNumber number) { return found.contains(number); });
  if (gone != 0 && !line.deleting.empty()) fail("a part of a set of versions was deleted");
  for (const auto number : line.deleting) line.sealed.erase(number);
  for (auto& [number, sealed] : line.sealed) {
    const auto what = line.name + ", version " + text(number);
    const auto name = found.find(number);
    if (name == found.end()) fail(what + " is lost");
    const bool renamed = line.renaming && *line.renaming == std::pair(number, name->second);
    if (renamed) sealed.name = name->second;
    if (sealed.name != name->second) fail(what + " has the name " + name->second);
    const auto tree = read_tree(*must(repository_->reader(line.id, number)));
    const auto path = difference(tree, sealed.tree);
    if (!path.empty()) fail(what + ": " + path + " differs");
    found.erase(name);
  }
  for (const auto& [number, name] : found) fail("nobody sealed " + name);
  settle_open(line, just_sealed);
  line.opening.reset();
  line.sealing = line.keeping = false;
  line.deleting.clear();
  line.renaming.reset();
  line.new_name.reset();
}

void RandomHistory::settle_open(Line& line, std::optional<VersionNumber> just_sealed) {
  const auto writer = repository_->writer(line.id);
  if (!writer && writer.error().code() != ErrorCode::kNotFound) {
    fail(line.name + ", the open version: " + writer.error().message());
  }
  if (!writer) {
    if (line.open && line.open->durable && !just_sealed)
      fail(line.name + ": the open version is lost");
    line.open.reset();
    return;
  }
  Open now;
  now.number = (*writer)->info().number;
  now.tree = read_tree(**writer);
  now.durable = true;
  std::map<std::string, States> allowed;
  VersionTree expected;
  if (just_sealed) {
    if (!line.keeping) fail(line.name + " has an open version after a seal");
    expected = line.open->tree;
  } else if (line.open && line.open->number == now.number) {
    allowed = line.open->states;
    expected = line.open->tree;
  } else if (line.opening) {
    for (const auto& [path, node] : *line.opening) allowed[path] = {std::nullopt, node};
  } else {
    fail(line.name + ": nobody opened version " + text(now.number));
  }
  for (const auto& [path, node] : expected) allowed.try_emplace(path, States{node});
  for (const auto& [path, states] : allowed) {
    if (std::ranges::find(states, node_at(now.tree, path)) == states.end()) {
      fail(line.name + ", the open version: " + path + " differs");
    }
  }
  for (const auto& [path, node] : now.tree) {
    if (!allowed.contains(path)) fail(line.name + ", the open version: nobody made " + path);
  }
  line.open = std::move(now);
}

void RandomHistory::check_copy() {
  const auto target = must(Repository::open(copy_path_, options('t')));
  std::set<std::string> found;
  for (const auto& series : must(target->series())) {
    for (const auto& version : must(target->versions(series.id))) {
      if (version.state != VersionState::kSealed) continue;
      const auto tree = read_tree(*must(target->reader(series.id, version.number)));
      const auto id = node_at(tree, "id");
      const auto known = id ? trees_.find(*id->content) : trees_.end();
      const auto what = "the copy's " + series.name + "/" + version.name;
      if (known == trees_.end()) fail(what + " was never sealed");
      const auto path = difference(tree, known->second);
      if (!path.empty()) fail(what + ": " + path + " differs");
      found.insert(known->first);
    }
  }
  must(target->close());
  for (const auto& id : copied_) {
    if (!found.contains(id) && !pruning_.contains(id)) fail("the copy lacks " + id);
  }
  copied_ = std::move(found);
  pruning_.clear();
}

void RandomHistory::check_everything() {
  settle();
  CheckOptions all;
  all.verify_chunks = true;
  for (const auto& damage : must(repository_->check(all, {})).damages) {
    fail("check finds " + damage.where + ": " + damage.what);
  }
}

}  // namespace varve::test
