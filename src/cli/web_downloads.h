// SPDX-License-Identifier: Apache-2.0
// Downloads of `varve web`. Every download is an attachment, so browsers neither show nor run a
// file.
#pragma once

#include "varve/repository.h"
#include "varve/result.h"
#include "web/exchange.h"
#include "web/request.h"

namespace varve::cli {

/// Sends a regular file, or the requested range of the file.
/// Errors: as find_web_place(); kInvalid for another type of file. After a part was sent, damage
/// ends the connection, and the browser reports the download as failed.
[[nodiscard]] Result<void> send_file(Repository& repository, const web::Request& request,
                                     web::Exchange& exchange);

/// Sends a directory or file as a tar archive, or as a zip archive. Streams the archive while
/// writing. Damage fails the download.
[[nodiscard]] Result<void> send_archive(Repository& repository, const web::Request& request,
                                        bool is_tar, web::Exchange& exchange);

}  // namespace varve::cli
