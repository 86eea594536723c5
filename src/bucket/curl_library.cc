// SPDX-License-Identifier: Apache-2.0
#include "bucket/curl_library.h"

#include <string>

#include "base/assert.h"
#include "base/shared_library.h"

namespace varve::bucket {
namespace {

// The soname has been the same since 2006.
constexpr const char* kSoname = "libcurl.so.4";

/// The functions of the library, and why the library cannot be used.
struct Loaded {
  Loaded() {
    base::SharedLibrary library(kSoname);
    library.find("curl_global_init", functions.global_init);
    library.find("curl_easy_init", functions.easy_init);
    library.find("curl_easy_cleanup", functions.easy_cleanup);
    library.find("curl_easy_reset", functions.easy_reset);
    library.find("curl_easy_setopt", functions.easy_setopt);
    library.find("curl_easy_getinfo", functions.easy_getinfo);
    library.find("curl_easy_strerror", functions.easy_strerror);
    library.find("curl_getdate", functions.getdate);
    library.find("curl_multi_init", functions.multi_init);
    library.find("curl_multi_cleanup", functions.multi_cleanup);
    library.find("curl_multi_setopt", functions.multi_setopt);
    library.find("curl_multi_add_handle", functions.multi_add_handle);
    library.find("curl_multi_remove_handle", functions.multi_remove_handle);
    library.find("curl_multi_info_read", functions.multi_info_read);
    library.find("curl_multi_perform", functions.multi_perform);
    library.find("curl_multi_poll", functions.multi_poll);
    library.find("curl_multi_wakeup", functions.multi_wakeup);
    library.find("curl_slist_append", functions.slist_append);
    library.find("curl_slist_free_all", functions.slist_free_all);
    fault = library.fault();
    if (fault.empty() && functions.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
      fault = "it cannot start";
    }
  }

  CurlLibrary functions;
  std::string fault;  // Empty: none.
};

const Loaded& loaded() {
  static const Loaded loaded;
  return loaded;
}

}  // namespace

Result<void> load_curl() {
  if (loaded().fault.empty()) return {};
  return Error(ErrorCode::kUnsupported,
               std::string("object stores need libcurl; install it (") + loaded().fault + ")");
}

const CurlLibrary& curl() {
  VARVE_ASSERT(loaded().fault.empty());
  return loaded().functions;
}

}  // namespace varve::bucket
