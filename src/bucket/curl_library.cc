// SPDX-License-Identifier: Apache-2.0
#include "bucket/curl_library.h"

#include <dlfcn.h>

#include <string>

#include "base/assert.h"

namespace varve::bucket {
namespace {

// The name has been the same since 2006.
constexpr const char* kFile = "libcurl.so.4";

/// The library, or what is wrong with it.
class Loaded {
 public:
  Loaded() {
    void* const library = ::dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      note_trouble();
      return;
    }
    find(library, "curl_global_init", functions_.global_init);
    find(library, "curl_easy_init", functions_.easy_init);
    find(library, "curl_easy_cleanup", functions_.easy_cleanup);
    find(library, "curl_easy_reset", functions_.easy_reset);
    find(library, "curl_easy_setopt", functions_.easy_setopt);
    find(library, "curl_easy_getinfo", functions_.easy_getinfo);
    find(library, "curl_easy_strerror", functions_.easy_strerror);
    find(library, "curl_getdate", functions_.getdate);
    find(library, "curl_multi_init", functions_.multi_init);
    find(library, "curl_multi_cleanup", functions_.multi_cleanup);
    find(library, "curl_multi_setopt", functions_.multi_setopt);
    find(library, "curl_multi_add_handle", functions_.multi_add_handle);
    find(library, "curl_multi_remove_handle", functions_.multi_remove_handle);
    find(library, "curl_multi_info_read", functions_.multi_info_read);
    find(library, "curl_multi_perform", functions_.multi_perform);
    find(library, "curl_multi_poll", functions_.multi_poll);
    find(library, "curl_multi_wakeup", functions_.multi_wakeup);
    find(library, "curl_slist_append", functions_.slist_append);
    find(library, "curl_slist_free_all", functions_.slist_free_all);
    if (trouble_.empty() && functions_.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
      trouble_ = "it cannot start";
    }
  }

  [[nodiscard]] const CurlLibrary& functions() const { return functions_; }
  [[nodiscard]] const std::string& trouble() const { return trouble_; }

 private:
  template <typename Function>
  void find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(library, name));
    if (function == nullptr) note_trouble();
  }
  void note_trouble() {
    const char* const text = ::dlerror();
    if (trouble_.empty()) trouble_ = text == nullptr ? "it lacks a function" : text;
  }

  CurlLibrary functions_;
  std::string trouble_;  // Empty: none.
};

const Loaded& loaded() {
  static const Loaded loaded;
  return loaded;
}

}  // namespace

Result<void> load_curl() {
  if (loaded().trouble().empty()) return {};
  return Error(ErrorCode::kUnsupported,
               std::string("object stores need libcurl; install it (") + loaded().trouble() + ")");
}

const CurlLibrary& curl() {
  VARVE_ASSERT(loaded().trouble().empty());
  return loaded().functions();
}

}  // namespace varve::bucket
