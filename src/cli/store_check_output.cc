// SPDX-License-Identifier: Apache-2.0
#include "cli/store_check_output.h"

#include <fmt/core.h>

#include "cli/options.h"
#include "cli/output.h"
#include "cli/quantity.h"
#include "cli/repository_access.h"
#include "varve/remote_folder.h"

namespace varve::cli {

Result<StoreCheck> check_store_of(const std::string& repository, bool reads_all) {
  VARVE_TRY_ASSIGN(const auto path, repository_at(repository, control::Purpose::kLook));
  const auto info = RemoteFolder(path, is_trusted(path)).info();
  if (reads_all && info && !*info) {
    return usage_error("--read-store: " + path + " is in no object store");
  }
  if (!info || !*info) return StoreCheck();  // The check of the repository reports errors.
  return RemoteFolder(path).check(options_to_read(path), reads_all);
}

bool print_store_check(const StoreCheck& store, bool json, const Context& context) {
  if (store.place.empty()) return true;
  for (const StoreDamage& damage : store.damages) {
    if (json) {
      print_json("store_damage", {{"object", damage.object}, {"what", damage.what}});
    } else {
      print(fmt::format("{}/{}: {}\n", store.place, damage.object, damage.what));
    }
  }
  for (const auto& text : store.notes) {
    if (json) {
      print_json("store_note", {{"what", text}});
    } else {
      note(context, store.place + ": " + text);
    }
  }
  if (json) {
    print_json("store_check", {{"place", store.place},
                               {"objects", store.objects},
                               {"stored_bytes", store.bytes},
                               {"foreign_objects", store.foreign_objects},
                               {"foreign_bytes", store.foreign_bytes},
                               {"read_objects", store.objects_read},
                               {"read_bytes", store.bytes_read},
                               {"damages", store.damages.size()}});
    return store.damages.empty();
  }
  std::string text = fmt::format("{} has {} objects with {}", store.place, store.objects,
                                 size_text(store.bytes, false));
  if (store.foreign_objects != 0) {
    text += fmt::format("; {} with {} are left over from interrupted commands",
                        store.foreign_objects, size_text(store.foreign_bytes, false));
  }
  if (store.objects_read != 0) {
    text += fmt::format("; {} with {} were read", store.objects_read,
                        size_text(store.bytes_read, false));
  }
  text += store.damages.empty() ? std::string("; all that are needed are there")
                                : fmt::format("; {} are damaged", store.damages.size());
  note(context, text);
  return store.damages.empty();
}

}  // namespace varve::cli
