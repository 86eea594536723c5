// SPDX-License-Identifier: Apache-2.0
// The steps of a random history that change versions.
#include <sys/stat.h>

#include <algorithm>
#include <iterator>
#include <limits>

#include "random_history.h"
#include "varve/retention.h"

namespace varve::test {
namespace {

constexpr std::size_t kLockedMax = 3;  // A locked version stays for the whole history.
constexpr std::uint32_t kKeptVersions = 4;

VersionNumber any_of(const auto& sealed, std::size_t at) {
  return std::next(sealed.begin(), static_cast<std::ptrdiff_t>(at))->first;
}

}  // namespace

std::string RandomHistory::any_path() {
  const auto name = "a file with a name " + std::to_string(below(10));
  const auto directory = below(4);
  return directory == 0 ? name : "d" + std::to_string(directory) + "/" + name;
}

// Some contents repeat, in one series and in others.
std::string RandomHistory::any_bytes() {
  const auto bytes = below(8) == 0 ? 1 + below(200'000) : 1 + below(20'000);
  const auto content = below(3) == 0 ? 1 + below(5) : ++content_ + 10;
  if (below(4) != 0) return noise(bytes, content);
  std::string text;
  while (text.size() < bytes) text += "line " + std::to_string(content + text.size() / 100) + "\n";
  return text;
}

RandomHistory::Line* RandomHistory::line_with_open() {
  auto& line = any_line();
  return line.open ? &line : nullptr;
}
RandomHistory::Line* RandomHistory::line_without_open() {
  auto& line = any_line();
  return line.open ? nullptr : &line;
}
RandomHistory::Line* RandomHistory::line_with_sealed() {
  auto& line = any_line();
  return line.sealed.empty() ? nullptr : &line;
}

void RandomHistory::changed(Line& line, const std::string& path, std::optional<TreeNode> node) {
  auto& open = *line.open;
  auto& states = open.states[path];
  if (states.empty()) states.push_back(node_at(open.tree, path));
  states.push_back(node);
  if (node) {
    open.tree[path] = std::move(*node);
  } else {
    open.tree.erase(path);
  }
}

Result<Ino> RandomHistory::directory(VersionWriter& version, const std::string& path) {
  const auto name = split_path(path).first;
  if (name.empty()) return kRootIno;
  auto entry = version.lookup(kRootIno, name);
  if (!entry && entry.error().code() == ErrorCode::kNotFound) {
    entry = version.create(kRootIno, name, folder());
  }
  VARVE_TRY_ASSIGN(const auto found, std::move(entry));
  return found.ino;
}

Result<Ino> RandomHistory::file(VersionWriter& version, Line& line, const std::string& path) {
  VARVE_TRY_ASSIGN(const auto parent, directory(version, path));
  if (!line.open->tree.contains(path)) {
    VARVE_TRY_ASSIGN(const auto made,
                     version.create(parent, split_path(path).second, regular_file()));
    changed(line, path, TreeNode());
    return made.ino;
  }
  VARVE_TRY_ASSIGN(const auto found, version.lookup(parent, split_path(path).second));
  return found.ino;
}

// Returns the path of a regular file of the open version, or "".
Result<std::string> RandomHistory::any_file(Line& line) {
  const auto& tree = line.open->tree;
  if (tree.empty()) return std::string();
  const auto at = std::next(tree.begin(), static_cast<std::ptrdiff_t>(below(tree.size())));
  return at->second.is_link ? std::string() : at->first;
}

Result<void> RandomHistory::write_at(Line& line, const std::string& path, std::uint64_t offset,
                                     const std::string& bytes) {
  VARVE_TRY_ASSIGN(const auto version, repository_->writer(line.id));
  VARVE_TRY_ASSIGN(const auto ino, file(*version, line, path));
  VARVE_TRY_ASSIGN(const auto opened, version->open(ino, true));
  auto node = line.open->tree.at(path);
  auto content = *node.content;
  content.resize(std::max<std::size_t>(content.size(), offset + bytes.size()), '\0');
  content.replace(offset, bytes.size(), bytes);
  node.content = shared_text(std::move(content));
  changed(line, path, std::move(node));  // From now on a crash may bring it.
  VARVE_TRY(opened->write(offset, base::as_bytes(bytes)));
  return opened->flush();
}

Result<void> RandomHistory::write() {
  auto* const line = line_with_open();
  if (line == nullptr) return {};
  const auto path = any_path();
  const auto node = node_at(line->open->tree, path);
  if (node && node->is_link) return {};
  const auto size = node ? node->content->size() : 0;
  const auto offset = below(3) == 0 ? size : below(size + 3000);
  return write_at(*line, path, offset, any_bytes());
}

Result<void> RandomHistory::write_out_of_order() {
  auto* const line = line_with_open();
  if (line == nullptr) return {};
  const auto path = any_path();
  const auto node = node_at(line->open->tree, path);
  if (node && node->is_link) return {};
  for (auto block = 2 + below(6); block-- > 0;) {
    VARVE_TRY(write_at(*line, path, block * 7000, noise(1 + below(7000), ++content_)));
  }
  return {};
}

Result<void> RandomHistory::truncate() {
  auto* const line = line_with_open();
  if (line == nullptr) return {};
  VARVE_TRY_ASSIGN(const auto path, any_file(*line));
  if (path.empty()) return {};
  VARVE_TRY_ASSIGN(const auto version, repository_->writer(line->id));
  VARVE_TRY_ASSIGN(const auto ino, file(*version, *line, path));
  auto node = line->open->tree.at(path);
  auto content = *node.content;
  content.resize(below(content.size() + 5000));
  AttributeChange change;
  change.size = content.size();
  node.content = shared_text(std::move(content));
  changed(*line, path, std::move(node));
  VARVE_TRY(version->set_attributes(ino, change));
  return {};
}

Result<void> RandomHistory::link() {
  auto* const line = line_with_open();
  if (line == nullptr) return {};
  const auto path = any_path();
  if (line->open->tree.contains(path)) return {};
  VARVE_TRY_ASSIGN(const auto version, repository_->writer(line->id));
  VARVE_TRY_ASSIGN(const auto parent, directory(*version, path));
  NewFile made;
  made.mode = S_IFLNK | 0777;
  made.symlink_target = "a target " + std::to_string(++content_);
  TreeNode node;
  node.is_link = true;
  node.content = shared_text(made.symlink_target);
  changed(*line, path, std::move(node));
  VARVE_TRY(version->create(parent, split_path(path).second, made));
  return {};
}

Result<void> RandomHistory::rename() {
  auto* const line = line_with_open();
  if (line == nullptr) return {};
  VARVE_TRY_ASSIGN(const auto from, any_file(*line));
  const auto to = any_path();
  if (from.empty() || from == "id" || from == to) return {};
  VARVE_TRY_ASSIGN(const auto version, repository_->writer(line->id));
  VARVE_TRY_ASSIGN(const auto from_parent, directory(*version, from));
  VARVE_TRY_ASSIGN(const auto to_parent, directory(*version, to));
  const auto node = line->open->tree.at(from);
  changed(*line, to, node);
  changed(*line, from, std::nullopt);
  return version->rename(from_parent, split_path(from).second, to_parent, split_path(to).second,
                         RenameMode::kReplace);
}

Result<void> RandomHistory::set_xattr() {
  auto* const line = line_with_open();
  if (line == nullptr) return {};
  VARVE_TRY_ASSIGN(const auto path, any_file(*line));
  if (path.empty()) return {};
  VARVE_TRY_ASSIGN(const auto version, repository_->writer(line->id));
  VARVE_TRY_ASSIGN(const auto ino, file(*version, *line, path));
  auto node = line->open->tree.at(path);
  node.xattrs = {{"user.n", "a value " + std::to_string(++content_)}};
  const auto value = node.xattrs.front().value;
  changed(*line, path, std::move(node));
  return version->set_xattr(ino, "user.n", value, XattrMode::kAny);
}

Result<void> RandomHistory::remove_file() {
  auto* const line = line_with_open();
  if (line == nullptr || line->open->tree.empty()) return {};
  const auto path = any_path();
  if (!line->open->tree.contains(path)) return {};
  VARVE_TRY_ASSIGN(const auto version, repository_->writer(line->id));
  VARVE_TRY_ASSIGN(const auto parent, directory(*version, path));
  changed(*line, path, std::nullopt);
  return version->unlink(parent, split_path(path).second);
}

Result<void> RandomHistory::clone_file() {
  auto* const line = line_with_open();
  const auto path = any_path();
  if (line == nullptr || line->sealed.empty() || line->open->tree.contains(path)) return {};
  const auto source = any_of(line->sealed, below(line->sealed.size()));
  const auto from = any_path();
  const auto node = node_at(line->sealed.at(source).tree, from);
  if (!node) return {};
  VARVE_TRY_ASSIGN(const auto version, repository_->writer(line->id));
  VARVE_TRY_ASSIGN(const auto parent, directory(*version, path));
  VARVE_TRY_ASSIGN(const auto reader, repository_->reader(line->id, source));
  changed(*line, path, node);
  VARVE_TRY(version->clone(*reader, find(*reader, from), parent, split_path(path).second));
  return {};
}

Result<void> RandomHistory::sync_file() {
  auto* const line = line_with_open();
  if (line == nullptr) return {};
  VARVE_TRY_ASSIGN(const auto path, any_file(*line));
  if (path.empty()) return {};
  VARVE_TRY_ASSIGN(const auto version, repository_->writer(line->id));
  VARVE_TRY_ASSIGN(const auto ino, file(*version, *line, path));
  VARVE_TRY_ASSIGN(const auto opened, version->open(ino, true));
  VARVE_TRY(opened->sync());
  line->open->states.erase(path);
  line->open->durable = true;
  return {};
}

Result<void> RandomHistory::checkpoint() {
  VARVE_TRY(repository_->sync());
  for (auto& line : lines_) {
    if (!line.open) continue;
    line.open->states.clear();
    line.open->durable = true;
  }
  return {};
}

Result<void> RandomHistory::open_version() {
  auto* const line = line_without_open();
  if (line == nullptr) return {};
  line->opening.emplace();
  const auto name = "v" + std::to_string(++names_) + ".partial";
  VARVE_TRY_ASSIGN(const auto opened, repository_->open_version(line->id, name, folder()));
  line->opening.reset();
  line->open = Open();
  line->open->number = opened.number;
  return {};
}

Result<void> RandomHistory::clone() {
  auto* const line = line_without_open();
  if (line == nullptr || line->sealed.empty()) return {};
  const bool newest = below(3) != 0;
  const auto source =
      newest ? line->sealed.rbegin()->first : any_of(line->sealed, below(line->sealed.size()));
  line->opening = line->sealed.at(source).tree;
  const auto name = "v" + std::to_string(++names_) + ".partial";
  VARVE_TRY_ASSIGN(const auto opened, repository_->clone_version(line->id, source, name));
  line->open = Open();
  line->open->number = opened.number;
  // A crash before the next sync may lose what the clone has made.
  for (const auto& [path, node] : *line->opening) changed(*line, path, node);
  line->opening.reset();
  return {};
}

Result<void> RandomHistory::seal() {
  auto* const line = line_with_open();
  return line == nullptr ? Result<void>() : seal_now(*line, below(3) == 0);
}

Result<void> RandomHistory::seal_now(Line& line, bool keep) {
  const auto id = line.name + " " + std::to_string(++names_);
  if (const auto old = node_at(line.open->tree, "id")) {
    VARVE_TRY_ASSIGN(const auto version, repository_->writer(line.id));
    changed(line, "id", std::nullopt);
    VARVE_TRY(version->unlink(kRootIno, "id"));
  }
  VARVE_TRY(write_at(line, "id", 0, id));
  trees_[id] = line.open->tree;
  line.sealing = true;
  line.keeping = keep;
  const auto name = "v" + std::to_string(++names_);
  VARVE_TRY_ASSIGN(const auto outcome, repository_->seal(line.id, line.open->number, name,
                                                         keep ? SealMode::kKeep : SealMode::kEnd));
  line.sealing = line.keeping = false;
  line.sealed[line.open->number] = {name, line.open->tree};
  if (keep) {
    Open next;
    next.number = outcome.next->number;
    next.tree = std::move(line.open->tree);
    line.open = std::move(next);
  } else {
    line.open.reset();
  }
  return {};
}

Result<void> RandomHistory::rename_version() {
  auto* const line = line_with_sealed();
  if (line == nullptr) return {};
  const auto number = any_of(line->sealed, below(line->sealed.size()));
  line->renaming = {number, "v" + std::to_string(++names_)};
  VARVE_TRY(repository_->rename_version(line->id, number, line->renaming->second));
  line->sealed.at(number).name = line->renaming->second;
  line->renaming.reset();
  return {};
}

Result<void> RandomHistory::rename_series() {
  auto* const line = line_without_open();
  if (line == nullptr) return {};
  line->new_name = "series " + std::to_string(++names_);
  VARVE_TRY(repository_->rename_series(line->id, *line->new_name));
  line->name = *line->new_name;
  line->new_name.reset();
  return {};
}

Result<void> RandomHistory::delete_versions(Line& line, std::vector<VersionNumber> numbers) {
  if (numbers.empty()) return {};
  DeletionOptions held;
  held.skip_held = true;
  VARVE_TRY_ASSIGN(const auto forecast, repository_->forecast_deletion(line.id, numbers, held));
  if (forecast.versions.empty()) return {};
  for (const auto number : forecast.versions) {
    if (line.sealed.at(number).locked) fail("a locked version would be deleted");
  }
  line.deleting = forecast.versions;
  VARVE_TRY(repository_->delete_versions(line.id, forecast.versions));
  for (const auto number : line.deleting) line.sealed.erase(number);
  line.deleting.clear();
  return {};
}

Result<void> RandomHistory::remove() {
  auto* const line = line_with_sealed();
  if (line == nullptr) return {};
  std::vector<VersionNumber> numbers;
  for (const auto& [number, sealed] : line->sealed) {
    if (below(4) == 0) numbers.push_back(number);
  }
  return delete_versions(*line, std::move(numbers));
}

Result<void> RandomHistory::prune() {
  auto* const line = line_with_sealed();
  if (line == nullptr) return {};
  VARVE_TRY_ASSIGN(auto versions, repository_->versions(line->id));
  std::erase_if(versions, [](const auto& v) { return v.state != VersionState::kSealed; });
  KeepRules rules;
  rules.last = kKeptVersions;
  std::vector<VersionNumber> numbers;
  const Timestamp now{std::numeric_limits<std::int32_t>::max(), 0};
  for (const auto& one : decide_prune(versions, {}, rules, now)) {
    if (!one.keep) numbers.push_back(one.version.number);
  }
  return delete_versions(*line, std::move(numbers));
}

Result<void> RandomHistory::lock() {
  auto* const line = line_with_sealed();
  if (line == nullptr) return {};
  const auto locked =
      std::ranges::count_if(line->sealed, [](const auto& v) { return v.second.locked; });
  const auto number = any_of(line->sealed, below(line->sealed.size()));
  if (static_cast<std::size_t>(locked) >= kLockedMax || line->sealed.at(number).locked) return {};
  constexpr std::int64_t kFarAway = 4'000'000'000;
  VARVE_TRY(repository_->lock_version(line->id, number, {kFarAway, 0}));
  line->sealed.at(number).locked = true;
  return {};
}

}  // namespace varve::test
