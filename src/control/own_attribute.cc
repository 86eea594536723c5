// SPDX-License-Identifier: Apache-2.0
#include "control/own_attribute.h"

#include <fcntl.h>
#include <sys/xattr.h>

#include <cerrno>
#include <cstring>

#include "base/unique_fd.h"

namespace varve::control {

OwnAttribute own_attribute(const std::string& directory, const std::string& name) {
  OwnAttributeText buffer{};
  const ssize_t got = ::getxattr(directory.c_str(), name.c_str(), buffer.text, sizeof buffer.text);
  if (got >= 0) return {std::string(buffer.text, static_cast<std::size_t>(got)), 0};
  if (errno != EOPNOTSUPP) return {{}, errno};
  const base::UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return {{}, errno};
  if (name.size() >= sizeof buffer.text) return {{}, EINVAL};
  std::memcpy(buffer.text, name.data(), name.size());
  // Another file system does not know the request: the answer is then the same as from getxattr(2).
  if (::ioctl(fd.get(), kOwnAttributeRequest, &buffer) != 0) return {{}, EOPNOTSUPP};
  return {std::string(buffer.text, ::strnlen(buffer.text, sizeof buffer.text)), 0};
}

}  // namespace varve::control
