// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <string>

#include "restore/restore_engine.h"
#include "restore/window_engine.h"

namespace varve::restore {
namespace {

using Keep = EngineKind::Keep;
using Forward = EngineKind::Forward;

struct NamedKind {
  std::string_view name;
  EngineKind kind;
};

constexpr std::array kEngines{
    // A window of fixed length, chunks by their next use: measured best.
    NamedKind{"alacc", {Keep::kFuture, Forward::kTwoAreas, {}}},
    // Cao et al., FAST'18, with all its rules.
    NamedKind{"alacc-paper", {Keep::kFutureAndPast, Forward::kAdaptive, {}}},
    // The same, but the window is kept long enough to fill the cache with F-chunks.
    NamedKind{"alacc-f80", {Keep::kFutureAndPast, Forward::kAdaptive, {0.8, true}}},
    // Forward assembly alone: Lillibridge et al., FAST'13.
    NamedKind{"faa", {Keep::kNothing, Forward::kAllMemory, {}}},
    NamedKind{"lru", {Keep::kContainers, Forward::kOneArea, {}}},
    NamedKind{"lru-chunk", {Keep::kChunks, Forward::kOneArea, {}}},
    // Belady's rule on the sequence of containers that the window needs.
    NamedKind{"opt", {Keep::kContainersAhead, Forward::kOneArea, {}}},
};

const NamedKind* find_engine(std::string_view name) {
  for (const NamedKind& engine : kEngines) {
    if (engine.name == name) return &engine;
  }
  return nullptr;
}

}  // namespace

bool is_engine_name(std::string_view name) { return find_engine(name) != nullptr; }

std::string engine_names() {
  std::string names;
  for (const NamedKind& engine : kEngines) {
    if (!names.empty()) names += ", ";
    names += engine.name;
  }
  return names;
}

Result<std::unique_ptr<RestoreEngine>> make_engine(std::string_view name,
                                                   const EngineContext& context,
                                                   const EngineMemory& memory) {
  const NamedKind* engine = find_engine(name);
  if (engine == nullptr) {
    return Error(ErrorCode::kInvalid, "there is no restore engine called '" + std::string(name) +
                                          "'; there are " + engine_names());
  }
  return std::unique_ptr<RestoreEngine>(new WindowEngine(engine->kind, context, memory));
}

}  // namespace varve::restore
