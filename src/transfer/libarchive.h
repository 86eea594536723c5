// SPDX-License-Identifier: Apache-2.0
// libarchive, loaded when an archive is first read or written.
#pragma once

#include <archive.h>
#include <archive_entry.h>

#include "varve/result.h"

// The functions of libarchive used in the room.
#define VARVE_LIBARCHIVE_FUNCTIONS(F)         \
  F(archive_entry_acl_next)                   \
  F(archive_entry_acl_reset)                  \
  F(archive_entry_filetype)                   \
  F(archive_entry_free)                       \
  F(archive_entry_gid)                        \
  F(archive_entry_hardlink)                   \
  F(archive_entry_size)                       \
  F(archive_entry_size_is_set)                \
  F(archive_entry_symlink)                    \
  F(archive_entry_mtime)                      \
  F(archive_entry_mtime_is_set)               \
  F(archive_entry_mtime_nsec)                 \
  F(archive_entry_new)                        \
  F(archive_entry_pathname)                   \
  F(archive_entry_perm)                       \
  F(archive_entry_rdevmajor)                  \
  F(archive_entry_rdevminor)                  \
  F(archive_entry_set_filetype)               \
  F(archive_entry_set_gid)                    \
  F(archive_entry_set_mode)                   \
  F(archive_entry_set_mtime)                  \
  F(archive_entry_set_pathname)               \
  F(archive_entry_set_perm)                   \
  F(archive_entry_set_size)                   \
  F(archive_entry_set_symlink)                \
  F(archive_entry_set_uid)                    \
  F(archive_entry_uid)                        \
  F(archive_entry_xattr_next)                 \
  F(archive_entry_xattr_reset)                \
  F(archive_errno)                            \
  F(archive_error_string)                     \
  F(archive_filter_bytes)                     \
  F(archive_filter_count)                     \
  F(archive_format)                           \
  F(archive_format_name)                      \
  F(archive_read_data_block)                  \
  F(archive_read_free)                        \
  F(archive_read_header_position)             \
  F(archive_read_new)                         \
  F(archive_read_next_header)                 \
  F(archive_read_open1)                       \
  F(archive_read_set_callback_data)           \
  F(archive_read_set_format_option)           \
  F(archive_read_set_read_callback)           \
  F(archive_read_set_seek_callback)           \
  F(archive_read_support_filter_bzip2)        \
  F(archive_read_support_filter_compress)     \
  F(archive_read_support_filter_lzma)         \
  F(archive_read_support_filter_zstd)         \
  F(archive_read_support_format_cpio)         \
  F(archive_read_support_format_empty)        \
  F(archive_read_support_format_raw)          \
  F(archive_read_support_format_tar)          \
  F(archive_read_support_format_zip_seekable) \
  F(archive_set_error)                        \
  F(archive_write_close)                      \
  F(archive_write_data)                       \
  F(archive_write_free)                       \
  F(archive_write_header)                     \
  F(archive_write_new)                        \
  F(archive_write_open_fd)                    \
  F(archive_write_set_bytes_in_last_block)    \
  F(archive_write_set_format_zip)             \
  F(archive_write_set_options)

namespace varve::transfer {

/// Pointers to functions of libarchive, under the functions' names.
struct Libarchive {
#define VARVE_POINTER(function) decltype(&::function) function = nullptr;
  VARVE_LIBARCHIVE_FUNCTIONS(VARVE_POINTER)
#undef VARVE_POINTER
};

/// Loads libarchive if necessary. Varve does not link libarchive, because each command would then
/// also load the eight libraries used by libarchive. The static program links libarchive.
/// Thread-safe. Errors: kUnsupported without the library.
[[nodiscard]] Result<void> load_libarchive();

/// Returns the functions. Must be called after load_libarchive() succeeded. Thread-safe.
[[nodiscard]] const Libarchive& libarchive();

}  // namespace varve::transfer
